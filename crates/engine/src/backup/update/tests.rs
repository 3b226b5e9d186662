//! Older copies brought up to date: that they hold what the database held, what is refused, and what is there
//! if it ends at any point.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use perilune_disk::{Fault, FaultyDisk, RealDisk};
use perilune_store::{Session, Store};

use super::power::Recorder;
use super::*;
use crate::backup::{backup, BackupKind};
use crate::meta;
use crate::open::Attachment;
use crate::salvage::tests::{all_of, make, options, set_all, some_nodes, Nodes, Scratch};
use crate::{checkpoint_pages, Database, OpenOptions};

const INCREMENTAL: BackupKind = BackupKind::Incremental;

fn run(attachment: &Attachment, disk: &dyn Disk, dest: &Path) -> Result<BackupReport> {
    backup(attachment.image().unwrap(), disk, dest, INCREMENTAL, &options(), &mut |_, _| {})
}

fn update(database: &Database, dest: &Path) -> Result<BackupReport> {
    database.backup(dest, INCREMENTAL, &options(), &mut |_, _| {})
}

/// A stream of numbers that look random.
fn dice(mut seed: u64) -> impl FnMut() -> u32 {
    move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) as u32
    }
}

/// Some sets and removals, and the nodes of then.
fn change(database: &Database, nodes: &mut Nodes, dice: &mut dyn FnMut() -> u32) {
    let mut session = database.session().unwrap();
    for _ in 0..dice() % 40 {
        let key = format!("name {:03} {:010}", dice() % 40, dice() % 3000).into_bytes();
        let bytes = if dice().is_multiple_of(9) { dice() as usize % 40_000 } else { dice() as usize % 200 };
        let value = vec![dice() as u8; bytes];
        session.set(&key, &value).unwrap();
        nodes.insert(key, value);
    }
    if dice().is_multiple_of(4) {
        let prefix = format!("name {:03} ", dice() % 40).into_bytes();
        session.remove_prefix(&prefix).unwrap();
        nodes.retain(|key, _| !key.starts_with(&prefix));
    }
}

#[test]
fn an_older_copy_becomes_what_the_database_is() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    let mut nodes = some_nodes(3000);
    make(&path, &nodes);
    let mut database = Database::open(&path, &options()).unwrap();
    let whole = update(&database, &dest).unwrap();
    assert_eq!((whole.pages_kept, whole.pages), (0, whole.pages_compared), "there was none");
    let mut dice = dice(1);
    let (mut copied, mut kept) = (0, 0);
    for round in 0..30 {
        if round % 3 > 0 {
            change(&database, &mut nodes, &mut dice);
        }
        if round % 7 == 3 {
            database.checkpoint().unwrap();
        }
        if round % 10 == 9 {
            database.close().unwrap();
            database = Database::open(&path, &options()).unwrap();
        }
        if round == 20 {
            // More info pages than there were.
            let many: Nodes = (0..2500u32).map(|at| (at.to_be_bytes().to_vec(), vec![7; 5000])).collect();
            set_all(&database, &many);
            nodes.extend(many);
        }
        let report = update(&database, &dest).unwrap();
        assert_eq!(report.bytes, fs::metadata(&dest).unwrap().len());
        assert_eq!(report.pages, report.pages_compared, "a checkpoint had all that was copied");
        copied += report.pages;
        kept += report.pages_kept;
        assert!(!delta::path(&dest).exists());
        assert!(all_of(&dest) == nodes, "round {round}");
    }
    assert!(kept > 3 * copied, "{kept} kept, {copied} copied");
    // It is as good as a whole copy: the same pages.
    let other = scratch.path("whole.db");
    database.backup(&other, BackupKind::Whole, &options(), &mut |_, _| {}).unwrap();
    assert_eq!(checkpoint_pages(&dest).unwrap().data, checkpoint_pages(&other).unwrap().data);
}

