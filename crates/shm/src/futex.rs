//! Sleeping on a word of a shared region until another process wakes us.
//!
//! Shared futexes (not `FUTEX_PRIVATE`): the kernel identifies the word by file and offset, so it
//! may be mapped at different addresses. Waking is no message: the caller re-checks its condition
//! after every return, and puts what it waits for into the word *before* it wakes.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Woken, by another process or thread or by a signal. Possibly for no reason.
    Woken,
    /// The word did not hold the expected value; we did not sleep.
    Mismatch,
    /// The time is up.
    TimedOut,
}

/// Sleeps while `word` holds `expected`, at most `timeout` (`None`: for ever).
///
/// The comparison and falling asleep are one step with respect to [`wake`].
///
/// # Panics
///
/// If the kernel refuses the word: it lies in a part of the region no file backs.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wait {
    let limit = timeout.map(|time| libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let operation = libc::FUTEX_WAIT;
    // SAFETY: `word` is a live, aligned 32-bit atomic for the whole call, which the kernel only
    // reads; `limit` is null or points to a timespec in this frame.
    let status = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, limit) };
    if status == 0 {
        return Wait::Woken;
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Wait::Mismatch,
        Some(libc::ETIMEDOUT) => Wait::TimedOut,
        Some(libc::EINTR) => Wait::Woken,
        _ => panic!("futex wait refused: {error}; is the word inside the allocated file?"),
    }
}

/// Wakes at most `count` sleepers of `word` in any process; says how many there were.
///
/// About 0.2 us if nobody sleeps: keep a count of waiters beside the word if that matters.
pub fn wake(word: &AtomicU32, count: u32) -> usize {
    let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel uses the address of `word` as a key and does not access the word.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    usize::try_from(woken).unwrap_or(0)
}
