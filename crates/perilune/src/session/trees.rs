//! The two kinds of trees of a session, the database's and the local ones, under one transaction.
//!
//! Example: `set(^a, 1)` goes to the database and `set(a, 1)` to memory of the session. If the transaction around
//! both is rolled back, both are taken back.
//!
//! Invariant: both have the same number of open levels, so that rolling one level back takes back what it wrote to
//! either.

use perilune_store::{
    Bulk, Entries, Granularity, Result, Scan, Session as StoreSession, TransactionOptions, Transactions,
};

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
    pub(crate) fn of(&mut self, local: bool) -> &mut dyn Bulk {
        if local {
            &mut self.local
        } else {
            &mut self.database
        }
    }

    /// [`StoreSession::next_within`], or backwards [`StoreSession::previous_within`], for a caller that looks at so much of
    /// the key: to a store that is far away it matters.
    #[inline]
    pub(crate) fn find(
        &mut self,
        local: bool,
        scan: &Scan<'_>,
        granularity: Granularity,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        match (local, scan.backwards) {
            (false, _) => self.database.find(scan, granularity, key, None),
            (true, false) => self.local.next_within(scan.from, scan.inclusive, scan.bound, key, None),
            (true, true) => self.local.previous_within(scan.from, scan.bound, key, None),
        }
    }

    /// [`Bulk::entries`] for a caller that looks at so much of the keys.
    pub(crate) fn entries_at(
        &mut self,
        local: bool,
        scan: &Scan<'_>,
        granularity: Granularity,
        out: &mut Entries,
    ) -> Result<bool> {
        if local {
            return self.local.entries(scan, out);
        }
        self.database.entries_at(scan, granularity, out)
    }

    /// [`Bulk::are_current`].
    #[inline]
    pub(crate) fn are_current(&self, local: bool, entries: &Entries) -> bool {
        !local && self.database.are_current(entries)
    }

    /// The value of the child that a step back has come to by a key below it: a server has told it with the step. Copied
    /// into the buffer if it is wanted; without that the buffer may hold anything.
    pub(crate) fn own_value(
        &mut self,
        local: bool,
        child: &[u8],
        value: &mut Vec<u8>,
        is_wanted: bool,
    ) -> Result<bool> {
        if local {
            return self.local.get(child, value);
        }
        self.database.own_value(child, value, is_wanted)
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