/// The machine crashes after a backup: generations that had no checkpoint are given to other states. That of
/// the copy must not be among them, whether or not something had changed since the last checkpoint.
#[test]
fn a_copy_can_be_brought_up_to_date_after_a_crash() {
    // NB: without a log, whose files would have to be copied, too.
    let options = || OpenOptions { durability: Some(perilune_store::Durability::None), ..options() };
    for changes_before in [false, true] {
        let scratch = Scratch::new();
        let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
        let mut nodes = some_nodes(800);
        make(&path, &nodes);
        let database = Database::open(&path, &options()).unwrap();
        let mut dice = dice(2);
        if changes_before {
            change(&database, &mut nodes, &mut dice);
        }
        for _ in 0..3 {
            update(&database, &dest).unwrap();
        }
        let at_backup = nodes.clone();
        change(&database, &mut nodes, &mut dice);
        let crashed = scratch.path("crashed.db");
        fs::copy(&path, &crashed).unwrap();
        let durable = checkpoint_pages(&crashed).unwrap();
        let file = fs::File::options().write(true).open(&crashed).unwrap();
        for page in 0..fs::metadata(&crashed).unwrap().len() / PAGE as u64 {
            if !durable.data.contains(&page) && !durable.directory.contains(&page) {
                file.write_all_at(&[0xa5; PAGE], page * PAGE as u64).unwrap();
            }
        }
        let recovered = Database::open(&crashed, &options()).unwrap();
        assert!(recovered.recovery().is_some());
        let mut nodes = at_backup;
        for _ in 0..3 {
            change(&recovered, &mut nodes, &mut dice);
            let report = update(&recovered, &dest).unwrap();
            assert!(report.pages_kept > 0, "{report:?}");
            assert!(all_of(&dest) == nodes);
        }
    }
}

#[test]
fn copies_of_something_else_are_refused_and_stay() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    let nodes = some_nodes(300);
    make(&path, &nodes);
    let refused = |database: &Database, dest: &Path, why: &str| {
        let before = fs::read(dest).unwrap();
        let refusal = update(database, dest).unwrap_err().to_string();
        assert!(refusal.contains(why) && refusal.contains("whole backup"), "{refusal}");
        assert!(fs::read(dest).unwrap()[2 * PAGE..before.len()] == before[2 * PAGE..], "{why}");
        assert!(!delta::path(dest).exists());
    };
    let database = Database::open(&path, &options()).unwrap();
    update(&database, &dest).unwrap();
    let early = scratch.path("early.db");
    fs::copy(&dest, &early).unwrap();

    let stranger = scratch.path("stranger.db");
    make(&stranger, &some_nodes(20));
    refused(&database, &stranger, "a copy of another database");

    // Newer: the original was restored from an older copy.
    set_all(&database, &some_nodes(10));
    update(&database, &dest).unwrap();
    let restored = Database::open(&early, &options()).unwrap();
    refused(&restored, &dest, "is newer");
    // Ahead by itself, but no longer in number.
    for round in 0..20u8 {
        restored.session().unwrap().set(b"name 001 0", &[round; 10]).unwrap();
        restored.checkpoint().unwrap();
    }
    refused(&restored, &dest, "another line");

    // The copy was written to.
    make(&dest, &some_nodes(30));
    for round in 0..20u8 {
        database.session().unwrap().set(b"name 001 0", &[round; 10]).unwrap();
        database.checkpoint().unwrap();
    }
    refused(&database, &dest, "another line");

    // Not closed.
    let open = Database::open(&early, &options());
    drop(open);
    let _ = restored.close();
    let file = RealDisk.open(&early, true).unwrap();
    let (slot, meta) = meta::newest(&*file, &early).unwrap();
    let meta = Meta { is_open: true, serial: meta.serial + 1, ..meta };
    meta::write(&*file, &early, 1 - slot, &meta).unwrap();
    refused(&database, &early, "was in use");

    // Each of them can be replaced.
    for dest in [stranger, dest, early] {
        database.backup(&dest, BackupKind::Whole, &options(), &mut |_, _| {}).unwrap();
        assert_eq!(all_of(&dest).len(), nodes.len() + 1);
    }
}

