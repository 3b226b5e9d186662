//! The thread that stops functions which run for too long.
//!
//! A call costs three stores: when it is to have ended, its number, and at its end that there is none. The thread looks at all
//! sandboxes every few milliseconds while any is at work; after a second without work it sleeps, until the next call wakes it.
//! It also keeps the time, in steps of its looks: so nobody else asks the clock for each call.
//!
//! A guest in others' processes: the thread is made for the first function that is called. A forked child has none: there
//! [`Watchdog::current`] is another one, with a thread of its own, and whoever has one that is not of this process takes that.
//!
//! Invariants
//! - A run is stopped by its number: the next one of the same sandbox is never meant.
//! - Either the thread sees a call that has begun, or the call sees that the thread sleeps. No fence in the call sees to it, which
//!   would take longer than the rest of it: the thread looks once more a tick after it has said that it sleeps, by when the number
//!   of a call that had looked before has long left its processor's store buffer.
//! - No lock that a fork may find taken is taken in the child: [`CURRENT`] is taken while forks are held off, and those of
//!   a watchdog by its own process alone.
//! - Signals of the program never come to the thread.
//! - Without the thread no function runs, which nobody would end.

use std::sync::atomic::{compiler_fence, fence, AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use perilune_shm::fork::{hold_off, ForkMark};
use perilune_shm::platform::with_signals_blocked;

use crate::sandbox::Stopper;

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(5);

/// Looks in vain before it sleeps.
const IDLE_TICKS: u32 = 200;

/// What is known of the runs of a sandbox.
#[derive(Debug)]
pub(super) struct Watched {
    dog: &'static Watchdog,
    stopper: Stopper,
    /// Of the run under way; 0: none.
    number: AtomicU64,
    /// Microseconds behind the beginning of the watchdog when it is to have ended.
    until: AtomicU64,
}

impl Watched {
    /// Whether this one looks after the sandbox.
    #[inline]
    pub(super) fn is_by(&self, dog: &'static Watchdog) -> bool {
        std::ptr::eq(self.dog, dog)
    }

    /// A run with this number begins, and is stopped when it is later than `until`.
    pub(super) fn begin(&self, number: u64, until: u64) {
        self.until.store(until, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
        // Not sooner; a processor may have it so by some nanoseconds, see above.
        compiler_fence(Ordering::SeqCst);
        let dog = self.dog;
        if !dog.is_awake.load(Ordering::Relaxed) && !dog.is_awake.swap(true, Ordering::AcqRel) {
            if let Some(thread) = dog.thread.get() {
                thread.unpark();
            }
        }
    }

    /// It has ended.
    pub(super) fn end(&self) {
        self.number.store(0, Ordering::Release);
    }
}

/// Microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What looks after the sandboxes of a process, and keeps its time.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Its process.
    mark: ForkMark,
    start: Instant,
    /// Microseconds behind that.
    now: AtomicU64,
    watched: Mutex<Vec<Weak<Watched>>>,
    is_awake: AtomicBool,
    thread: OnceLock<Thread>,
    /// Held by who makes the thread.
    making: Mutex<()>,
}

/// That of the process, or of one that it was forked from. There is one for as long as a process lives, so none is ever freed.
static CURRENT: Mutex<Option<&'static Watchdog>> = Mutex::new(None);

impl Watchdog {
    /// That of this process, with its thread; none as long as the system has no thread to give.
    pub(super) fn current() -> Option<&'static Watchdog> {
        let dog = {
            let _forks = hold_off();
            let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
            match *current {
                Some(dog) if dog.is_here() => dog,
                _ => *current.insert(Box::leak(Box::new(Watchdog::new()))),
            }
        };
        dog.has_thread().then_some(dog)
    }

    /// Whether it has its thread, which is made if it is not there.
    fn has_thread(&'static self) -> bool {
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.thread.get().is_some() {
            return true;
        }
        let builder = thread::Builder::new().name("perilune-sql".to_owned());
        let started = with_signals_blocked(|| builder.spawn(|| self.watch_for_ever()));
        started.is_ok_and(|handle| self.thread.set(handle.thread().clone()).is_ok())
    }

    fn new() -> Watchdog {
        Watchdog {
            mark: ForkMark::current(),
            start: Instant::now(),
            now: AtomicU64::new(0),
            watched: Mutex::default(),
            is_awake: AtomicBool::new(false),
            thread: OnceLock::new(),
            making: Mutex::default(),
        }
    }

    /// Whether it is of this process, and not of one that this was forked from.
    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.mark.is_same_process()
    }

    /// The time in microseconds, as the thread has seen it last: a few milliseconds old at most while it is awake.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        if self.is_awake.load(Ordering::Relaxed) {
            return self.now.load(Ordering::Relaxed);
        }
        let now = micros(self.start.elapsed());
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// A moment as [`Watchdog::now`] tells it.
    pub(super) fn at(&self, moment: Instant) -> u64 {
        micros(moment.saturating_duration_since(self.start))
    }

    /// Has the runs of a sandbox looked after, as long as what is answered lives.
    pub(super) fn watch(&'static self, stopper: Stopper) -> Arc<Watched> {
        let (number, until) = (AtomicU64::new(0), AtomicU64::new(0));
        let watched = Arc::new(Watched { dog: self, stopper, number, until });
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&watched));
        watched
    }

    fn watch_for_ever(&self) {
        let mut idle = 0;
        loop {
            idle = if self.stop_late_ones() { 0 } else { idle + 1 };
            if idle <= IDLE_TICKS {
                thread::sleep(TICK);
                continue;
            }
            self.is_awake.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            thread::sleep(TICK);
            if !self.stop_late_ones() {
                thread::park();
            }
            self.is_awake.store(true, Ordering::Relaxed);
            idle = 0;
        }
    }

    /// Stops what is to have ended; whether anything runs.
    fn stop_late_ones(&self) -> bool {
        let now = micros(self.start.elapsed());
        self.now.store(now, Ordering::Relaxed);
        let all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
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
}
