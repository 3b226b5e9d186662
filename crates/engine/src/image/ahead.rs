//! What a maintenance thread does ahead of a writer at full speed, so that he need not: memory for the next pages,
//! and emptying his ring into the log.
//!
//! Invariants
//! - All of it is optional: a writer that finds the work undone does it itself, and doing it twice does no harm.
//! - The state is memory of one process: its death leaves nothing behind.
//!
//! Deliberately absent: the thread (`maintenance`), the emptying itself (`log`).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use perilune_shm::platform;

use super::{wakeup, Image};
use crate::limits::{AHEAD_WITHIN, PAGE, POPULATE, POPULATE_AHEAD, PROCESSES};

/// What is wanted and what is done.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Up to this page memory is prepared, where the frontier has been since this process came.
    prepared: AtomicU64,
    /// Up to this page it is wanted.
    wanted: AtomicU64,
    /// When a writer last came to a new chunk, in nanoseconds.
    crossed_at: AtomicU64,
    /// Whether a ring should be emptied.
    log_wanted: AtomicBool,
}

impl Image {
    /// Has the kernel prepare the memory of pages just taken in chunks, which is cheaper than a fault for each
    /// page, and asks for the next if they are taken fast.
    pub(super) fn prepare(&self, first: u64, pages: u64) {
        let from = first.next_multiple_of(POPULATE);
        if from >= first + pages {
            return;
        }
        let until = (first + pages).next_multiple_of(POPULATE);
        self.populate(from.max(self.ahead.prepared.load(Acquire)), until);
        let now = platform::monotonic_nanos();
        let before = self.ahead.crossed_at.swap(now, AcqRel);
        if now.saturating_sub(before) < AHEAD_WITHIN.as_nanos() as u64 {
            self.ahead.wanted.fetch_max(until + POPULATE_AHEAD, AcqRel);
            self.ring_thread();
        }
    }

    /// Prepares what is wanted and not prepared yet.
    pub(crate) fn prepare_ahead(&self) {
        loop {
            let from = self.ahead.prepared.load(Acquire);
            if from == 0 || from >= self.ahead.wanted.load(Acquire).min(self.npages()) {
                return;
            }
            self.populate(from, from + POPULATE);
        }
    }

    fn populate(&self, from: u64, until: u64) {
        let until = until.min(self.npages());
        if from < until {
            self.db.populate_write(from as usize * PAGE, (until - from) as usize * PAGE);
            self.ahead.prepared.fetch_max(until, AcqRel);
        }
    }

    /// Asks for the rings to be emptied soon.
    pub(crate) fn want_log(&self) {
        if !self.ahead.log_wanted.swap(true, AcqRel) {
            self.ring_thread();
        }
    }

    fn ring_thread(&self) {
        // NB: who builds `-shm` has no slot yet, and no thread.
        if usize::from(self.me.slot) < PROCESSES {
            wakeup::ring_own(self);
        }
    }

    /// Whether that has been asked for since the last look.
    pub(crate) fn is_log_wanted(&self) -> bool {
        self.ahead.log_wanted.load(Acquire) && {
            self.ahead.log_wanted.store(false, Release);
            true
        }
    }
}
