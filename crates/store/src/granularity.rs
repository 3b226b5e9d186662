//! The facet [`Granular`], of a store behind a network: a caller of a search says how much of what is found it looks at.
//!
//! A loop over the children of a node finds the first key of each child's subtree, and looks only at the child that it lies in.
//! A file does not care. A store behind a network does: in a transaction it remembers what was seen, to have it compared at
//! the commit, and what was not looked at must be no conflict. And it can send a page of such steps at once.
//!
//! Example: the next child behind `^person(21)` is a search with `Granularity::Child(7)`, since the key of the parent, `person` and
//! a zero byte, has 7 bytes. It finds `^person(22,"born")`; whether others add `^person(22,"age")` meanwhile is no matter.
//!
//! Invariant: the caller's answer is the same for all keys of which it looks at the same part.

use crate::{Result, Scan};

/// How much of the key that is found the caller looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// All of it, and the value.
    Whole,
    /// Only in which child of a node it lies; the number is the length of that node's key in bytes.
    Child(usize),
    /// In which child of a node it lies, as with `Child`, and that child's own value, or that it has none.
    Entry(usize),
    /// Its first bytes; the number says how many.
    Start(usize),
}

/// The facet of a session to which it matters how much its caller looks at.
pub trait Granular {
    /// As [`crate::Session::next_within`], or backwards [`crate::Session::previous_within`], for a caller that looks at so
    /// much of what is found. Of `scan` only the place, the bound and the direction count; `bound` may be empty.
    ///
    /// # Errors
    /// As [`crate::Session::get`].
    fn find(
        &mut self,
        scan: &Scan<'_>,
        granularity: Granularity,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool>;

    /// Whether the child has a value of its own that the last step backwards has come to by a key below it; copied if it is
    /// wanted.
    ///
    /// # Errors
    /// As [`crate::Session::get`].
    fn own_value(&mut self, child: &[u8], value: Option<&mut Vec<u8>>) -> Result<bool>;
}
