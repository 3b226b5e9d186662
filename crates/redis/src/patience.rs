//! How long a command may take where it runs: in an event loop no longer than a walk over some thousands of elements takes.
//! One that finds more there to walk over has done nothing yet; it says so, and runs again aside, on a thread that others do
//! not wait for.
//!
//! What costs nothing to know is looked at: how many elements a key has, how long a range is, how far a walk has come.

use crate::failure::{Failure, Result};
use crate::limits::ELEMENTS_IN_LOOP;

/// How long a command may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as it does.
    #[default]
    Endless,
    /// As long as some elements take.
    Short,
    /// As long as some elements take, of a command that takes all elements of its keys.
    ShortOfWholeKeys,
}

impl Patience {
    /// That of an event loop with a command, which takes all elements of its keys or not.
    #[inline]
    pub(crate) fn of_loop(takes_whole_keys: bool) -> Patience {
        if takes_whole_keys {
            Patience::ShortOfWholeKeys
        } else {
            Patience::Short
        }
    }

    /// Goes on with so many elements, unless that takes too long here.
    #[inline]
    pub(crate) fn bear(self, elements: i64) -> Result<()> {
        if self != Patience::Endless && elements > ELEMENTS_IN_LOOP {
            return Err(Failure::TakesLong);
        }
        Ok(())
    }

    /// Whether the elements of keys that are looked up count.
    #[inline]
    pub(crate) fn counts_keys(self) -> bool {
        self == Patience::ShortOfWholeKeys
    }
}
