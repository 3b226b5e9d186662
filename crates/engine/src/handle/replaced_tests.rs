//! A database is removed, renamed or made anew under its name while a process has it open. That process used to
//! open files by their names and to write its own pages into the other database that had come there: its close
//! alone, without a write of its own, left the other one damaged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perilune_store::{Durability, Error, Result, Session as _, Store};

use super::durability_tests::{content, copy_without_shm, key, options, Scratch};
use super::{Database, Session};
use crate::backup::BackupKind;
use crate::{checkpoint, log};

const LEVELS: [Durability; 3] = [Durability::None, Durability::Periodic, Durability::Fsync];

/// How a database is taken away from a process that has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Every file of it is removed.
    Removed,
    /// Only the database file is, and the others stay where the new one wants to have its own.
    FileRemoved,
    /// Every file of it gets another name.
    Renamed,
    /// Only the database file does.
    FileRenamed,
    DirectoryRenamed,
}

const WAYS: [Way; 5] =
    [Way::Removed, Way::FileRemoved, Way::Renamed, Way::FileRenamed, Way::DirectoryRenamed];

/// A directory in a directory, so that it can be renamed, with the database in it.
struct Place(Scratch);

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new();
        fs::create_dir(scratch.0.join("d")).unwrap();
        Place(scratch)
    }

    fn directory(&self) -> PathBuf {
        self.0 .0.join("d")
    }

    fn db(&self) -> PathBuf {
        self.directory().join("x.db")
    }

    fn open(&self, level: Durability) -> Database {
        Database::open(&self.db(), &options(level)).unwrap()
    }

    /// Takes the database away; answers where its file is now, if it has a name.
    fn replace(&self, way: Way) -> Option<PathBuf> {
        let moved = self.0 .0.join("moved");
        if way == Way::DirectoryRenamed {
            fs::rename(self.directory(), &moved).unwrap();
            fs::create_dir(self.directory()).unwrap();
            return Some(moved.join("x.db"));
        }
        fs::create_dir(&moved).unwrap();
        for entry in fs::read_dir(self.directory()).unwrap() {
            let path = entry.unwrap().path();
            match way {
                Way::FileRemoved | Way::FileRenamed if path != self.db() => {}
                Way::Removed | Way::FileRemoved => fs::remove_file(&path).unwrap(),
                _ => fs::rename(&path, moved.join(path.file_name().unwrap())).unwrap(),
            }
        }
        matches!(way, Way::Renamed | Way::FileRenamed).then(|| moved.join("x.db"))
    }

    /// The files there: inode and bytes by name. Of `-shm` only what tells it: its words belong to no file system.
    fn files(&self) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
        let names = fs::read_dir(self.directory()).unwrap().map(|entry| entry.unwrap().path());
        let file = |path: PathBuf| {
            let inode = fs::metadata(&path).unwrap().ino();
            let is_shm = path.to_str().unwrap().ends_with("-shm");
            let bytes = if is_shm { Vec::new() } else { fs::read(&path).unwrap() };
            (path, (inode, bytes))
        };
        names.map(file).collect()
    }
}

fn write(session: &mut Session, from: u64, count: u64) -> Result<()> {
    (from..from + count).try_for_each(|number| session.set(&key(number), &[number as u8; 300]))
}

fn is_replaced<T>(answer: &Result<T>) -> bool {
    let text = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
    text.contains("removed or replaced") && text.contains("open it again")
}

fn copy(from: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    copy_without_shm(from, into);
}

/// The input that was reported: A writes nothing at all, and closes.
#[test]
fn closing_leaves_the_new_database_of_the_name_as_it_is() {
    for (way, level) in WAYS.into_iter().flat_map(|way| LEVELS.map(|level| (way, level))) {
        for writes in [0, 50] {
            let place = Place::new();
            let old = place.open(level);
            write(&mut old.session().unwrap(), 0, 10).unwrap();
            old.checkpoint().unwrap();
            write(&mut old.session().unwrap(), 10, writes).unwrap();
            let moved = place.replace(way);
            let new = place.open(level);
            write(&mut new.session().unwrap(), 1000, 40).unwrap();
            let expected = content(&mut new.session().unwrap());
            new.close().unwrap();
            let before = place.files();
            let closed = old.close();
            assert!(is_replaced(&closed), "{way:?} {level:?}: {closed:?}");
            assert!(place.files() == before, "{way:?} {level:?}: a file of the new database was touched");
            let new = place.open(level);
            new.verify().unwrap();
            assert!(content(&mut new.session().unwrap()) == expected, "{way:?} {level:?}");
            // What A had is whole in the file that it had.
            if let Some(moved) = moved {
                let old = Database::open(&moved, &options(level)).unwrap();
                let kept = content(&mut old.session().unwrap());
                assert_eq!(kept.len() as u64, 10 + writes, "{way:?} {level:?}");
                old.verify().unwrap();
            }
        }
    }
}

