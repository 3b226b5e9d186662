//! A thread of this process that looks after something, round after round, for as long as it is held.
//!
//! Invariants
//! - It takes no signal: handlers of the program run in the program's own threads.
//! - Whoever drops it waits for its round to end; a forked child, which has no such thread, does not.
//!
//! Deliberately absent: what a round does (`warden`, `upkeep`).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use perilune_shm::fork::ForkMark;
use perilune_shm::{futex, platform};
use perilune_store::Result;

use crate::image::{io_error, Image};

/// A thread of this process; ended when dropped.
pub(crate) struct Attendant {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
    mark: ForkMark,
}

/// How the thread is told to end.
#[derive(Default)]
struct Signal {
    stop: AtomicBool,
    bell: AtomicU32,
}

impl Signal {
    /// Sleeps; true when the thread is to end.
    fn sleep(&self, time: Duration) -> bool {
        let rung = self.bell.load(Acquire);
        if !self.stop.load(Acquire) {
            futex::wait(&self.bell, rung, Some(time));
        }
        self.stop.load(Acquire)
    }
}

impl Attendant {
    /// Starts a thread called `name` (at most 15 bytes), which looks after `image`: this process is attached to it
    /// for writing, and stays so until the thread has ended. `work` is run there once and answers what a round
    /// does; a round answers how long to sleep before the next.
    ///
    /// # Errors
    /// `Io` when no thread is to be had.
    pub(crate) fn start<R: FnMut() -> Duration>(
        image: Arc<Image>,
        name: &str,
        work: impl FnOnce(Arc<Image>) -> R + Send + 'static,
    ) -> Result<Attendant> {
        let signal = Arc::new(Signal::default());
        let path = image.path.clone();
        let thread = {
            let signal = signal.clone();
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    platform::block_all_signals_in_this_thread();
                    let mut round = work(image);
                    while !signal.sleep(round()) {}
                })
                .map_err(|source| io_error("start a thread that looks after", &path, source))?
        };
        Ok(Attendant { signal, thread: Some(thread), mark: ForkMark::current() })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if !self.mark.is_same_process() {
            // The thread is the parent's.
            std::mem::forget(thread);
            return;
        }
        self.signal.stop.store(true, Release);
        self.signal.bell.fetch_add(1, AcqRel);
        futex::wake(&self.signal.bell, u32::MAX);
        if let Some(thread) = thread {
            // Its panic, if any, has been reported where it happened.
            let _ = thread.join();
        }
    }
}
