//! The thread that stops functions which run for too long.
//!
//! A call costs three stores: when it is to have ended, its number, and at its end that there is none. The thread looks at all
//! sandboxes every few milliseconds while any is at work; after a second without work it sleeps, until the next call wakes it.
//! It also keeps the time, in steps of its looks: so nobody else asks the clock for each call.
//!
//! Invariants
//! - A run is stopped by its number: the next one of the same sandbox is never meant.
//! - Either the thread sees a call that has begun, or the call sees that the thread sleeps. No fence in the call sees to it, which
//!   would take longer than the rest of it: the thread looks once more a tick after it has said that it sleeps, by when the number
//!   of a call that had looked before has long left its processor's store buffer.

use std::sync::atomic::{compiler_fence, fence, AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sandbox::Stopper;

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(5);

/// Looks in vain before it sleeps.
const IDLE_TICKS: u32 = 200;

/// What is known of the runs of a sandbox.
#[derive(Debug)]
pub(super) struct Watched {
    stopper: Stopper,
    /// Of the run under way; 0: none.
    number: AtomicU64,
    /// Microseconds behind [`Watchdog::start`] when it is to have ended.
    until: AtomicU64,
}

impl Watched {
    /// A run with this number begins, and is stopped when it is later than `until`.
    pub(super) fn begin(&self, number: u64, until: u64) {
        self.until.store(until, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
        // Not sooner; a processor may have it so by some nanoseconds, see above.
        compiler_fence(Ordering::SeqCst);
        if !WATCHDOG.is_awake.load(Ordering::Relaxed) && !WATCHDOG.is_awake.swap(true, Ordering::AcqRel) {
            if let Some(thread) = &WATCHDOG.thread {
                thread.unpark();
            }
        }
    }

    /// It has ended.
    pub(super) fn end(&self) {
        self.number.store(0, Ordering::Release);
    }
}

/// The time in microseconds, as the thread has seen it last: a few milliseconds old at most while it is awake.
pub(super) fn now() -> u64 {
    if WATCHDOG.is_awake.load(Ordering::Relaxed) {
        return WATCHDOG.now.load(Ordering::Relaxed);
    }
    let now = micros(WATCHDOG.start.elapsed());
    WATCHDOG.now.store(now, Ordering::Relaxed);
    now
}

/// A moment as [`now`] tells it.
pub(super) fn at(moment: Instant) -> u64 {
    micros(moment.saturating_duration_since(WATCHDOG.start))
}

/// Microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

struct Watchdog {
    start: Instant,
    /// Microseconds behind that.
    now: AtomicU64,
    watched: Mutex<Vec<Weak<Watched>>>,
    is_awake: AtomicBool,
    /// None where there was no thread to be had: then functions run as long as they like.
    thread: Option<Thread>,
}

static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(|| {
    let started = thread::Builder::new().name("perilune-sql".to_owned()).spawn(watch_for_ever);
    Watchdog {
        start: Instant::now(),
        now: AtomicU64::new(0),
        watched: Mutex::default(),
        is_awake: AtomicBool::new(false),
        thread: started.ok().map(|handle| handle.thread().clone()),
    }
});

/// Has the runs of a sandbox looked after, as long as what is answered lives.
pub(super) fn watch(stopper: Stopper) -> Arc<Watched> {
    let watched = Arc::new(Watched { stopper, number: AtomicU64::new(0), until: AtomicU64::new(0) });
    let mut all = WATCHDOG.watched.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|other| other.strong_count() > 0);
    all.push(Arc::downgrade(&watched));
    watched
}

fn watch_for_ever() {
    let mut idle = 0;
    loop {
        idle = if stop_late_ones() { 0 } else { idle + 1 };
        if idle <= IDLE_TICKS {
            thread::sleep(TICK);
            continue;
        }
        WATCHDOG.is_awake.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        thread::sleep(TICK);
        if !stop_late_ones() {
            thread::park();
        }
        WATCHDOG.is_awake.store(true, Ordering::Relaxed);
        idle = 0;
    }
}

/// Stops what is to have ended; whether anything runs.
fn stop_late_ones() -> bool {
    let now = micros(WATCHDOG.start.elapsed());
    WATCHDOG.now.store(now, Ordering::Relaxed);
    let all = WATCHDOG.watched.lock().unwrap_or_else(PoisonError::into_inner);
    let mut any = false;
    for watched in all.iter().filter_map(Weak::upgrade) {
        let number = watched.number.load(Ordering::Acquire);
        any |= number != 0;
        if number != 0 && now > watched.until.load(Ordering::Relaxed) {
            // It answers whether that run still goes on; then it is told again at the next look.
            let _ = watched.stopper.stop(number);
        }
    }
    any
}
