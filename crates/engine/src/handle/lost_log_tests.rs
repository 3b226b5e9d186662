//! Files of the log that were removed: a crash must not quietly bring back the last checkpoint.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perilune_disk::{Disk, RealDisk};
use perilune_store::{Durability, Error, Session as _, Store};

use super::durability_tests::{content, crashed, key, options, Scratch};
use super::{Database, Session};
use crate::image::layout::control;
use crate::image::log_path;
use crate::meta::{self, Meta};
use crate::{duty, log};

fn meta_of(scratch: &Scratch) -> Meta {
    let file = RealDisk.open(&scratch.db(), false).unwrap();
    meta::newest(&*file, &scratch.db()).unwrap().1
}

/// Waits until meta names a segment.
fn named(scratch: &Scratch) -> u64 {
    let begun = Instant::now();
    loop {
        let segment = meta_of(scratch).log_segment;
        if segment != 0 {
            return segment;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "meta names no segment");
        std::thread::yield_now();
    }
}

fn log_files(scratch: &Scratch) -> Vec<PathBuf> {
    let names = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_str().unwrap().contains("-wal.")).collect()
}

fn refusal(scratch: &Scratch) -> String {
    match Database::open(&scratch.db(), &options(Durability::Fsync)) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

/// Fills more than a segment.
fn write(session: &mut Session, from: u64) {
    for number in from..from + 700 {
        session.set(&key(number % 90), &[number as u8; 2000]).unwrap();
    }
}

#[test]
fn a_log_that_was_removed_is_missed_and_can_be_put_back() {
    for with_checkpoint in [false, true] {
        let scratch = Scratch::new();
        let database = scratch.open(Durability::Periodic);
        let mut session = database.session().unwrap();
        write(&mut session, 0);
        if with_checkpoint {
            database.checkpoint().unwrap();
            write(&mut session, 1000);
        }
        crate::log::sync(&database.image()).unwrap();
        named(&scratch);
        let expected = content(&mut session);
        let crash = crashed(&scratch);
        let files = log_files(&crash);
        let kept: Vec<_> = files.iter().map(|path| (path, fs::read(path).unwrap())).collect();
        files.iter().for_each(|path| fs::remove_file(path).unwrap());
        for _ in 0..2 {
            let refusal = refusal(&crash);
            assert!(refusal.contains("its log is gone") && refusal.contains("x.db-wal.*"), "{refusal}");
            assert!(
                refusal.contains("Put these files back") && refusal.contains("perilune salvage"),
                "{refusal}"
            );
        }
        let new = crash.0.join("new.db");
        let disk: std::sync::Arc<dyn Disk> = std::sync::Arc::new(RealDisk);
        let report =
            crate::salvage::salvage(&crash.db(), &new, &options(Durability::Periodic), &disk, &mut |_, _| {});
        let report = report.unwrap();
        assert!(report.log_damage.as_ref().unwrap().contains("its log is gone"), "{report:?}");
        assert!(!report.is_complete());
        kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let again = crash.open(Durability::Fsync);
        assert!(content(&mut again.session().unwrap()) == expected);
    }
}

/// The newest file of several is missing: that what is left goes on from the checkpoint is not enough.
#[test]
fn the_last_segment_alone_is_missed() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    let mut number = 0;
    while log_files(&scratch).len() < 3 {
        write(&mut session, number);
        number += 700;
    }
    database.checkpoint().unwrap();
    session.set(b"after", b"the checkpoint").unwrap();
    let segment = named(&scratch);
    let crash = crashed(&scratch);
    for path in log_files(&crash) {
        let head = fs::read(&path).unwrap();
        if head[32..40] == segment.to_le_bytes() {
            fs::remove_file(&path).unwrap();
        }
    }
    assert!(refusal(&crash).contains("its log is gone"));
}

#[test]
fn a_database_that_was_closed_or_has_no_log_needs_no_files_of_one() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    write(&mut session, 0);
    named(&scratch);
    let expected = content(&mut session);
    drop(session);
    database.close().unwrap();
    assert_eq!(meta_of(&scratch).log_segment, 0);
    let copy = crashed(&scratch);
    log_files(&copy).iter().for_each(|path| fs::remove_file(path).unwrap());
    let again = copy.open(Durability::None);
    assert!(content(&mut again.session().unwrap()) == expected);
    again.session().unwrap().set(b"more", b"1").unwrap();
    assert!(again.checkpoint().unwrap());
    let crash = crashed(&copy);
    log_files(&crash).iter().for_each(|path| fs::remove_file(path).unwrap());
    let again = crash.open(Durability::None);
    assert_eq!(content(&mut again.session().unwrap()).len(), expected.len() + 1);
}

/// Whoever syncs has looked which slots hold segments. Until he opens one, a checkpoint may have made it spare and a
/// writer may have begun another segment in it: that is no other database's file.
#[test]
fn a_segment_that_was_used_again_meanwhile_is_passed_over() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Periodic);
    let image = database.image();
    // No checkpoint recycles the log meanwhile.
    let quiet = duty::take(&image, control::CHECKPOINT_OWNER).unwrap();
    let mut session = database.session().unwrap();
    write(&mut session, 0);
    log::sync(&image).unwrap();
    let seen: Vec<(u32, u64)> = log::used(&image).collect();
    let (slot, sequence) = seen[0];
    assert!(log::open_if_used(&image, slot, sequence).unwrap().is_some());
    log::recycle(&image, log::next_batch(&image)).unwrap();
    while !log::used(&image).any(|(used, _)| used == slot) {
        write(&mut session, 1000);
        log::sync(&image).unwrap();
    }
    assert_ne!(log::used(&image).find(|(used, _)| *used == slot), Some((slot, sequence)));
    assert!(log::open_if_used(&image, slot, sequence).unwrap().is_none());
    // Where the slot still says that it holds the segment, the file is another's.
    let (slot, sequence) = log::used(&image).last().unwrap();
    let file = RealDisk.open(&log_path(&scratch.db(), slot), true).unwrap();
    file.write_at(&[0x5a; 64], 16).unwrap();
    let refused = log::open_if_used(&image, slot, sequence).map(drop);
    assert!(matches!(refused, Err(Error::Replaced { .. })), "{refused:?}");
    drop((session, quiet));
}
