//! Each process's two threads that flush the log and take checkpoints in time; two, since a checkpoint
//! may wait long for the disk.
//!
//! All processes that write have them; the first to find that something is due does it for all, under
//! the duty it needs. So at level `periodic` nothing depends on any one process.
//!
//! What if we are killed? The thread of another process finds the same due.
//!
//! Deliberately absent: looking after the dead (`warden`), which must not wait for a disk.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use perilune_shm::fork::ForkMark;
use perilune_shm::{futex, platform};
use perilune_store::Result;

use crate::image::{io_error, Image};
use crate::limits::{CHECKPOINT_LOOK, FLUSH_AGE, LOG_CHECKPOINT};
use crate::{checkpoint, log};

/// A thread of this process; ended when dropped.
pub(crate) struct Upkeep {
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

impl Upkeep {
    /// Starts the thread that flushes. `image` is attached to for writing, and stays so until this is
    /// dropped.
    ///
    /// # Errors
    /// `Io` when no thread is to be had.
    pub(crate) fn flushing(image: Arc<Image>) -> Result<Upkeep> {
        // What fails now (a full disk, say) is tried again in the next round.
        Upkeep::start(image, "perilune-flush", |image| log::tend(image).unwrap_or(FLUSH_AGE))
    }

    /// Starts the thread that takes checkpoints, likewise.
    ///
    /// # Errors
    /// As [`Upkeep::flushing`].
    pub(crate) fn checkpointing(image: Arc<Image>) -> Result<Upkeep> {
        Upkeep::start(image, "perilune-keep", |image| {
            if log::size(image) > LOG_CHECKPOINT || log::is_unnamed(image) {
                checkpoint::want(image);
            }
            let _ = checkpoint::tend(image, &*image.disk);
            CHECKPOINT_LOOK
        })
    }

    fn start(image: Arc<Image>, name: &str, round: fn(&Arc<Image>) -> Duration) -> Result<Upkeep> {
        let signal = Arc::new(Signal::default());
        let path = image.path.clone();
        let thread = {
            let signal = signal.clone();
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    platform::block_all_signals_in_this_thread();
                    while !signal.sleep(round(&image)) {}
                })
                .map_err(|source| io_error("start a thread for", &path, source))?
        };
        Ok(Upkeep { signal, thread: Some(thread), mark: ForkMark::current() })
    }
}

impl Drop for Upkeep {
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
