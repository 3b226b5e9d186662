//! [`MemoryStore`]: makes sessions, and says which limits hold.

use std::sync::{Arc, Condvar, Mutex};

use perilune_store::{Absent, Limits, Result, Store};

use crate::fault::Fault;
use crate::session::MemorySession;
use crate::state::{Shared, State};

/// A store in the memory of this process. Clones share one map.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with(State::default())
    }

    /// An empty store with a known bug.
    #[must_use]
    pub fn with_fault(fault: Fault) -> Self {
        Self::with(State { fault: Some(fault), ..State::default() })
    }

    fn with(state: State) -> Self {
        let limits = Limits {
            key_bytes: 1_900,
            value_bytes: 16 << 20,
            update_bytes: 64,
            transaction_depth: 64,
            transaction_bytes: None,
            transaction_operations: None,
            transaction_time: None,
            exclusive_mode: true,
            shared_owners: true,
        };
        MemoryStore { shared: Arc::new(Shared { limits, state: Mutex::new(state), changed: Condvar::new() }) }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    type Session = MemorySession;
    type Snapshots = Absent;
    type Reports = Absent;

    fn session(&self) -> Result<MemorySession> {
        let id = self.shared.lock().new_id();
        Ok(MemorySession::new(Arc::clone(&self.shared), id))
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn snapshots(&self) -> Option<&Absent> {
        None
    }

    fn reports(&self) -> Option<&Absent> {
        None
    }
}
