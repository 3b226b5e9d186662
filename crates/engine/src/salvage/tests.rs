//! Damaged files: what is left of them, and whether all that is lost is told.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use perilune_disk::{Disk, Fault, FaultyDisk, RealDisk};
use perilune_store::{Durability, Error, Session, Store};

use super::*;
use crate::limits::PAGE;
use crate::meta::info::Place;
use crate::{checkpoint_pages, Database};

pub(crate) type Nodes = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory that is removed when dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("perilune-copies-{}-{}", std::process::id(), NUMBER.fetch_add(1, SeqCst));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions { max_size: 1 << 30, ..OpenOptions::default() }
}

/// Nodes with keys that share prefixes, some of them long, and some long values.
pub(crate) fn some_nodes(count: u32) -> Nodes {
    let mut nodes = Nodes::new();
    for at in 0..count {
        let scattered = at.wrapping_mul(2_654_435_761);
        let mut key = format!("name {:03} {scattered:010}", scattered % 40).into_bytes();
        if at % 97 == 0 {
            key.resize(400 + at as usize % 300, b'k');
        }
        let bytes = if at % 211 == 5 { 3 * PAGE + at as usize } else { at as usize % 90 };
        nodes.insert(key, vec![at as u8; bytes]);
    }
    nodes
}

pub(crate) fn set_all(database: &Database, nodes: &Nodes) {
    let mut session = database.session().unwrap();
    nodes.iter().for_each(|(key, value)| session.set(key, value).unwrap());
}

pub(crate) fn make(path: &Path, nodes: &Nodes) {
    let database = Database::open(path, &options()).unwrap();
    set_all(&database, nodes);
    database.close().unwrap();
}

/// All that a database holds, which is sound.
pub(crate) fn all_of(path: &Path) -> Nodes {
    let database = Database::open(path, &options()).unwrap();
    database.verify().unwrap();
    let mut session = database.session().unwrap();
    let (mut at, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
    let mut nodes = Nodes::new();
    while session.next(&at, nodes.is_empty(), &mut key, Some(&mut value)).unwrap() {
        nodes.insert(key.clone(), value.clone());
        std::mem::swap(&mut at, &mut key);
    }
    drop(session);
    database.close().unwrap();
    nodes
}

fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn run(path: &Path, new: &Path) -> SalvageReport {
    let _ = fs::remove_file(new);
    salvage(path, new, &options(), &real(), &mut |_, _| {}).unwrap()
}

fn flip(path: &Path, page: u64, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, page * PAGE as u64 + at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x41], page * PAGE as u64 + at).unwrap();
}

/// The nodes that need none of the `damaged` pages, by reading the sound file page by page.
fn unharmed(path: &Path, damaged: &[u64]) -> Nodes {
    let file = RealDisk.open(path, false).unwrap();
    let (_, meta) = meta::newest(&*file, path).unwrap();
    let offline = OfflineFile::open(file, path, meta).unwrap();
    let mut nodes = Nodes::new();
    for number in offline.tree_pages().filter(|number| !damaged.contains(number)) {
        let (page, _) = offline.tree_page(number).unwrap();
        if page::kind(&page) == page::INNER {
            continue;
        }
        for index in 0..page::leaf_count(&page) {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            page::leaf_key(&page, index, &mut key);
            if page::append_value(&page, index, &mut value) & RECORD_BIG != 0 {
                let runs = crate::session::extent::parse_within(offline.npages(), &value).unwrap().1;
                let hit = |run: &crate::image::layout::Run| {
                    damaged
                        .iter()
                        .any(|page| (u64::from(run.first)..u64::from(run.first + run.pages)).contains(page))
                };
                if runs.iter().any(hit) {
                    continue;
                }
                value = offline.long_value(number, &value).unwrap().0;
            }
            nodes.insert(key, value);
        }
    }
    nodes
}

#[test]
fn a_sound_database_is_copied_whole() {
    let scratch = Scratch::new();
    let (old, new) = (scratch.path("old.db"), scratch.path("new.db"));
    for count in [0, 1, 30, 4000] {
        let _ = fs::remove_file(&old);
        let nodes = some_nodes(count);
        make(&old, &nodes);
        let report = run(&old, &new);
        assert!(report.is_complete() && !report.was_open, "{report:?}");
        assert_eq!(report.nodes, u64::from(count));
        assert_eq!(report.bytes, fs::metadata(&new).unwrap().len());
        assert!(all_of(&new) == nodes, "{count} nodes");
        assert!(!scratch.path("new.db.partial").exists());
    }
}

