//! The facet `Watch`: a session registers watches, and sleeps until the flag of one is raised; the wait lowers it
//! again.

use std::time::Duration;

use perilune_store::{Error, Result, Watch, WatchId, WatchRequest};

use crate::session::MemorySession;
use crate::state::deadline;
use crate::watch_table::Registered;

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
