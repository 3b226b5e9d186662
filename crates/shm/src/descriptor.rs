//! Whether a file descriptor is the file that is meant.
//!
//! The host program may close descriptors it does not know (`closefrom`) and get the same numbers
//! for files of its own. So a number kept for long is checked before each use and before `close`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::path::Path;

/// Device and inode number of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The identity of the file with these numbers.
    #[must_use]
    pub fn new(device: u64, inode: u64) -> Identity {
        Identity { device, inode }
    }

    /// An error unless `fd` is open and this file, found at `path`.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub(crate) fn check(self, fd: RawFd, path: &Path) -> io::Result<()> {
        if self.is(fd) {
            return Ok(());
        }
        let why = format!("{} is another file than it was: open the database again", path.display());
        Err(io::Error::new(io::ErrorKind::NotFound, why))
    }

    /// The identity of the file behind `fd`.
    ///
    /// # Errors
    ///
    /// What `fstat` says: `EBADF` if the descriptor is closed.
    pub(crate) fn of(fd: RawFd) -> io::Result<Identity> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `stat` is valid for writes of its type; a wrong `fd` is an error.
        if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fstat succeeded, so it has filled the whole struct.
        let stat = unsafe { stat.assume_init() };
        Ok(Identity { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Whether `fd` is open and this file.
    pub(crate) fn is(self, fd: RawFd) -> bool {
        Identity::of(fd).is_ok_and(|found| found == self)
    }
}
