//! Locks on single bytes of a file, owned by the open file description (OFD locks).
//!
//! Unlike POSIX record locks they conflict between two opens in one process, and go only when the
//! *last* reference to that open goes: descriptor, duplicate, forked copy or mapping. The byte
//! need not exist; the engine uses bytes from 2^62 on.
//!
//! A lock through a [`File`] is only for short sections and threads that block. What says "this
//! process lives" is an [`crate::anchor::Anchor`].

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Locks `byte` exclusively, without waiting; false if somebody else holds it in any mode.
///
/// # Errors
///
/// What `fcntl` says, e.g. `EBADF` if `file` is not open for writing. `InvalidInput` if `byte` is
/// 2^63 - 1 or more; so in all functions of this module.
pub fn try_exclusive(file: &File, byte: u64) -> io::Result<bool> {
    try_lock(file.as_raw_fd(), byte, false)
}

/// Locks `byte` shared, without waiting; false if somebody else holds it exclusively.
///
/// # Errors
///
/// What `fcntl` says, e.g. `EBADF` if `file` is not open for reading.
pub fn try_shared(file: &File, byte: u64) -> io::Result<bool> {
    try_lock(file.as_raw_fd(), byte, true)
}

/// Locks `byte` exclusively, waiting as long as it takes, through signals too.
///
/// # Errors
///
/// As [`try_exclusive`]; the kernel does not look for deadlocks.
pub fn exclusive_blocking(file: &File, byte: u64) -> io::Result<()> {
    set(file.as_raw_fd(), libc::F_OFD_SETLKW, libc::F_WRLCK, byte)
}

/// Locks `byte` shared, waiting as long as it takes, through signals too.
///
/// # Errors
///
/// As [`try_shared`].
pub fn shared_blocking(file: &File, byte: u64) -> io::Result<()> {
    set(file.as_raw_fd(), libc::F_OFD_SETLKW, libc::F_RDLCK, byte)
}

/// Unlocks `byte`; no error if it was not locked.
///
/// # Errors
///
/// What `fcntl` says.
pub fn unlock(file: &File, byte: u64) -> io::Result<()> {
    set(file.as_raw_fd(), libc::F_OFD_SETLK, libc::F_UNLCK, byte)
}

/// Whether an open file description other than `file`'s holds a lock of any mode on `byte`.
///
/// `file` may be open read-only.
///
/// # Errors
///
/// What `fcntl` says.
pub fn holder_exists(file: &File, byte: u64) -> io::Result<bool> {
    is_held(file.as_raw_fd(), byte)
}

/// [`try_exclusive`] or [`try_shared`] on a bare descriptor.
pub(crate) fn try_lock(fd: RawFd, byte: u64, shared: bool) -> io::Result<bool> {
    let mode = if shared { libc::F_RDLCK } else { libc::F_WRLCK };
    match set(fd, libc::F_OFD_SETLK, mode, byte) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// [`holder_exists`] on a bare descriptor.
pub(crate) fn is_held(fd: RawFd, byte: u64) -> io::Result<bool> {
    // Asking for a write lock, as that conflicts with every lock.
    let mut lock = request(libc::F_WRLCK, byte)?;
    // SAFETY: F_OFD_GETLK reads and writes one `flock`, which `lock` is; a wrong `fd` is an error.
    if unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &raw mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

fn set(fd: RawFd, command: libc::c_int, mode: libc::c_int, byte: u64) -> io::Result<()> {
    let lock = request(mode, byte)?;
    loop {
        // SAFETY: F_OFD_SETLK and F_OFD_SETLKW read one `flock`, which `lock` is; a wrong `fd` is
        // an error.
        if unsafe { libc::fcntl(fd, command, &raw const lock) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn request(mode: libc::c_int, byte: u64) -> io::Result<libc::flock> {
    let start = match libc::off_t::try_from(byte) {
        Ok(start) if start < libc::off_t::MAX => start,
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("lock byte {byte} lies beyond the largest file offset"),
            ))
        }
    };
    Ok(libc::flock {
        l_type: mode as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: 1,
        l_pid: 0,
    })
}
