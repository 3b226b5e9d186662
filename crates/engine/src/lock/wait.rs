//! Waiting for a lock: the place in the queue, the sleep, and the way out of both.
//!
//! A bucket has a number, raised whenever something in it may have become free, and a word of waiters:
//! their count in the low half, and in the high half how often it has changed, so that the warden can
//! tell a count that is only a dead process's.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use std::time::Instant;

use perilune_shm::{futex, platform};
use perilune_store::{Error, Result};

use super::entry::{self, Holder, Want};
use super::view::{Blockers, View};
use super::{attempt_deadline, grant, too_many, Outcome};
use crate::access::Access;
use crate::image::bell::{first_component, KeyHash};
use crate::image::layout::{control, LOCK_BUCKETS_AT};
use crate::image::Image;
use crate::limits::{LOCK_BUCKETS, SESSIONS, WAIT_SLICE};
use crate::repair;
use crate::session::Counter;
use crate::tree::Which;
use crate::txn::Transaction;

/// The bits of the waiters' word that count them.
pub(crate) const COUNT: u32 = 0xffff;
const CHANGE: u32 = COUNT + 1;

const _: () = assert!(SESSIONS < COUNT as usize);

/// The bucket that those who want `name`, or a relative of it, sleep on.
pub(super) fn bucket_of(name: &[u8]) -> usize {
    KeyHash::of(first_component(name)).bucket() % LOCK_BUCKETS
}

/// The bucket of the name in a key of a lock or of a place in a queue.
pub(crate) fn bucket_of_key(key: &[u8]) -> Option<usize> {
    entry::parts(key).map(|parts| bucket_of(parts.name))
}

fn number_word(image: &Image, bucket: usize) -> &AtomicU32 {
    image.shm.word32(LOCK_BUCKETS_AT + bucket * 8)
}

/// The waiters of a bucket.
pub(crate) fn waiters_word(image: &Image, bucket: usize) -> &AtomicU32 {
    image.shm.word32(LOCK_BUCKETS_AT + bucket * 8 + 4)
}

/// Says that something in a bucket may have become free.
pub(crate) fn wake(image: &Image, bucket: usize) {
    let number = number_word(image, bucket);
    // SeqCst: the waiter counts itself and then, in the kernel, compares the number; whoever comes
    // second sees the other.
    number.fetch_add(1, SeqCst);
    if waiters_word(image, bucket).load(SeqCst) & COUNT != 0 {
        futex::wake(number, u32::MAX);
    }
}

/// Forgets the waiters counted in `seen`, unless the word has changed since.
pub(crate) fn forget_waiters(image: &Image, bucket: usize, seen: u32) {
    let none = (seen & !COUNT).wrapping_add(CHANGE);
    // Failing means that somebody lives who counts.
    let _ = waiters_word(image, bucket).compare_exchange(seen, none, AcqRel, Acquire);
}

/// Counted as a waiter of some buckets, until dropped.
struct Counted<'a> {
    image: &'a Image,
    buckets: BTreeSet<usize>,
}

impl<'a> Counted<'a> {
    fn new(image: &'a Image, wants: &[Want]) -> Counted<'a> {
        let buckets: BTreeSet<usize> = wants.iter().map(|want| bucket_of(&want.name)).collect();
        for bucket in &buckets {
            waiters_word(image, *bucket).fetch_add(CHANGE + 1, SeqCst);
        }
        Counted { image, buckets }
    }

    fn wake_all(&self) {
        self.buckets.iter().for_each(|bucket| wake(self.image, *bucket));
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        for bucket in &self.buckets {
            let word = waiters_word(self.image, *bucket);
            // NB: the count may have been forgotten, if we were stopped for long.
            let fewer = |seen: u32| match seen & COUNT {
                0 => None,
                _ => Some(seen.wrapping_add(CHANGE) - 1),
            };
            let _ = word.fetch_update(AcqRel, Acquire, fewer);
        }
    }
}

/// A waiter.
struct Waiter<'a> {
    access: &'a Access,
    me: Holder,
    wants: &'a [Want],
    ticket: u64,
    /// Whether its place in the queue is written.
    queued: bool,
    /// Whether `me` may hold locks already.
    holds_some: bool,
    /// Holders that were followed already: waiting for them closes no circle.
    known: BTreeSet<Holder>,
}

