//! What all sessions of a store share: the map, the tables of locks, watches and channels, and the one mutex around
//! them.
//!
//! Also the wait of all waits: on the one condition variable, until a moment, to look again; and the lease of a
//! session in exclusive mode, for which commits of others wait a second at most.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use perilune_store::Limits;

use crate::channels::Channels;
use crate::fault::Fault;
use crate::lock_table::LockTable;
use crate::watch_table::Watches;

/// How long others wait for a session in exclusive mode before they go on without it.
const LEASE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    /// Waits for any change of the state; false when `until` has passed first.
    pub(crate) fn wait<'a>(
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
    pub(crate) fn wait_for_lease<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        id: u64,
    ) -> MutexGuard<'a, State> {
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
pub(crate) struct Lease {
    pub(crate) session: u64,
    pub(crate) since: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) fault: Option<Fault>,
    pub(crate) map: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) version: u64,
    pub(crate) ids: u64,
    pub(crate) lease: Option<Lease>,
    pub(crate) locks: LockTable,
    pub(crate) watches: Watches,
    pub(crate) channels: Channels,
}

impl State {
    /// A number used for nothing else: sessions, lock owners, watches.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }
}

/// The moment `timeout` from now; None for a wait without end.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
