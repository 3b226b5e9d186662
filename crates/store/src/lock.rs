//! The user's locks: named, hierarchical, counted, exclusive or shared, gone with their owner.
//!
//! Programs agree by name on who may do something, for longer than a transaction lasts. A name is a node's key, and need
//! not have a value. A lock on it excludes locks on its ancestors and on what lies below it.
//!
//! Example: who holds `^person(21)` keeps others from `^person(21,"name")` and from `^person`, and nobody from
//! `^person(22)`.
//!
//! Invariants
//! - Several locks asked for together are granted together, or none is.
//! - A circle of owners that wait for each other is broken: one of them is answered `Deadlock`.
//! - The locks of a process that has died, or of a connection that has ended, are free.
//!
//! Deliberately absent: keeping anybody from reading or writing. Locks bind who asks for them.

use std::time::Duration;

use crate::Result;

/// Who holds locks: a handle of a process. Locks of one owner never exclude each other.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockOwner(pub u64);

/// Whether others may hold the lock too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Nobody else.
    Exclusive,
    /// Others that ask for shared as well.
    Shared,
}

/// One lock asked for. A lock on a name excludes its ancestors and its descendants.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest<'a> {
    /// The name, in the key's encoding.
    pub name: &'a [u8],
    /// Where in `name` the encoding of each proper ancestor ends, ascending.
    pub ancestors: &'a [u16],
    /// Exclusive or shared.
    pub mode: LockMode,
}

/// Locks of a session.
pub trait Locks {
    /// A new owner of this process, for handles that keep locks of their own.
    fn new_lock_owner(&mut self) -> LockOwner;

    /// Takes all of `requests` or none, waiting up to `timeout` (None: for ever; zero: one attempt);
    /// false when they were not to be had in time. A lock already held by `owner` is counted up.
    /// Taken inside a transaction, it is released when that level is rolled back; it survives commit.
    ///
    /// # Errors
    /// `Deadlock`: granting would close a circle; `LimitReached` beyond the highest count.
    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool>;

    /// Counts the lock of `owner` on `name` down and releases it at zero; false when it is not held.
    ///
    /// # Errors
    /// I/O only.
    fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> Result<bool>;

    /// Releases every lock of `owner`.
    ///
    /// # Errors
    /// I/O only.
    fn unlock_all(&mut self, owner: LockOwner) -> Result<()>;

    /// How often `owner` holds `name` (0: not).
    ///
    /// # Errors
    /// I/O only.
    fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> Result<u32>;
}