#[test]
fn what_undamaged_leaves_hold_is_copied_and_nothing_else_and_the_rest_is_named() {
    let scratch = Scratch::new();
    let (old, new, bad) = (scratch.path("old.db"), scratch.path("new.db"), scratch.path("bad.db"));
    let nodes = some_nodes(6000);
    make(&old, &nodes);
    let data = checkpoint_pages(&old).unwrap().data;
    let mut seed = 7u64;
    for round in 1..25 {
        let mut damaged: Vec<u64> = (0..round)
            .map(|_| {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                data[(seed >> 33) as usize % data.len()]
            })
            .collect();
        damaged.sort_unstable();
        damaged.dedup();
        fs::copy(&old, &bad).unwrap();
        damaged.iter().for_each(|page| flip(&bad, *page, seed >> 40 & (PAGE as u64 - 1)));
        let report = run(&bad, &new);
        let (left, expected) = (all_of(&new), unharmed(&old, &damaged));
        assert!(left == expected, "round {round}, pages {damaged:?}: {} of {}", left.len(), expected.len());
        assert_eq!(report.nodes, expected.len() as u64);
        // Each node that is missing is named, or lies in a range that is.
        for lost in nodes.keys().filter(|key| !left.contains_key(*key)) {
            let inside = |range: &LostRange| {
                range.after.as_ref().is_none_or(|after| after < lost)
                    && range.before.as_ref().is_none_or(|before| lost < before)
            };
            assert!(report.values.contains(lost) || report.ranges.iter().any(inside), "round {round}");
        }
        // And nothing is named that is not damaged.
        assert!(report.pages.iter().all(|lost| damaged.contains(&lost.page)), "{:?}", report.pages);
        assert!(report.pages.iter().all(|lost| lost.byte == lost.page * PAGE as u64 && !lost.why.is_empty()));
        assert_eq!(report.ranges.is_empty() && report.values.is_empty(), left == nodes);
    }
}

#[test]
fn lost_info_pages_and_meta_lose_no_nodes() {
    let scratch = Scratch::new();
    let (old, new, bad) = (scratch.path("old.db"), scratch.path("new.db"), scratch.path("bad.db"));
    let nodes = some_nodes(3000);
    make(&old, &nodes);
    let used = checkpoint_pages(&old).unwrap();
    let (meta, info) = used.directory.split_first().unwrap();
    assert!(*meta < 2, "the other copy of meta is of the state before");
    let mut unsummed = 0;
    for (place, page) in Place::all(used.pages).zip(info) {
        let covered = used.data.iter().filter(|page| place.pages(used.pages).contains(page)).count() as u64;
        for at in [2, 9, 300] {
            fs::copy(&old, &bad).unwrap();
            flip(&bad, *page, at);
            let report = run(&bad, &new);
            assert!(all_of(&new) == nodes, "info page {page}, byte {at}");
            assert!(report.ranges.is_empty() && report.pages[0].byte == place.offset(0), "{report:?}");
            assert_eq!(report.unsummed_pages, covered, "info page {page}, byte {at}");
        }
        unsummed += covered;
    }
    assert!(unsummed > 10, "{unsummed}");
    fs::copy(&old, &bad).unwrap();
    flip(&bad, 0, 20);
    flip(&bad, 1, 20);
    let report = run(&bad, &new);
    assert!(!report.is_complete() && report.generation == 0, "{report:?}");
    assert!(all_of(&new) == nodes, "without meta");
}

