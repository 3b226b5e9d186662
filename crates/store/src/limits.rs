//! What a back end can take. Nothing above assumes a number: it reads this, and divides its work accordingly.
//!
//! Example: whoever loads a million nodes into a store behind a server reads [`Limits::transaction_operations`], and
//! commits as often as that asks for.
//!
//! Invariant: what is beyond a limit is refused with an error that names it, and has done nothing.

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
    /// Whether a transaction that others disturb again and again gets to run alone; else it ends at its time limit, and asking
    /// for it ([`crate::TransactionOptions::exclusive`]) is `Invalid`.
    pub exclusive_mode: bool,
    /// Whether an owner of locks can take and release them by each session of its process; else by the one that made it, and
    /// another one that asks in its name is answered `Invalid`.
    pub shared_owners: bool,
}
