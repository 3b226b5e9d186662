//! The table of locks and of those who wait for them.
//!
//! A lock has a name and knows which prefixes of it are its ancestors, so that a lock of `^person` conflicts with
//! one of `^person(21)`. Those who wait are in the order of their tickets.
//!
//! Invariants
//! - Two entries of different owners on one name, or on a name and its ancestor, are both shared.
//! - A waiter also waits for every earlier waiter that it conflicts with, so that nobody starves. Exception: an
//!   earlier waiter that waits for what this owner holds already; letting this owner pass does not delay that one
//!   further.
//! - No owner ever waits for itself through others: whoever would close the circle gets `Deadlock`.

use std::collections::{BTreeMap, BTreeSet};

use perilune_store::{Error, LockMode, LockOwner, LockRequest, Result};

/// A lock, held or asked for.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    pub(crate) name: Vec<u8>,
    ancestors: Vec<u16>,
    exclusive: bool,
}

impl Lock {
    pub(crate) fn descends_from(&self, name: &[u8]) -> bool {
        self.ancestors.iter().any(|&end| self.name[..usize::from(end)] == *name)
    }

    pub(crate) fn conflicts(&self, other: &Lock) -> bool {
        let related =
            self.name == other.name || self.descends_from(&other.name) || other.descends_from(&self.name);
        related && (self.exclusive || other.exclusive)
    }
}

#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) owner: LockOwner,
    pub(crate) wanted: Vec<Lock>,
}

/// All locks of a store.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    pub(crate) held: BTreeMap<(LockOwner, Vec<u8>), (Lock, u32)>,
    /// By ticket: earlier ones come first.
    pub(crate) waiting: BTreeMap<u64, Waiter>,
}

impl LockTable {
    /// Those who must release or give up before `owner` may have `wanted`.
    pub(crate) fn blockers(&self, owner: LockOwner, wanted: &[Lock], ticket: u64) -> BTreeSet<LockOwner> {
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
    pub(crate) fn blocks(&self, owner: LockOwner, waiter: &Waiter) -> bool {
        let mut held = self.held.iter().filter(|((holder, _), _)| *holder == owner);
        held.any(|(_, (held, _))| waiter.wanted.iter().any(|wanted| wanted.conflicts(held)))
    }

    /// Whether `owner`, waiting for `blockers`, would wait for itself.
    pub(crate) fn closes_circle(&self, owner: LockOwner, blockers: &BTreeSet<LockOwner>) -> bool {
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

    pub(crate) fn grant(&mut self, owner: LockOwner, wanted: &[Lock]) -> Result<()> {
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
    pub(crate) fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> bool {
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

pub(crate) fn wanted(requests: &[LockRequest<'_>]) -> Result<Vec<Lock>> {
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
