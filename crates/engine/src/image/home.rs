//! The files that a process has mapped, told from others that have come to their names.
//!
//! A database can be removed, renamed or replaced while it is open: by `rm`, by `mv`, by a directory made anew. A
//! process goes on with the inodes that it has mapped, and nobody else's inode gets their numbers meanwhile. But every
//! name that it opens later may be another's. So there is one door for all later opening, here: the *opened* file is
//! compared, which nobody can exchange between the look and the use.
//!
//! Invariants
//! - Nothing is written to, allocated in or read from a file that is not one of those mapped. (Files of the log are
//!   not mapped: they bear the mark of this `-shm`; see `log`.)
//! - A process that has found a name of its own to lead elsewhere writes no more. It says so in every answer, and
//!   reads go on in what it has mapped. Others that are attached with it find out for themselves: their names may be
//!   other ones, in another container say.
//! - What it has is whole: whoever is the last to leave brings it into the file that it had, through a descriptor
//!   that is compared, too, if there is one.
//!
//! What if we are killed? Nothing is noted in shared memory.
//!
//! Deliberately absent: the opening of a database (`open`), which compares with the file that it has locked.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::Arc;

use perilune_disk::{open_there, Disk, DiskFile, FileAccess, FileId};
use perilune_shm::anchor::Probe;
use perilune_shm::Identity;
use perilune_store::{Error, Result};

use super::layout::{control, FLAG_FAILED};
use super::{io_error, Image};
use crate::notice;
use crate::planted::{is_planted, Bug};

/// What a process knows of the files that it has mapped.
pub(crate) struct Home {
    database: FileId,
    /// None: it is memory of the process.
    shm: Option<FileId>,
    /// Through which the file is to be had when it has lost its name.
    held: Option<Arc<Probe>>,
    /// [`FLAG_FAILED`] once a name has led elsewhere; else 0.
    lost: AtomicU64,
}

impl Home {
    pub(crate) fn new(database: FileId, shm: Option<FileId>, held: Option<Arc<Probe>>) -> Home {
        Home { database, shm, held, lost: AtomicU64::new(0) }
    }

    /// Device and inode of the database file, which every process that uses it has mapped.
    pub(crate) fn database(&self) -> FileId {
        self.database
    }
}

impl Image {
    /// The FLAGS word as this process has to see it: writing has stopped also if only this process has lost its
    /// files.
    #[inline(always)]
    pub(crate) fn flags(&self) -> u64 {
        self.control(control::FLAGS).load(Acquire) | self.lost_flag()
    }

    /// [`FLAG_FAILED`] if this process has lost its files; else 0.
    #[inline(always)]
    pub(crate) fn lost_flag(&self) -> u64 {
        // Relaxed: it says nothing of other memory, and who sees it late writes into what he has mapped.
        self.home.lost.load(Relaxed)
    }

    /// Which file the database is.
    pub(crate) fn database_id(&self) -> FileId {
        self.home.database
    }

