//! What reaches an event loop from other threads.
//!
//! Invariant: who posts never waits: a mailbox takes everything, and is emptied before its loop sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use mio::Waker;

/// Where other threads put letters for a loop.
#[derive(Debug)]
pub struct Mailbox<L> {
    waker: OnceLock<Waker>,
    letters: Mutex<Vec<L>>,
    /// There are letters, and the loop knows or has been woken.
    waiting: AtomicBool,
    /// Connections that the thread has, or is about to.
    pub load: AtomicUsize,
    /// Nanoseconds that the loop has used of a processor, as far as it has said so.
    pub used: AtomicU64,
}

impl<L> Default for Mailbox<L> {
    fn default() -> Mailbox<L> {
        Mailbox {
            waker: OnceLock::new(),
            letters: Mutex::new(Vec::new()),
            waiting: AtomicBool::new(false),
            load: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }
}

impl<L> Mailbox<L> {
    /// Says how its loop is woken.
    pub fn attend(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Puts a letter in, and wakes the loop.
    pub fn post(&self, letter: L) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        if !self.waiting.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Puts in a letter of the loop's own thread, which looks before it sleeps.
    pub fn keep(&self, letter: L) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        self.waiting.store(true, Ordering::Release);
    }

    /// Wakes the loop to look around.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            // A loop that cannot be woken looks around within a second.
            let _ = waker.wake();
        }
    }

    /// Whether there are letters.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Takes all letters out.
    #[inline]
    pub fn empty(&self) -> Vec<L> {
        // A loop looks at each round: the exchange only where there is something.
        if !self.is_waiting() || !self.waiting.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
