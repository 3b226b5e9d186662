//! How long a command may take where it runs: in an event loop no longer than a walk over some thousands of elements takes.
//! One that finds more there to walk over has done nothing yet; it says so, and runs again aside, on a thread that others do
//! not wait for.
//!
//! What costs nothing to know is looked at: how many elements a key has, how long a range is, how far a walk has come.

use crate::failure::{Failure, Result};
use crate::limits::{FEW_ARGUMENTS, FEW_ELEMENTS};
use crate::table::{Command, Run};

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
    /// That of an event loop with a command.
    #[inline]
    pub(crate) fn of_loop(command: &Command) -> Patience {
        if command.takes_whole_keys {
            Patience::ShortOfWholeKeys
        } else {
            Patience::Short
        }
    }

    /// Goes on with so many elements, unless that takes too long here.
    #[inline]
    pub(crate) fn bear(self, elements: i64) -> Result<()> {
        if self != Patience::Endless && elements > FEW_ELEMENTS {
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

/// Whether a command is about so many things that it takes long whatever there is.
#[inline]
pub(crate) fn is_about_many(command: &Command, arguments: usize) -> bool {
    arguments > FEW_ARGUMENTS && matches!(command.run, Run::Keys(_))
}

/// Commands that take all elements of the keys that they name.
pub(crate) const WHOLE: &[&str] = &[
    "copy",
    "dump",
    "hgetall",
    "hkeys",
    "hvals",
    "linsert",
    "lpos",
    "lrem",
    "ltrim",
    "move",
    "rename",
    "renamenx",
    "sdiff",
    "sdiffstore",
    "sinter",
    "sintercard",
    "sinterstore",
    "smembers",
    "sort",
    "sort_ro",
    "sunion",
    "sunionstore",
    "zdiff",
    "zdiffstore",
    "zinter",
    "zintercard",
    "zinterstore",
    "zunion",
    "zunionstore",
];
