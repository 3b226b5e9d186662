//! The user's locks: named, hierarchical, counted, exclusive or shared, gone with their owner.
//!
//! Problem: a table of locks in shared memory would need a protocol of its own against `kill -9`. Idea: locks are records
//! of a tree, which has one, and are taken by transactions.
//!
//! A lock is an entry in the volatile tree, under its name and its holder (process slot, life, handle).
//! An attempt is one transaction: it reads the entries of the name, its ancestors and its descendants,
//! and writes its own if none is in conflict. Who has to wait writes his place in the queue and what he
//! wants, follows those he would wait for, and sleeps on the futex of the name's first component.
//!
//! Example: A holds `^bank("Ada")`, and B wants `^bank`. B's transaction finds A's entry below the name and writes a place
//! in the queue instead of a lock. B sleeps on the futex of `bank`, until A's unlock raises its number and wakes B.
//!
//! Invariants
//! - A lock is held if and only if its entry exists and its process lives. Nothing else says so.
//! - The number of a bucket is read before an attempt, and raised after an entry of it has gone and
//!   before its sleepers are woken: no wake is lost. A sleeper looks again after 20 ms anyway.
//! - Whoever enters the queue has made sure, in the transaction that writes his place, that no holder he
//!   waits for waits for what he holds. So circles of holders never come to be, and of those about to
//!   close one, one fails. What only the order of the queue would close is no deadlock: see `view`.
//!
//! | killed | survivors see | then |
//! |---|---|---|
//! | before the commit of an attempt | nothing | |
//! | after it, as holder or waiter | entries of a dead process | absent at once; swept |
//! | unlocked, before the number is raised | sleepers sleep on | they look again after 20 ms |
//! | number raised, before the wake | the same | the same |
//! | waiting: counted in the bucket | a count too high | the warden corrects it; until then unlocking is slower |
//!
//! Deliberately absent: which level of a transaction took a lock (the session knows).

pub(crate) mod entry;
#[cfg(test)]
mod tests;
mod view;
mod wait;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perilune_shm::platform;
use perilune_store::{Decision, Error, LockOwner, LockReport, LockRequest, Result};

use crate::access::Access;
use crate::image::Image;
use crate::limits::LOCK_COUNT_MAX;
use crate::session::Counter;
use crate::tree::{Neighbour, Seek, Wanted, Which};
use crate::txn::Transaction;
use entry::{Held, Holder, Want};
use view::{Blockers, View};

pub(crate) use entry::{process_of, tag};
pub(crate) use view::damaged;
pub(crate) use wait::{bucket_of_key, forget_waiters, waiters_word, wake, COUNT as WAITERS_COUNT};

/// How long an attempt may need to get through, whatever its caller's patience with other holders.
const ATTEMPT_TIME: Duration = Duration::from_secs(60);

fn attempt_deadline() -> Instant {
    Instant::now() + ATTEMPT_TIME
}

/// How an attempt ended.
enum Outcome {
    /// All are held now.
    Granted,
    /// By whom it is blocked.
    Blocked(Blockers),
    /// Waiting would close a circle.
    Deadlock,
    /// A count would exceed its limit.
    TooMany,
}

/// Counts on in a forked child: a session it inherited never shares its number with one it opens.
static NEXT_OWNER: AtomicU64 = AtomicU64::new(0);

/// The locks of one process, shared by its sessions. A forked child has its own, with nothing held.
pub(crate) struct Locks {
    image: Arc<Image>,
    /// Names that each owner holds, so that all can be released without a search. It says nothing
    /// about what is held: that is in the tree.
    names: Mutex<HashMap<LockOwner, BTreeSet<Vec<u8>>>>,
}

impl Locks {
    pub(crate) fn new(image: Arc<Image>) -> Locks {
        Locks { image, names: Mutex::default() }
    }

