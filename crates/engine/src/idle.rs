//! How the maintenance threads sleep for long while nothing is written, and still miss no write.
//!
//! Problem: the threads that every process has for maintenance look every 25 to 50 ms whether there is work. In a
//! database that nobody uses this wakes the processor many times a second for nothing.
//!
//! Idea: when nothing has been written for a second, the thread that flushes raises the flag IDLE, looks for work
//! once more, and sleeps until its process's bell is rung. Whoever is about to publish finds the flag, since flags
//! change by the handshake of `control`, and first rings the bells of all processes. The other threads may be late
//! by a second: they only look less often (`wakeup::sleep_until_rung`).
//!
//! Invariants
//! - While IDLE is down nobody rests. It is lowered only by one who has rung all since the count beside it was last
//!   changed; and whoever goes to rest changes that count.
//! - Between raising the flag and sleeping a thread looks whether there is work.
//!
//! What if we are killed? Having rung k of n, or all, before the flag is lowered: nothing was published and the
//! flag is up, so the next writer rings all. Between raising the flag and freezing: the flag is up, and everybody
//! who rests has frozen the heads himself.
//!
//! Deliberately absent: what the threads do (`maintenance`, `warden`, `log`).

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;
use std::time::Duration;

use perilune_shm::futex;

use crate::control::freeze;
use crate::image::layout::{control, FLAG_IDLE, FLAG_IDLE_COUNT};
use crate::image::{wakeup, Image};

/// Sleeps until something is published, or `long`, if `has_work` still says no when that can no longer be
/// missed.
pub(crate) fn rest(image: &Arc<Image>, stop: &AtomicBool, long: Duration, has_work: impl FnOnce() -> bool) {
    let bell = wakeup::bell(image, image.me.slot.into());
    let rung = bell.load(Acquire);
    // NB: cannot fail, the closure always answers.
    let raised = |flags: u64| Some((flags | FLAG_IDLE).wrapping_add(FLAG_IDLE_COUNT));
    let _ = image.control(control::FLAGS).fetch_update(AcqRel, Acquire, raised);
    freeze(image);
    let has_work = has_work();
    if !has_work && !stop.load(Acquire) {
        futex::wait(bell, rung, Some(long));
    }
    // NB: the flag may stay up at any time. Lowered when nobody has rung, it would wake all for nothing.
    if has_work || bell.load(Acquire) != rung && !stop.load(Acquire) {
        end(image);
    }
}

/// Ends the rest of all, if anybody rests: writers need ring nobody any more.
pub(crate) fn end(image: &Image) {
    let flags = image.control(control::FLAGS);
    loop {
        let seen = flags.load(Acquire);
        if seen & FLAG_IDLE == 0 {
            return;
        }
        // NB: in this order. Who went to rest after the ringing has changed the count, and the exchange fails.
        wakeup::ring(image);
        wakeup::note_activity(image);
        if flags.compare_exchange(seen, seen & !FLAG_IDLE, AcqRel, Acquire).is_ok() {
            return;
        }
    }
}
