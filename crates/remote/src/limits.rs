//! The bounds of the client's half of the wire. What the server takes it says when a client comes.
//!
//! Invariant: what is kept of a server's answers is bounded, whoever the server is.

/// Bytes of a string at most, of any server.
pub const VALUE_BYTES: usize = 512 << 20;

/// Bytes of the reads and writes of a transaction at most.
pub const TRANSACTION_BYTES: usize = 256 << 20;

/// Reads and writes of a transaction at most: each is up to five arguments of one request.
pub const TRANSACTION_READS: usize = 200_000;

/// Bytes of an answer that a client takes at most.
pub const ANSWER_BYTES: usize = VALUE_BYTES + (1 << 20);
