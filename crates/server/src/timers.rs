//! When parked connections of a loop are due.
//!
//! Timers are not taken back: one whose connection is no longer parked on its ticket rings for nobody.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The timers of one loop.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// When, whose connection by token, parked on which ticket.
    heap: BinaryHeap<Reverse<(Instant, usize, u64)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Instant, token: usize, ticket: u64) {
        self.heap.push(Reverse((at, token, ticket)));
    }

    /// The next one that is due, as token and ticket.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(usize, u64)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, token, ticket))| (token, ticket))
    }

    /// How long a loop may sleep, `most` at most.
    pub(crate) fn sleep(&self, most: Duration) -> Duration {
        match self.heap.peek() {
            None => most,
            Some(Reverse((at, ..))) => at.saturating_duration_since(Instant::now()).min(most),
        }
    }
}
