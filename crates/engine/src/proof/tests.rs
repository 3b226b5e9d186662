//! A database was closed, and its file damaged before it is opened again. A page was read then as if it were good, and
//! once it had been written to it had a sum of its own: `check` called it sound, and `backup` copied it.
//!
//! The sides of it: with the `-shm` of before and with a new one; by a process that writes and by one that only reads;
//! in leaves, inner pages, long values and info pages; by reads, writes, snapshots, checkpoints and backups.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use perilune_store::{Error, Session as _, Store};

use crate::image::layout::Life;
use crate::limits::{PAGE, VOLATILE};
use crate::meta::info::Place;
use crate::page::INNER;
use crate::salvage::tests::{all_of, make, options, some_nodes, Nodes, Scratch};
use crate::{checkpoint_pages, BackupKind, Database, OpenOptions, Session};

fn reading() -> OpenOptions {
    OpenOptions { read_only: true, ..options() }
}

/// Every way to open a closed database again.
fn ways(path: &Path, mut body: impl FnMut(&str, &Database)) {
    for keeps_shm in [true, false] {
        for (options, mode) in [(reading(), "reading"), (options(), "writing"), (reading(), "reading again")]
        {
            if !keeps_shm {
                let _ = fs::remove_file(crate::meta::beside(path, "-shm"));
            }
            let what = format!("{mode}, -shm kept: {keeps_shm}");
            let database = Database::open(path, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            body(&what, &database);
            database.close().unwrap();
        }
    }
}

/// A file, to be damaged.
pub(crate) struct Bytes(File);

impl Bytes {
    pub(crate) fn of(path: &Path) -> Bytes {
        Bytes(File::options().read(true).write(true).open(path).unwrap())
    }

    pub(crate) fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).unwrap();
    }

    fn flip(&self, at: u64) {
        let byte = self.read(at, 1)[0];
        self.write(at, &[byte ^ 0x41]);
    }

    /// The pages among `pages` that hold `what`, and where in the file.
    pub(crate) fn find(&self, pages: &[u64], what: &[u8]) -> Vec<(u64, u64)> {
        let place = |page: &u64| {
            let at =
                self.read(page * PAGE as u64, PAGE).windows(what.len()).position(|bytes| bytes == what)?;
            Some((*page, page * PAGE as u64 + at as u64))
        };
        pages.iter().filter_map(place).collect()
    }
}

fn get(session: &mut Session, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut value = Vec::new();
    session.get(key, &mut value).map(|found| found.then_some(value))
}

/// Checks that an error names the damaged page.
fn names(error: &Error, page: u64, what: &str) {
    let text = error.to_string();
    assert!(matches!(error, Error::Corrupt { .. } | Error::Lost { .. }), "{what}: {text}");
    assert!(text.contains(&format!("page {page} (byte {}): ", page * PAGE as u64)), "{what}: {text}");
}

/// Many small nodes; `middle` is one whose value is found in the file.
fn small() -> Nodes {
    let mut nodes: Nodes = (0..4000).map(|at| (format!("k{at:05}").into_bytes(), vec![b'.'; 40])).collect();
    nodes.insert(b"k02000".to_vec(), b"balance=1000;777".to_vec());
    nodes
}

#[test]
fn a_damaged_leaf_is_told_of_and_nothing_else_and_never_blessed() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    make(&path, &small());
    let bytes = Bytes::of(&path);
    let data = checkpoint_pages(&path).unwrap().data;
    let (page, at) = bytes.find(&data, b"balance=1000;777")[0];
    bytes.write(at, b"balance=9000;777");
    ways(&path, |what, database| {
        let mut session = database.session().unwrap();
        for _ in 0..2 {
            let error = get(&mut session, b"k02000").expect_err(what);
            names(&error, page, what);
            let text = error.to_string();
            assert!(text.contains("a leaf of the tree") && text.contains("behind k01"), "{what}: {text}");
        }
        assert_eq!(get(&mut session, b"k00007").unwrap(), Some(vec![b'.'; 40]), "{what}");
        assert_eq!(get(&mut session, b"k03999").unwrap(), Some(vec![b'.'; 40]), "{what}");
        // The range that the error names can be gone round.
        let (mut at, mut key, mut found, mut lost) = (Vec::new(), Vec::new(), 0, 0);
        loop {
            match session.next(&at, true, &mut key, None) {
                Ok(true) => (at, found) = ([&key[..], &[0]].concat(), found + 1),
                Ok(false) => break,
                Err(Error::Lost { keys, .. }) => (at, lost) = ([&keys.1[..], &[0]].concat(), lost + 1),
                Err(error) => panic!("{what}: {error}"),
            }
            assert!(lost < 2, "{what}: it goes round in a circle");
        }
        assert!(lost == 1 && (3000..4000).contains(&found), "{what}: {found} found, {lost} lost");
    });
    // Nor by writes.
    let database = Database::open(&path, &options()).unwrap();
    let mut session = database.session().unwrap();
    names(&session.set(b"k02000x", b"1").unwrap_err(), page, "set");
    names(&session.remove(b"k02000").unwrap_err(), page, "remove");
    session.set(b"k00007", b"2").unwrap();
    assert!(database.checkpoint().unwrap());
    names(
        &database.backup(&scratch.path("b.db"), BackupKind::Whole, &options(), &mut |_, _| {}).unwrap_err(),
        page,
        "backup",
    );
    names(&database.verify().unwrap_err(), page, "verify");
    drop(session);
    database.close().unwrap();
    bytes.write(at, b"balance=1000;777");
    let mut expected = small();
    expected.insert(b"k00007".to_vec(), b"2".to_vec());
    assert!(all_of(&path) == expected, "what was not damaged is as it was");
}