/// A program has written over the begin of the file: no meta, and no info pages, or only some.
#[test]
fn a_tree_is_found_by_its_pages() {
    let scratch = Scratch::new();
    let (old, new, bad) = (scratch.path("old.db"), scratch.path("new.db"), scratch.path("bad.db"));
    let mut nodes = some_nodes(5000);
    make(&old, &nodes);
    for round in 0..3_u8 {
        // Pages of states before are left where they were, free.
        nodes.retain(|key, _| key.len() % 5 != usize::from(round));
        nodes.extend((0..400).map(|at| (format!("new {round} {:04}", at * 7).into_bytes(), vec![round; 30])));
        let database = Database::open(&old, &options()).unwrap();
        let mut session = database.session().unwrap();
        let (mut at, mut key, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        while session.next(&at, false, &mut key, None).unwrap() {
            if !nodes.contains_key(&key) {
                gone.push(key.clone());
            }
            at.clone_from(&key);
        }
        gone.iter().for_each(|key| assert!(session.remove(key).unwrap()));
        drop(session);
        set_all(&database, &nodes);
        database.close().unwrap();
    }
    let reserved = crate::limits::SEGMENT_RESERVED;
    for (pages, byte) in [(2, 0), (2, 0xaa), (reserved, 0), (reserved, 0xaa)] {
        fs::copy(&old, &bad).unwrap();
        let file = File::options().write(true).open(&bad).unwrap();
        file.write_all_at(&vec![byte; pages as usize * PAGE], 0).unwrap();
        let report = run(&bad, &new);
        assert!(!report.is_complete() && report.pages[0].page == 0, "{report:?}");
        assert_eq!(report.unsummed_pages > 0, pages > 2, "{report:?}");
        assert!(
            all_of(&new) == nodes,
            "{pages} pages of {byte:#x}: {} of {} nodes",
            report.nodes,
            nodes.len()
        );
    }
    // Inner pages, too: what leaves there are is taken, the newest of each range.
    let known = checkpoint_pages(&old).unwrap();
    let file = File::options().read(true).write(true).open(&bad).unwrap();
    for page in known.data {
        let mut kind = [0];
        file.read_exact_at(&mut kind, page * PAGE as u64).unwrap();
        if kind[0] == page::INNER {
            file.write_all_at(&[0xaa; PAGE], page * PAGE as u64).unwrap();
        }
    }
    let report = run(&bad, &new);
    let left = all_of(&new);
    let right = nodes.iter().filter(|(key, value)| left.get(*key) == Some(value)).count();
    assert!(right * 10 > nodes.len() * 9, "{right} of {} nodes, {report:?}", nodes.len());
    // What is foreign is left alone.
    fs::write(&bad, vec![0xaa; 300 * PAGE]).unwrap();
    fs::remove_file(&new).unwrap();
    let refused = salvage(&bad, &new, &options(), &real(), &mut |_, _| {}).unwrap_err();
    assert!(matches!(refused, Error::NotADatabase { .. }), "{refused}");
}

#[test]
fn any_bytes_are_survived() {
    let scratch = Scratch::new();
    let (old, new, bad) = (scratch.path("old.db"), scratch.path("new.db"), scratch.path("bad.db"));
    make(&old, &some_nodes(500));
    let (bytes, used) = (fs::read(&old).unwrap(), checkpoint_pages(&old).unwrap());
    let mut seed = 99u64;
    let mut random = move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed >> 33
    };
    for round in 0..40 {
        let mut bytes = bytes.clone();
        for page in used.data.iter().chain(&used.directory) {
            if random() % 4 == 0 {
                let from = *page as usize * PAGE;
                let garbage = random().to_le_bytes();
                for at in (0..PAGE).step_by(1 + random() as usize % 500) {
                    bytes[from + at] = garbage[at % 8];
                }
            }
        }
        if round % 3 == 0 {
            bytes.truncate(random() as usize % bytes.len());
        }
        fs::write(&bad, &bytes).unwrap();
        let _ = fs::remove_file(&new);
        match salvage(&bad, &new, &options(), &real(), &mut |_, _| {}) {
            Ok(report) => assert_eq!(all_of(&new).len() as u64, report.nodes),
            Err(Error::NotADatabase { .. } | Error::Io { .. }) => {}
            Err(error) => panic!("round {round}: {error}"),
        }
    }
}

#[test]
fn databases_in_use_and_names_in_use_are_refused() {
    let scratch = Scratch::new();
    let (old, new) = (scratch.path("old.db"), scratch.path("new.db"));
    let nodes = some_nodes(50);
    let database = Database::open(&old, &options()).unwrap();
    set_all(&database, &nodes);
    let refusal =
        |new: &Path| salvage(&old, new, &options(), &real(), &mut |_, _| {}).unwrap_err().to_string();
    assert!(refusal(&new).contains("in use by 1 process"), "{}", refusal(&new));
    database.close().unwrap();
    assert!(refusal(&old).contains("exists: give"), "{}", refusal(&old));
    assert!(!new.exists());
}

