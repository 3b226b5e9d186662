//! The one thread of all processes that looks after the dead.
//!
//! Problem: a dead process is repaired by whoever waits for it. If nobody does, its locks, places in queues and
//! bits in masks would stay. Idea: one thread looks for such things now and then.
//!
//! Each process that writes runs a thread. The one that gets the lock on the `warden` byte of the database file is
//! the warden; the others try again every 50 ms, or every second while nothing is written. The warden repairs dead
//! processes, removes their locks and places in queues, corrects counts of waiters and shrinks the filter of
//! watched keys. Nothing waits for it: entries of the dead count as absent anyway. So it may be late, but not
//! wrong.
//!
//! What if we are killed? The kernel gives the byte free; the next warden begins with a whole sweep.
//!
//! Deliberately absent: flushing and checkpoints.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::Arc;

use perilune_shm::anchor::Anchor;
use perilune_shm::region;
use perilune_store::Result;

use crate::access::Access;
use crate::background::BackgroundThread;
use crate::image::{wakeup, Image};
use crate::limits::{IDLE_LOOK, LOCK_BUCKETS, PROCESSES, WARDEN_PERIOD};
use crate::lock::{self, tag};
use crate::open::{claim_session, release_session, WARDEN};
use crate::repair;
use crate::session::{head_of_session, Seat};
use crate::tree::{Neighbour, Seek, Which};
use crate::watch;

/// Starts this process's thread. `image` is attached to for writing, and stays so until this is dropped.
///
/// # Errors
/// `Io` when no thread is to be had.
pub(crate) fn start(image: Arc<Image>) -> Result<BackgroundThread> {
    BackgroundThread::start(image, "perilune-warden", |image| {
        let mut duty = None;
        // NB: a try costs a thread (see `Anchor`), a look microseconds: of a thousand processes at rest the
        // tries alone would fill two processors.
        move |stop| {
            let is_taken = || image.probe().is_some_and(|probe| probe.is_held(WARDEN).unwrap_or(false));
            if duty.is_none() && !is_taken() {
                // An error (no descriptors left, say) is one of the moment: the next try may succeed.
                let only = Some(image.identity());
                let byte = Anchor::acquire_in(only, &image.path, WARDEN, region::Access::ReadWrite, false);
                duty = byte.ok().flatten().map(|byte| Duty { round: Round::new(image.clone()), _byte: byte });
            }
            // What fails now is tried again in the next round.
            let _ = remove_late(&image);
            if let Some(duty) = &mut duty {
                // What fails now (a full disk, say) is tried again in the next round.
                let _ = duty.round.run();
            }
            wakeup::sleep_until_rung(&image, stop, WARDEN_PERIOD, IDLE_LOOK);
        }
    })
}

/// The warden's office.
struct Duty {
    round: Round,
    _byte: Anchor,
}

/// What is done every 50 ms, or every second while nothing is written.
struct Round {
    image: Arc<Image>,
    /// Digest of the process words as of the last removal of entries of the dead.
    swept: Option<u64>,
    waiters: Vec<Seen>,
    /// Sum of the positions of all rings.
    written: u64,
}

/// A bucket's word of waiters in the round before.
#[derive(Clone, Copy, Default)]
struct Seen {
    word: u32,
    /// Whether it has been compared with the queues.
    is_checked: bool,
}

impl Round {
    fn new(image: Arc<Image>) -> Round {
        Round { image, swept: None, waiters: vec![Seen::default(); LOCK_BUCKETS], written: 0 }
    }

    /// # Errors
    /// What repairing or writing can answer.
    fn run(&mut self) -> Result<()> {
        self.note_activity();
        repair::dead_processes(&self.image)?;
        watch::shrink_filter(&self.image);
        // Reading takes no session.
        let reader = Access::new(Seat::new(self.image.clone(), 0));
        // Taken before looking: who dies meanwhile changes it in the next round.
        let digest = self.digest();
        if self.swept != Some(digest) {
            self.remove(dead_entries(&reader)?)?;
            self.swept = Some(digest);
        }
        self.correct_waiters(&reader)
    }