#[test]
fn a_damaged_inner_page_costs_what_lies_below_it() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    let nodes: Nodes = (0..40_000_u32)
        .map(|at| ([format!("{at:06}").into_bytes(), vec![b'x'; 300]].concat(), vec![at as u8; 60]))
        .collect();
    make(&path, &nodes);
    let bytes = Bytes::of(&path);
    let data = checkpoint_pages(&path).unwrap().data;
    let head = |page: &u64| bytes.read(page * PAGE as u64, 2);
    let top = data.iter().map(head).filter(|head| head[0] == INNER).map(|head| head[1]).max().unwrap();
    assert!(top >= 2, "the tree is too low for this test");
    let inner: Vec<&u64> = data.iter().filter(|page| head(page) == [INNER, top - 1]).collect();
    let page = *inner[inner.len() / 2];
    bytes.flip(page * PAGE as u64 + PAGE as u64 / 2);
    ways(&path, |what, database| {
        let mut session = database.session().unwrap();
        let (mut right, mut wrong) = (0, 0);
        for (key, value) in nodes.iter().step_by(37) {
            match get(&mut session, key) {
                Ok(found) => {
                    assert!(found.as_ref() == Some(value), "{what}: other data");
                    right += 1;
                }
                Err(error) => {
                    names(&error, page, what);
                    wrong += 1;
                }
            }
        }
        assert!(right > 100 && wrong > 10, "{what}: {right} right, {wrong} errors");
    });
}

#[test]
fn a_damaged_root_is_told_of() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    make(&path, &small());
    let file = perilune_disk::Disk::open(&perilune_disk::RealDisk, &path, false).unwrap();
    let root = u64::from(crate::meta::newest(&*file, &path).unwrap().1.root);
    Bytes::of(&path).flip(root * PAGE as u64 + PAGE as u64 - 9);
    ways(&path, |what, database| {
        let mut session = database.session().unwrap();
        names(&get(&mut session, b"k00001").unwrap_err(), root, what);
        names(&database.verify().unwrap_err(), root, what);
    });
}

/// A long value among others; its second page is damaged.
fn damaged_long(path: &Path) -> (Nodes, u64) {
    let mut nodes = some_nodes(50);
    let long: Vec<u8> = (0..5 * PAGE).map(|at| (at / 7) as u8).collect();
    nodes.insert(b"long".to_vec(), long.clone());
    make(path, &nodes);
    let data = checkpoint_pages(path).unwrap().data;
    let bytes = Bytes::of(path);
    let (page, at) = bytes.find(&data, &long[PAGE..2 * PAGE])[0];
    bytes.flip(at + 100);
    (nodes, page)
}

#[test]
fn a_damaged_long_value_is_told_of_and_can_be_replaced() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    let (mut nodes, page) = damaged_long(&path);
    ways(&path, |what, database| {
        let mut session = database.session().unwrap();
        for _ in 0..2 {
            names(&get(&mut session, b"long").unwrap_err(), page, what);
        }
        let (key, value) = nodes.iter().next_back().unwrap();
        assert_eq!(get(&mut session, key).unwrap().as_ref(), Some(value), "{what}");
    });
    let database = Database::open(&path, &options()).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"long", b"short").unwrap();
    assert_eq!(get(&mut session, b"long").unwrap().unwrap(), b"short");
    drop(session);
    database.close().unwrap();
    nodes.insert(b"long".to_vec(), b"short".to_vec());
    assert!(all_of(&path) == nodes);
}

