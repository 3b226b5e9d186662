//! A session of the memory store: the map's operations and the transaction's life.
//!
//! Invariants
//! - A single read looks at the committed state; a single write runs as a transaction of one.
//! - No foreign code (change functions, hooks) runs while the state's mutex is held.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_store::{
    page_by_steps, transact, Added, Addition, Change, CommitHook, Decision, Error, Page, Presence, Result,
    Session, Span, TransactionOptions, Transactions, UpdateBuffer, TRIES_BEFORE_EXCLUSIVE,
};

use crate::fault::Fault;
use crate::hook::HookView;
use crate::overlay::Overlay;
use crate::query::{Answer, Query};
use crate::state::{Shared, State};
use crate::transaction::Transaction;

pub(crate) const NO_TRANSACTION: Error = Error::TransactionState("no transaction is open: begin one first");

/// One thread's access to a [`crate::MemoryStore`].
pub struct MemorySession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: u64,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) series: Series,
    pub(crate) hook: Option<CommitHook>,
}

/// The tries of one transaction.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) started: Instant,
    /// The time limit of all its tries and waits together.
    pub(crate) limit: Duration,
    pub(crate) failures: u32,
    /// The next begin is one more try of this series.
    pub(crate) continues: bool,
    /// Those of its last begin.
    pub(crate) options: TransactionOptions,
}

impl Series {
    pub(crate) fn new() -> Self {
        let options = TransactionOptions::default();
        Series { started: Instant::now(), limit: Duration::MAX, failures: 0, continues: false, options }
    }
}

impl fmt::Debug for MemorySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySession").field("id", &self.id).field("depth", &self.depth()).finish()
    }
}

impl MemorySession {
    pub(crate) fn new(shared: Arc<Shared>, id: u64) -> Self {
        MemorySession { shared, id, transaction: None, series: Series::new(), hook: None }
    }

    /// Runs a read in the open transaction, or `alone` against the committed state.
    fn read<R>(
        &mut self,
        inside: impl FnOnce(&mut Transaction, &State) -> Result<R>,
        alone: impl FnOnce(&State) -> R,
    ) -> Result<R> {
        let state = self.shared.lock();
        match &mut self.transaction {
            Some(transaction) => inside(transaction, &state),
            None => Ok(alone(&state)),
        }
    }

    /// The overlay to write in; a transaction is open.
    pub(crate) fn overlay(&mut self) -> Result<&mut Overlay> {
        let transaction = self.transaction.as_mut().ok_or(NO_TRANSACTION)?;
        Ok(&mut transaction.writable()?.overlay)
    }

    pub(crate) fn check_key(&self, key: &[u8], extra: usize) -> Result<()> {
        let limit = self.shared.limits.key_bytes;
        if key.len() > limit + extra {
            return Err(Error::KeyTooLong { bytes: key.len(), limit });
        }
        Ok(())
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let limit = self.shared.limits.value_bytes;
        if value.len() > limit {
            return Err(Error::ValueTooLong { bytes: value.len(), limit });
        }
        Ok(())
    }

    pub(crate) fn release_lease(&mut self) {
        let mut state = self.shared.lock();
        if state.lease.is_some_and(|lease| lease.session == self.id) {
            state.lease = None;
            self.shared.changed.notify_all();
        }
    }

    /// Drops the innermost level and its locks.
    pub(crate) fn drop_level(&mut self) -> Result<()> {
        let transaction = self.transaction.as_mut().ok_or(NO_TRANSACTION)?;
        let level = transaction.levels.pop().expect("an open transaction has a level");
        let outermost = transaction.levels.is_empty();
        let mut state = self.shared.lock();
        if state.fault == Some(Fault::KeptPosts) {
            state.channels.change(&[], &level.posts)?;
        }
        if state.fault != Some(Fault::KeptLocks) {
            for (owner, name) in level.locks {
                state.locks.unlock(owner, &name);
            }
        }
        drop(state);
        self.shared.changed.notify_all();
        if outermost {
            self.transaction = None;
            self.release_lease();
        }
        Ok(())
    }

    pub(crate) fn run_hook(&mut self) -> Result<()> {
        let (Some(hook), Some(transaction)) = (&mut self.hook, &mut self.transaction) else {
            return Ok(());
        };
        if transaction.level().overlay.is_empty() {
            return Ok(());
        }
        hook(&mut HookView { transaction, shared: &self.shared })
    }

