//! A log that is damaged in its middle: nothing that had been on disk is given up without a word.
//!
//! A hundred commits were acknowledged at `fsync`, the processes killed and `-shm` lost. One changed byte in the
//! tenth, and the database opened with nine, said nothing, and wrote a checkpoint over the other ninety.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use perilune_disk::{Disk, RealDisk};
use perilune_store::{Durability, Error, Session as _, Store};

use super::durability_tests::{content, crashed, key, options, Scratch};
use super::Database;
use crate::duty;
use crate::image::layout::control;
use crate::open::OpenOptions;
use crate::salvage::{self, SalvageReport};

const BLOCK: usize = 4096;
const COMMITS: u64 = 100;

/// What a crash leaves of so many commits at `fsync`, each in a batch of one block.
fn commits(count: u64) -> Scratch {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let _quiet = duty::take(&database.image(), control::CHECKPOINT_OWNER).unwrap();
    let mut session = database.session().unwrap();
    (0..count).for_each(|number| session.set(&key(number), b"acknowledged").unwrap());
    crashed(&scratch)
}

/// The files of the log, by their numbers.
fn files(scratch: &Scratch) -> Vec<PathBuf> {
    let path = |slot: u32| scratch.0.join(format!("x.db-wal.{slot}"));
    (0..).map(path).take_while(|path| path.exists()).collect()
}

/// The place of the block that holds commit `number`, by its value's key.
fn block_of(scratch: &Scratch, number: u64) -> (PathBuf, usize) {
    let wanted = key(number);
    for path in files(scratch) {
        let bytes = fs::read(&path).unwrap();
        let found = bytes.chunks(BLOCK).position(|block| {
            block.starts_with(b"PLOG") && block.windows(wanted.len()).any(|bytes| bytes == wanted)
        });
        if let Some(at) = found {
            return (path, at * BLOCK);
        }
    }
    panic!("commit {number} is in no block of the log");
}

