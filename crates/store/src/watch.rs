//! Waiting, without polling, until somebody's commit touches a key or a subtree.
//!
//! Example: a program reads `^config`, watches its subtree, and waits; another one changes `^config("limit")`, and the
//! first wakes, reads again, and waits again. To miss nothing it watches first, and reads then.
//!
//! Invariant: a commit that begins when the watch is there is noticed. One that touches nothing of it may be noticed, too:
//! who wakes compares what it reads.
//!
//! Deliberately absent: what was changed, and how often. Between two waits many commits are one touch.

use std::time::Duration;

use crate::Result;

/// What counts as a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchScope {
    /// The key itself.
    Key,
    /// Every key that begins with it.
    Prefix,
}

/// One place to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchRequest<'a> {
    /// The key or prefix; it holds at least a first component.
    pub key: &'a [u8],
    /// The key or all below it.
    pub scope: WatchScope,
}

/// A registered watch of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchId(pub u64);

/// Watches of a session. They die with it, and with its process.
pub trait Watch {
    /// Registers a watch. Every commit that begins after this returns and touches one of `requests`
    /// is noticed; a commit that touches nothing of them may be reported too (compare what you read).
    ///
    /// # Errors
    /// `LimitReached`, `ReadOnly`.
    fn watch(&mut self, requests: &[WatchRequest<'_>]) -> Result<WatchId>;

    /// Waits for a touch since the registration or the last answer `true`; false after `timeout`
    /// (None: for ever). Not allowed inside a transaction.
    ///
    /// # Errors
    /// `TransactionState`, `Invalid` for an unknown id.
    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool>;

    /// A file descriptor that becomes readable when [`Watch::wait`] would answer true; it lives as
    /// long as the watch. Read 8 bytes (or call `wait` with zero) to clear it.
    ///
    /// # Errors
    /// I/O when no descriptor is to be had.
    fn watch_descriptor(&mut self, id: WatchId) -> Result<i32>;

    /// Ends a watch.
    fn unwatch(&mut self, id: WatchId);
}
