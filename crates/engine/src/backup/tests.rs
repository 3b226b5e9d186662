//! Backups: one state, while others write; and what is left if one is ended at any point.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use perilune_disk::{Fault, FaultyDisk, RealDisk};
use perilune_store::{Session, Store};

use super::*;
use crate::open::Attachment;
use crate::salvage::tests::{all_of, make, options, set_all, some_nodes, Scratch};
use crate::{checkpoint_pages, Database};

fn run(attachment: &Attachment, disk: &dyn Disk, dest: &Path) -> Result<BackupReport> {
    backup(attachment.image().unwrap(), disk, dest, BackupKind::Whole, &options(), &mut |_, _| {})
}

#[test]
fn a_backup_is_the_state_of_one_moment_while_others_write() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    make(&path, &some_nodes(2000));
    let database = Database::open(&path, &options()).unwrap();
    let database = &database;
    std::thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then the writer ends.
        let going_on = Arc::new(());
        let is_going_on = Arc::downgrade(&going_on);
        let writer = scope.spawn(move || {
            let mut session = database.session().unwrap();
            let mut round = 0u64;
            // Each node is set after the one before: any state has a first part one higher than the rest.
            while is_going_on.strong_count() > 0 {
                round += 1;
                for at in 0..300 {
                    let value = round.to_le_bytes().repeat(if at % 50 == 0 { 2000 } else { 5 });
                    session.set(format!("row {at:04}").as_bytes(), &value).unwrap();
                }
                if round.is_multiple_of(3) {
                    database.checkpoint().unwrap();
                }
            }
        });
        for _ in 0..6 {
            let report = database.backup(&dest, BackupKind::Whole, &options(), &mut |_, _| {}).unwrap();
            assert!(report.pages > 20 && report.bytes == fs::metadata(&dest).unwrap().len());
            let rows: Vec<u64> = all_of(&dest)
                .into_iter()
                .filter(|(key, _)| key.starts_with(b"row "))
                .map(|(_, value)| u64::from_le_bytes(value[..8].try_into().unwrap()))
                .collect();
            assert!(rows.is_sorted_by(|a, b| a >= b), "{rows:?}");
            assert!(rows.iter().all(|row| *row == rows[0] || *row + 1 == rows[0]), "{rows:?}");
        }
        drop(going_on);
        writer.join().unwrap();
    });
    assert!(!scratch.path("copy.db.partial").exists());
    database.verify().unwrap();
}

#[test]
fn damage_is_found_and_not_copied() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    make(&path, &some_nodes(500));
    let attachment = Attachment::open(&path, &options()).unwrap();
    run(&attachment, &RealDisk, &dest).unwrap();
    let good = fs::read(&dest).unwrap();
    let page = checkpoint_pages(&path).unwrap().data[2];
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .write_all_at(&[0x5a; 3], page * PAGE as u64 + 900)
        .unwrap();
    let refusal = run(&attachment, &RealDisk, &dest).unwrap_err().to_string();
    assert!(refusal.contains(&format!("page {page} ")), "{refusal}");
    assert!(fs::read(&dest).unwrap() == good && !scratch.path("copy.db.partial").exists());
}

#[test]
fn destinations_that_will_not_do_are_refused() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    make(&path, &some_nodes(20));
    let attachment = Attachment::open(&path, &options()).unwrap();
    let refusal = |dest: &Path| run(&attachment, &RealDisk, dest).unwrap_err().to_string();
    assert!(refusal(&path).contains("is the database itself"));
    fs::write(&dest, "a letter").unwrap();
    assert!(refusal(&dest).contains("not a Perilune database"));
    assert_eq!(fs::read(&dest).unwrap(), b"a letter");
    fs::remove_file(&dest).unwrap();
    let open = Database::open(&dest, &options()).unwrap();
    assert!(refusal(&dest).contains("is in use"));
    open.close().unwrap();
    run(&attachment, &RealDisk, &dest).unwrap();
}

/// Two backups to a new place at once wrote into one file; the second ended in an error, and the first had
/// renamed pages of both.
#[test]
fn what_is_being_made_is_made_by_one() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    make(&path, &some_nodes(40));
    let database = Database::open(&path, &options()).unwrap();
    let mut refusals = Vec::new();
    let brief = OpenOptions { timeout: std::time::Duration::ZERO, ..options() };
    let mut other = |_, _| {
        let backup = database.backup(&dest, BackupKind::Whole, &brief, &mut |_, _| {}).unwrap_err();
        let salvage = Database::salvage(&path, &dest, &brief, &mut |_, _| {}).unwrap_err();
        let created = Database::open(&dest, &brief).err().unwrap();
        refusals.extend([backup, salvage, created].map(|error| error.to_string()));
    };
    database.backup(&dest, BackupKind::Whole, &options(), &mut other).unwrap();
    assert!(!refusals.is_empty() && refusals.iter().all(|why| why.contains("process")), "{refusals:?}");
    assert_eq!(all_of(&dest), some_nodes(40));
    assert!(!scratch.path("copy.db-new").exists());
}

/// A disk that fails once, and one that is gone from a call on: as if the process were killed there.
#[test]
fn ended_at_any_call_the_backup_of_before_or_the_new_one_is_there() {
    let scratch = Scratch::new();
    let (path, dest) = (scratch.path("x.db"), scratch.path("copy.db"));
    let (old, new) = (some_nodes(40), some_nodes(60));
    make(&path, &old);
    let database = Database::open(&path, &options()).unwrap();
    database.backup(&dest, BackupKind::Whole, &options(), &mut |_, _| {}).unwrap();
    let before = fs::read(&dest).unwrap();
    set_all(&database, &new);
    let attachment = Attachment::open(&path, &options()).unwrap();
    for is_killed in [false, true] {
        let mut failed = 0;
        for call in 1.. {
            fs::write(&dest, &before).unwrap();
            let disk = FaultyDisk::new(Fault::ShortWrite);
            if is_killed {
                disk.fail_from_call(call);
            } else {
                disk.fail_call(call);
            }
            let result = run(&attachment, &disk, &dest);
            failed += u32::from(result.is_err());
            let there = all_of(&dest);
            assert!(there == old || there == new, "call {call}, killed: {is_killed}: {result:?}");
            if disk.calls() < call {
                result.unwrap();
                assert!(there == new);
                break;
            }
        }
        assert!(failed > 20, "{failed}");
    }
    let mut session = database.session().unwrap();
    session.set(b"after", b"all").unwrap();
}