#[test]
fn damage_in_what_is_new_is_found() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    make(&path, &some_nodes(500));
    let database = Database::open(&path, &options()).unwrap();
    update(&database, &dest).unwrap();
    let before = all_of(&dest);
    set_all(&database, &some_nodes(600));
    database.checkpoint().unwrap();
    let page = *checkpoint_pages(&path).unwrap().data.last().unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0x5a; 3], page * PAGE as u64 + 900).unwrap();
    let refusal = update(&database, &dest).unwrap_err().to_string();
    assert!(refusal.contains(&format!("page {page} ")), "{refusal}");
    assert!(all_of(&dest) == before && !delta::path(&dest).exists());
}

/// An original, open, and an older copy of it.
struct Scene {
    scratch: Scratch,
    attachment: std::sync::Arc<Attachment>,
    database: Database,
    dest: PathBuf,
    old: Nodes,
    new: Nodes,
    before: Vec<u8>,
}

impl Scene {
    fn new() -> Scene {
        let scratch = Scratch::new();
        let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
        let (old, new) = (some_nodes(150), some_nodes(180));
        make(&path, &old);
        let database = Database::open(&path, &options()).unwrap();
        update(&database, &dest).unwrap();
        let before = fs::read(&dest).unwrap();
        // NB: twice, with a checkpoint between: so that places of the old state are used again.
        for bytes in [3, 5] {
            for (key, value) in new.iter().step_by(bytes) {
                let mut session = database.session().unwrap();
                session.set(key, &[value.clone(), vec![1; bytes]].concat()).unwrap();
            }
            database.checkpoint().unwrap();
        }
        set_all(&database, &new);
        let attachment = Attachment::open(&path, &options()).unwrap();
        Scene { scratch, attachment, database, dest, old, new, before }
    }

    /// The copy as it was.
    fn reset(&self) {
        fs::write(&self.dest, &self.before).unwrap();
        let _ = fs::remove_file(delta::path(&self.dest));
    }
}

/// A disk that fails once, and one that is gone from a call on: as if the process were killed there.
#[test]
fn ended_at_any_call_the_old_or_the_new_copy_is_there() {
    let scene = Scene::new();
    for is_killed in [false, true] {
        let (mut failed, mut new) = (0, 0);
        for call in 1.. {
            scene.reset();
            let disk = FaultyDisk::new(Fault::ShortWrite);
            if is_killed {
                disk.fail_from_call(call);
            } else {
                disk.fail_call(call);
            }
            let result = run(&scene.attachment, &disk, &scene.dest);
            let is_over = disk.calls() < call;
            failed += u32::from(result.is_err());
            if !is_over && call % 3 == 0 {
                // Whoever tries again need not open it.
                run(&scene.attachment, &RealDisk, &scene.dest).unwrap();
                assert!(all_of(&scene.dest) == scene.new, "call {call}, killed: {is_killed}");
                continue;
            }
            let there = all_of(&scene.dest);
            let is_new = there == scene.new;
            assert!(is_new || there == scene.old, "call {call}, killed: {is_killed}: {result:?}");
            new += u32::from(is_new && result.is_err());
            if is_over {
                result.unwrap();
                assert!(is_new);
                break;
            }
        }
        assert!(failed > 20 && new > 5, "{failed} failed, {new} of them done by whoever came next");
    }
    scene.database.verify().unwrap();
}