fn flip((path, at): &(PathBuf, usize)) {
    let mut bytes = fs::read(path).unwrap();
    bytes[*at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

fn bytes_of(files: &[PathBuf]) -> Vec<Vec<u8>> {
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn accepting() -> OpenOptions {
    OpenOptions { accept_lost_commits: true, ..options(Durability::Fsync) }
}

fn salvaged(scratch: &Scratch, behind_damage: bool) -> (SalvageReport, Vec<Vec<u8>>) {
    let new = scratch.0.join("new.db");
    let _ = fs::remove_file(&new);
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let options = OpenOptions { behind_damage, ..options(Durability::Fsync) };
    let report = salvage::salvage(&scratch.db(), &new, &options, &disk, &mut |_, _| {}).unwrap();
    let database = Database::open(&new, &options).unwrap();
    let found = content(&mut database.session().unwrap());
    (report, found.into_keys().collect())
}

/// That it is refused, with a text that has all of `texts`, again and again; the log stays as it is.
fn refused(scratch: &Scratch, texts: &[&str]) {
    let log = files(scratch);
    let before = bytes_of(&log);
    for _ in 0..2 {
        let error = Database::open(&scratch.db(), &options(Durability::Fsync)).err().expect("it was opened");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        let error = error.to_string();
        for text in texts.iter().chain(&["salvage --log", "accept_lost_commits"]) {
            assert!(error.contains(text), "no `{text}` in: {error}");
        }
    }
    assert!(files(scratch) == log && bytes_of(&log) == before, "the log has changed");
}

#[test]
fn a_damaged_byte_in_the_middle_of_the_log_is_refused() {
    let crash_of_all = commits(COMMITS);
    // In the head of the chunk, and in its body.
    for at in [8, 70] {
        let crash = crashed(&crash_of_all);
        let (path, block) = block_of(&crash, 9);
        flip(&(path, block + at));
        let place = format!("x.db-wal.0 is damaged at byte {block}");
        // NB: that the last batch had been on disk nothing says.
        refused(
            &crash,
            &[&place, "90 batches that had been on disk", "of which 90 with 90 records lie whole behind"],
        );
        let (report, found) = salvaged(&crash, false);
        assert_eq!((report.log_records, report.log_records_behind, found.len()), (Some(9), 0, 9));
        assert!(report.log_damage.is_some() && !report.is_complete(), "{report:?}");
        let (report, found) = salvaged(&crash, true);
        assert_eq!((report.log_records, report.log_records_behind), (Some(99), 90));
        assert!(report.log_damage.is_some() && !report.is_complete(), "{report:?}");
        assert_eq!(found, (0..COMMITS).filter(|number| *number != 9).map(key).collect::<Vec<_>>());
        let database = Database::open(&crash.db(), &accepting()).unwrap();
        let dropped = database.recovery().unwrap().dropped.clone().unwrap();
        assert!(dropped.contains("90 batches that had been on disk"), "{dropped}");
        let mut session = database.session().unwrap();
        assert_eq!(content(&mut session).len(), 9);
        session.set(b"after", b"1").unwrap();
        // What follows it is not taken for something of the log that was given up.
        let copy = crashed(&crash);
        let again = copy.open(Durability::Fsync);
        assert_eq!(content(&mut again.session().unwrap()).len(), 10);
    }
}

/// The option to do without changes nothing where nothing is damaged.
#[test]
fn a_sound_log_is_replayed_also_where_a_damaged_one_would_be_accepted() {
    let crash = commits(20);
    let database = Database::open(&crash.db(), &accepting()).unwrap();
    assert_eq!(content(&mut database.session().unwrap()).len(), 20);
    assert_eq!(database.recovery().unwrap().dropped, None);
}

/// What a power loss leaves of the last batch cannot be told from damage in it: it opens, as ever.
#[test]
fn a_torn_last_batch_is_what_a_power_loss_leaves() {
    let crash = commits(COMMITS);
    let (path, block) = block_of(&crash, COMMITS - 1);
    flip(&(path, block + 70));
    let database = crash.open(Durability::Fsync);
    assert_eq!(content(&mut database.session().unwrap()).len() as u64, COMMITS - 1);
    let dropped = database.recovery().unwrap().dropped.clone().unwrap();
    assert!(dropped.contains("1 batches that were being written"), "{dropped}");
}

/// The file in which the log goes on has lost its head, or is missing. Its head was all that told it from a file
/// that was never used, and what was in it was dropped.
#[test]
fn a_damaged_head_of_a_file_of_the_log_is_refused() {
    let crash = commits(400);
    assert!(files(&crash).len() >= 2, "the log goes over several files");
    for (at, file) in [(0, 0), (33, 0), (0, 1), (44, 1)] {
        let copy = crashed(&crash);
        flip(&(files(&copy)[file].clone(), at));
        let name = format!("x.db-wal.{file} is damaged at byte 0");
        refused(&copy, &[&name, "the head of the file is damaged", "lie whole behind the damage"]);
        let (report, found) = salvaged(&copy, true);
        assert!(found.len() >= 398 && !report.is_complete(), "{} {report:?}", found.len());
    }
    let copy = crashed(&crash);
    fs::remove_file(&files(&copy)[0]).unwrap();
    let error = Database::open(&copy.db(), &options(Durability::Fsync)).err().expect("it was opened");
    assert!(error.to_string().contains("a file is missing"), "{error}");
}

/// Damage in what a checkpoint has made superfluous: all that is needed lies behind it, and it was given up.
#[test]
fn damage_before_what_the_checkpoint_needs_harms_nothing() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    (0..20).for_each(|number| session.set(&key(number), b"acknowledged").unwrap());
    database.checkpoint().unwrap();
    (20..40).for_each(|number| session.set(&key(number), b"acknowledged").unwrap());
    for (number, at) in [(3, 8), (3, 70), (19, 8), (19, 70)] {
        let crash = crashed(&scratch);
        let (path, block) = block_of(&crash, number);
        flip(&(path, block + at));
        let again = crash.open(Durability::Fsync);
        assert_eq!(content(&mut again.session().unwrap()).len(), 40, "{number} {at}");
    }
}
