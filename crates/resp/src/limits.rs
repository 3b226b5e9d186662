//! The bounds of the wire format, in one place: what a client may send, and less of it as long as nobody knows who it is.
//!
//! Invariant: each is looked at before memory is taken for what it bounds.

/// Bytes of an inline request, and of a line that announces a length.
pub const LINE_BYTES: usize = 64 << 10;

/// Bytes of one argument.
pub const BULK_BYTES: usize = 512 << 20;

/// Bytes of one string of an answer: a value of ours has a byte for its type besides.
pub const ANSWER_BYTES: usize = BULK_BYTES + 1;

/// Arguments of one request.
pub const ARGUMENTS: usize = 1 << 20;

/// Bytes of one request with all its arguments.
pub const REQUEST_BYTES: usize = 1 << 30;

/// Arguments of a request whose sender has not given the password.
pub const ARGUMENTS_STRANGER: usize = 10;

/// Bytes of one argument of such a request.
pub const BULK_BYTES_STRANGER: usize = 16 << 10;

/// Levels of arrays in an answer that a client reads.
pub const ANSWER_DEPTH: usize = 64;
