//! A thread of this process that looks after something, round after round, for as long as it is held.
//!
//! Example: `maintenance` starts one that flushes the log. Each of its rounds ends with a sleep; dropping the
//! [`BackgroundThread`] wakes it, and it ends.
//!
//! Invariants
//! - It takes no signal: handlers of the program run in the program's own threads.
//! - Whoever drops it waits for its round to end; a forked child, which has no such thread, does not.
//!
//! Deliberately absent: what a round does (`warden`, `maintenance`).

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;
use std::thread::JoinHandle;

use perilune_shm::fork::ForkMark;
use perilune_shm::platform;
use perilune_store::Result;

use crate::image::{io_error, wakeup, Image};

/// A thread of this process; ended when dropped.
pub(crate) struct BackgroundThread {
    image: Arc<Image>,
    /// Whether the thread is to end.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    mark: ForkMark,
}

impl BackgroundThread {
    /// Starts a thread called `name` (at most 15 bytes), which looks after `image`: this process is attached to it
    /// for writing, and stays so until the thread has ended. `work` is run there once and answers what a round
    /// does; a round ends with a sleep (`wakeup::sleep_until_rung`, `idle::rest`), from which the end of the thread wakes it.
    ///
    /// # Errors
    /// `Io` when no thread is to be had.
    pub(crate) fn start<R: FnMut(&AtomicBool)>(
        image: Arc<Image>,
        name: &str,
        work: impl FnOnce(Arc<Image>) -> R + Send + 'static,
    ) -> Result<BackgroundThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let path = image.path.clone();
        let thread = {
            let (image, stop) = (image.clone(), stop.clone());
            let builder = std::thread::Builder::new().name(name.to_owned());
            let run = move || {
                let mut round = work(image);
                while !stop.load(Acquire) {
                    round(&stop);
                }
            };
            platform::with_signals_blocked(|| builder.spawn(run))
                .map_err(|source| io_error("start a thread that looks after", &path, source))?
        };
        Ok(BackgroundThread { image, stop, thread: Some(thread), mark: ForkMark::current() })
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if !self.mark.is_same_process() {
            // The thread is the parent's.
            std::mem::forget(thread);
            return;
        }
        self.stop.store(true, Release);
        wakeup::ring_own(&self.image);
        if let Some(thread) = thread {
            // Its panic, if any, has been reported where it happened.
            let _ = thread.join();
        }
    }
}