/// What a snapshot or a backup holds may die, with its sum, before it is read.
#[test]
fn a_snapshot_of_a_damaged_value_that_is_gone_since_is_told_of() {
    for read_before in [false, true] {
        let scratch = Scratch::new();
        let path = scratch.path("a.db");
        let (nodes, page) = damaged_long(&path);
        let others = scratch.path("others.db");
        make(&others, &nodes);
        for (path, is_damaged) in [(&path, true), (&others, false)] {
            let database = Database::open(path, &options()).unwrap();
            let mut session = database.session().unwrap();
            let mut snapshot = database.snapshot().unwrap();
            let mut check = |what: &str| match get(&mut snapshot, b"long") {
                Ok(found) => assert!(!is_damaged && found.as_ref() == nodes.get(&b"long"[..]), "{what}"),
                Err(error) => {
                    assert!(is_damaged, "{what}: {error}");
                    names(&error, page, what);
                }
            };
            if read_before {
                check("at once");
            }
            session.remove(b"long").unwrap();
            check("removed");
            for round in 0..3 {
                session.set(b"other", &[round]).unwrap();
                assert!(database.checkpoint().unwrap());
                check("after a checkpoint");
            }
            drop((session, snapshot));
            database.close().unwrap();
        }
    }
}

#[test]
fn a_damaged_info_page_blesses_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    let place = Place { segment: 0, index: 0 };
    for offset in [0, 2, 4, 8, 9, 11, 12, 20, PAGE as u64 / 2, PAGE as u64 - 3] {
        for slot in 0..2 {
            let _ = fs::remove_file(&path);
            let mut nodes = small();
            make(&path, &nodes);
            // Both slots have been written: the one that does not count knows pages that are gone, and not all that are.
            for round in 0..2_u8 {
                nodes.extend((0..700).map(|at| (format!("k{:05}", at * 5).into_bytes(), vec![round; 50])));
                let database = Database::open(&path, &options()).unwrap();
                crate::salvage::tests::set_all(&database, &nodes);
                database.close().unwrap();
            }
            let what = format!("byte {offset} of slot {slot}");
            Bytes::of(&path).flip(place.offset(slot) + offset);
            let written = (|| {
                let database = Database::open(&path, &options())?;
                let mut session = database.session()?;
                session.set(b"k03000", b"new")?;
                drop(session);
                database.close()
            })();
            if let Ok(()) = written {
                nodes.insert(b"k03000".to_vec(), b"new".to_vec());
            }
            for keeps_shm in [true, false] {
                if !keeps_shm {
                    let _ = fs::remove_file(crate::meta::beside(&path, "-shm"));
                }
                let Ok(database) = Database::open(&path, &reading()) else { continue };
                let Ok(mut session) = database.session() else { continue };
                for (key, value) in nodes.iter().filter(|(key, _)| **key != b"k03000") {
                    if let Ok(found) = get(&mut session, key) {
                        assert!(found.as_ref() == Some(value), "{what}, -shm kept: {keeps_shm}: other data");
                    }
                }
            }
        }
    }
}

#[test]
fn a_life_word_keeps_what_it_is_given() {
    for born in [0, 1, crate::limits::GENERATION_MAX as u32] {
        for died in [0, 7, crate::limits::GENERATION_MAX as u32] {
            for (was_run, is_unproved) in [(false, false), (false, true), (true, false), (true, true)] {
                let life = Life { born, died, was_run, is_unproved };
                assert_eq!(Life::from_word(life.to_word()), life);
            }
        }
    }
    let volatile = Life { born: VOLATILE, died: VOLATILE, ..Life::default() };
    assert_eq!(Life::from_word(volatile.to_word()), volatile);
}

/// One copy of meta is damaged: the other says the same, nothing is lost, and it is told, also when it has been mended.
#[test]
fn a_damaged_copy_of_meta_costs_nothing_and_is_told_of() {
    for slot in 0..2_u64 {
        for read_only in [true, false] {
            for keeps_shm in [true, false] {
                let scratch = Scratch::new();
                let path = scratch.path("a.db");
                let nodes = small();
                make(&path, &nodes);
                Bytes::of(&path).flip(slot * PAGE as u64 + 50);
                if !keeps_shm {
                    fs::remove_file(crate::meta::beside(&path, "-shm")).unwrap();
                }
                for _ in 0..2 {
                    let database = Database::open(&path, &OpenOptions { read_only, ..options() }).unwrap();
                    let what = format!("copy {slot}, reading {read_only}, -shm kept {keeps_shm}");
                    assert!(database.recovery().is_none(), "{what}: it is taken for one that was not closed");
                    let mended = database.mended().unwrap();
                    assert!(
                        mended.len() == 1 && mended[0].contains(&format!("(page {slot},")),
                        "{what}: {mended:?}"
                    );
                    database.verify().unwrap();
                    database.close().unwrap();
                }
                assert!(all_of(&path) == nodes);
            }
        }
    }
    let scratch = Scratch::new();
    make(&scratch.path("b.db"), &small());
    let database = Database::open(&scratch.path("b.db"), &options()).unwrap();
    assert!(database.mended().unwrap().is_empty());
    database.close().unwrap();
}
