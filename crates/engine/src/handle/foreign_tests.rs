//! Files that are in the way of those that Perilune makes. It used to empty them and write into them, through a symbolic
//! link into whatever that led to: `backup` into DEST.partial, `compact` into PATH-compact, a creator into PATH-new,
//! which may be another database of that name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use perilune_store::{Durability, Error, Place, Result, Session as _, Store};

use super::durability_tests::{content, key, options, Scratch};
use super::Database;
use crate::backup::BackupKind;

const TEXT: &[u8] = b"a file of somebody's, which is to stay as it is";

/// What is done, and the name beside its file that it makes a file under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Create,
    Open,
    Backup,
    Update,
    Compact,
    Salvage,
}

const ACTS: [(Act, &str); 6] = [
    (Act::Create, "new.db-new"),
    (Act::Open, "x.db-shm"),
    (Act::Backup, "copy.db.partial"),
    (Act::Update, "copy.db-delta"),
    (Act::Compact, "x.db-compact"),
    (Act::Salvage, "new.db.partial"),
];

/// A database that was closed, and an older copy of it.
fn scene() -> Scratch {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    session.set(b"a", b"1").unwrap();
    backup(&database, &scratch.0.join("copy.db"), BackupKind::Whole).unwrap();
    session.set(b"b", b"2").unwrap();
    drop(session);
    database.close().unwrap();
    fs::remove_file(scratch.0.join("x.db-shm")).unwrap();
    scratch
}

fn backup(database: &Database, dest: &Path, kind: BackupKind) -> Result<()> {
    database.backup(dest, kind, &options(Durability::None), &mut |_, _| {}).map(drop)
}

fn run(scratch: &Scratch, act: Act) -> Result<()> {
    let path = |name: &str| scratch.0.join(name);
    let options = options(Durability::Fsync);
    match act {
        Act::Create => Database::open(&path("new.db"), &options).map(drop),
        Act::Open => Database::open(&scratch.db(), &options).map(drop),
        Act::Backup => backup(&scratch.open(Durability::Fsync), &path("copy.db"), BackupKind::Whole),
        Act::Update => backup(&scratch.open(Durability::Fsync), &path("copy.db"), BackupKind::Incremental),
        Act::Compact => Database::compact(&scratch.db(), &options, &mut |_, _| {}).map(drop),
        Act::Salvage => Database::salvage(&scratch.db(), &path("new.db"), &options, &mut |_, _| {}).map(drop),
    }
}

fn is_in_the_way<T>(done: &Result<T>, path: &Path) -> bool {
    matches!(done, Err(Error::CannotOpen { place, why }) if *place == Place::from(path) && why.contains("is in the way"))
}

#[test]
fn links_are_not_followed_and_files_of_others_stay() {
    for (act, name) in ACTS {
        for is_link in [true, false] {
            let scratch = scene();
            let (path, victim) = (scratch.0.join(name), scratch.0.join("victim"));
            fs::write(&victim, TEXT).unwrap();
            match is_link {
                true => symlink(&victim, &path).unwrap(),
                false => fs::write(&path, TEXT).unwrap(),
            }
            let done = run(&scratch, act);
            assert!(is_in_the_way(&done, &path), "{act:?}, link: {is_link}: {done:?}");
            assert_eq!(fs::read(&victim).unwrap(), TEXT, "{act:?}, link: {is_link}");
            assert_eq!(fs::read(&path).unwrap(), TEXT, "{act:?}, link: {is_link}");
            fs::remove_file(&path).unwrap();
            run(&scratch, act).unwrap();
        }
    }
}

/// A link that leads nowhere: what it names was made.
#[test]
fn nothing_is_made_where_a_link_leads() {
    for (act, name) in ACTS {
        let scratch = scene();
        let nowhere = scratch.0.join("nowhere");
        symlink(&nowhere, scratch.0.join(name)).unwrap();
        assert!(is_in_the_way(&run(&scratch, act), &scratch.0.join(name)), "{act:?}");
        assert!(!nowhere.exists(), "{act:?}");
    }
}

