//! Locks on bytes of the database file: who opens or closes it, who is attached.
//!
//! The bytes lie from 2^62 on, far behind the data: `open`, `in-use`, `warden`, then one for each
//! process slot. `open` is held, through a [`Gate`], for the moment of opening and closing; `in-use` is
//! shared by those who read only; a slot's byte is held as long as its process is attached.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perilune_disk::{open_there, Disk, DiskFile, FileAccess, FileId};
use perilune_shm::{lockbyte, platform};
use perilune_store::{Error, Result};

use super::claim::{claim, Claimed};
use crate::image::{io_error, space_error, Image};
use crate::limits::PROCESSES;
use crate::meta::beside;

/// The byte locked while the database is opened, created or closed.
pub(crate) const OPEN: u64 = 1 << 62;
/// The byte that read-only processes lock shared.
pub(crate) const IN_USE: u64 = OPEN + 1;
/// The byte of whoever looks after the dead.
pub(crate) const WARDEN: u64 = OPEN + 2;
/// The byte of process slot 0; those of the others follow.
pub(crate) const SLOTS: u64 = OPEN + 3;

/// The longest pause between two tries for a lock.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// The `open` lock, held until dropped.
pub(crate) struct Gate {
    file: File,
}

impl Gate {
    /// Locks the `open` byte of the file at `path`: exclusively to write, shared to read only.
    ///
    /// # Errors
    /// `CannotOpen` when it is still locked after `timeout`; `Io` when the file cannot be opened.
    pub(crate) fn enter(path: &Path, read_only: bool, timeout: Duration) -> Result<Gate> {
        let deadline = Instant::now() + timeout;
        loop {
            let file = open_there(path, !read_only);
            let file = file.map_err(|source| open_error(path, read_only, source))?;
            wait_for_lock(&file, path, read_only, deadline)?;
            let gate = Gate { file };
            if gate.is_at(path) {
                return Ok(gate);
            }
        }
    }

    /// Locks the `open` byte of the database file that this process has mapped, whatever leads to it.
    ///
    /// # Errors
    /// `CannotOpen` when it is still locked after `timeout`; `Replaced`, `Io` when it cannot be opened.
    pub(crate) fn enter_own(image: &Image, timeout: Duration) -> Result<Gate> {
        let file = image.own_file()?;
        wait_for_lock(&file, &image.path, false, Instant::now() + timeout)?;
        Ok(Gate { file })
    }

    /// Which file is locked.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn id(&self, path: &Path) -> Result<FileId> {
        FileId::of(&self.file).map_err(|source| io_error("look at", path, source))
    }

    /// Opens the locked file anew, by its name, which may lead elsewhere by now.
    ///
    /// # Errors
    /// `CannotOpen` if it does, or what stands against it.
    pub(crate) fn open(&self, path: &Path, write: bool) -> Result<File> {
        let file = open_there(path, write).map_err(|source| open_error(path, !write, source))?;
        self.prove(path, FileId::of(&file))?;
        Ok(file)
    }

    /// Opens the locked file anew on `disk`, by its name, which may lead elsewhere by now.
    ///
    /// # Errors
    /// `CannotOpen` if it does; `Io`.
    pub(crate) fn open_on(&self, disk: &dyn Disk, path: &Path, write: bool) -> Result<Box<dyn DiskFile>> {
        let file = disk.open(path, write).map_err(|source| io_error("open", path, source))?;
        self.prove(path, file.id())?;
        Ok(file)
    }

    fn prove(&self, path: &Path, found: std::io::Result<FileId>) -> Result<()> {
        let found = found.map_err(|source| io_error("look at", path, source))?;
        if found == self.id(path)? {
            Ok(())
        } else {
            Err(moved(path))
        }
    }

    /// An error if `path` does not lead to the locked file any more.
    ///
    /// # Errors
    /// `CannotOpen`.
    pub(crate) fn check_at(&self, path: &Path) -> Result<()> {
        if self.is_at(path) {
            Ok(())
        } else {
            Err(moved(path))
        }
    }

    /// The locked file's metadata.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.file.metadata().map_err(|source| io_error("look at", path, source))
    }

    /// Whether `path` still leads to the file that is locked.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        is_same_file(&self.file, path)
    }

    /// The slots whose bytes are held, also by this process.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn attached(&self, path: &Path) -> Result<Vec<usize>> {
        let held = |slot: &usize| lockbyte::holder_exists(&self.file, SLOTS + *slot as u64);
        let mut slots = Vec::new();
        for slot in 0..PROCESSES {
            if held(&slot).map_err(|source| io_error("probe locks of", path, source))? {
                slots.push(slot);
            }
        }
        Ok(slots)
    }

    /// Whether somebody has the database open for reading only.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn is_read(&self, path: &Path) -> Result<bool> {
        lockbyte::holder_exists(&self.file, IN_USE).map_err(|source| io_error("probe locks of", path, source))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Explicitly: a child forked meanwhile by another thread has a copy of the descriptor.
        let _ = lockbyte::unlock(&self.file, OPEN);
    }
}

