//! Functions that a store runs by itself, next to the data: the facet [`Programs`].
//!
//! A transaction of many steps over a network is as many round trips. If its function can travel, it is one: the store is
//! given the function as bytes, runs it as one transaction, and answers what it says. What the bytes mean is agreed on by
//! whoever makes them and whoever runs them; a store that only passes them on does not look inside.

use crate::{Result, TransactionOptions};

/// The facet of a session that has functions run where the data lie.
pub trait Programs {
    /// Has `program` run as one transaction, and answers what it says.
    ///
    /// # Errors
    /// `Invalid` in an open transaction, or with a commit hook; `CommitUnknown`; that of the program.
    fn run(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>>;
}