#[test]
fn failing_disks_leave_no_half_database() {
    let scratch = Scratch::new();
    let (old, new) = (scratch.path("old.db"), scratch.path("new.db"));
    let nodes = some_nodes(100);
    make(&old, &nodes);
    for call in 1.. {
        let disk = FaultyDisk::new(Fault::NoSpace);
        disk.fail_call(call);
        let all: Arc<dyn Disk> = Arc::new(disk.clone());
        match salvage(&old, &new, &options(), &all, &mut |_, _| {}) {
            Ok(report) => {
                let left = all_of(&new);
                assert_eq!(left.len() as u64, report.nodes);
                // A slot that does not count may be unreadable without loss.
                assert!(left == nodes || !report.is_complete(), "call {call}");
                if disk.calls() < call {
                    assert!(report.is_complete());
                    break;
                }
            }
            Err(_) => assert!(!scratch.path("new.db.partial").exists(), "call {call}"),
        }
        let _ = fs::remove_file(&new);
    }
}

/// A database that the machine has left open, with all states since its checkpoint: one for each record of the log.
fn crashed(scratch: &Scratch, count: u32, records: u32) -> (PathBuf, Vec<Nodes>) {
    let path = scratch.path("live.db");
    let mut nodes = some_nodes(count);
    make(&path, &nodes);
    // From here on each commit is a batch of a new log.
    let with_log = OpenOptions { durability: Some(Durability::Fsync), ..options() };
    let database = Database::open(&path, &with_log).unwrap();
    let mut states = vec![nodes.clone()];
    let mut session = database.session().unwrap();
    for at in 0..records {
        let key = format!("name {:03} {at:010}", at % 41).into_bytes();
        match at % 10 {
            3 => {
                let prefix = format!("name {:03} ", at % 37).into_bytes();
                session.remove_prefix(&prefix).unwrap();
                nodes.retain(|key, _| !key.starts_with(&prefix));
            }
            7 => {
                let first = nodes.keys().next().unwrap().clone();
                session.remove(&first).unwrap();
                nodes.remove(&first);
            }
            _ => {
                let value = vec![at as u8; if at % 9 == 0 { 5 * PAGE } else { 300 }];
                session.set(&key, &value).unwrap();
                nodes.insert(key, value);
            }
        }
        states.push(nodes.clone());
    }
    drop(session);
    let crashed = scratch.path("old.db");
    for name in fs::read_dir(&scratch.0).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        if let Some(rest) = name.strip_prefix("live.db").filter(|rest| *rest != "-shm") {
            fs::copy(scratch.path(&name), scratch.path(&format!("old.db{rest}"))).unwrap();
        }
    }
    database.close().unwrap();
    (crashed, states)
}

#[test]
fn what_the_log_holds_is_in_the_copy() {
    let scratch = Scratch::new();
    let (old, states) = crashed(&scratch, 900, 60);
    let new = scratch.path("new.db");
    let report = run(&old, &new);
    assert_eq!(report.log_records, Some(states.len() as u64 - 1));
    assert!(report.was_open && report.is_complete(), "{report:?}");
    let left = all_of(&new);
    assert!(left == *states.last().unwrap());
    assert_eq!((report.nodes, report.bytes <= fs::metadata(&new).unwrap().len()), (left.len() as u64, true));
    let file = RealDisk.open(&new, false).unwrap();
    let (_, meta) = meta::newest(&*file, &new).unwrap();
    assert_eq!(meta.level, Durability::Fsync as u32, "the level of the old one");
    assert!(!scratch.path("new.db.partial-shm").exists());

    // A leaf is lost: what the log set is there nevertheless, also in its range.
    let used = checkpoint_pages(&old).unwrap();
    flip(&old, used.data[used.data.len() / 2], 700);
    let report = run(&old, &new);
    assert!(!report.is_complete() && report.log_damage.is_none(), "{report:?}");
    let (left, last) = (all_of(&new), states.last().unwrap());
    assert!(left.len() < last.len() && left.iter().all(|(key, value)| last.get(key) == Some(value)));
    let set_since = last.iter().filter(|(key, value)| states[0].get(*key) != Some(*value));
    set_since.for_each(|(key, value)| assert_eq!(left.get(key), Some(value)));
}

