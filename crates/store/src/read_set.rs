//! What a transaction has read, kept beyond its end, so that another transaction can rest on it.
//!
//! A server answers WATCH with it: what a client has looked at in one command is a condition of what it commits in a later
//! one, without being read again. And what a client asks in several requests is of one state, although each request is a
//! transaction by itself.
//!
//! Example: WATCH reads `a` in a transaction and keeps its reads; EXEC begins another, which rests on them. If `a` has
//! changed meanwhile, [`ReadSets::rest_on`] says so, and EXEC does nothing.
//!
//! Invariant: what rests on reads commits at a moment at which all of them are as they were read, or not at all.
//!
//! Who has it: the mapped file, which a server serves from. A store in memory, and one behind a server, name
//! [`crate::Absent`]: no server stands on them, so nobody's WATCH would be answered from what they keep.
//!
//! Deliberately absent: what is kept. Only the store knows; who holds it knows how many bytes it takes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::Result;

/// What a transaction has read, for others to rest on: [`ReadSets::keep_reads`]. What it is only the store knows.
#[derive(Clone)]
pub struct KeptReads {
    reads: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl KeptReads {
    /// What a store has to keep, and how many bytes it takes.
    #[must_use]
    pub fn new(reads: Arc<dyn Any + Send + Sync>, bytes: usize) -> KeptReads {
        KeptReads { reads, bytes }
    }

    /// What the store has kept.
    #[must_use]
    pub fn reads(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.reads)
    }

    /// What the store has kept, which nobody else has any more if this was the only one.
    #[must_use]
    pub fn into_reads(self) -> Arc<dyn Any + Send + Sync> {
        self.reads
    }

    /// Bytes that it took when it was kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for KeptReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptReads").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The facet of a session whose transactions can rest on what others have read.
pub trait ReadSets {
    /// What the open transaction has read so far, its own writes aside, for other transactions to rest on, of any session of
    /// this store. To be called at the end of the transaction, which does not remember afterwards what it has read. None: the
    /// store has not noted that, or not all of it.
    fn keep_reads(&mut self) -> Option<KeptReads>;

    /// As [`ReadSets::keep_reads`], for one transaction that is to go on from there: a transaction of a client that asks one
    /// thing after another, each in a transaction here.
    fn suspend(&mut self) -> Option<KeptReads>;

    /// The open transaction, which has read nothing yet, goes on from what was suspended, as if it had read that itself. Whether
    /// that is still so it is told by [`crate::Transactions::validate`].
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what another store has kept, or what others rest on.
    fn resume(&mut self, kept: KeptReads) -> Result<()>;

    /// Whether all that `kept` holds is still so. Then the open transaction rests on it: it commits only at a moment at which that
    /// is so, too; one that writes nothing has been at such a moment. What has changed and changed back between two
    /// such moments counts as unchanged. Where nobody has written near what was read this costs a look at each page of it.
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what another store has kept; `Conflict`.
    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool>;
}
