//! What a back end can take. Nothing above assumes a number: it reads this, and divides its work accordingly.

use std::time::Duration;

/// What a back end can take. Read, never assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key at most.
    pub key_bytes: usize,
    /// Bytes of a value at most.
    pub value_bytes: usize,
    /// Bytes of a value that [`crate::Session::update`] shows and writes at most.
    pub update_bytes: usize,
    /// Levels of nested transactions at most.
    pub transaction_depth: usize,
    /// Bytes of what one transaction reads and writes, keys included, at most; None: as many as memory holds.
    pub transaction_bytes: Option<usize>,
    /// Reads and writes of one transaction at most; None: as many as memory holds.
    pub transaction_operations: Option<usize>,
    /// How long a transaction may be open, whatever its own options allow; None: as long as these say.
    pub transaction_time: Option<Duration>,
}
