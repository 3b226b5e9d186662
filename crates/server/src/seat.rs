//! Where a client is: the one address by which loops and other threads reach it.

/// Where a client is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seat {
    /// Which event loop.
    pub(crate) thread: usize,
    /// Which of its connections; taken again by another client when this one is gone.
    pub(crate) token: usize,
    /// The client's number.
    pub(crate) client: i64,
}
