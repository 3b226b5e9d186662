//! Checkpoints and snapshots while threads write: each is the state of one moment.
//!
//! Each writer commits, in one transaction, its count `n` and a key for `n`, and removes the key of `n - KEPT`; so
//! a state of one moment holds for each writer one `n`, the keys of the last `KEPT` counts, and no others.

mod party;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use party::Scratch;
use perilune_engine::{checkpoint_pages, Database, OpenOptions, Session};
use perilune_store::{Durability, Error, Result, Session as _, Store, TransactionOptions, Transactions};

const WRITERS: usize = 3;
/// Keys that each writer keeps.
const KEPT: u64 = 40;

/// Without a log: copies are to be recovered from their checkpoint alone.
fn options() -> OpenOptions {
    OpenOptions { max_size: 1 << 30, durability: Some(Durability::None), ..OpenOptions::default() }
}

fn name(writer: usize, count: u64) -> Vec<u8> {
    format!("w{writer}/{count:09}").into_bytes()
}

/// A value by which its count can be told; now and then a long one.
fn value(count: u64) -> Vec<u8> {
    let len = if count.is_multiple_of(17) { 20_000 } else { 10 + (count % 300) as usize };
    count.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Commits the next count of a writer.
fn step(session: &mut Session, writer: usize, count: u64) -> Result<()> {
    loop {
        session.begin(&TransactionOptions::default())?;
        session.set(format!("last{writer}").as_bytes(), &count.to_le_bytes())?;
        session.set(&name(writer, count), &value(count))?;
        if count > KEPT {
            session.remove(&name(writer, count - KEPT))?;
        }
        match session.commit() {
            Ok(()) => {
                session.give_up();
                return Ok(());
            }
            Err(Error::Conflict) => {}
            Err(other) => return Err(other),
        }
    }
}

/// The counts of all writers, and that all else is as it was when they were written.
fn counts(session: &mut Session) -> Result<[u64; WRITERS]> {
    let mut expected = Vec::new();
    let mut counts = [0; WRITERS];
    let mut found = Vec::new();
    for (writer, count) in counts.iter_mut().enumerate() {
        if session.get(format!("last{writer}").as_bytes(), &mut found)? {
            *count = u64::from_le_bytes(found[..].try_into().expect("a count has eight bytes"));
        }
        expected
            .extend((1.max((*count + 1).saturating_sub(KEPT))..=*count).map(|n| (name(writer, n), value(n))));
    }
    let (mut from, mut key, mut entries) = (b"w".to_vec(), Vec::new(), Vec::new());
    while session.next(&from, false, &mut key, Some(&mut found))? {
        entries.push((key.clone(), found.clone()));
        std::mem::swap(&mut from, &mut key);
    }
    assert!(entries == expected, "counts {counts:?}: {} entries, not {}", entries.len(), expected.len());
    let mut backwards = Vec::new();
    let mut from = b"x".to_vec();
    while session.previous(&from, &mut key, None)? && key.starts_with(b"w") {
        backwards.push(key.clone());
        std::mem::swap(&mut from, &mut key);
    }
    assert!(backwards.iter().rev().eq(expected.iter().map(|(key, _)| key)), "backwards it is something else");
    Ok(counts)
}

/// Fills every page with garbage that the last checkpoint does not need.
fn garble(path: &Path) {
    let durable = checkpoint_pages(path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let garbage: Vec<u8> =
        (0..durable.page_bytes).map(|at| (at * 151 + at / 7 + durable.generation) as u8).collect();
    for page in 0..fs::metadata(path).unwrap().len() / durable.page_bytes {
        if !durable.data.contains(&page) && !durable.directory.contains(&page) {
            file.write_all_at(&garbage, page * durable.page_bytes).unwrap();
        }
    }
}

/// Runs `body` while writers write; `acknowledged` holds the counts that have been committed.
fn with_writers(database: &Database, body: impl FnOnce(&dyn Fn() -> [u64; WRITERS])) {
    let acknowledged: [AtomicU64; WRITERS] = std::array::from_fn(|_| AtomicU64::new(0));
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (writer, acknowledged) in acknowledged.iter().enumerate() {
            let (stop, mut session) = (&stop, database.session().unwrap());
            scope.spawn(move || {
                for count in 1.. {
                    step(&mut session, writer, count).unwrap();
                    acknowledged.store(count, SeqCst);
                    if stop.load(SeqCst) != 0 {
                        break;
                    }
                }
            });
        }
        // Also if the body panics: the scope waits for the writers.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            body(&|| std::array::from_fn(|writer| acknowledged[writer].load(SeqCst)));
        }));
        stop.store(1, SeqCst);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Waits until every writer has committed `more` counts.
