//! Updates: what is to become of a value, said so that it can be done where the value lies.
//!
//! Adding 1 by `get` and `set` loses what others add in between, and over a network takes two round trips. An update says
//! what it means instead. The store knows no numbers. An addition therefore brings both: what is added, for a back end
//! whose other end knows how values are encoded, and the function that makes the sum, for one that holds the value here.
//!
//! Example: `add(key, ...)` of 1 is done under the page's latch in a file, and by one request behind a server.
//!
//! Invariant: a function given here is pure, short and may run several times: others may be waiting while it runs.

use crate::Result;

/// What [`crate::Session::update`]'s closure wants done with the value at its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave it as it is.
    Keep,
    /// Write the first so many bytes of the [`UpdateBuffer`].
    Write(usize),
    /// Remove it.
    Remove,
}

/// Where [`crate::Session::update`]'s closure puts the new value.
pub type UpdateBuffer = [u8; 64];

/// A pure function from the value at a key (None: absent) to what is to become of it.
pub type Change<'a> = dyn FnMut(Option<&[u8]>, &mut UpdateBuffer) -> Result<Decision> + 'a;

/// What [`crate::Session::add`] is to do.
pub struct Addition<'a> {
    /// Appends what is added, in the encoding of values.
    pub by: &'a dyn Fn(&mut Vec<u8>),
    /// Whether digits that the sum has no room for are dropped, rather than refused.
    pub truncating: bool,
    /// Makes the sum of the value at the key and what is added.
    pub sum: &'a mut Change<'a>,
}

impl std::fmt::Debug for Addition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addition").field("truncating", &self.truncating).finish_non_exhaustive()
    }
}

/// Where an addition was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// Here: the function has made the sum.
    Here,
    /// Where the value lies: this is the sum, in the encoding of values.
    There(Vec<u8>),
}
