//! Whether a file descriptor is still the file we opened.
//!
//! The host program may close descriptors it does not know (`closefrom`) and get the same numbers
//! for files of its own. So a number kept for long is checked before each use and before `close`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

/// Device and inode number of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
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