    /// Validates and applies the outermost level.
    pub(crate) fn publish(&mut self) -> Result<()> {
        let transaction = self.transaction.as_mut().ok_or(NO_TRANSACTION)?;
        let level = transaction.level();
        let writes = !(level.overlay.is_empty() && level.posts.is_empty() && level.taken.is_empty());
        let mut state = self.shared.lock();
        if writes {
            state = self.shared.wait_for_lease(state, self.id);
        }
        if state.fault != Some(Fault::BlindCommits) {
            transaction.check(&state)?;
        }
        if writes {
            let level = transaction.level();
            // NB: the channels refuse before anything is changed.
            state.channels.change(&level.taken, &level.posts)?;
            std::mem::take(&mut level.overlay).apply(&mut state);
            state.version += 1;
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    pub(crate) fn exclusive(&self) -> bool {
        self.series.failures >= TRIES_BEFORE_EXCLUSIVE
    }
}

fn copy(answer: Answer, key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> bool {
    let Some((found_key, found_value)) = answer else {
        return false;
    };
    *key = found_key;
    if let Some(value) = value {
        *value = found_value;
    }
    true
}

impl Session for MemorySession {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.check_key(key, 0)?;
        let found = self.read(|t, state| t.get(state, key), |state| state.map.get(key).cloned())?;
        Ok(found.map(|found| *value = found).is_some())
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        self.check_key(key, 0)?;
        self.read(
            |t, state| t.presence(state, key),
            |state| Presence {
                value: state.map.contains_key(key),
                descendants: Query::Descendants(key.to_vec()).run(state).is_some(),
            },
        )
    }

    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.check_key(from, 1)?;
        let with_value = value.is_some();
        let found = self.read(
            |t, state| t.next(state, from, inclusive, with_value),
            |state| Query::Next { from: from.to_vec(), inclusive, with_value }.run(state),
        )?;
        Ok(copy(found.filter(|(key, _)| end.is_empty() || key.as_slice() < end), key, value))
    }

    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.check_key(from, 1)?;
        let with_value = value.is_some();
        let found = self.read(
            |t, state| t.previous(state, from, with_value),
            |state| Query::Previous { from: from.to_vec(), with_value }.run(state),
        )?;
        Ok(copy(found.filter(|(key, _)| key.as_slice() >= begin), key, value))
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        page_by_steps(self, span, with_values, page)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key(key, 0)?;
        self.check_value(value)?;
        if self.depth() == 0 {
            return transact(self, &TransactionOptions::default(), |session| session.set(key, value));
        }
        self.overlay()?.write(key, Some(value));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.check_key(key, 0)?;
        if self.depth() == 0 {
            return transact(self, &TransactionOptions::default(), |session| session.remove(key));
        }
        self.overlay()?;
        let found = self.get(key, &mut Vec::new())?;
        self.overlay()?.write(key, None);
        Ok(found)
    }

    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.check_key(prefix, 0)?;
        if self.depth() == 0 {
            return transact(self, &TransactionOptions::default(), |session| session.remove_prefix(prefix));
        }
        self.overlay()?.remove_prefix(prefix);
        Ok(())
    }

    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added> {
        self.update(key, addition.sum).map(|()| Added::Here)
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        self.check_key(key, 0)?;
        if self.depth() == 0 {
            return transact(self, &TransactionOptions::default(), |session| session.update(key, change));
        }
        self.overlay()?;
        let mut value = Vec::new();
        let found = self.get(key, &mut value)?;
        value.truncate(self.shared.limits.update_bytes);
        let mut buffer: UpdateBuffer = [0; 64];
        match change(found.then_some(&value[..]), &mut buffer)? {
            Decision::Keep => {}
            Decision::Remove => self.overlay()?.write(key, None),
            Decision::Write(bytes) => {
                let new = buffer.get(..bytes).ok_or_else(|| {
                    Error::Invalid(format!("an update writes at most {} bytes, not {bytes}", buffer.len()))
                })?;
                self.overlay()?.write(key, Some(new));
            }
        }
        Ok(())
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.check_key(key, 0)?;
        self.check_value(new.unwrap_or_default())?;
        if self.depth() == 0 {
            let options = TransactionOptions::default();
            return transact(self, &options, |session| session.compare_and_set(key, expected, new));
        }
        self.overlay()?;
        let mut value = Vec::new();
        let found = self.get(key, &mut value)?;
        let matches = found.then_some(&value[..]) == expected;
        if matches {
            self.overlay()?.write(key, new);
        }
        Ok(matches)
    }

    fn set_commit_hook(&mut self, hook: Option<CommitHook>) {
        self.hook = hook;
    }
}

impl Drop for MemorySession {
    fn drop(&mut self) {
        while self.transaction.is_some() && self.drop_level().is_ok() {}
        self.shared.lock().watches.drop_session(self.id);
    }
}
