//! A trivial, obviously correct implementation of the contract in the memory of one process.
//!
//! Invariants
//! - All state lies behind one mutex; whoever changes it notifies the one condition variable, and
//!   whoever waits looks again at what it waits for.
//! - `version` grows with every commit, so a transaction that sees the version it knows needs no check.
//! - A transaction's reads are kept as queries with their answers. They still hold when every query,
//!   run again, gives the same answer: that is checked before each further read and at commit, so no
//!   body ever sees halves of two states.
//! - Only a commit changes the map; a single write is a transaction of one.
//!
//! Deliberately absent: speed, durability, other processes, descriptors for watches.

mod channels;
mod facets;
mod fault;
mod locks;
mod messages;
mod overlay;
mod probed;
mod query;
mod session;
mod transaction;
mod watches;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use perilune_store::{Absent, Limits, Result, Store};

use channels::Channels;
use locks::LockTable;
use watches::Watches;

pub use fault::Fault;
pub use session::MemorySession;

/// How long others wait for a session in exclusive mode before they go on without it.
const LEASE: Duration = Duration::from_secs(1);

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

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    /// Waits for any change of the state; false when `until` has passed first.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> (MutexGuard<'a, State>, bool) {
        const WHOLE: &str = "no thread panics while it holds the state";
        let Some(until) = until else {
            return (self.changed.wait(state).expect(WHOLE), true);
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, false);
        }
        (self.changed.wait_timeout(state, left).expect(WHOLE).0, true)
    }

    /// Waits until no other session than `id` is in exclusive mode, or takes the mode from one that
    /// keeps it too long.
    fn wait_for_lease<'a>(&self, mut state: MutexGuard<'a, State>, id: u64) -> MutexGuard<'a, State> {
        while let Some(lease) = state.lease {
            if lease.session == id {
                break;
            }
            let in_time;
            (state, in_time) = self.wait(state, Some(lease.since + LEASE));
            if !in_time && state.lease == Some(lease) {
                state.lease = None;
            }
        }
        state
    }
}

/// The session in exclusive mode: others' commits wait for it, but correctness never rests on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    session: u64,
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    fault: Option<Fault>,
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    version: u64,
    ids: u64,
    lease: Option<Lease>,
    locks: LockTable,
    watches: Watches,
    channels: Channels,
}

impl State {
    /// A number used for nothing else: sessions, lock owners, watches.
    fn new_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }
}

/// The moment `timeout` from now; None for a wait without end.
fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