    fn names(&self) -> MutexGuard<'_, HashMap<LockOwner, BTreeSet<Vec<u8>>>> {
        // A panic while it is held leaves the table whole: each change is one call.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holder(&self, owner: LockOwner) -> Holder {
        Holder::new(self.image.me, owner)
    }

    /// An owner that has not been before in this process.
    pub(crate) fn new_owner(&self) -> LockOwner {
        LockOwner(NEXT_OWNER.fetch_add(1, Relaxed))
    }

    /// Takes all of `requests` or none, waiting up to `timeout` (None: for ever; zero: one attempt) and
    /// not beyond `limit`; false when they were not to be had in time. On true each request has counted
    /// its lock up by one. No transaction of `access`'s session is in exclusive mode.
    ///
    /// # Errors
    /// `Deadlock`; `LimitReached`; `KeyTooLong`, `Invalid` for wrong names; what writing can answer.
    pub(crate) fn lock(
        &self,
        access: &Access,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
        limit: Option<Instant>,
    ) -> Result<bool> {
        access.within(timeout, || self.lock_within(access, owner, requests, timeout, limit))
    }

    fn lock_within(
        &self,
        access: &Access,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
        limit: Option<Instant>,
    ) -> Result<bool> {
        let wants = requests.iter().map(Want::new).collect::<Result<Vec<_>>>()?;
        let me = self.holder(owner);
        let outcome =
            access.atomically(attempt_deadline(), |access, txn| at_once(access, txn, me, &wants))?;
        let granted = match outcome {
            Outcome::Granted => true,
            Outcome::Blocked(..) if timeout == Some(Duration::ZERO) => false,
            Outcome::Blocked(..) => {
                let own = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                let holds_some = self.names().contains_key(&owner);
                wait::wait(access, me, &wants, holds_some, own.into_iter().chain(limit).min())?
            }
            Outcome::Deadlock => return Err(Error::Deadlock),
            Outcome::TooMany => return Err(too_many()),
        };
        if granted {
            access.seat.count(Counter::Locks);
            self.names().entry(owner).or_default().extend(wants.into_iter().map(|want| want.name));
        }
        Ok(granted)
    }

    /// Counts a lock down and releases it at zero; false when it is not held.
    ///
    /// # Errors
    /// What writing can answer.
    pub(crate) fn unlock(&self, access: &Access, owner: LockOwner, name: &[u8]) -> Result<bool> {
        let key = entry::lock_key(name, self.holder(owner));
        let mut left = None;
        access.update(Which::Volatile, &key, &mut |current, buffer| {
            left = current.and_then(entry::held).map(|held| held.count.saturating_sub(1));
            match (current.and_then(entry::held), left) {
                (Some(held), Some(left)) if left > 0 => {
                    let value = entry::held_value(Held { count: left, ..held });
                    buffer[..entry::HELD_BYTES].copy_from_slice(&value);
                    Ok(Decision::Write(entry::HELD_BYTES))
                }
                (Some(_), _) => Ok(Decision::Remove),
                (None, _) => Ok(Decision::Keep),
            }
        })?;
        if left == Some(0) {
            self.forget(owner, name);
            wake(&self.image, wait::bucket_of(name));
        }
        Ok(left.is_some())
    }

    fn forget(&self, owner: LockOwner, name: &[u8]) {
        let mut names = self.names();
        if let Some(held) = names.get_mut(&owner) {
            held.remove(name);
            if held.is_empty() {
                names.remove(&owner);
            }
        }
    }

    /// Releases every lock of `owner`.
    ///
    /// # Errors
    /// What writing can answer; what was not released can be released by another call.
    pub(crate) fn unlock_all(&self, access: &Access, owner: LockOwner) -> Result<()> {
        let mut names = self.names().remove(&owner).unwrap_or_default();
        let holder = self.holder(owner);
        while let Some(name) = names.first() {
            if let Err(error) = access.remove(Which::Volatile, &entry::lock_key(name, holder)) {
                self.names().entry(owner).or_default().append(&mut names);
                return Err(error);
            }
            wake(&self.image, wait::bucket_of(name));
            names.pop_first();
        }
        Ok(())
    }

    /// How often `owner` holds `name`.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn count(&self, access: &Access, owner: LockOwner, name: &[u8]) -> Result<u32> {
        let key = entry::lock_key(name, self.holder(owner));
        let mut value = Vec::new();
        if !access.get(Which::Volatile, &key, &mut value, &mut ())? {
            return Ok(0);
        }
        entry::held(&value).map(|held| held.count).ok_or_else(|| damaged("lock"))
    }
}