/// Waits until `wants` are held; false at `until`. `holds_some`: `me` may hold locks already.
///
/// # Errors
/// `Deadlock`, `LimitReached`; what writing can answer. No place in the queue is left.
pub(super) fn wait(
    access: &Access,
    me: Holder,
    wants: &[Want],
    holds_some: bool,
    until: Option<Instant>,
) -> Result<bool> {
    let image = &access.seat.image;
    let counted = Counted::new(image, wants);
    let ticket = image.control(control::SERIAL).fetch_add(1, AcqRel);
    let known = BTreeSet::new();
    let mut waiter = Waiter { access, me, wants, ticket, queued: false, holds_some, known };
    let result = waiter.wait(until);
    if !matches!(result, Ok(true)) && waiter.queued {
        // Others may have waited for this place only. Should leaving fail, so does everything else
        // here; the entries go with the process.
        let left = match waiter.leave() {
            // Somebody is stopped at the same page: the warden's thread goes on with it.
            Err(Error::Busy { .. } | Error::TransactionTimeout { .. }) => {
                image.note_late(waiter.entries());
                Ok(())
            }
            left => left,
        };
        counted.wake_all();
        left?;
    }
    result
}

impl Waiter<'_> {
    fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        let image = &self.access.seat.image;
        loop {
            let numbers: Vec<u32> = self
                .wants
                .iter()
                .map(|want| number_word(image, bucket_of(&want.name)).load(Acquire))
                .collect();
            let in_time = until.is_none_or(|until| Instant::now() < until);
            let outcome = self
                .access
                .atomically(attempt_deadline(), |access, txn| self.attempt(access, txn, in_time))?;
            let blockers = match outcome {
                Outcome::Granted => return Ok(true),
                Outcome::Blocked(..) if !in_time => return Ok(false),
                Outcome::Blocked(blockers) => blockers,
                Outcome::Deadlock => return Err(Error::Deadlock),
                Outcome::TooMany => return Err(too_many()),
            };
            if !self.queued {
                self.queued = true;
                // Not before: whoever sees this counted may rely on the place in the queue.
                self.access.seat.count(Counter::LockWaits);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let slice = left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE));
            futex::wait(
                number_word(image, bucket_of(&self.wants[blockers.first].name)),
                numbers[blockers.first],
                Some(slice),
            );
            self.repair_dead(&blockers)?;
            self.known = blockers.holders;
        }
    }

    /// One attempt: takes the locks and gives up the place in the queue, or takes a place.
    fn attempt(&self, access: &Access, txn: &mut Transaction, may_wait: bool) -> Result<Outcome> {
        let mut view = View::new(access, txn);
        if may_wait && !self.queued {
            // Before looking, so that later ones who wait already are seen to wait for us.
            self.enter(view.txn);
        }
        let mut blockers = view.blockers(self.me, self.wants, self.ticket)?;
        if self.holds_some && blockers.holders.is_empty() {
            view.pass(self.me, &mut blockers)?;
        }
        if blockers.is_empty() {
            view.sweep();
            self.erase(txn);
            return grant(access, txn, self.me, self.wants);
        }
        if !may_wait {
            return Ok(Outcome::Blocked(blockers));
        }
        let is_news = !self.queued || !blockers.holders.is_subset(&self.known);
        if is_news && view.closes_circle(self.me, &blockers)? {
            self.erase(txn);
            return Ok(Outcome::Deadlock);
        }
        if !self.queued {
            view.sweep();
        }
        Ok(Outcome::Blocked(blockers))
    }

    fn enter(&self, txn: &mut Transaction) {
        let since = platform::monotonic_nanos();
        txn.set(Which::Volatile, &entry::waiter_key(self.me, self.ticket), &entry::wants_value(self.wants));
        for want in self.wants {
            // Of one name wanted twice the stronger mode counts.
            let exclusive = self.wants.iter().any(|other| other.name == want.name && other.exclusive);
            let key = entry::queue_key(&want.name, self.ticket, self.me);
            txn.set(Which::Volatile, &key, &entry::queue_value(exclusive, since));
        }
    }

    /// The keys of its place in the queue.
    fn entries(&self) -> Vec<Vec<u8>> {
        let queued = self.wants.iter().map(|want| entry::queue_key(&want.name, self.ticket, self.me));
        queued.chain([entry::waiter_key(self.me, self.ticket)]).collect()
    }

    fn erase(&self, txn: &mut Transaction) {
        self.entries().iter().for_each(|key| txn.remove(Which::Volatile, key));
    }

    fn leave(&self) -> Result<()> {
        self.access.atomically(attempt_deadline(), |_, txn| {
            self.erase(txn);
            Ok(())
        })
    }

    /// Repairs those of the blockers' processes that have died.
    fn repair_dead(&self, blockers: &Blockers) -> Result<()> {
        let image = &self.access.seat.image;
        let mut last = image.me;
        // In their order holders of one process are neighbours.
        for process in blockers.all().map(|holder| holder.process()) {
            if process != last && !image.is_alive(process) {
                repair::dead_process(image, process.slot.into())?;
            }
            last = process;
        }
        Ok(())
    }
}
