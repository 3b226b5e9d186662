//! What an error says of an operation is so: `NotDurable`, it has happened; any other, it has not.
//!
//! A commit that had happened was told with "nothing was written", and whoever did it again counted twice; and a log
//! that could not be written for good let every commit happen and told each that it was not durable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_disk::{Fault, FaultyDisk};
use perilune_store::{
    transact, Decision, Durability, Error, Optimistic, Result, Session as _, Store, TransactionOptions,
};

use super::durability_tests::{content, key, options, Content, Scratch};
use super::{Database, Session};

/// One operation, and what it makes of a content.
type Step = (&'static str, fn(&mut Session) -> Result<()>, fn(&mut Content));

const LONG: usize = 30_000;

fn put(content: &mut Content, key: &[u8], value: &[u8]) {
    content.insert(key.to_vec(), value.to_vec());
}

fn count(content: &mut Content) {
    let count = content.get(b"count".as_slice()).map_or(0, |value| value[0]);
    put(content, b"count", &[count + 1]);
}

fn increment(session: &mut Session) -> Result<()> {
    session.update(b"count", &mut |current, buffer| {
        buffer[0] = current.map_or(0, |current| current[0]) + 1;
        Ok(Decision::Write(1))
    })
}

const STEPS: &[Step] = &[
    ("set", |session| session.set(b"a", b"1"), |content| put(content, b"a", b"1")),
    ("increment", increment, count),
    ("long value", |session| session.set(b"long", &[7; LONG]), |content| put(content, b"long", &[7; LONG])),
    (
        "transaction",
        |session| {
            transact(session, &TransactionOptions::default(), |session| {
                increment(session)?;
                session.set(b"t", &[3; LONG])?;
                session.set(&key(3), b"t")
            })
        },
        |content| {
            count(content);
            put(content, b"t", &[3; LONG]);
            put(content, &key(3), b"t");
        },
    ),
    (
        "one-shot transaction",
        |session| {
            let both = |session: &mut Session| {
                session.set(b"one-shot", b"1")?;
                session.set(b"a", b"2")
            };
            assert!(session.begin_attempt()?);
            both(session)?;
            // NB: false: it has done nothing, and is to be run as a transaction.
            match session.end_attempt(true)? {
                true => Ok(()),
                false => transact(session, &TransactionOptions::default(), both),
            }
        },
        |content| {
            put(content, b"one-shot", b"1");
            put(content, b"a", b"2");
        },
    ),
    (
        "swap",
        |session| session.compare_and_set(b"swapped", None, Some(b"1")).map(drop),
        |content| {
            content.entry(b"swapped".to_vec()).or_insert(b"1".to_vec());
        },
    ),
    (
        "delete",
        |session| session.remove(b"long").map(drop),
        |content| drop(content.remove(b"long".as_slice())),
    ),
    (
        "delete of a tree",
        |session| session.remove_prefix(b"key00001"),
        |content| content.retain(|key, _| !key.starts_with(b"key00001")),
    ),
    (
        "durable transaction",
        |session| {
            let fsync =
                TransactionOptions { durability: Some(Durability::Fsync), ..TransactionOptions::default() };
            transact(session, &fsync, increment)
        },
        count,
    ),
];

/// Does all steps while the disk fails; answers how many were refused, and how many not durable.
fn run(session: &mut Session, model: &mut Content, what: &str) -> (u32, u32) {
    let (mut refused, mut not_durable) = (0, 0);
    for (name, step, change) in STEPS {
        let answer = step(session);
        match &answer {
            Ok(()) => change(model),
            Err(Error::NotDurable { why }) => {
                assert!(!why.contains("written"), "{what}, {name}: {why}");
                change(model);
                not_durable += 1;
            }
            Err(Error::NoSpace { .. } | Error::Io { .. } | Error::WritesStopped { .. }) => refused += 1,
            Err(other) => panic!("{what}, {name}: {other}"),
        }
        let found = content(session);
        assert!(found == *model, "{what}, {name}: {answer:?} is not what has happened");
    }
    (refused, not_durable)
}

/// Every call fails, once or from then on, in every way, at every level.
#[test]
fn every_answer_is_true_whatever_call_fails() {
    for (fault, for_ever) in [
        (Fault::NoSpace, false),
        (Fault::NoSpace, true),
        (Fault::Io, false),
        (Fault::Io, true),
        (Fault::ShortWrite, true),
    ] {
        every_call(Durability::Fsync, fault, for_ever);
    }
    for level in [Durability::None, Durability::Periodic] {
        every_call(level, Fault::Io, false);
        every_call(level, Fault::NoSpace, true);
    }
}

fn every_call(level: Durability, fault: Fault, for_ever: bool) {
    let mut seen = (0, 0);
    for call in 1.. {
        let what = format!("{level:?}, {fault:?} at call {call}, for ever: {for_ever}");
        let scratch = Scratch::new();
        let disk = FaultyDisk::new(fault);
        let database = Database::open_on(&scratch.db(), &options(level), Arc::new(disk.clone())).unwrap();
        let mut session = database.session().unwrap();
        let mut model = Content::new();
        (0..30).for_each(|number| put(&mut model, &key(number), b"before"));
        transact(&mut session, &TransactionOptions::default(), |session| {
            model.iter().try_for_each(|(key, value)| session.set(key, value))
        })
        .unwrap();
        database.checkpoint().unwrap();
        let before = disk.calls();
        match for_ever {
            true => disk.fail_from_call(call),
            false => disk.fail_call(call),
        }
        let (refused, not_durable) = run(&mut session, &mut model, &what);
        let is_over = disk.calls() - before < call;
        seen = (seen.0 + refused, seen.1 + not_durable);
        disk.fail_call(0);
        drop(session);
        // Closing makes all of it durable, at the latest when it is opened and closed again.
        let _ = database.close();
        let database = scratch.open(level);
        assert!(content(&mut database.session().unwrap()) == model, "{what}: reopened");
        if is_over {
            break;
        }
    }
    assert!(
        level != Durability::Fsync || seen.1 > 0,
        "{fault:?}: no commit was kept from the disk: {seen:?}"
    );
}

/// A log that cannot be written: the commit that meets that is not durable, the next are refused, and once it can be
/// written all goes on, with what was not durable.
#[test]
fn a_log_that_cannot_be_written_stops_writing_until_it_can() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::Io);
    let database =
        Database::open_on(&scratch.db(), &options(Durability::Fsync), Arc::new(disk.clone())).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"before", b"1").unwrap();
    disk.fail_from_call(1);
    let mut answers = (0..50).map(|number| session.set(&key(number), b"1").expect_err("no disk takes it"));
    let first = answers.next().unwrap();
    assert!(matches!(first, Error::NotDurable { .. }), "{first}");
    for answer in answers {
        let Error::WritesStopped { place, is_final: false, .. } = &answer else { panic!("{answer}") };
        assert!(place.as_str().ends_with("/x.db-wal.0"), "{answer}");
        assert!(answer.to_string().contains("this was not written"), "{answer}");
    }
    let found = content(&mut session);
    assert_eq!(found.len(), 2, "the one that is not durable, and the one before");
    disk.fail_call(0);
    let begun = Instant::now();
    while let Err(error) = session.set(b"after", b"1") {
        assert!(matches!(error, Error::WritesStopped { is_final: false, .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "nobody tries again");
        std::thread::yield_now();
    }
    let copy = super::durability_tests::crashed(&scratch);
    let again = copy.open(Durability::Fsync);
    assert_eq!(content(&mut again.session().unwrap()).len(), 3);
}
