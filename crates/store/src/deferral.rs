//! Many commits, one wait for the disk.
//!
//! At level `fsync` each commit waits for the disk, some hundred microseconds. A server that answers a hundred clients in
//! one round would wait a hundred times in a row. It defers instead: the commits of a round do not wait, then it settles
//! once, and then the replies leave.
//!
//! Example: `defer(true)`, any number of writes, `settle()`.
//!
//! Invariant: what was written and is not settled can be seen by others, and must not be told as durable.
//!
//! A store in memory has nothing to wait for, and one behind a server is answered when that server's own round has settled:
//! both name [`crate::Absent`].

use crate::Result;

/// The facet of a session that can leave the wait for durability to later.
pub trait Deferral {
    /// From now on (or, with false, no longer) writes and commits do not wait until they are durable: the next
    /// [`Deferral::settle`] waits for all of them at once. What waits for nothing is not changed by this.
    fn defer(&mut self, deferring: bool);

    /// Whether something has been written that [`Deferral::settle`] has to wait for.
    fn is_unsettled(&self) -> bool;

    /// Waits until all that was written since [`Deferral::defer`] is as durable as it was to be.
    ///
    /// # Errors
    /// `NotDurable`: it has happened, but is not on disk; told once.
    fn settle(&mut self) -> Result<()>;
}
