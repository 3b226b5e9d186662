//! The futexes on which maintenance threads sleep, one for each process, and whether anything is being done.
//!
//! A thread that has found nothing to do sleeps here, briefly or, when nothing has been written for a second, for
//! long. A writer that finds the database idle rings the bells of all processes before it publishes.
//!
//! What if we are killed? Having rung k of n bells: nothing was published yet, and the next writer rings all.
//!
//! Deliberately absent: why no write is missed (`idle`).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use perilune_shm::{futex, platform};

use super::layout::{control, ProcessState, PROCESSES_AT, PROCESS_BYTES, PROCESS_UPKEEP};
use super::Image;
use crate::limits::{IDLE_AFTER, PROCESSES};

/// The futex on which the threads of a process sleep.
pub(crate) fn bell(image: &Image, slot: usize) -> &AtomicU32 {
    image.shm.word32(PROCESSES_AT + slot * PROCESS_BYTES + PROCESS_UPKEEP)
}

fn ring_one(image: &Image, slot: usize) {
    let bell = bell(image, slot);
    bell.fetch_add(1, AcqRel);
    futex::wake(bell, u32::MAX);
}

/// Wakes the threads of all processes; for a writer that meets IDLE, before it publishes.
#[cold]
pub(crate) fn ring(image: &Image) {
    for slot in 0..PROCESSES {
        if matches!(image.process(slot), ProcessState::Live { .. }) {
            ring_one(image, slot);
        }
    }
}

/// Wakes this process's own threads, to be told that they are to end.
pub(crate) fn ring_own(image: &Image) {
    ring_one(image, image.me.slot.into());
}

/// Notes that something is being done.
pub(crate) fn note_activity(image: &Image) {
    image.control(control::ACTIVE_AT).store(platform::monotonic_nanos(), Release);
}

/// Whether nothing has been done for a while.
pub(crate) fn is_quiet(image: &Image) -> bool {
    let since = platform::monotonic_nanos().saturating_sub(image.control(control::ACTIVE_AT).load(Acquire));
    Duration::from_nanos(since) >= IDLE_AFTER
}

/// Sleeps for `short`, or for `long` when nothing has been done for a while; less if rung.
pub(crate) fn sleep_until_rung(image: &Image, stop: &AtomicBool, short: Duration, long: Duration) {
    let bell = bell(image, image.me.slot.into());
    let rung = bell.load(Acquire);
    if !stop.load(Acquire) {
        futex::wait(bell, rung, Some(if is_quiet(image) { long } else { short }));
    }
}
