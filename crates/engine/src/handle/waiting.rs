//! Locks, watches and messages of a session.

use std::time::{Duration, Instant};

use perilune_store::{
    ChannelOptions, Error, LockOwner, LockRequest, Locks, Message, Messages, Result, Watch, WatchId,
    WatchRequest,
};

use super::Session;
use crate::message;

/// A lock counted up inside a transaction, to be counted down if its level is rolled back.
pub(super) struct LockTaken {
    pub(super) level: usize,
    owner: LockOwner,
    name: Vec<u8>,
}

/// A message to be posted with the commit.
pub(super) struct Posted {
    pub(super) level: usize,
    pub(super) name: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Session {
    /// Releases the locks taken inside the levels from `level` on.
    pub(super) fn release_locks_of(&mut self, level: usize) {
        while self.locks_taken.last().is_some_and(|taken| taken.level >= level) {
            if let Some(taken) = self.locks_taken.pop() {
                // A lock whose release fails goes with its owner at the latest.
                let _ = self.facilities.locks.unlock(&self.access, taken.owner, &taken.name);
            }
        }
    }

    /// The level's locks and messages become those of the level around it.
    pub(super) fn merge_waiting_of(&mut self, level: usize) {
        self.locks_taken.iter_mut().for_each(|taken| taken.level = taken.level.min(level - 1));
        self.posted.iter_mut().for_each(|posted| posted.level = posted.level.min(level - 1));
    }

    fn no_transaction(&self) -> Result<()> {
        match self.running {
            Some(_) => Err(Error::TransactionState(
                "waiting is not possible inside a transaction: commit first, or ask with timeout 0",
            )),
            None => Ok(()),
        }
    }
}

impl Locks for Session {
    fn new_lock_owner(&mut self) -> LockOwner {
        // In a forked child the first operation moves the session over.
        let _ = self.here();
        self.facilities.locks.new_owner()
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.here_to_write()?;
        self.take_over()?;
        let Some(running) = &mut self.running else {
            return self.facilities.locks.lock(&self.access, owner, requests, timeout, None);
        };
        running.txn.drop_lease();
        let limit = running.series.deadline();
        let granted = self.facilities.locks.lock(&self.access, owner, requests, timeout, Some(limit))?;
        let level = running.txn.overlay.depth();
        if granted {
            self.locks_taken.extend(requests.iter().map(|request| LockTaken {
                level,
                owner,
                name: request.name.to_vec(),
            }));
        } else if Instant::now() >= limit {
            return Err(running.series.timeout());
        }
        Ok(granted)
    }

    fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> Result<bool> {
        self.here_to_write()?;
        let released = self.facilities.locks.unlock(&self.access, owner, name)?;
        if released {
            let same = |taken: &LockTaken| taken.owner == owner && taken.name == name;
            if let Some(at) = self.locks_taken.iter().rposition(same) {
                self.locks_taken.remove(at);
            }
        }
        Ok(released)
    }

    fn unlock_all(&mut self, owner: LockOwner) -> Result<()> {
        if !self.mark.is_same_process() {
            // A forked child holds nothing yet, and to find that out it need not attach.
            return Ok(());
        }
        self.here_to_write()?;
        self.locks_taken.retain(|taken| taken.owner != owner);
        self.facilities.locks.unlock_all(&self.access, owner)
    }

    fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> Result<u32> {
        self.here()?;
        if self.access.seat.image.read_only {
            // A reader holds no locks; on read-only media there is no volatile tree to ask either.
            return Ok(0);
        }
        self.facilities.locks.count(&self.access, owner, name)
    }
}

impl Watch for Session {
    fn watch(&mut self, requests: &[WatchRequest<'_>]) -> Result<WatchId> {
        self.here_to_write()?;
        self.watches.watch(&self.access, requests)
    }

    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        self.here_to_write()?;
        self.no_transaction()?;
        self.watches.wait(id, timeout)
    }

    fn watch_descriptor(&mut self, id: WatchId) -> Result<i32> {
        self.here_to_write()?;
        self.watches.descriptor(id)
    }

    fn unwatch(&mut self, id: WatchId) {
        if self.here().is_ok() {
            self.watches.unwatch(id);
        }
    }
}

impl Messages for Session {
    fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> Result<()> {
        self.here_to_write()?;
        self.take_over()?;
        message::create_channel(&self.access, name, options)
    }

    fn post(&mut self, name: &[u8], body: &[u8]) -> Result<u64> {
        self.here_to_write()?;
        self.take_over()?;
        let Some(running) = &self.running else { return message::post(&self.access, name, body) };
        if running.options.read_only {
            return Err(Error::ReadOnly);
        }
        message::check_post(name, body)?;
        let level = running.txn.overlay.depth();
        self.posted.push(Posted { level, name: name.to_vec(), body: body.to_vec() });
        Ok(0)
    }

    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        self.here_to_write()?;
        self.take_over()?;
        let Session { access, watches, running, .. } = self;
        let Some(running) = running else { return message::receive(access, watches, name, timeout) };
        if running.options.read_only {
            return Err(Error::ReadOnly);
        }
        let message = message::receive_in(access, &mut running.txn, name)?;
        if message.is_none() && timeout != Some(Duration::ZERO) {
            self.no_transaction()?;
        }
        Ok(message)
    }

    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        self.here_to_write()?;
        self.take_over()?;
        let Session { access, watches, running, .. } = self;
        let Some(running) = running else { return message::follow(access, watches, name, after, timeout) };
        let message = message::follow_in(access, &mut running.txn, name, after)?;
        if message.is_none() && timeout != Some(Duration::ZERO) {
            self.no_transaction()?;
        }
        Ok(message)
    }

    fn remove_channel(&mut self, name: &[u8]) -> Result<()> {
        self.here_to_write()?;
        message::remove_channel(&self.access, name)
    }
}
