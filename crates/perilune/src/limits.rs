//! The limits of the public API, in one place. What the back end takes is read from it
//! ([`crate::Database::limits`]); these are the ones this crate enforces itself.

pub use perilune_key::{
    MAX_ENCODED as KEY_BYTES, MAX_ENCODED_LOCAL as LOCAL_KEY_BYTES, MAX_NAME as NAME_BYTES,
    MAX_SUBSCRIPT as SUBSCRIPT_BYTES, MAX_SUBSCRIPTS as SUBSCRIPTS,
};
pub use perilune_remote::limits::VALUE_BYTES;

/// Bytes of the name of a channel at most.
pub const CHANNEL_NAME_BYTES: usize = 255;

/// Places that one watch watches at most.
pub const WATCH_PLACES: usize = 1_024;

/// Locks that one call takes at most.
pub const LOCKS_PER_CALL: usize = 1_024;

/// Faults that [`crate::VerifyReport`] keeps at most.
pub const FAULTS_REPORTED: usize = 1_000;

/// Owners of locks that one connection to a server has at most.
pub const REMOTE_LOCK_OWNERS: usize = 1_024;

/// Bytes of what a server notes of the open transaction of a connection; beyond, that is sent to it each time.
pub const REMOTE_READ_BYTES: usize = 64 << 20;

/// Messages that one transaction of a client takes at most.
pub const REMOTE_MESSAGES: u64 = 1_000;

/// Watches that one connection to a server has at most.
pub const REMOTE_WATCHES: usize = 64;
