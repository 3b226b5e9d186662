//! When scripts may run in event loops: not for a while after one that has held its loop up.
//!
//! A script is tried in a loop because its last runs were short (`commands::scripts::in_place`), and that says nothing of its
//! next one. Whoever means harm could let each second run be long: so behind a run that was, all scripts go aside for a
//! hundred times as long, and loops stand still for less than a hundredth of their time.
//!
//! Deliberately absent: waits that are not the script's, for a core that others have: only its loop's own time counts.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use perilune_net::processor::thread_time;

/// So many times as long as the loop was held up.
const TIMES: u32 = 128;

/// The rest of one server.
#[derive(Debug, Default)]
pub(crate) struct LoopPause {
    /// Its end, in microseconds since the server's start.
    until: AtomicU64,
}

impl LoopPause {
    /// Whether scripts rest, so long after the server's start.
    #[inline]
    pub(crate) fn lasts(&self, since_start: Duration) -> bool {
        (since_start.as_micros() as u64) < self.until.load(Ordering::Relaxed)
    }

    /// A loop was held up for `took`, until so long after the server's start.
    pub(crate) fn begin(&self, since_start: Duration, took: Duration) {
        let until = since_start.saturating_add(took.saturating_mul(TIMES));
        self.until.fetch_max(until.as_micros() as u64, Ordering::Relaxed);
    }
}

/// How old what is known of a thread's time may be.
const SAMPLED: Duration = Duration::from_micros(500);

thread_local! {
    /// When this thread has read its clock last, and what it said.
    static SAMPLE: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The processor's time that this thread had taken at `now` or up to half a millisecond before: that clock takes a system call.
#[inline]
pub(crate) fn sampled_thread_time(now: Instant) -> Duration {
    match SAMPLE.get() {
        Some((then, time)) if now.saturating_duration_since(then) < SAMPLED => time,
        _ => {
            let time = thread_time();
            SAMPLE.set(Some((now, time)));
            time
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_a_hundred_times_as_long_as_what_it_is_for() {
        let (rest, second) = (LoopPause::default(), Duration::from_secs(1));
        assert!(!rest.lasts(Duration::ZERO) && !rest.lasts(second));
        rest.begin(second, Duration::from_millis(50));
        assert!(rest.lasts(second) && rest.lasts(second * 7) && !rest.lasts(second * 8));
        // A shorter one does not end it.
        rest.begin(second * 2, Duration::from_millis(1));
        assert!(rest.lasts(second * 7) && !rest.lasts(second * 8));
        rest.begin(second, Duration::MAX);
        assert!(rest.lasts(second * 1_000_000));
    }

    #[test]
    fn only_work_counts_as_a_threads_time() {
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(200));
        let slept = thread_time();
        assert!(slept - before < Duration::from_millis(150), "{:?}", slept - before);
        let start = Instant::now();
        let sample = sampled_thread_time(start);
        while thread_time() - slept < Duration::from_millis(2) {
            std::hint::black_box(0);
        }
        assert_eq!(sampled_thread_time(start + SAMPLED / 2), sample, "it is as good");
        assert!(sampled_thread_time(start + SAMPLED) > sample, "it is too old");
    }
}