#[test]
fn a_damaged_log_is_named_and_applied_up_to_there() {
    let scratch = Scratch::new();
    let (old, states) = crashed(&scratch, 900, 60);
    let new = scratch.path("new.db");
    let segments: Vec<PathBuf> = (0..9)
        .map(|number| scratch.path(&format!("old.db-wal.{number}")))
        .filter(|path| path.exists())
        .collect();
    let (mut named, mut reached) = (0, std::collections::BTreeSet::new());
    for segment in &segments {
        let good = fs::read(segment).unwrap();
        // Nothing has been written to a spare one.
        let Some(end) = good.iter().rposition(|byte| *byte != 0).filter(|end| *end > 4096) else { continue };
        for part in 1..12 {
            let mut bad = good.clone();
            for byte in &mut bad[end / 12 * part..][..40] {
                *byte ^= 0x33;
            }
            fs::write(segment, bad).unwrap();
            let report = run(&old, &new);
            let records = report.log_records.unwrap();
            assert!(all_of(&new) == states[records as usize], "{segment:?}, part {part}: {report:?}");
            reached.insert(records);
            if let Some(damage) = &report.log_damage {
                assert!(damage.contains(&format!("{} is damaged at byte ", segment.display())), "{damage}");
                assert!(!report.is_complete());
                named += 1;
            }
        }
        fs::write(segment, good).unwrap();
    }
    assert!(named > 5 && reached.len() > 4, "{named} {reached:?}");
    segments.iter().for_each(|segment| fs::remove_file(segment).unwrap());
    let report = run(&old, &new);
    assert_eq!(report.log_records, Some(0));
    assert!(all_of(&new) == states[0]);
}

/// Tears both copies of meta.
fn lose_meta(path: &Path) {
    flip(path, 0, 20);
    flip(path, 1, 20);
}

#[test]
fn the_log_is_read_although_both_copies_of_meta_are_lost() {
    let scratch = Scratch::new();
    let new = scratch.path("new.db");
    let (old, states) = crashed(&scratch, 400, 50);
    lose_meta(&old);
    let report = run(&old, &new);
    // All that the log holds, also what the checkpoint has of it.
    assert!(report.generation == 0 && report.log_records.unwrap() >= 50, "{report:?}");
    assert!(!report.is_complete() && report.log_damage.is_none(), "{report:?}");
    assert!(all_of(&new) == *states.last().unwrap());
    let file = RealDisk.open(&new, false).unwrap();
    assert_eq!(meta::newest(&*file, &new).unwrap().1.level, Durability::default() as u32);
}

/// With checkpoints in between, after which part of the log is in the tree already; and a log that is older than
/// the tree, since the database went on without one: it would bring old values back.
#[test]
fn a_log_without_meta_is_applied_only_if_it_goes_beyond_the_tree() {
    let scratch = Scratch::new();
    let (live, old, new) = (scratch.path("live.db"), scratch.path("old.db"), scratch.path("new.db"));
    let take_copy = || {
        for name in fs::read_dir(&scratch.0).unwrap() {
            let name = name.unwrap().file_name().into_string().unwrap();
            if let Some(rest) = name.strip_prefix("live.db").filter(|rest| *rest != "-shm") {
                fs::copy(scratch.path(&name), scratch.path(&format!("old.db{rest}"))).unwrap();
            }
        }
        lose_meta(&old);
    };
    let open = |level| {
        let database = Database::open(&live, &OpenOptions { durability: Some(level), ..options() }).unwrap();
        let session = database.session().unwrap();
        (database, session)
    };
    let (database, mut session) = open(Durability::Fsync);
    let mut nodes = Nodes::new();
    for round in 0..6u8 {
        for at in 0..40u8 {
            let (key, value) = (vec![b'k', at + 1, b'x'], vec![round; 100 + usize::from(at)]);
            session.set(&key, &value).unwrap();
            nodes.insert(key, value);
        }
        if round == 2 {
            session.remove_prefix(b"k\x07").unwrap();
            nodes.retain(|key, _| !key.starts_with(b"k\x07"));
        }
        if round % 2 == 1 {
            database.checkpoint().unwrap();
        }
        take_copy();
        let report = run(&old, &new);
        assert!(all_of(&new) == nodes, "round {round}: {report:?}");
        assert!(report.log_damage.is_none(), "round {round}: {report:?}");
    }
    drop(session);
    database.close().unwrap();
    let (database, mut session) = open(Durability::None);
    for key in nodes.keys().cloned().collect::<Vec<_>>() {
        session.set(&key, b"without a log").unwrap();
        nodes.insert(key, b"without a log".to_vec());
    }
    database.checkpoint().unwrap();
    drop(session);
    take_copy();
    assert!(scratch.path("old.db-wal.0").exists(), "the old log is there");
    let report = run(&old, &new);
    assert_eq!(report.log_records, None, "{report:?}");
    assert!(all_of(&new) == nodes, "{report:?}");
    // A file of another database's log among them.
    let mut stranger = fs::read(scratch.path("old.db-wal.0")).unwrap();
    stranger[16] ^= 1;
    sum_head(&mut stranger);
    fs::write(scratch.path("old.db-wal.7"), stranger).unwrap();
    assert!(run(&old, &new).log_damage.unwrap().contains("several databases"));
}

