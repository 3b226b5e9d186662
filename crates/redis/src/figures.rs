//! Counters of a server: clients, keys, traffic. What becomes of them is for `published` to say.
//!
//! Invariant: counting one costs an addition, and nobody waits for it.

use std::sync::atomic::AtomicU64;

/// Counters of this server; each thread adds to them, so that nothing that commands read lies in their lines of
/// the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Figures {
    pub(crate) connected: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) swept: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) evicted_clients: AtomicU64,
    /// Of CLIENT TRACKING: clients, keys that they keep, and how many keep each, added up; prefixes of BCAST.
    pub(crate) tracking_clients: AtomicU64,
    pub(crate) tracked_keys: AtomicU64,
    pub(crate) tracked_items: AtomicU64,
    pub(crate) tracked_prefixes: AtomicU64,
    /// Commands in the last second, and bytes that came and went.
    pub(crate) commands_each_second: AtomicU64,
    pub(crate) came_each_second: AtomicU64,
    pub(crate) went_each_second: AtomicU64,
}
