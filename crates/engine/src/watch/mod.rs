//! Waiting, without polling, until somebody's commit touches a key or a subtree.
//!
//! Example: process A watches all below `^queue`. It sets its bit in the mask of the bucket that the hash of
//! `queue` 00 leads to, and remembers the bucket's number, 6. Process B sets `^queue(7)`: it raises the number to 7
//! and rings the bell of A. A wakes, sees 7, and reads what there is. How B finds out that anybody watches:
//! [`crate::image::bell`].
//!
//! Registering sets this process's bit in masks, and the bit of one of the key's stems in the filter that writers
//! test. Then it freezes all heads and waits: every commit that begins afterwards sees them.
//!
//! Invariants
//! - Masks, this process's word of filter bits and the filter hold at least what its watches need. The process's
//!   word is written before the filter, and each writing of the filter counts: so the warden, who shrinks it, never
//!   takes away a bit that is being set (compare [`shrink_filter`]).
//! - What is remembered is read after the freeze has been waited for.
//! - A bell is read before the numbers: no wake is lost.
//!
//! What if we are killed? Repair takes the process out of the masks; its word of filter bits counts only while it
//! lives; threads and descriptors go with it.
//!
//! Deliberately absent: exactness. Two keys in one bucket wake each other's watches.

mod notifier;
mod registry;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::fork::ForkMark;
use perilune_shm::futex;
use perilune_store::{Error, Result, WatchId, WatchRequest};

use crate::access::Access;
use crate::image::bell::FILTER_BITS;
use crate::image::layout::{
    control, ProcessState, PROCESSES_AT, PROCESS_BELL, PROCESS_BYTES, PROCESS_FILTER, WATCH_BUCKETS_AT,
    WATCH_BUCKET_BYTES,
};
use crate::image::Image;
use crate::limits::PROCESSES;
use notifier::Notifier;
use registry::{Place, Registry};

/// Added to the filter word with every change of it.
pub(super) const FILTER_CHANGE: u64 = FILTER_BITS + 1;

/// The watches of one process, shared by its sessions. A forked child has its own, without any.
pub(crate) struct Watches {
    registry: Arc<Registry>,
    notifier: Notifier,
    mark: ForkMark,
}

impl Watches {
    pub(crate) fn new(image: Arc<Image>) -> Watches {
        let registry = Arc::new(Registry::new(image));
        Watches { notifier: Notifier::new(registry.clone()), registry, mark: ForkMark::current() }
    }

