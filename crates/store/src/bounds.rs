//! What one session may take: memory, time, bytes of a read. The facet of back ends whose sessions share memory and pages with
//! others, and which can therefore be asked to take less.

use std::time::Duration;

/// The facet of a session whose appetite can be bounded.
pub trait Bounds {
    /// From now on (or, with false, no longer) what is written frees space on the whole, and may use what the store
    /// keeps for that on a full disk. Removals by themselves may do so anyhow.
    fn free_up(&mut self, frees: bool);

    /// From now on an operation that would read more bytes of a long value than these answers [`crate::Error::LongRead`]
    /// instead, in time that does not depend on the value; 0: none does. For who may not be kept for long.
    fn limit_reads(&mut self, bytes: usize);

    /// Whether there is such a limit, and it lies below `bytes`.
    fn is_beyond(&self, bytes: usize) -> bool;

    /// Gives back memory of buffers that have more bytes than these.
    fn shrink(&mut self, bytes: usize);

    /// Changes how long each wait for a page that another session holds may take, until it is [`crate::Error::Busy`]. A
    /// transaction's own limit counts beside it. Where nobody holds anything that says nothing.
    fn set_wait_limit(&mut self, limit: Duration);

    /// What [`Bounds::set_wait_limit`] has set, or the store's own.
    fn wait_limit(&self) -> Duration;

    /// Bytes of memory that the writes of the open transaction take, about.
    fn pending_bytes(&self) -> usize;

    /// From now on, in whatever transaction, a write that would make these more than so many is refused: it is
    /// `LimitReached`, and the transaction goes on without it.
    fn limit_pending(&mut self, bytes: usize);
}