    /// Tells the threads of all processes whether anything is being written.
    fn note_activity(&mut self) {
        let positions = (1..=repair::sessions_high(&self.image)).map(|id| head_of_session(&self.image, id));
        let written = positions.fold(0, u64::wrapping_add);
        if std::mem::replace(&mut self.written, written) != written {
            wakeup::note_activity(&self.image);
        }
    }

    /// Differs whenever a process has come or gone.
    fn digest(&self) -> u64 {
        (0..PROCESSES).fold(0, |digest: u64, slot| {
            let word = self.image.process_word(slot).load(Acquire);
            (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        })
    }

    /// Removes entries of dead processes, and wakes who may have waited for them.
    fn remove(&self, keys: Vec<Vec<u8>>) -> Result<()> {
        remove(&self.image, &keys)
    }

    /// Forgets waiters that have been counted for at least a round and have no place in any queue.
    fn correct_waiters(&mut self, reader: &Access) -> Result<()> {
        let mut doubtful = Vec::new();
        for (bucket, seen) in self.waiters.iter_mut().enumerate() {
            let word = lock::waiters_word(&self.image, bucket).load(Relaxed);
            if word != seen.word {
                *seen = Seen { word, is_checked: false };
            } else if word & lock::WAITERS_COUNT != 0 && !seen.is_checked {
                doubtful.push((bucket, word));
            }
        }
        if doubtful.is_empty() {
            return Ok(());
        }
        let mut queued = vec![false; LOCK_BUCKETS];
        for_each(reader, tag::QUEUE..=tag::QUEUE, |key| {
            lock::bucket_of_key(key).into_iter().for_each(|bucket| queued[bucket] = true);
        })?;
        for (bucket, word) in doubtful {
            self.waiters[bucket].is_checked = true;
            if !queued[bucket] {
                lock::forget_waiters(&self.image, bucket, word);
            }
        }
        Ok(())
    }
}

/// Removes places in queues that this process has left while somebody was stopped at the same page.
fn remove_late(image: &Arc<Image>) -> Result<()> {
    let keys = image.take_late();
    remove(image, &keys).inspect_err(|_| image.note_late(keys))
}

/// Removes entries, and wakes who may have waited for them.
fn remove(image: &Arc<Image>, keys: &[Vec<u8>]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let access = Access::new(claim_session(image)?);
    let removed = keys.iter().try_for_each(|key| {
        access.remove(Which::Volatile, key)?;
        lock::bucket_of_key(key).into_iter().for_each(|bucket| lock::wake(image, bucket));
        Ok(())
    });
    release_session(&access.seat);
    removed
}

/// Calls `visit` for each key whose tag is one of `tags`.
fn for_each(reader: &Access, tags: RangeInclusive<u8>, mut visit: impl FnMut(&[u8])) -> Result<()> {
    let (mut from, mut key) = (vec![*tags.start()], Vec::new());
    while reader.neighbour(
        Which::Volatile,
        Seek { from: &from, side: Neighbour::Next, bound: &[] },
        &mut key,
        None,
        &mut (),
    )? && key.first().is_some_and(|tag| tags.contains(tag))
    {
        visit(&key);
        std::mem::swap(&mut from, &mut key);
    }
    Ok(())
}

/// The keys of locks, places in queues and waiters of dead processes.
fn dead_entries(reader: &Access) -> Result<Vec<Vec<u8>>> {
    let image = &reader.seat.image;
    let (mut dead, mut last) = (Vec::new(), None);
    for_each(reader, tag::LOCK..=tag::WAITER, |key| {
        let Some(process) = lock::process_of(key) else { return };
        let is_alive = match last {
            Some((known, alive)) if known == process => alive,
            _ => image.is_alive(process),
        };
        last = Some((process, is_alive));
        if !is_alive {
            dead.push(key.to_vec());
        }
    })?;
    Ok(dead)
}

#[cfg(test)]
mod tests;