/// Keeps others from making a file at a path where there is none, until dropped: the lock on `PATH-new`, which
/// whoever creates a database takes, too.
pub(crate) struct Reserved {
    new: PathBuf,
    gate: Gate,
}

impl Reserved {
    /// Reserves `path`; None if there is a file by now.
    ///
    /// # Errors
    /// `CannotOpen` when somebody else is making it; `NoSpace`, `Io`.
    pub(crate) fn take(path: &Path) -> Result<Option<Reserved>> {
        let new = beside(path, "-new");
        let access = FileAccess { mode: 0o600, owner: None };
        let refused = |source| space_error("create", &new, source);
        let Claimed::Ours(file) = claim(&new, access, None, Instant::now(), &|_| Ok(()), &refused)? else {
            return Err(Error::CannotOpen {
                place: path.into(),
                why: "is being made by another process: wait until it has finished, or give another path"
                    .to_owned(),
            });
        };
        let reserved = Reserved { new, gate: Gate { file } };
        Ok((!path.exists()).then_some(reserved))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // While it is locked: whoever waits for it finds it gone. If it cannot be removed, the next one uses it.
        if self.gate.is_at(&self.new) {
            let _ = std::fs::remove_file(&self.new);
        }
    }
}

/// Locks the `open` byte of `file`, trying until `deadline`.
///
/// # Errors
/// `CannotOpen` after the deadline; `Io`.
pub(crate) fn wait_for_lock(file: &File, path: &Path, shared: bool, deadline: Instant) -> Result<()> {
    if is_locked_by(file, path, shared, deadline)? {
        return Ok(());
    }
    Err(busy(path))
}

/// What to tell when a lock is not to be had.
pub(super) fn busy(path: &Path) -> Error {
    Error::CannotOpen {
        place: path.into(),
        why: "another process has been opening or closing the database all the time: try again, or give a \
              higher `timeout`"
            .to_owned(),
    }
}

/// Locks the `open` byte of `file`, trying until `deadline`; false if it is still locked then.
///
/// # Errors
/// `Io`.
pub(super) fn is_locked_by(file: &File, path: &Path, shared: bool, deadline: Instant) -> Result<bool> {
    let mut pause = Duration::from_micros(50);
    loop {
        let locked =
            if shared { lockbyte::try_shared(file, OPEN) } else { lockbyte::try_exclusive(file, OPEN) };
        if locked.map_err(|source| io_error("lock", path, source))? {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(false);
        }
        platform::sleep(pause.min(deadline - now));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether `path` leads to the open file `file`.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    match (FileId::of(file), FileId::at(path)) {
        (Ok(open), Ok(there)) => open == there,
        _ => false,
    }
}

/// What to tell when a database has been exchanged under the hands of whoever opens it.
pub(crate) fn moved(path: &Path) -> Error {
    Error::CannotOpen {
        place: path.into(),
        why: "was moved or replaced while it was being opened: open it again".to_owned(),
    }
}

/// Why a file cannot be opened, and what to do.
pub(crate) fn open_error(path: &Path, read_only: bool, source: std::io::Error) -> Error {
    let why = match source.kind() {
        std::io::ErrorKind::NotFound => "does not exist: open it with create=true, or give another path",
        std::io::ErrorKind::PermissionDenied if read_only => {
            "no permission to read it: ask its owner, or change its mode"
        }
        std::io::ErrorKind::PermissionDenied => {
            "no permission to write it: open it with read_only=true, or change its mode"
        }
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only: open it with read_only=true, or mount it writable"
        }
        _ => return io_error("open", path, source),
    };
    Error::CannotOpen { place: path.into(), why: why.to_owned() }
}
