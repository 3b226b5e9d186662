//! Signals that the standard library cannot send. The only unsafe code of the storm.

#![allow(unsafe_code)]

use std::io;
use std::process::Child;

/// Stops a child until [`resume`].
pub(crate) fn stop(child: &Child) -> io::Result<()> {
    send(child, libc::SIGSTOP)
}

/// Lets a stopped child go on.
pub(crate) fn resume(child: &Child) -> io::Result<()> {
    send(child, libc::SIGCONT)
}

fn send(child: &Child, signal: libc::c_int) -> io::Result<()> {
    let pid = libc::pid_t::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the child has not been waited for, so its number is not another process's.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
