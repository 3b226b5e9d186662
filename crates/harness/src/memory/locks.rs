//! The table of locks and of those who wait for them, and the sessions' way to it.
//!
//! Invariants
//! - Two entries of different owners on one name, or on a name and its ancestor, are both shared.
//! - A waiter also waits for every earlier waiter in conflict with it, so nobody starves, unless it
//!   already holds what that one waits for: passing then delays nobody.
//! - No owner ever waits for itself through others: whoever would close the circle gets the error.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use perilune_store::{Error, LockMode, LockOwner, LockRequest, Locks, Result};

use super::deadline;
use super::session::MemorySession;

/// A lock, held or asked for.
#[derive(Clone, Debug)]
struct Lock {
    name: Vec<u8>,
    ancestors: Vec<u16>,
    exclusive: bool,
}

impl Lock {
    fn descends_from(&self, name: &[u8]) -> bool {
        self.ancestors.iter().any(|&end| self.name[..usize::from(end)] == *name)
    }

    fn conflicts(&self, other: &Lock) -> bool {
        let related =
            self.name == other.name || self.descends_from(&other.name) || other.descends_from(&self.name);
        related && (self.exclusive || other.exclusive)
    }
}

#[derive(Debug)]
struct Waiter {
    owner: LockOwner,
    wanted: Vec<Lock>,
}

/// All locks of a store.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    held: BTreeMap<(LockOwner, Vec<u8>), (Lock, u32)>,
    /// By ticket: earlier ones come first.
    waiting: BTreeMap<u64, Waiter>,
}

impl LockTable {
    /// Those who must release or give up before `owner` may have `wanted`.
    fn blockers(&self, owner: LockOwner, wanted: &[Lock], ticket: u64) -> BTreeSet<LockOwner> {
        let mut blockers = BTreeSet::new();
        for lock in wanted {
            for ((holder, _), (held, _)) in &self.held {
                if *holder != owner && lock.conflicts(held) {
                    blockers.insert(*holder);
                }
            }
            for (_, waiter) in self.waiting.range(..ticket) {
                let conflict = waiter.wanted.iter().any(|earlier| lock.conflicts(earlier));
                if waiter.owner != owner && conflict && !self.blocks(owner, waiter) {
                    blockers.insert(waiter.owner);
                }
            }
        }
        blockers
    }

    /// Whether what `owner` holds already keeps `waiter` waiting.
    fn blocks(&self, owner: LockOwner, waiter: &Waiter) -> bool {
        let mut held = self.held.iter().filter(|((holder, _), _)| *holder == owner);
        held.any(|(_, (held, _))| waiter.wanted.iter().any(|wanted| wanted.conflicts(held)))
    }

    /// Whether `owner`, waiting for `blockers`, would wait for itself.
    fn closes_circle(&self, owner: LockOwner, blockers: &BTreeSet<LockOwner>) -> bool {
        let mut reached = blockers.clone();
        let mut to_visit: Vec<LockOwner> = blockers.iter().copied().collect();
        while let Some(blocker) = to_visit.pop() {
            for (ticket, waiter) in self.waiting.iter().filter(|(_, waiter)| waiter.owner == blocker) {
                for next in self.blockers(blocker, &waiter.wanted, *ticket) {
                    if reached.insert(next) {
                        to_visit.push(next);
                    }
                }
            }
        }
        reached.contains(&owner)
    }

    fn grant(&mut self, owner: LockOwner, wanted: &[Lock]) -> Result<()> {
        for lock in wanted {
            let count = self.held.get(&(owner, lock.name.clone())).map_or(0, |(_, count)| *count);
            if u32::try_from(wanted.len()).ok().and_then(|more| count.checked_add(more)).is_none() {
                return Err(Error::LimitReached { what: "counts of one lock", limit: u32::MAX.into() });
            }
        }
        for lock in wanted {
            let entry = self
                .held
                .entry((owner, lock.name.clone()))
                .or_insert_with(|| (Lock { exclusive: false, ..lock.clone() }, 0));
            entry.0.exclusive |= lock.exclusive;
            entry.1 += 1;
        }
        Ok(())
    }

    /// Counts a lock down; false when it is not held.
    pub(super) fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> bool {
        let place = (owner, name.to_vec());
        let Some((_, count)) = self.held.get_mut(&place) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.held.remove(&place);
        }
        true
    }
}

fn wanted(requests: &[LockRequest<'_>]) -> Result<Vec<Lock>> {
    let lock = |request: &LockRequest<'_>| {
        if request.ancestors.iter().any(|&end| usize::from(end) >= request.name.len()) {
            return Err(Error::Invalid("an ancestor's name must end inside the lock's name".to_string()));
        }
        Ok(Lock {
            name: request.name.to_vec(),
            ancestors: request.ancestors.to_vec(),
            exclusive: request.mode == LockMode::Exclusive,
        })
    };
    requests.iter().map(lock).collect()
}

impl MemorySession {
    /// Waits until `wanted` is granted; false at `until`.
    fn wait_for_locks(&self, owner: LockOwner, wanted: &[Lock], until: Option<Instant>) -> Result<bool> {
        let mut state = self.shared.lock();
        let ticket = state.new_id();
        let mut waits = true;
        let result = loop {
            let blockers = state.locks.blockers(owner, wanted, ticket);
            if blockers.is_empty() {
                break state.locks.grant(owner, wanted).map(|()| true);
            }
            if !waits || until.is_some_and(|until| until <= Instant::now()) {
                break Ok(false);
            }
            state.locks.waiting.insert(ticket, Waiter { owner, wanted: wanted.to_vec() });
            if state.locks.closes_circle(owner, &blockers) {
                break Err(Error::Deadlock);
            }
            (state, waits) = self.shared.wait(state, until);
        };
        if state.locks.waiting.remove(&ticket).is_some() {
            self.shared.changed.notify_all();
        }
        result
    }
}

impl Locks for MemorySession {
    fn new_lock_owner(&mut self) -> LockOwner {
        LockOwner(self.shared.lock().new_id())
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let wanted = wanted(requests)?;
        // Nobody may wait for a session in exclusive mode that waits for a lock.
        self.release_lease();
        let own_end = deadline(timeout);
        let transaction_end = match &self.transaction {
            Some(_) => self.series.started.checked_add(self.series.limit),
            None => None,
        };
        let until = [own_end, transaction_end].into_iter().flatten().min();
        let granted = self.wait_for_locks(owner, &wanted, until)?;
        if !granted && until != own_end {
            return Err(Error::TransactionTimeout { limit: self.series.limit, holder: None });
        }
        if let (true, Some(transaction)) = (granted, &mut self.transaction) {
            transaction.level().locks.extend(wanted.into_iter().map(|lock| (owner, lock.name)));
        }
        Ok(granted)
    }

    fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> Result<bool> {
        let held = self.shared.lock().locks.unlock(owner, name);
        self.shared.changed.notify_all();
        if let (true, Some(transaction)) = (held, &mut self.transaction) {
            transaction.forget_lock(owner, name);
        }
        Ok(held)
    }

    fn unlock_all(&mut self, owner: LockOwner) -> Result<()> {
        self.shared.lock().locks.held.retain(|(holder, _), _| *holder != owner);
        self.shared.changed.notify_all();
        if let Some(transaction) = &mut self.transaction {
            for level in &mut transaction.levels {
                level.locks.retain(|(holder, _)| *holder != owner);
            }
        }
        Ok(())
    }

    fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> Result<u32> {
        let state = self.shared.lock();
        Ok(state.locks.held.get(&(owner, name.to_vec())).map_or(0, |(_, count)| *count))
    }
}