/// Gives the head of a segment its sum.
fn sum_head(bytes: &mut [u8]) {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..12]), &bytes[16..64]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[16..72]);
    bytes[72..76].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_log_of_a_newer_format_is_refused_and_nothing_is_touched() {
    let scratch = Scratch::new();
    let (old, states) = crashed(&scratch, 40, 10);
    let (new, segment) = (scratch.path("new.db"), scratch.path("old.db-wal.0"));
    let good = fs::read(&segment).unwrap();
    let mut newer = good.clone();
    newer[8] = 9;
    sum_head(&mut newer);
    fs::write(&segment, &newer).unwrap();
    let before = fs::read(&old).unwrap();
    for _ in 0..2 {
        let Err(refusal) = Database::open(&old, &options()) else { panic!("it was opened") };
        let refusal = refusal.to_string();
        assert!(refusal.contains("old.db-wal.0") && refusal.contains("format 9"), "{refusal}");
        assert!(refusal.contains("use a newer version"), "{refusal}");
    }
    assert!(fs::read(&segment).unwrap() == newer, "the log is as it was");
    let pages = checkpoint_pages(&old).unwrap();
    let after = fs::read(&old).unwrap();
    for page in pages.data.iter().chain(&pages.directory) {
        let bytes = *page as usize * PAGE..(*page as usize + 1) * PAGE;
        assert!(before[bytes.clone()] == after[bytes], "page {page}");
    }
    let report = run(&old, &new);
    assert!(report.log_damage.unwrap().contains("format 9"));
    assert!(all_of(&new) == states[0]);
    fs::write(&segment, &good).unwrap();
    assert!(all_of(&old) == *states.last().unwrap());
}

#[test]
fn failing_disks_leave_no_half_database_when_there_is_a_log() {
    let scratch = Scratch::new();
    let (old, states) = crashed(&scratch, 30, 8);
    let new = scratch.path("new.db");
    let mut failed = 0;
    for call in 1.. {
        let disk = FaultyDisk::new(Fault::Io);
        disk.fail_call(call);
        let all: Arc<dyn Disk> = Arc::new(disk.clone());
        let is_over = match salvage(&old, &new, &options(), &all, &mut |_, _| {}) {
            Ok(report) => {
                let is_over = disk.calls() < call;
                // What could not be read of old file or log is told.
                assert!(all_of(&new) == *states.last().unwrap() || !report.is_complete(), "call {call}");
                is_over
            }
            Err(_) => {
                failed += 1;
                // NB: it is there if only the sync of the directory has failed.
                assert!(!new.exists() || all_of(&new) == *states.last().unwrap(), "call {call}");
                false
            }
        };
        for left in ["new.db.partial", "new.db.partial-shm"] {
            assert!(!scratch.path(left).exists(), "call {call}: {left}");
        }
        let _ = fs::remove_file(&new);
        if is_over {
            break;
        }
    }
    assert!(failed > 20, "{failed}");
}
