//! All processes killed in one moment: the next to open finds every acknowledged write, at once.
//!
//! Who asked for a level at opening took a checkpoint first, of everything that the killed had written, though
//! the level was the same as before: 20 ms of a million keys.

mod party;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use party::{command, Scratch};
use perilune_engine::{Database, OpenOptions};
use perilune_store::{Durability, Session as _, Store};

const WRITERS: usize = 16;
const ROUNDS: usize = 5;
/// Writes that each process has done, at least, when all are killed.
const WRITES: u64 = 300;
/// How long opening may take, and how long on a machine that is busy with other tests.
const AT_ONCE: Duration = Duration::from_millis(10);
const BUSY: Duration = Duration::from_millis(100);

fn options() -> OpenOptions {
    OpenOptions { durability: Some(Durability::Periodic), ..party::options() }
}

fn key(writer: usize, number: u64) -> Vec<u8> {
    format!("w{writer}\0{number:08}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 10 + (number as usize * 37) % 600]
}

/// Where a writer notes the last write that was acknowledged.
fn note(path: &Path, writer: usize) -> PathBuf {
    path.with_extension(format!("note-{writer}"))
}

fn noted(path: &Path, writer: usize) -> u64 {
    let mut number = [0; 8];
    // Not there, or empty: nothing yet.
    let read = File::open(note(path, writer)).and_then(|file| file.read_exact_at(&mut number, 0));
    read.map_or(0, |()| u64::from_le_bytes(number))
}

/// Writes until it is killed; its role is its number.
#[test]
fn party_process() {
    let Some((role, path)) = party::role() else { return };
    let writer: usize = role.parse().unwrap();
    let first = noted(&path, writer) + 1;
    let note = File::options().create(true).truncate(false).write(true).open(note(&path, writer)).unwrap();
    let database = Database::open(&path, &options()).unwrap();
    let mut session = database.session().unwrap();
    for number in first.. {
        session.set(&key(writer, number), &value(number)).unwrap();
        note.write_all_at(&number.to_le_bytes(), 0).unwrap();
    }
}

#[test]
fn all_writers_killed_at_once_lose_nothing_and_the_next_opens_at_once() {
    let scratch = Scratch::new("killed");
    let path = scratch.database();
    Database::open(&path, &options()).unwrap().close().unwrap();
    let (mut took, mut checkpoints) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before: Vec<u64> = (0..WRITERS).map(|writer| noted(&path, writer)).collect();
        let start =
            |writer: usize| command(&[], &writer.to_string(), &path).stdout(Stdio::null()).spawn().unwrap();
        let mut writers: Vec<Child> = (0..WRITERS).map(start).collect();
        while (0..WRITERS).any(|writer| noted(&path, writer) < before[writer] + WRITES) {
            for writer in &mut writers {
                assert!(writer.try_wait().unwrap().is_none(), "a writer has ended by itself");
            }
            std::thread::yield_now();
        }
        writers.iter_mut().for_each(|writer| writer.kill().unwrap());
        for writer in &mut writers {
            writer.wait().unwrap();
        }
        let begun = Instant::now();
        let database = Database::open(&path, &options()).unwrap();
        took.push(begun.elapsed());
        checkpoints.push(database.statistics().unwrap().checkpoints);
        database.verify().unwrap();
        let mut session = database.session().unwrap();
        let mut found = Vec::new();
        for (writer, before) in before.into_iter().enumerate() {
            let last = noted(&path, writer);
            for number in before + 1..=last {
                assert!(
                    session.get(&key(writer, number), &mut found).unwrap(),
                    "{writer}: {number} of {last}"
                );
                assert_eq!(found, value(number));
            }
            // One more may have been set and not noted.
            assert!(!session.get(&key(writer, last + 2), &mut found).unwrap(), "{writer}: beyond {last}");
        }
        // Closing takes a checkpoint whatever opening has done.
        session.set(b"round", &[checkpoints.len() as u8]).unwrap();
    }
    took.sort();
    // Past what a test that succeeds is kept from saying.
    writeln!(std::io::stderr(), "opened after {WRITERS} writers were killed at once in {took:?}").unwrap();
    assert!(took[0] < AT_ONCE && took[ROUNDS / 2] < BUSY, "{took:?}");
    // From one opening to the next the one of closing, and in some rounds one that was due: always, where the file
    // is tiny.
    let least = checkpoints.windows(2).map(|two| two[1] - two[0]).min();
    assert!(cfg!(feature = "tiny") || least == Some(1), "opening has taken checkpoints: {checkpoints:?}");
}