    /// Which file the database is, as locks are taken by it.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(self.home.database.device, self.home.database.inode)
    }

    /// What tells which bytes of the database file are locked.
    pub(crate) fn probe(&self) -> Option<&Probe> {
        self.home.held.as_deref()
    }

    /// Opens the database file by its name.
    ///
    /// # Errors
    /// `Replaced` if the name leads elsewhere; `Io`.
    pub(crate) fn database(&self, disk: &dyn Disk, write: bool) -> Result<Box<dyn DiskFile>> {
        let opened = disk.open(&self.path, write).and_then(|file| Ok((file.id()?, file)));
        match opened {
            Ok((id, file)) if id == self.home.database || is_planted(Bug::AnyHome) => Ok(file),
            Ok(_) => Err(self.lose()),
            Err(source) => Err(self.open_error(&self.path, source)),
        }
    }

    /// Opens the database file by its name or, if that leads elsewhere, by what this process holds of it.
    ///
    /// # Errors
    /// As [`Image::database`], if nothing is held.
    pub(crate) fn own_database(&self, disk: &dyn Disk, write: bool) -> Result<Box<dyn DiskFile>> {
        self.database(disk, write).or_else(|error| {
            if !matches!(error, Error::Replaced { .. }) {
                return Err(error);
            }
            let held = self.probe().and_then(Probe::descriptor);
            let opened = held.and_then(|held| disk.open_held(held, write).ok());
            opened.filter(|file| file.id().is_ok_and(|id| id == self.home.database)).ok_or(error)
        })
    }

    /// The database file for locks: by its name or, if that leads elsewhere, by what this process holds of it.
    ///
    /// # Errors
    /// As [`Image::own_database`].
    pub(crate) fn own_file(&self) -> Result<File> {
        self.mapped_file(&self.path, self.home.database).or_else(|error| {
            if !matches!(error, Error::Replaced { .. }) {
                return Err(error);
            }
            let held = self.probe().and_then(Probe::descriptor);
            let open =
                |held| File::options().read(true).write(true).open(format!("/proc/self/fd/{held}")).ok();
            let is_ours = |file: &File| FileId::of(file).is_ok_and(|id| id == self.home.database);
            held.and_then(open).filter(is_ours).ok_or(error)
        })
    }

    /// The access of the database file, whatever leads to it.
    ///
    /// # Errors
    /// As [`Image::own_database`].
    pub(crate) fn own_access(&self) -> Result<FileAccess> {
        let found = self.own_file()?.metadata();
        found.map(|found| FileAccess::from(&found)).map_err(|source| io_error("look at", &self.path, source))
    }

    /// Opens the file that grows: the database's, or `-shm`.
    ///
    /// # Errors
    /// As [`Image::database`].
    pub(super) fn growing_file(&self, path: &Path) -> Result<File> {
        let id = if path == self.shm_path { self.home.shm } else { Some(self.home.database) };
        self.mapped_file(path, id.ok_or_else(|| self.lose())?)
    }

    fn mapped_file(&self, path: &Path, id: FileId) -> Result<File> {
        match open_there(path, true).and_then(|file| Ok((FileId::of(&file)?, file))) {
            Ok((found, file)) if found == id => Ok(file),
            Ok(_) => Err(self.lose()),
            Err(source) => Err(self.open_error(path, source)),
        }
    }

    /// The access of the database file, if its name still leads there: for another file that is to be made beside
    /// it.
    ///
    /// # Errors
    /// `Replaced`; `Io`.
    pub(crate) fn access_beside(&self) -> Result<FileAccess> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if FileId::from(&found) == self.home.database => Ok(FileAccess::from(&found)),
            Ok(_) => Err(self.lose()),
            Err(source) => Err(self.open_error(&self.path, source)),
        }
    }

    /// Looks whether the database's name still leads to it. Called now and then, so that a program that
    /// only reads, or waits for no disk, hears of it soon.
    pub(crate) fn look_for_home(&self) {
        if self.lost_flag() == 0 {
            let _ = self.access_beside();
        }
    }

    /// Notes that this process has lost its files, and answers what to tell.
    #[cold]
    pub(crate) fn lose(&self) -> Error {
        let error = Error::Replaced { place: (&self.path).into() };
        if self.home.lost.swap(FLAG_FAILED, AcqRel) == 0 {
            notice::error(|| error.to_string());
        }
        error
    }

    /// Why a file of this database cannot be opened.
    #[cold]
    pub(crate) fn open_error(&self, path: &Path, source: io::Error) -> Error {
        match is_gone(&source) {
            true => self.lose(),
            false => io_error("open", path, source),
        }
    }
}

/// Whether an error of opening means that a name leads to no file of ours.
fn is_gone(error: &io::Error) -> bool {
    // ENOENT, ENOTDIR
    is_no_file(error) || matches!(error.raw_os_error(), Some(2 | 20))
}

/// Whether an error of opening says that a name is not a file's but a pipe's, a directory's or a symbolic link's.
pub(crate) fn is_no_file(error: &io::Error) -> bool {
    // ENXIO, EISDIR, ELOOP
    matches!(error.raw_os_error(), Some(6 | 21 | 40))
}
