//! Files that are read and written by system calls rather than through the mapping.
//!
//! The engine writes meta, info pages and log segments through the [`Disk`] trait, and asks it before it
//! allocates space, so that tests can make the n-th call fail: [`FaultyDisk`].
//!
//! Invariants
//! - A read or write is whole or an error; interrupted and short calls are continued.
//! - A symbolic link at the end of a path is never followed, and no file is made over another.
//! - Nothing is promised to be on disk before [`DiskFile::sync_data`] has answered without error, and
//!   after an error nothing is known about what had been written before it.
//!
//! Deliberately absent: mappings and locks (`perilune-shm`), file formats, retries after an error.

#![forbid(unsafe_code)]

mod faulty;
mod identity;
mod real;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

pub use faulty::{Fault, FaultyDisk};
pub use identity::{create_new, open_there, FileAccess, FileId};
pub use real::{limit_files, RealDisk};

/// Opens, renames and removes files.
pub trait Disk: Debug + Send + Sync {
    /// Opens an existing file, for writing too if `write`.
    ///
    /// # Errors
    /// What `open` says: ELOOP if `path` is a symbolic link.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>>;

    /// Opens anew the file that a descriptor of this process leads to, also if it has no name any more.
    ///
    /// # Errors
    /// What `open` says: `NotFound` without /proc, or if the descriptor is closed.
    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>>;

    /// Makes a new file with this access from the start.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything at `path`; else what `open`, `chown` and `chmod` say.
    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>>;

    /// Removes a file's name; true if there was one.
    ///
    /// # Errors
    /// What `unlink` says.
    fn remove(&self, path: &Path) -> io::Result<bool>;

    /// The names in a directory.
    ///
    /// # Errors
    /// What reading it says.
    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Gives a file another name, replacing what had it.
    ///
    /// # Errors
    /// What `rename` says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, which none has.
    ///
    /// Killed in the midst the file has both names.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything at `to`; else what `link` and `unlink` say.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives an open file a name by `link`. The system call is made by whoever has it open; asked here, it can be
    /// made to fail like the others.
    ///
    /// # Errors
    /// What `link` says.
    fn link(&self, link: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        link()
    }

    /// Allocates `bytes` bytes of a file by `allocate`, which is told how many. The system call is made by
    /// whoever maps the file; asked here, it can be made to fail like the others.
    ///
    /// # Errors
    /// What `allocate` says.
    fn allocate(&self, bytes: u64, allocate: &dyn Fn(u64) -> io::Result<()>) -> io::Result<()> {
        allocate(bytes)
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What `open` and `fsync` say.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// Zeros written in one call.
const ZEROS: u64 = 256 << 10;
/// What `O_DIRECT` wants memory to be aligned to, at most.
const ALIGN: usize = 4096;

/// An open file. Offsets are bytes from its start.
pub trait DiskFile: Debug + Send + Sync {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter; else what `pread` says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all `bytes` at `offset`.
    ///
    /// # Errors
    /// What `pwrite` says; some of the bytes may then have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes zeros over `bytes` bytes from `offset` on, past the page cache where the file system lets it:
    /// for space that has to be on disk before it is used. Offset and bytes are multiples of 4,096.
    ///
    /// # Errors
    /// As [`DiskFile::write_at`].
    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        zeros_by(|zeros, at| self.write_at(zeros, at), offset, bytes)
    }

    /// Makes the file's data durable, also what was stored through mappings.
    ///
    /// # Errors
    /// What `fdatasync` says. What is on disk is then unknown, and stays unknown even if a later call
    /// succeeds: write the data again.
    fn sync_data(&self) -> io::Result<()>;

    /// Bytes of the file.
    ///
    /// # Errors
    /// What `fstat` says.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file.
    ///
    /// # Errors
    /// What `ftruncate` says.
    fn cut(&self, bytes: u64) -> io::Result<()>;

    /// Which file it is.
    ///
    /// # Errors
    /// What `fstat` says.
    fn id(&self) -> io::Result<FileId>;
}

/// Lets `write` write zeros over `bytes` bytes from `offset` on, piece by piece.
fn zeros_by(write: impl Fn(&[u8], u64) -> io::Result<()>, offset: u64, bytes: u64) -> io::Result<()> {
    // NB: aligned for a descriptor that goes past the page cache.
    let room = vec![0; bytes.min(ZEROS) as usize + ALIGN];
    let zeros = &room[room.as_ptr().align_offset(ALIGN)..][..room.len() - ALIGN];
    let mut at = 0;
    while at < bytes {
        let count = (bytes - at).min(ZEROS);
        write(&zeros[..count as usize], offset + at)?;
        at += count;
    }
    Ok(())
}
