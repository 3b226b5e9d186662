//! Many commits, one wait for the disk: a server that answers many clients at once waits once for all of them.

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
