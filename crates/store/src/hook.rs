//! The commit hook: a function that sees what a transaction is about to write, and may add to it.
//!
//! An index is kept so: the hook sees that `^person(21,"name")` is set, and adds the entry of the index, in the same
//! transaction.
//!
//! Invariant: what it adds is written with the rest, or nothing is. It runs again when the transaction does.
//!
//! Deliberately absent: refusing. A hook that fails ends the transaction with its error.

use crate::Result;

/// One write of a transaction, as a commit hook sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// Every key with this prefix is removed, before the other writes.
    RemovePrefix(&'a [u8]),
    /// The key gets this value.
    Set(&'a [u8], &'a [u8]),
    /// The key's value is removed.
    Remove(&'a [u8]),
}

/// The writes of a transaction about to commit, removals of prefixes first, then by key; and a place
/// to add more.
pub trait Writes {
    /// Calls `visit` for each write.
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>));
    /// Adds a write of `value` at `key`, validated and applied with the rest.
    fn set(&mut self, key: &[u8], value: &[u8]);
    /// Adds the removal of the value at `key`.
    fn remove(&mut self, key: &[u8]);
    /// Reads `key` as the transaction sees it, and makes that part of what is validated.
    ///
    /// # Errors
    /// As [`crate::Session::get`].
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
}

/// Sees a transaction's writes before validation; its error rolls the transaction back.
pub type CommitHook = Box<dyn FnMut(&mut dyn Writes) -> Result<()> + Send>;
