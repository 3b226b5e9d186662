//! The two kinds of trees of a session, the database's and the local ones, under one transaction.
//!
//! Invariant: both have the same number of open levels, so that rolling one level back takes back
//! what it wrote to either.

use perilune_store::{
    Bulk, Entries, Result, Scan, Session as StoreSession, TransactionOptions, Transactions,
};

use crate::backend::BackendSession;
use crate::local::LocalTrees;
use crate::remote::Glance;

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

    /// [`StoreSession::next_within`] for a caller that looks at so much of the key: to a server it matters.
    #[inline]
    pub(crate) fn glance_next(
        &mut self,
        local: bool,
        (from, inclusive, end): (&[u8], bool, &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        if local {
            return self.local.next_within(from, inclusive, end, key, value);
        }
        self.database.glance_next((from, inclusive, end), glance, key, value)
    }

    /// [`StoreSession::previous_within`] for a caller that looks at so much of the key: to a server it matters.
    #[inline]
    pub(crate) fn glance_previous(
        &mut self,
        local: bool,
        (from, begin): (&[u8], &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        if local {
            return self.local.previous_within(from, begin, key, value);
        }
        self.database.glance_previous((from, begin), glance, key, value)
    }

    /// [`Bulk::entries`] for a caller that looks at so much of the keys.
    pub(crate) fn glance_entries(
        &mut self,
        local: bool,
        scan: &Scan<'_>,
        glance: Glance,
        out: &mut Entries,
    ) -> Result<bool> {
        if local {
            return self.local.entries(scan, out);
        }
        self.database.glance_entries(scan, glance, out)
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
        (value, is_wanted): (&mut Vec<u8>, bool),
    ) -> Result<bool> {
        if local {
            return self.local.get(child, value);
        }
        self.database.own_value(child, (value, is_wanted))
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
