//! How long calls of a script take, that runs them one by one: each is timed at both ends, and takes less than a
//! microsecond, of which two readings of the clock were a tenth part.
//!
//! The clock is read once a millisecond; between, the counter of the processor tells how much of it has gone by.
//!
//! Invariants
//! - How fast the counter goes is learned from the millisecond before, and from nothing else: no counter is trusted for
//!   longer. One that stands still, or has gone back, is not used.
//! - All laps together are as long as the clock says, but for the millisecond under way.

use std::time::{Duration, Instant};

use perilune_sandbox::ticks;

/// Nanoseconds between two readings of the clock.
const INTERVAL: u64 = 1_000_000;

/// A clock and a counter, read together.
#[derive(Clone, Copy, Debug)]
struct Reading {
    time: Instant,
    count: u64,
    /// How far the counter went meanwhile.
    blur: u64,
}

impl Reading {
    fn take() -> Reading {
        let count = ticks();
        let time = Instant::now();
        Reading { time, count, blur: ticks().wrapping_sub(count) }
    }
}

#[derive(Debug)]
pub(crate) struct Stopwatch {
    /// When the clock was read last, for a rate.
    base: Reading,
    /// Nanoseconds since then that laps have told of.
    told: u64,
    /// Nanoseconds that 2^32 counts take.
    rate: u64,
    /// Counts that the rate is good for; none: it is not known.
    good_for: u64,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { base: Reading::take(), told: 0, rate: 0, good_for: 0 }
    }

    /// When it was started, or its last lap ended.
    pub(crate) fn last(&self) -> Instant {
        self.base.time + Duration::from_nanos(self.told)
    }

    /// How many nanoseconds ago that was; the next lap begins.
    #[inline]
    pub(crate) fn lap(&mut self) -> u64 {
        let counts = ticks().wrapping_sub(self.base.count);
        if counts < self.good_for {
            return self.told_until((counts * self.rate) >> 32);
        }
        self.read(Reading::take())
    }

    #[inline]
    fn told_until(&mut self, nanoseconds: u64) -> u64 {
        let lap = nanoseconds.saturating_sub(self.told);
        self.told += lap;
        lap
    }

    #[cold]
    fn read(&mut self, now: Reading) -> u64 {
        let passed = now.time.saturating_duration_since(self.base.time).as_nanos() as u64;
        let lap = self.told_until(passed);
        let counts = now.count.wrapping_sub(self.base.count);
        if passed >= INTERVAL {
            // Where a thread waited for its core between the two, the counter and the clock do not belong together.
            let is_sharp = now.blur.max(self.base.blur).saturating_mul(256) < counts;
            self.rate = if is_sharp { ((u128::from(passed) << 32) / u128::from(counts)) as u64 } else { 0 };
            let is_known = (1 << 16..1 << 40).contains(&self.rate);
            self.good_for = if is_known { (INTERVAL << 32) / self.rate } else { 0 };
            self.base = now;
            self.told = 0;
        }
        lap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000;

    fn at(start: Instant, nanoseconds: u64, count: u64) -> Reading {
        Reading { time: start + Duration::from_nanos(nanoseconds), count, blur: 10 }
    }

    fn begun() -> (Stopwatch, Instant) {
        let time = Instant::now();
        (Stopwatch { base: Reading { time, count: START, blur: 10 }, told: 0, rate: 0, good_for: 0 }, time)
    }

    #[test]
    fn laps_are_as_long_as_the_clock_says() {
        let start = Instant::now();
        let mut watch = Stopwatch::start();
        let (mut sum, mut laps) = (0, 0);
        while start.elapsed() < Duration::from_millis(50) {
            sum += watch.lap();
            laps += 1;
        }
        sum += watch.lap();
        let (sum, took) = (Duration::from_nanos(sum), start.elapsed());
        // It is as long but for the rate of the last millisecond, whatever stood still meanwhile.
        assert!(sum <= took + Duration::from_millis(1), "{sum:?} of {took:?} in {laps} laps");
        assert!(sum + Duration::from_millis(2) >= took, "{sum:?} of {took:?} in {laps} laps");
    }

    #[test]
    fn the_rate_of_the_counter_is_learned_each_millisecond() {
        let (mut watch, start) = begun();
        assert_eq!(watch.read(at(start, 400_000, START + 1_200_000)), 400_000);
        assert_eq!(watch.good_for, 0, "nothing is known yet");
        assert_eq!(watch.read(at(start, 2_000_000, START + 6_000_000)), 1_600_000);
        assert!(watch.good_for.abs_diff(3_000_000) < 10, "a millisecond at 3 GHz");
        assert!(watch.told_until((1_500 * watch.rate) >> 32).abs_diff(500) < 2, "half a microsecond");
        // It is slower now.
        watch.read(at(start, 4_000_000, START + 8_000_000));
        assert!(watch.good_for.abs_diff(1_000_000) < 10);
        assert_eq!(watch.last(), start + Duration::from_millis(4));
    }

    #[test]
    fn a_counter_that_cannot_be_used_is_not() {
        // One that stands still.
        let (mut watch, start) = begun();
        assert_eq!(watch.read(at(start, 2_000_000, START)), 2_000_000);
        assert_eq!(watch.good_for, 0);
        // One that goes back: what it was is forgotten.
        let (mut watch, start) = begun();
        watch.read(at(start, 2_000_000, START + 2_000_000));
        assert!(watch.good_for.abs_diff(1_000_000) < 10);
        assert_eq!(watch.read(at(start, 5_000_000, START / 2)), 3_000_000);
        assert_eq!(watch.good_for, 0);
        watch.read(at(start, 7_000_000, START / 2 + 2_000_000));
        assert!(watch.good_for.abs_diff(1_000_000) < 10);
        // One that was read long before or behind the clock tells no rate.
        let (mut watch, start) = begun();
        let blurred = Reading { blur: 1_000_000, ..at(start, 2_000_000, START + 2_000_000) };
        assert_eq!(watch.read(blurred), 2_000_000);
        assert_eq!(watch.good_for, 0);
        watch.read(at(start, 4_000_000, START + 4_000_000));
        assert_eq!(watch.good_for, 0, "the base is blurred");
        watch.read(at(start, 6_000_000, START + 6_000_000));
        assert_ne!(watch.good_for, 0);
    }
}
