//! Watches: a flag each, raised by every commit that touches what is watched.

use std::collections::BTreeMap;
use std::time::Duration;

use perilune_store::{Error, Result, Watch, WatchId, WatchRequest, WatchScope};

use super::deadline;
use super::session::MemorySession;

#[derive(Debug)]
struct Registered {
    session: u64,
    requests: Vec<(Vec<u8>, WatchScope)>,
    touched: bool,
}

/// All watches of a store, by their ids.
#[derive(Debug, Default)]
pub(super) struct Watches {
    registered: BTreeMap<u64, Registered>,
}

impl Watches {
    /// A write at `key`.
    pub(super) fn touch(&mut self, key: &[u8]) {
        self.raise(|watched, scope| match scope {
            WatchScope::Key => key == watched,
            WatchScope::Prefix => key.starts_with(watched),
        });
    }

    /// The removal of all keys with `prefix`.
    pub(super) fn touch_prefix(&mut self, prefix: &[u8]) {
        self.raise(|watched, scope| {
            watched.starts_with(prefix) || (scope == WatchScope::Prefix && prefix.starts_with(watched))
        });
    }

    fn raise(&mut self, touches: impl Fn(&[u8], WatchScope) -> bool) {
        for watch in self.registered.values_mut() {
            watch.touched |= watch.requests.iter().any(|(key, scope)| touches(key, *scope));
        }
    }

    pub(super) fn drop_session(&mut self, session: u64) {
        self.registered.retain(|_, watch| watch.session != session);
    }

    fn of_session(&mut self, id: WatchId, session: u64) -> Result<&mut Registered> {
        let watch = self.registered.get_mut(&id.0).filter(|watch| watch.session == session);
        watch.ok_or_else(|| Error::Invalid(format!("this session has no watch {}: register one first", id.0)))
    }
}

impl Watch for MemorySession {
    fn watch(&mut self, requests: &[WatchRequest<'_>]) -> Result<WatchId> {
        let mut state = self.shared.lock();
        let id = state.new_id();
        let requests = requests.iter().map(|request| (request.key.to_vec(), request.scope)).collect();
        state.watches.registered.insert(id, Registered { session: self.id, requests, touched: false });
        Ok(WatchId(id))
    }

    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        if self.transaction.is_some() {
            return Err(Error::TransactionState("a transaction is open: commit or roll back before waiting"));
        }
        let until = deadline(timeout);
        let mut state = self.shared.lock();
        let mut in_time = true;
        loop {
            let watch = state.watches.of_session(id, self.id)?;
            if std::mem::take(&mut watch.touched) {
                return Ok(true);
            }
            if !in_time {
                return Ok(false);
            }
            (state, in_time) = self.shared.wait(state, until);
        }
    }

    fn watch_descriptor(&mut self, id: WatchId) -> Result<i32> {
        self.shared.lock().watches.of_session(id, self.id)?;
        Err(Error::Invalid("the memory store has no descriptors: use `wait`".to_string()))
    }

    fn unwatch(&mut self, id: WatchId) {
        let mut state = self.shared.lock();
        if state.watches.of_session(id, self.id).is_ok() {
            state.watches.registered.remove(&id.0);
        }
    }
}
