//! The two threads of each process that bring what is written to disk in time: one flushes the log, one takes
//! checkpoints. They are two since a checkpoint may wait long for the disk.
//!
//! All processes that write have them. The first to find that something is due does it for all, under the duty it
//! needs. So at level `periodic` nothing depends on any one process.
//!
//! The thread that flushes also works ahead of this process's writers (`image::ahead`). It asks for short slices,
//! to run soon after it wakes also where all processors are busy: at level `periodic`, what a crash costs is as old
//! as the last flush. The other thread also looks at the file's size (`image::advice`), and whether the file still
//! has its name.
//!
//! What if we are killed? The thread of another process finds the same due.
//!
//! Deliberately absent: looking after the dead (`warden`), which must not wait for a disk.

use std::sync::Arc;
use std::time::Instant;

use perilune_shm::slices;
use perilune_store::Result;

use crate::background::BackgroundThread;
use crate::image::{wakeup, Image};
use crate::limits::{CHECKPOINT_LOOK, FLUSH_AGE, HOME_LOOK, IDLE_LOOK, IDLE_REST};
use crate::{checkpoint, idle, log};

/// Starts the thread that flushes. `image` is attached to for writing, and stays so until this is dropped.
///
/// # Errors
/// `Io` when no thread is to be had.
pub(crate) fn flushing(image: Arc<Image>) -> Result<BackgroundThread> {
    BackgroundThread::start(image, "perilune-flush", |image| {
        // Where it is refused the thread runs like all others.
        let _ = slices::ask_for_short_slices_in_this_thread();
        // What fails now (a full disk, say) is tried again in the next round.
        move |stop| {
            log::help(&image);
            image.prepare_ahead();
            match log::tend(&image).unwrap_or(Some(FLUSH_AGE)) {
                Some(time) => wakeup::sleep_until_rung(&image, stop, time, time),
                None => idle::rest(&image, stop, IDLE_REST, || !log::is_settled(&image)),
            }
        }
    })
}

/// Starts the thread that takes checkpoints, likewise.
///
/// # Errors
/// As [`flushing`].
pub(crate) fn checkpointing(image: Arc<Image>) -> Result<BackgroundThread> {
    BackgroundThread::start(image, "perilune-keep", |image| {
        let mut looked = Instant::now();
        move |stop| {
            if looked.elapsed() >= HOME_LOOK {
                looked = Instant::now();
                image.look_for_home();
            }
            image.follow_growth();
            // NB: of a log that cannot grow a checkpoint makes segments spare.
            if log::is_enough(&image) || log::is_unnamed(&image) || log::is_full(&image) {
                checkpoint::want(&image);
            }
            let _ = checkpoint::tend(&image, &*image.disk);
            let _ = checkpoint::name_segment(&image, &*image.disk);
            wakeup::sleep_until_rung(&image, stop, CHECKPOINT_LOOK, IDLE_LOOK);
        }
    })
}
