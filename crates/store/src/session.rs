//! The core of the contract: one thread's way into an ordered map, and what it can read and write there.
//!
//! Every back end has all of this. What only some have are facets ([`crate::Facets`]); what all can do by steps of the core,
//! and some do faster, is [`crate::Bulk`].
//!
//! Invariants
//! - No required method has a default: a back end, or a wrapper of one, that forgets one does not compile. [`Session::next`]
//!   and [`Session::previous`] are only shorter ways to write a required method, and are not to be written anew.
//! - An update is an operation with a meaning - add this, replace this by that if it is still this, replace it by what this
//!   function makes of it - so that it can be done where the value lies, or done again.

use crate::{Added, Addition, Change, CommitHook, Page, Result, Span, Transactions};

/// What lies at a key: nothing, a value, descendants (longer keys that begin with it), or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The key itself has a value.
    pub value: bool,
    /// Some longer key begins with it.
    pub descendants: bool,
}

/// One thread's access to a store.
///
/// While a transaction is open ([`Transactions::begin`]), every operation belongs to it. An operation that
/// answers [`crate::Error::Conflict`] has doomed the open transaction: roll back and run it again, as
/// [`crate::transact`] does.
pub trait Session: Transactions + Send {
    /// Copies the value at `key` into `value` (replacing what it held); false when there is none.
    ///
    /// # Errors
    /// `Conflict` inside a transaction; `KeyTooLong`; I/O.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// What lies at `key`.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn presence(&mut self, key: &[u8]) -> Result<Presence>;

    /// Finds the first key after `from` (at or after it, if `inclusive`) and before `end` (empty: wherever it lies), and copies
    /// it into `key`, and its value into `value` if that is given; false when there is none. `from` may be any bytes up
    /// to the key limit and one 0xFF more; `key` may not be the buffer that `from` lies in. In a transaction nothing from
    /// `end` on counts as read, if the store can help it: what others write there is no conflict.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool>;

    /// Finds the last key before `from` and not before `begin`, otherwise as [`Session::next_within`].
    ///
    /// # Errors
    /// As [`Session::get`].
    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool>;

    /// Reads a page of the keys of `span`, in its direction, and with `with_values` their values: as many as the back end has
    /// at hand, one at least if there is any, and no more than `span.most`. [`Page::is_last`] says whether the span ends there; else
    /// who wants more asks for what lies behind the last key of the page. A page is of one moment outside of a transaction;
    /// inside one, all of it counts as read. This is the method for whoever reads much.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()>;

    /// Writes `value` at `key`.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`, `NoSpace`, `ReadOnly`; nothing was written.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes the value at `key`; true when there was one. Longer keys stay.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn remove(&mut self, key: &[u8]) -> Result<bool>;

    /// Removes every key that begins with `prefix` (itself included).
    ///
    /// # Errors
    /// As [`Session::set`].
    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()>;

    /// Adds to the number at `key`, atomically: where the value lies, if the back end can, else by `addition.sum`, as
    /// [`Session::update`] does.
    ///
    /// # Errors
    /// That of the sum; else as [`Session::set`].
    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added>;

    /// Replaces the value at `key` by what a pure function makes of it, atomically. The function may run anywhere and any
    /// number of times, and others may wait for it meanwhile: it must neither allocate, block, panic nor call the store.
    /// A present value longer than [`crate::Limits::update_bytes`] is shown as its first bytes.
    ///
    /// # Errors
    /// The function's own error, unchanged; else as [`Session::set`].
    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()>;

    /// Replaces the value at `key` by `new` (None removes it) if it is `expected` now (None: absent);
    /// false when it is not.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool>;

    /// Sets (or with None clears) the function that sees each transaction's writes before they are
    /// validated and may add its own; single writes are then transactions of one. No cost when unset.
    fn set_commit_hook(&mut self, hook: Option<CommitHook>);

    /// [`Session::next_within`] without an end.
    ///
    /// # Errors
    /// As [`Session::get`].
    #[inline]
    fn next(
        &mut self,
        from: &[u8],
        inclusive: bool,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.next_within(from, inclusive, &[], key, value)
    }

    /// [`Session::previous_within`] from the first key on.
    ///
    /// # Errors
    /// As [`Session::get`].
    #[inline]
    fn previous(&mut self, from: &[u8], key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> Result<bool> {
        self.previous_within(from, &[], key, value)
    }
}
