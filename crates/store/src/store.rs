//! A store: what many threads and processes share, and where sessions come from.
//!
//! Example: `store.session()?` gives a thread its way in; `store.snapshots()` is there where a store can be read as it was
//! at one moment, and `store.reports()` where it tells about itself.
//!
//! Invariant: a clone is the same store.
//!
//! Deliberately absent: opening one. A file has options that a server's address has not, and the other way round.

use crate::{Bulk, Facets, Limits, Reports, Result};

/// The facet of a store that can be read as it was at one moment, for as long as that is wanted.
pub trait Snapshots<S> {
    /// A session that reads the store as it is now, whatever is written later, and writes nothing.
    ///
    /// # Errors
    /// [`crate::Error::LimitReached`]; [`crate::Error::ReadOnly`] where a snapshot has to be noted and cannot be.
    fn snapshot(&self) -> Result<S>;
}

/// A store that many threads (and processes) share; cheap to clone.
pub trait Store: Clone + Send + Sync + 'static {
    /// One thread's way in.
    type Session: Bulk + Facets;
    /// Takes snapshots; [`crate::Absent`] if nothing does.
    type Snapshots: Snapshots<Self::Session>;
    /// Tells about the store; [`crate::Absent`] if nothing does.
    type Reports: Reports;

    /// Opens a session. A session is used by one thread at a time.
    ///
    /// # Errors
    /// [`crate::Error::LimitReached`] when all sessions are taken.
    fn session(&self) -> Result<Self::Session>;

    /// The back end's limits.
    fn limits(&self) -> &Limits;

    /// Snapshots.
    fn snapshots(&self) -> Option<&Self::Snapshots>;

    /// Figures, locks, processes.
    fn reports(&self) -> Option<&Self::Reports>;
}
