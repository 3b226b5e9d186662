//! The clocks of a loop, and when its parked connections are due.
//!
//! Timers are not taken back: one whose connection is no longer parked on its ticket rings for nobody.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the clock of the day may be told by the one that only goes on.
const TOLD: Duration = Duration::from_millis(1);

/// The timers of one loop.
#[derive(Debug, Default)]
pub struct Timers {
    /// When, whose connection by token, parked on which ticket.
    heap: BinaryHeap<Reverse<(Instant, usize, u64)>>,
}

impl Timers {
    /// Rings at this time for the connection with this token, if it is still parked on `ticket`.
    pub fn set(&mut self, at: Instant, token: usize, ticket: u64) {
        self.heap.push(Reverse((at, token, ticket)));
    }

    /// The next one that is due at `now`, as token and ticket. Who takes one after the other gives the same moment each time:
    /// those that are set meanwhile are for the next round, and so others get their turn.
    #[inline]
    pub fn take_due(&mut self, now: Instant) -> Option<(usize, u64)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, token, ticket))| (token, ticket))
    }

    /// How long a loop may sleep, `most` at most.
    #[inline]
    pub fn sleep(&self, most: Duration) -> Duration {
        match self.heap.peek() {
            None => most,
            Some(Reverse((at, ..))) => at.saturating_duration_since(Instant::now()).min(most),
        }
    }
}

/// Both clocks, for the price of one: the day's is read anew after a millisecond, so that nobody notices when it is set.
#[derive(Debug)]
pub struct Clocks {
    at: Instant,
    /// Since 1970.
    then: Duration,
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks::new()
    }
}

impl Clocks {
    /// Read for the first time now.
    pub fn new() -> Clocks {
        Clocks { at: Instant::now(), then: since_1970() }
    }

    /// A time that has changed when a millisecond has gone by between two readings.
    #[inline]
    pub fn tick(&self) -> Instant {
        self.at
    }

    /// The time, and milliseconds since 1970.
    #[inline]
    pub fn read(&mut self) -> (Instant, i64) {
        let now = Instant::now();
        let mut since = now.saturating_duration_since(self.at);
        if since >= TOLD {
            *self = Clocks { at: now, then: since_1970() };
            since = Duration::ZERO;
        }
        let told = self.then + since;
        (now, told.as_secs() as i64 * 1_000 + i64::from(told.subsec_millis()))
    }
}

#[cold]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::clock;

    #[test]
    fn what_is_set_while_the_due_ones_are_taken_is_for_the_next_round() {
        let (now, mut timers, mut taken) = (Instant::now(), Timers::default(), Vec::new());
        (1..=3).for_each(|token| timers.set(now, token, 0));
        while let Some((token, _)) = timers.take_due(now) {
            taken.push(token);
            timers.set(now + Duration::from_nanos(1), token, 0);
        }
        assert_eq!(taken, [1, 2, 3]);
        assert_eq!(timers.take_due(now + Duration::from_nanos(1)), Some((1, 0)));
    }

    #[test]
    fn both_clocks_are_told_as_they_are() {
        let mut clocks = Clocks::new();
        let begun = Instant::now();
        while begun.elapsed() < 20 * TOLD {
            let before = (Instant::now(), clock());
            let told = clocks.read();
            let after = (Instant::now(), clock());
            assert!(before.0 <= told.0 && told.0 <= after.0);
            // The two are read one after the other, and the day's may be slewed meanwhile.
            assert!(before.1 - 1 <= told.1 && told.1 <= after.1 + 1, "{before:?} {told:?} {after:?}");
        }
    }
}
