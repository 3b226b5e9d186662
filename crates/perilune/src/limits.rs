//! The limits of the public API, in one place. What the back end takes is read from it
//! ([`crate::Database::limits`]); these are the ones this crate enforces itself.

pub use perilune_key::{
    MAX_ENCODED as KEY_BYTES, MAX_ENCODED_LOCAL as LOCAL_KEY_BYTES, MAX_NAME as NAME_BYTES,
    MAX_SUBSCRIPT as SUBSCRIPT_BYTES, MAX_SUBSCRIPTS as SUBSCRIPTS,
};

/// Bytes of a string at most.
pub const VALUE_BYTES: usize = 512 << 20;

/// Bytes of the name of a channel at most.
pub const CHANNEL_NAME_BYTES: usize = 255;

/// Places that one watch watches at most.
pub const WATCH_PLACES: usize = 1_024;

/// Locks that one call takes at most.
pub const LOCKS_PER_CALL: usize = 1_024;

/// Faults that [`crate::VerifyReport`] keeps at most.
pub const FAULTS_REPORTED: usize = 1_000;

/// Bytes of the reads and writes of a transaction of a database behind a server at most.
pub const WIRE_TRANSACTION_BYTES: usize = 256 << 20;

/// Reads and writes of such a transaction at most: each is up to five arguments of one request.
pub const WIRE_TRANSACTION_READS: usize = 200_000;

/// Bytes of an answer of a server that a client takes at most.
pub const WIRE_ANSWER_BYTES: usize = VALUE_BYTES + (1 << 20);

/// Owners of locks that one connection to a server has at most.
pub const REMOTE_LOCK_OWNERS: usize = 1_024;

/// Watches that one connection to a server has at most.
pub const REMOTE_WATCHES: usize = 64;
