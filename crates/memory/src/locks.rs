//! The facet `Locks`: a session asks the table for locks and sleeps until it gets them.
//!
//! Inside a transaction a lock belongs to its level, so that a rollback releases it. The time limit of the
//! transaction also bounds the wait.

use std::time::{Duration, Instant};

use perilune_store::{Error, LockOwner, LockRequest, Locks, Result};

use crate::lock_table::{wanted, Lock, Waiter};
use crate::session::MemorySession;
use crate::state::deadline;

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
