//! The limits of the public API, in one place. What the back end takes is read from it
//! ([`crate::Database::limits`]); these are the ones this crate enforces itself.

pub use perilune_key::{
    MAX_ENCODED as KEY_BYTES, MAX_ENCODED_LOCAL as LOCAL_KEY_BYTES, MAX_NAME as NAME_BYTES,
    MAX_SUBSCRIPT as SUBSCRIPT_BYTES, MAX_SUBSCRIPTS as SUBSCRIPTS,
};

/// Bytes of a value at most.
pub const VALUE_BYTES: usize = 512 << 20;

/// Bytes of the name of a channel at most.
pub const CHANNEL_NAME_BYTES: usize = 255;

/// Places that one watch watches at most.
pub const WATCH_PLACES: usize = 1_024;

/// Locks that one call takes at most.
pub const LOCKS_PER_CALL: usize = 1_024;

/// Faults that [`crate::VerifyReport`] keeps at most.
pub const FAULTS_REPORTED: usize = 1_000;