/// Locks that are held, then those waited for, each in the order of names. Entries of the dead are left out.
///
/// # Errors
/// I/O and damage only.
pub(crate) fn report(access: &Access) -> Result<Vec<LockReport>> {
    let image = &access.seat.image;
    let now = platform::monotonic_nanos();
    let (mut key, mut value, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = vec![tag::LOCK];
    let mut side = Neighbour::AtOrNext;
    while access.neighbour(
        Which::Volatile,
        Seek { from: &from, side, bound: &[] },
        &mut key,
        Some(Wanted::whole(&mut value)),
        &mut (),
    )? && key.first().is_some_and(|tag| *tag <= tag::QUEUE)
    {
        let parts = entry::parts(&key).ok_or_else(|| damaged("lock's key"))?;
        let (exclusive, count, since) = match entry::held(&value) {
            Some(held) if key.first() == Some(&tag::LOCK) => (held.exclusive, held.count, held.since),
            _ => {
                let (exclusive, since) = entry::queued(&value).ok_or_else(|| damaged("lock"))?;
                (exclusive, 0, since)
            }
        };
        let process = parts.holder.process();
        if process == image.me || image.is_alive(process) {
            locks.push(LockReport {
                name: parts.name.to_vec(),
                exclusive,
                count,
                pid: image.pid(process.slot.into()),
                owner: parts.holder.owner(),
                since: Duration::from_nanos(now.saturating_sub(since)),
            });
        }
        std::mem::swap(&mut from, &mut key);
        side = Neighbour::Next;
    }
    // By name; those who hold it first, the others in the order of the queue, in which they were found.
    locks.sort_by(|a, b| (&a.name, a.count == 0).cmp(&(&b.name, b.count == 0)));
    Ok(locks)
}

fn too_many() -> Error {
    Error::LimitReached { what: "counts of one lock: unlock it first", limit: LOCK_COUNT_MAX.into() }
}

/// An attempt without a place in the queue.
fn at_once(access: &Access, txn: &mut Transaction, me: Holder, wants: &[Want]) -> Result<Outcome> {
    let mut view = View::new(access, txn);
    // Nobody waits and nobody holds: the queue need not be read, and nothing be noted.
    let mut is_free = true;
    for want in wants {
        is_free = is_free
            && waiters_word(&access.seat.image, wait::bucket_of(&want.name)).load(Relaxed) & WAITERS_COUNT
                == 0
            && view.is_free(me, want)?;
    }
    if !is_free {
        let blockers = view.blockers(me, wants, u64::MAX)?;
        if !blockers.is_empty() {
            return Ok(Outcome::Blocked(blockers));
        }
        view.sweep();
    }
    grant(access, txn, me, wants)
}

/// Writes the entries of locks that are to be had.
fn grant(access: &Access, txn: &mut Transaction, me: Holder, wants: &[Want]) -> Result<Outcome> {
    let mut value = Vec::new();
    for want in wants {
        let key = entry::lock_key(&want.name, me);
        let mut lock = Held { exclusive: want.exclusive, count: 0, since: 0 };
        if access.txn_get(txn, Which::Volatile, &key, &mut value)? {
            let held = entry::held(&value).ok_or_else(|| damaged("lock"))?;
            lock = Held { exclusive: held.exclusive || want.exclusive, ..held };
        } else {
            lock.since = platform::monotonic_nanos();
        }
        if lock.count >= LOCK_COUNT_MAX {
            return Ok(Outcome::TooMany);
        }
        lock.count += 1;
        txn.set(Which::Volatile, &key, &entry::held_value(lock));
    }
    Ok(Outcome::Granted)
}
