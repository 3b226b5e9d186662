//! How many threads of a server are away from their event loops, since a request that they run takes long.
//!
//! Each such request has a thread, and a thread has a stack and a session of the database. So there is a bound.
//!
//! Invariant: who leaves comes back, whatever became of the request.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that run commands and have lost their loops.
const AWAY: usize = 64;

/// The count of them.
#[derive(Debug, Default)]
pub struct Away(AtomicUsize);

impl Away {
    /// A thread leaves its loop.
    pub fn leave(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread is back.
    pub fn come_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether any is away.
    pub fn has_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether as many threads are away as may be.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= AWAY
    }

    /// Whether more are away than may be.
    pub fn is_overfull(&self) -> bool {
        self.0.load(Ordering::Relaxed) > AWAY
    }
}