/// And whoever puts in what an interrupted backup has left is interrupted in turn.
#[test]
fn a_delta_that_waits_is_put_in_by_whoever_opens_the_copy() {
    let scene = Scene::new();
    // The last call is the removal of the delta, those before: meta, a sync, pages.
    let disk = FaultyDisk::new(Fault::Io);
    run(&scene.attachment, &disk, &scene.dest).unwrap();
    let calls = disk.calls();
    for back in 1..8 {
        scene.reset();
        let disk = FaultyDisk::new(Fault::ShortWrite);
        disk.fail_from_call(calls - back);
        run(&scene.attachment, &disk, &scene.dest).unwrap_err();
        let reading = OpenOptions { read_only: true, ..options() };
        let refusal = Database::open(&scene.dest, &reading).map(drop);
        let refusal = refusal.map_err(|error| error.to_string());
        let file = RealDisk.open(&scene.dest, false).unwrap();
        if meta::newest(&*file, &scene.dest).unwrap().1.has_delta {
            assert!(refusal.unwrap_err().contains("was interrupted"));
            for call in 1.. {
                let disk = FaultyDisk::new(Fault::ShortWrite);
                disk.fail_from_call(call);
                let opened = Attachment::open_on(&scene.dest, &options(), std::sync::Arc::new(disk.clone()));
                if opened.is_ok() || disk.calls() > 200 {
                    break;
                }
            }
        }
        assert!(all_of(&scene.dest) == scene.new, "{back} calls before the end");
    }
    let _ = &scene.scratch;
}

#[test]
fn a_delta_that_is_lost_or_damaged_is_said_to_be() {
    let scene = Scene::new();
    let disk = FaultyDisk::new(Fault::Io);
    run(&scene.attachment, &disk, &scene.dest).unwrap();
    let calls = disk.calls();
    scene.reset();
    disk.fail_from_call(calls - 4);
    run(&scene.attachment, &disk, &scene.dest).unwrap_err();
    let path = delta::path(&scene.dest);
    let (copy, good) = (fs::read(&scene.dest).unwrap(), fs::read(&path).unwrap());
    let refusal = |what: &str| {
        let refusals = [
            Database::open(&scene.dest, &options()).map(drop),
            update(&scene.database, &scene.dest).map(drop),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap_err().to_string();
            assert!(refusal.contains(what) && refusal.contains("make a whole backup"), "{refusal}");
        }
    };
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    refusal("was cut");
    for at in [0, 9, 30, 150, 4096, 4100, 5000, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        fs::write(&path, bad).unwrap();
        refusal("delta is ");
    }
    fs::remove_file(&path).unwrap();
    refusal("is missing");
    fs::write(&scene.dest, copy).unwrap();
    fs::write(&path, good).unwrap();
    assert!(all_of(&scene.dest) == scene.new);
    // A whole copy does not care.
    scene.reset();
    scene.database.backup(&scene.dest, BackupKind::Whole, &options(), &mut |_, _| {}).unwrap();
    assert!(all_of(&scene.dest) == scene.new);
}

/// The power fails after any write or sync: what was not synced is there or not, or in part.
#[test]
fn without_power_the_old_or_the_new_copy_is_there() {
    let scene = Scene::new();
    let recorder = Recorder::default();
    run(&scene.attachment, &recorder, &scene.dest).unwrap();
    let seed = std::env::var("PERILUNE_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("PERILUNE_SEED={seed}");
    let mut coin = dice(seed);
    let (mut old, mut new) = (0, 0);
    for count in 0..=recorder.count() {
        for _ in 0..3 {
            let files = BTreeMap::from([(scene.dest.clone(), scene.before.clone())]);
            for (path, bytes) in recorder.after(count, files, &mut coin) {
                fs::write(path, bytes).unwrap();
            }
            let there = all_of(&scene.dest);
            let is_new = there == scene.new;
            assert!(is_new || there == scene.old, "after {count} of {} calls", recorder.count());
            old += u32::from(!is_new);
            new += u32::from(is_new);
            let _ = fs::remove_file(delta::path(&scene.dest));
        }
    }
    assert!(old > 10 && new > 10, "{old} old, {new} new");
}
