//! What one session may take: memory, time, bytes of a read.
//!
//! A server's event loop must not be kept by one client: not by a page that somebody else holds, not by a value of 500 MB,
//! not by a transaction that fills the memory. Its session is told bounds, and an operation beyond one of them answers an
//! error at once, so that the server can run the command elsewhere.
//!
//! Example: with `limit_reads(65_536)` a `get` of a longer value answers [`crate::Error::LongRead`].
//!
//! Invariant: an operation that was refused has done nothing.
//!
//! Deliberately absent from back ends that share neither memory nor pages with others.

use std::time::Duration;

/// The facet of a session whose appetite can be bounded.
pub trait Bounds {
    /// Says that from now on (or, with false, no longer) the writes of this session free space on the whole. On a full disk
    /// such writes may use the room that the store keeps for them. A single removal may use it anyhow.
    fn free_up(&mut self, frees: bool);

    /// From now on an operation that would read more bytes of a long value than these answers [`crate::Error::LongRead`]
    /// instead, in time that does not depend on the value; 0: none does. For who may not be kept for long.
    fn limit_reads(&mut self, bytes: usize);

    /// Whether [`Bounds::limit_reads`] has set a limit below `bytes`.
    fn is_beyond(&self, bytes: usize) -> bool;

    /// Gives back memory of buffers that have more bytes than these.
    fn shrink(&mut self, bytes: usize);

    /// Changes how long each wait for a page that another session holds may take, until it is [`crate::Error::Busy`]. A
    /// transaction's own limit counts beside it. Has no effect in a store whose sessions hold no pages.
    fn set_wait_limit(&mut self, limit: Duration);

    /// What [`Bounds::set_wait_limit`] has set, or the store's own.
    fn wait_limit(&self) -> Duration;

    /// Bytes of memory that the writes of the open transaction take, about.
    fn pending_bytes(&self) -> usize;

    /// From now on, in every transaction, a write after which [`Bounds::pending_bytes`] would exceed `bytes` is refused with
    /// `LimitReached`; the transaction goes on without it.
    fn limit_pending(&mut self, bytes: usize);
}