/// A checkpoint of A's, say that of every 30 s, comes while B is at work.
#[test]
fn a_checkpoint_leaves_the_new_database_as_it_is() {
    for (way, level) in WAYS.into_iter().flat_map(|way| LEVELS.map(|level| (way, level))) {
        let place = Place::new();
        let old = place.open(level);
        write(&mut old.session().unwrap(), 0, 50).unwrap();
        place.replace(way);
        let new = place.open(level);
        let mut session = new.session().unwrap();
        write(&mut session, 1000, 40).unwrap();
        assert!(is_replaced(&old.checkpoint()), "{way:?} {level:?}");
        let image = old.image();
        checkpoint::want(&image);
        assert!(is_replaced(&checkpoint::tend(&image, &*image.disk)), "{way:?} {level:?}");
        // Nobody of A's writes any more, and everybody reads on.
        let mut reader = old.session().unwrap();
        assert_eq!(content(&mut reader).len(), 50);
        assert!(is_replaced(&reader.set(b"more", b"1")), "{way:?} {level:?}");
        write(&mut session, 1040, 40).unwrap();
        let expected = content(&mut session);
        drop(session);
        new.checkpoint().unwrap();
        drop(reader);
        drop(old);
        new.verify().unwrap();
        new.close().unwrap();
        let new = place.open(level);
        new.verify().unwrap();
        assert!(content(&mut new.session().unwrap()) == expected, "{way:?} {level:?}");
    }
}

/// B acknowledged 200 sets at `fsync`; A's log went over B's: after a kill of both and a lost `-shm` 4 were left.
#[test]
fn the_log_leaves_that_of_the_new_database_as_it_is() {
    for way in WAYS {
        let place = Place::new();
        let old = place.open(Durability::Fsync);
        let mut writer = old.session().unwrap();
        write(&mut writer, 0, 20).unwrap();
        place.replace(way);
        let new = place.open(Durability::Fsync);
        let mut session = new.session().unwrap();
        let mut answers = Vec::new();
        for number in 0..200 {
            write(&mut session, 1000 + number, 1).unwrap();
            if number % 10 == 0 {
                answers.push(write(&mut writer, 100 + number, 1));
                let _ = log::sync(&old.image());
            }
        }
        assert!(answers
            .iter()
            .all(|answer| way == Way::FileRemoved || way == Way::FileRenamed || is_replaced(answer)));
        let crash = Place::new();
        copy(&place.directory(), &crash.directory());
        let recovered = crash.open(Durability::Fsync);
        assert!(content(&mut recovered.session().unwrap()) == content(&mut session), "{way:?}");
        recovered.verify().unwrap();
    }
}

/// Growth of A's made B's file longer, and a session of A's its `-shm`.
#[test]
fn growth_leaves_the_new_database_as_it_is() {
    for way in WAYS {
        let place = Place::new();
        let old = place.open(Durability::None);
        let mut writer = old.session().unwrap();
        place.replace(way);
        place.open(Durability::None).close().unwrap();
        let before = place.files();
        let grown = (0..100_000).try_for_each(|number| writer.set(&key(number), &[1; 1000]));
        assert!(is_replaced(&grown), "{way:?}: {grown:?}");
        let sessions: Result<Vec<Session>> = (0..50).map(|_| old.session()).collect();
        assert!(way != Way::Removed || is_replaced(&sessions), "{way:?}");
        assert!(place.files() == before, "{way:?}: a file of the new database was touched");
    }
}

/// A backup of A's read B's pages.
#[test]
fn a_backup_holds_what_its_process_has() {
    for way in WAYS {
        let place = Place::new();
        let old = place.open(Durability::None);
        write(&mut old.session().unwrap(), 0, 50).unwrap();
        place.replace(way);
        let new = place.open(Durability::None);
        write(&mut new.session().unwrap(), 1000, 40).unwrap();
        let dest = place.0 .0.join("backup.db");
        old.backup(&dest, BackupKind::Whole, &options(Durability::None), &mut |_, _| {}).unwrap();
        let copy = Database::open(&dest, &options(Durability::None)).unwrap();
        assert_eq!(content(&mut copy.session().unwrap()).len(), 50, "{way:?}");
        copy.verify().unwrap();
        assert!(old.verify().is_ok());
    }
}

/// Under its new name the file is another database's, as far as `-shm` goes: whoever opens it there while A has
/// it would recover what A is writing.
#[test]
fn a_renamed_database_is_refused_as_long_as_it_is_in_use() {
    for way in [Way::Renamed, Way::FileRenamed, Way::DirectoryRenamed] {
        let place = Place::new();
        let old = place.open(Durability::None);
        write(&mut old.session().unwrap(), 0, 50).unwrap();
        let moved = place.replace(way).unwrap();
        let opened = Database::open(&moved, &options(Durability::None));
        match (way, opened) {
            // With its `-shm` beside it, it is the same database, and A only has lost its name.
            (Way::Renamed | Way::DirectoryRenamed, Ok(other)) => {
                write(&mut other.session().unwrap(), 50, 50).unwrap();
                assert!(is_replaced(&old.checkpoint()));
                assert!(is_replaced(&old.close()));
                other.close().unwrap();
                let again = Database::open(&moved, &options(Durability::None)).unwrap();
                assert_eq!(content(&mut again.session().unwrap()).len(), 100);
                again.verify().unwrap();
            }
            (Way::FileRenamed, Err(Error::CannotOpen { why, .. })) => {
                assert!(why.contains("is in use by 1 process") && why.contains("renamed"), "{why}");
            }
            (way, opened) => panic!("{way:?}: {:?}", opened.err()),
        }
    }
}
