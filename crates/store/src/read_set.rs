//! What a transaction has read, kept beyond its end, so that another transaction can rest on it.
//!
//! A server answers WATCH with it: what a client has looked at in one command is a condition of what it commits in a later
//! one, without being read again.

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
    /// this store. To be called at its end: it no longer remembers it. None: the store has not noted that, or not all of it.
    fn keep_reads(&mut self) -> Option<KeptReads>;

    /// Whether all that `kept` holds is still so. Then the open transaction rests on it: it commits only at a moment at which that
    /// is so, too; one that writes nothing has been at such a moment. What has changed and changed back between two
    /// such moments counts as unchanged. Where nobody has written near what was read this costs a look at each page of it.
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what another store has kept; `Conflict`.
    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool>;
}
