//! Where a client is: the one address by which loops and other threads reach it.
//!
//! Example: an answer for loop 1, connection 7, client 42 is thrown away if connection 7 is another client's by now.
//!
//! Invariant: no two clients of a server have the same number.

/// Where a client is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seat {
    /// Which event loop.
    pub thread: usize,
    /// Which of its connections; taken again by another client when this one is gone.
    pub token: usize,
    /// The client's number.
    pub client: i64,
}
