//! Any store at all as an object: what a back end becomes that is not the mapped file.
//!
//! Problem: the storage traits are static, that is, a session names the types of its facets. So each new back end
//! would be one more arm of an enum, everywhere. Idea: traits whose facets are objects, implemented for every store
//! by the same code. A new back end is then a row of the table of schemes.
//!
//! The call through a table of functions costs nothing beside what such a store takes for an operation: a round
//! trip, a lock around a map. The mapped file, for which it would cost something, is not called so.
//!
//! Invariant: nothing is changed or added. Locks, watches, messages, granular, programs, snapshots and reports of a store are
//! those of its object, and None where it has none. The other facets (deferral, attempts, read sets, bounds) only make
//! things faster or smaller, and are the mapped file's alone.

use perilune_store::{
    Bulk, Facets, Granular, Limits, Locks, Messages, Programs, Reports, Result, Snapshots, Store, Watch,
};

/// A store of any kind.
pub(crate) trait AnyStore: Send + Sync {
    /// [`Store::session`].
    fn open_session(&self) -> Result<Box<dyn AnySession>>;
    /// [`Store::limits`].
    fn all_limits(&self) -> &Limits;
    /// A session of [`Store::snapshots`]; None where there are none.
    fn open_snapshot(&self) -> Option<Result<Box<dyn AnySession>>>;
    /// [`Store::reports`].
    fn any_reports(&self) -> Option<&dyn Reports>;
}

impl<S: Store> AnyStore for S {
    fn open_session(&self) -> Result<Box<dyn AnySession>> {
        Ok(Box::new(self.session()?))
    }

    fn all_limits(&self) -> &Limits {
        self.limits()
    }

    fn open_snapshot(&self) -> Option<Result<Box<dyn AnySession>>> {
        let snapshot = self.snapshots()?.snapshot();
        Some(snapshot.map(|session| -> Box<dyn AnySession> { Box::new(session) }))
    }

    fn any_reports(&self) -> Option<&dyn Reports> {
        self.reports().map(|reports| -> &dyn Reports { reports })
    }
}

/// A session of any kind. Facets that only make things faster are left to the mapped file.
pub(crate) trait AnySession: Bulk {
    /// [`Facets::locks`].
    fn any_locks(&mut self) -> Option<&mut dyn Locks>;
    /// [`Facets::watches`].
    fn any_watches(&mut self) -> Option<&mut dyn Watch>;
    /// [`Facets::messages`].
    fn any_messages(&mut self) -> Option<&mut dyn Messages>;
    /// [`Facets::granular`].
    fn any_granular(&mut self) -> Option<&mut dyn Granular>;
    /// [`Facets::programs`].
    fn any_programs(&mut self) -> Option<&mut dyn Programs>;
}

impl<S: Bulk + Facets> AnySession for S {
    fn any_locks(&mut self) -> Option<&mut dyn Locks> {
        self.locks().map(|facet| -> &mut dyn Locks { facet })
    }

    fn any_watches(&mut self) -> Option<&mut dyn Watch> {
        self.watches().map(|facet| -> &mut dyn Watch { facet })
    }

    fn any_messages(&mut self) -> Option<&mut dyn Messages> {
        self.messages().map(|facet| -> &mut dyn Messages { facet })
    }

    fn any_granular(&mut self) -> Option<&mut dyn Granular> {
        self.granular().map(|facet| -> &mut dyn Granular { facet })
    }

    fn any_programs(&mut self) -> Option<&mut dyn Programs> {
        self.programs().map(|facet| -> &mut dyn Programs { facet })
    }
}
