//! The two kinds of trees of a session, the database's and the local ones, under one transaction.
//!
//! Invariant: both have the same number of open levels, so that rolling one level back takes back
//! what it wrote to either.

use perilune_store::{Result, Session as StoreSession, TransactionOptions};

use crate::backend::BackendSession;
use crate::local::LocalTrees;

/// A session's trees.
pub(crate) struct Trees {
    pub(crate) database: BackendSession,
    pub(crate) local: LocalTrees,
}

impl Trees {
    /// The tree that local nodes, or those of the database, live in.
    #[inline]
    pub(crate) fn of(&mut self, local: bool) -> &mut dyn StoreSession {
        if local {
            &mut self.local
        } else {
            &mut self.database
        }
    }

    pub(crate) fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        self.database.begin(options)?;
        self.local.begin(options)
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        match self.database.commit() {
            Ok(()) => self.local.commit(),
            Err(error) => {
                self.local.rollback()?;
                Err(error)
            }
        }
    }

    pub(crate) fn rollback(&mut self) -> Result<()> {
        let outcome = self.database.rollback();
        self.local.rollback()?;
        outcome
    }
}
