//! A descriptor that becomes readable when the engine has news (`eventfd`), for programs with an event loop.
//!
//! A thread of the engine notifies; the program polls the descriptor, clears it and looks what is new.
//!
//! Invariants
//! - Nothing here blocks: notifying twice is as good as once.
//! - The program may close a descriptor that it does not know (`closefrom`), and get the same number for a file of
//!   its own. That is noticed, and the number left alone.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::descriptor::Identity;

/// An event counter behind a descriptor, close-on-exec and non-blocking.
#[derive(Debug)]
pub struct EventFd {
    fd: ManuallyDrop<OwnedFd>,
    identity: Identity,
}

impl EventFd {
    /// A new descriptor, not readable yet.
    ///
    /// # Errors
    ///
    /// What `eventfd` says, e.g. that the process has too many open files.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let identity = Identity::of(fd.as_raw_fd())?;
        Ok(EventFd { fd: ManuallyDrop::new(fd), identity })
    }

    /// Makes the descriptor readable; it stays so until cleared.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the host program has closed the descriptor.
    pub fn notify(&self) -> io::Result<()> {
        let fd = self.checked()?;
        let one = 1_u64;
        // SAFETY: `one` is readable for its eight bytes.
        let written = unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
        ignore_would_block(written)
    }

    /// Makes the descriptor unreadable until the next [`EventFd::notify`].
    ///
    /// Clear first, then look for news: else what comes between is missed.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the host program has closed the descriptor.
    pub fn clear(&self) -> io::Result<()> {
        let fd = self.checked()?;
        let mut count = 0_u64;
        // SAFETY: `count` is writable for its eight bytes.
        let read = unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
        ignore_would_block(read)
    }

    /// The number to give to `poll` or `epoll`. The caller must not close it.
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn checked(&self) -> io::Result<RawFd> {
        let fd = self.fd.as_raw_fd();
        if !self.identity.is(fd) {
            return Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the program has closed the watch descriptor: register the watch again",
            ));
        }
        Ok(fd)
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        if self.identity.is(self.fd.as_raw_fd()) {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// `EAGAIN` means already as wanted: the counter full of notifications, or cleared.
fn ignore_would_block(transferred: isize) -> io::Result<()> {
    if transferred >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(()),
        _ => Err(error),
    }
}