fn progress(acknowledged: &dyn Fn() -> [u64; WRITERS], more: u64) {
    let before = acknowledged();
    while acknowledged().iter().zip(before).any(|(now, before)| *now < before + more) {
        std::thread::yield_now();
    }
}

fn at_least(found: [u64; WRITERS], told: [u64; WRITERS], what: &str) {
    for (found, told) in found.iter().zip(told) {
        assert!(*found >= told, "{what}: {told} had been committed, {found} is there");
    }
}

#[test]
fn a_checkpoint_is_the_state_of_one_moment() {
    let scratch = Scratch::new("checkpoints");
    let path = scratch.database();
    let database = Database::open(&path, &options()).unwrap();
    with_writers(&database, |acknowledged| {
        for round in 0..12 {
            let mut before = acknowledged();
            for _ in 0..3 {
                progress(acknowledged, 5);
                before = acknowledged();
                assert!(database.checkpoint().unwrap());
            }
            // The machine crashes. Writers go on while the file is copied; pages of the checkpoint do not change.
            let crash = path.with_file_name(format!("crash{round}.db"));
            fs::copy(&path, &crash).unwrap();
            let after = acknowledged();
            garble(&crash);
            let recovered = Database::open(&crash, &options()).unwrap();
            let found = counts(&mut recovered.session().unwrap()).unwrap();
            at_least(found, before, "checkpoint");
            let ahead = found.iter().zip(after).all(|(found, after)| *found <= after + 1);
            assert!(ahead, "{found:?} is more than was ever written: {after:?}");
            recovered.verify().unwrap();
            step(&mut recovered.session().unwrap(), 0, found[0] + 1).unwrap();
            recovered.close().unwrap();
            fs::remove_file(&crash).unwrap();
        }
    });
    database.verify().unwrap();
    counts(&mut database.session().unwrap()).unwrap();
    database.close().unwrap();
}

#[test]
fn a_snapshot_is_the_state_of_one_moment_and_stays_it() {
    let scratch = Scratch::new("checkpoints");
    let database = Database::open(&scratch.database(), &options()).unwrap();
    with_writers(&database, |acknowledged| {
        let mut snapshots: Vec<(Session, [u64; WRITERS])> = Vec::new();
        for round in 0..30 {
            let before = acknowledged();
            let mut snapshot = database.snapshot().unwrap();
            let after = acknowledged();
            let found = counts(&mut snapshot).unwrap();
            at_least(found, before, "snapshot");
            assert!(found.iter().zip(after).all(|(found, after)| *found <= after + 1), "{found:?} {after:?}");
            snapshots.push((snapshot, found));
            progress(acknowledged, 5);
            if round % 5 == 0 {
                database.checkpoint().unwrap();
            }
            for (snapshot, found) in &mut snapshots {
                assert_eq!(counts(snapshot).unwrap(), *found);
            }
            if snapshots.len() > 6 {
                snapshots.remove(round % 6);
            }
        }
        let held = database.statistics().unwrap();
        assert_eq!(held.snapshots, snapshots.len() as u64);
        assert!(held.snapshot_bytes > 0);
    });
    let free = database.statistics().unwrap();
    assert_eq!((free.snapshots, free.snapshot_bytes), (0, 0));
    database.verify().unwrap();
    database.close().unwrap();
}