    fn wait(&self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let image = &self.registry.image;
        let bell = bell(image, image.me.slot.into());
        loop {
            let rung = bell.load(Acquire);
            if self.registry.take_touch(id)? {
                return Ok(true);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            futex::wait(bell, rung, left);
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        if self.mark.is_same_process() {
            self.notifier.stop();
            self.registry.forget_all();
        } else {
            // The thread is the parent's, and so is the slot.
            self.notifier.abandon();
        }
    }
}

/// The watches of one session; they end when it is dropped.
pub(crate) struct SessionWatches {
    watches: Arc<Watches>,
    ids: Vec<WatchId>,
    /// Watches of channels that were waited for lately: registering anew for each message would cost
    /// all writers a freeze.
    channels: Vec<(Vec<u8>, WatchId)>,
}

/// Channels whose watches a session keeps.
const CHANNELS_KEPT: usize = 8;

impl SessionWatches {
    pub(crate) fn new(watches: Arc<Watches>) -> SessionWatches {
        SessionWatches { watches, ids: Vec::new(), channels: Vec::new() }
    }

    /// Registers a watch: every commit that begins after this and touches one of `requests` is noticed.
    ///
    /// # Errors
    /// `LimitReached`, `ReadOnly`, `Invalid` for an empty key.
    pub(crate) fn watch(&mut self, access: &Access, requests: &[WatchRequest<'_>]) -> Result<WatchId> {
        let places = requests.iter().map(Place::of).collect::<Result<Vec<_>>>()?;
        let id = self.watches.registry.register(access, places)?;
        self.ids.push(id);
        Ok(id)
    }

    /// Waits for a touch since the registration or the last answer true; false after `timeout`.
    ///
    /// # Errors
    /// `Invalid` when this session has no such watch.
    pub(crate) fn wait(&self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        self.own(id)?;
        self.watches.wait(id, timeout)
    }

    /// A descriptor that becomes readable when [`SessionWatches::wait`] would answer true.
    ///
    /// # Errors
    /// `Invalid` when this session has no such watch; `Io` when no descriptor or thread is to be had.
    pub(crate) fn descriptor(&self, id: WatchId) -> Result<i32> {
        self.own(id)?;
        self.watches.notifier.start()?;
        self.watches.registry.descriptor(id)
    }

    /// Ends a watch; nothing happens if this session has no such.
    pub(crate) fn unwatch(&mut self, id: WatchId) {
        if let Some(at) = self.ids.iter().position(|other| *other == id) {
            self.ids.swap_remove(at);
            self.watches.registry.unregister(id);
        }
    }

    /// A watch of the key of a channel, kept for the next wait.
    ///
    /// # Errors
    /// As [`SessionWatches::watch`].
    pub(crate) fn channel(&mut self, access: &Access, key: &[u8]) -> Result<WatchId> {
        if let Some((_, id)) = self.channels.iter().find(|(other, _)| other == key) {
            return Ok(*id);
        }
        let request = WatchRequest { key, scope: perilune_store::WatchScope::Key };
        let id = self.watches.registry.register(access, vec![Place::of(&request)?])?;
        if self.channels.len() == CHANNELS_KEPT {
            let (_, oldest) = self.channels.remove(0);
            self.watches.registry.unregister(oldest);
        }
        self.channels.push((key.to_vec(), id));
        Ok(id)
    }

    /// Waits for a touch of a channel watched by [`SessionWatches::channel`].
    ///
    /// # Errors
    /// As [`SessionWatches::wait`].
    pub(crate) fn wait_channel(&self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        self.watches.wait(id, timeout)
    }

    fn own(&self, id: WatchId) -> Result<()> {
        if self.ids.contains(&id) {
            return Ok(());
        }
        Err(unknown(id))
    }
}

impl Drop for SessionWatches {
    fn drop(&mut self) {
        if self.watches.mark.is_same_process() {
            for id in self.ids.iter().chain(self.channels.iter().map(|(_, id)| id)) {
                self.watches.registry.unregister(*id);
            }
        }
    }
}

fn unknown(id: WatchId) -> Error {
    Error::Invalid(format!("this session has no watch {}: register one first", id.0))
}

/// The bell of a process.
fn bell(image: &Image, slot: usize) -> &AtomicU32 {
    image.shm.word32(PROCESSES_AT + slot * PROCESS_BYTES + PROCESS_BELL)
}

/// The filter bits that a process needs.
fn process_filter(image: &Image, slot: usize) -> &AtomicU64 {
    image.shm.word(PROCESSES_AT + slot * PROCESS_BYTES + PROCESS_FILTER)
}

/// The number of a bucket.
fn number(image: &Image, bucket: usize) -> u64 {
    image.shm.word(WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES).load(Acquire)
}

/// The word of a bucket's mask that holds this process, and its bit.
fn mask(image: &Image, bucket: usize) -> (&AtomicU64, u64) {
    let slot = usize::from(image.me.slot);
    let at = WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES + 8 + slot / 64 * 8;
    (image.shm.word(at), 1 << (slot % 64))
}

/// Takes out of the filter what no live process needs.
///
/// Whoever registers writes his process's word first and then changes the filter, count included: if
/// his word is not seen here, his change of the filter either makes ours fail or comes after it.
pub(crate) fn shrink_filter(image: &Image) {
    let filter = image.control(control::FILTER);
    let seen = filter.load(SeqCst);
    if seen & FILTER_BITS == 0 {
        return;
    }
    let live = (0..PROCESSES).filter(|slot| {
        *slot == usize::from(image.me.slot) || matches!(image.process(*slot), ProcessState::Live { .. })
    });
    let needed = live.fold(0, |bits, slot| bits | process_filter(image, slot).load(SeqCst)) & FILTER_BITS;
    if needed != seen & FILTER_BITS {
        let next = (seen & !FILTER_BITS).wrapping_add(FILTER_CHANGE) | needed;
        let _ = filter.compare_exchange(seen, next, AcqRel, Acquire);
    }
}