/// The names are those of databases that somebody may have: `x.db-new` was emptied when `x.db` was made.
#[test]
fn another_database_of_such_a_name_stays() {
    for (act, name) in ACTS {
        let scratch = scene();
        let other = scratch.0.join(name);
        let database = Database::open(&other, &options(Durability::None)).unwrap();
        database.session().unwrap().set(b"other", b"there").unwrap();
        database.close().unwrap();
        assert!(is_in_the_way(&run(&scratch, act), &other), "{act:?}");
        let database = Database::open(&other, &options(Durability::None)).unwrap();
        assert_eq!(content(&mut database.session().unwrap()).len(), 1, "{act:?}");
    }
}

/// A file of the log is passed over, and so is another database's.
#[test]
fn the_log_passes_over_what_is_not_its_own() {
    let scratch = scene();
    let victim = scratch.0.join("victim");
    fs::write(&victim, TEXT).unwrap();
    let names: Vec<PathBuf> = (0..3).map(|slot| scratch.0.join(format!("new.db-wal.{slot}"))).collect();
    symlink(&victim, &names[0]).unwrap();
    fs::write(&names[1], TEXT).unwrap();
    let path = scratch.0.join("new.db");
    let database = Database::open(&path, &options(Durability::Fsync)).unwrap();
    let mut session = database.session().unwrap();
    for number in 0..50 {
        session.set(&key(number), b"value").unwrap();
    }
    assert!(names[2].exists());
    for name in [&victim, &names[0], &names[1]] {
        assert_eq!(fs::read(name).unwrap(), TEXT);
    }
    // And what it has of its own is found after a crash.
    let crash = Scratch::new();
    fs::copy(&path, crash.db()).unwrap();
    fs::copy(&names[2], crash.0.join("x.db-wal.2")).unwrap();
    symlink(&victim, crash.0.join("x.db-wal.0")).unwrap();
    fs::write(crash.0.join("x.db-wal.1"), TEXT).unwrap();
    let recovered = crash.open(Durability::Fsync);
    assert_eq!(content(&mut recovered.session().unwrap()).len(), 50);
}

fn logs(scratch: &Scratch) -> Vec<PathBuf> {
    let names = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_str().unwrap().contains("x.db-wal.")).collect()
}

/// A file is renamed, and another database made under the name: the log that stayed there is all that is left of what
/// was acknowledged, if its process is then killed.
#[test]
fn the_log_of_a_renamed_database_survives_the_next_of_the_name() {
    let scratch = Scratch::new();
    let old = scratch.open(Durability::Fsync);
    let mut session = old.session().unwrap();
    for number in 0..50 {
        session.set(&key(number), b"value").unwrap();
    }
    let (moved, ours) = (Scratch::new(), logs(&scratch));
    fs::rename(scratch.db(), moved.db()).unwrap();
    for _ in 0..2 {
        let new = scratch.open(Durability::Fsync);
        new.session().unwrap().set(b"new", b"1").unwrap();
        new.close().unwrap();
    }
    // What a kill leaves: the file as it is, and the log put beside it.
    let killed = Scratch::new();
    fs::copy(moved.db(), killed.db()).unwrap();
    for log in ours {
        fs::copy(&log, killed.0.join(log.file_name().unwrap())).unwrap();
    }
    assert!(content(&mut killed.open(Durability::Fsync).session().unwrap()) == content(&mut session));
}

/// Of a database that was closed nothing is needed: whoever makes another one of the name clears it away.
#[test]
fn the_log_of_a_closed_database_goes_with_the_next_of_the_name() {
    let scratch = Scratch::new();
    for round in 0..4 {
        let database = scratch.open(Durability::Fsync);
        database.session().unwrap().set(b"a", b"1").unwrap();
        database.close().unwrap();
        assert_eq!(logs(&scratch).len(), 1, "round {round}");
        fs::remove_file(scratch.db()).unwrap();
    }
}

/// Whoever removes the log of a closed database, but not its `-shm`, got an error at each write from then on.
#[test]
fn a_log_that_was_removed_after_closing_begins_anew() {
    for opens_with in [Durability::Fsync, Durability::Periodic] {
        let scratch = Scratch::new();
        for round in 0..3 {
            let database = scratch.open(opens_with);
            let mut session = database.session().unwrap();
            session.set(&key(round), b"value").unwrap();
            crate::log::sync(&database.image()).unwrap();
            let crash = super::durability_tests::crashed(&scratch);
            let recovered = crash.open(Durability::Fsync);
            assert_eq!(content(&mut recovered.session().unwrap()), content(&mut session), "round {round}");
            drop(session);
            database.close().unwrap();
            logs(&scratch).iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    }
}