#[test]
fn a_snapshot_writes_nothing_and_is_one_of_a_limited_number() {
    let scratch = Scratch::new("snapshots");
    let database = Database::open(&scratch.database(), &options()).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"a", b"1").unwrap();
    let mut snapshot = database.snapshot().unwrap();
    session.set(b"a", b"2").unwrap();
    session.set(b"ab", b"3").unwrap();
    let mut value = Vec::new();
    assert!(snapshot.get(b"a", &mut value).unwrap());
    assert_eq!(value, b"1");
    assert!(!snapshot.presence(b"a").unwrap().descendants);
    assert!(session.presence(b"a").unwrap().descendants);
    assert!(matches!(snapshot.set(b"a", b"4"), Err(Error::ReadOnly)));
    assert!(matches!(snapshot.remove_prefix(b"a"), Err(Error::ReadOnly)));
    snapshot.begin(&TransactionOptions::default()).unwrap();
    assert!(matches!(snapshot.remove(b"a"), Err(Error::ReadOnly)));
    assert!(snapshot.get(b"a", &mut value).unwrap());
    assert_eq!(value, b"1", "in a transaction, too");
    snapshot.commit().unwrap();
    let many: Vec<Session> = (0..254).map(|_| database.snapshot().unwrap()).collect();
    assert!(matches!(database.snapshot(), Err(Error::LimitReached { limit: 255, .. })));
    assert!(database.checkpoint().unwrap(), "a checkpoint has a place of its own");
    drop(many);
    drop(database.snapshot().unwrap());
}

#[test]
fn several_subtrees_go_in_one_transaction_after_a_checkpoint() {
    let scratch = Scratch::new("subtrees");
    let database = Database::open(&scratch.database(), &options()).unwrap();
    let mut session = database.session().unwrap();
    for prefix in ["a", "b", "c"] {
        for number in 0..600 {
            session.set(format!("{prefix}/{number:09}").as_bytes(), &[7; 100]).unwrap();
        }
    }
    session.set(b"d", b"stays").unwrap();
    assert!(database.checkpoint().unwrap());
    // NB: with the first leaf of each prefix copied, those behind it are of an earlier generation still, and no operation
    // has its key there; so who copies them has to know which of the removals they belong to.
    for prefix in ["a", "b", "c"] {
        session.set(format!("{prefix}/").as_bytes(), b"first").unwrap();
    }
    session.begin(&TransactionOptions::default()).unwrap();
    for prefix in ["a/", "b/", "c/"] {
        session.remove_prefix(prefix.as_bytes()).unwrap();
    }
    session.set(b"b/1", b"new").unwrap();
    session.commit().unwrap();
    let mut value = Vec::new();
    assert!(session.get(b"d", &mut value).unwrap() && value == b"stays");
    assert!(session.get(b"b/1", &mut value).unwrap() && value == b"new");
    for prefix in ["a", "c"] {
        assert!(!session.presence(prefix.as_bytes()).unwrap().descendants, "{prefix}");
    }
    database.verify().unwrap();
}

#[test]
fn a_transaction_takes_time_in_proportion_to_its_sets() {
    let scratch = Scratch::new("many");
    let database = Database::open(&scratch.database(), &options()).unwrap();
    let mut session = database.session().unwrap();
    // NB: the second time all leaves are of an earlier generation, the third time all have to be split besides. With an
    // attempt for each leaf this takes minutes; it has the 10 s of a transaction.
    for (round, length) in [50, 50, 400].into_iter().enumerate() {
        session.begin(&TransactionOptions::default()).unwrap();
        for number in 0..60_000 {
            session.set(format!("k/{number:09}").as_bytes(), &vec![round as u8; length]).unwrap();
        }
        session.commit().unwrap();
        assert!(database.checkpoint().unwrap());
    }
    let mut value = Vec::new();
    assert!(session.get(b"k/000059999", &mut value).unwrap() && value == [2; 400]);
    database.verify().unwrap();
}
