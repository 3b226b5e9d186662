//! Facets: what a back end may have beside the core, or names as missing.
//!
//! A back end says of each facet which type has it - mostly the session itself - and hands it out; or that nothing has it, by
//! [`crate::Absent`], a type without values. A caller asks and goes on without:
//!
//! ```
//! use perilune_store::{Facets, Optimistic, Session};
//!
//! fn set_leaf<S: Session + Facets>(session: &mut S, key: &[u8], end: &[u8], value: &[u8]) -> perilune_store::Result<bool> {
//!     match session.optimistic() {
//!         Some(optimistic) => optimistic.set_unless_parent(key, end, value),
//!         None => Ok(false),
//!     }
//! }
//! ```
//!
//! Invariants
//! - Nothing here has a default: a wrapper that forgets a facet does not compile, and one that hides it says so in its text.
//! - Calls are static: where the type is known, asking for a facet costs nothing.
//! - A session has a facet for all of its life, or never.

use crate::{Bounds, Deferral, Granular, Locks, Messages, Optimistic, Programs, ReadSets, Watch};

/// What a session has beside the core.
pub trait Facets {
    /// Has the user's locks.
    type Locks: Locks;
    /// Waits for commits.
    type Watch: Watch;
    /// Posts and receives.
    type Messages: Messages;
    /// Leaves the wait for durability to later.
    type Deferral: Deferral;
    /// Decides and writes in one step.
    type Optimistic: Optimistic;
    /// Keeps what a transaction has read.
    type ReadSets: ReadSets;
    /// Bounds what the session takes.
    type Bounds: Bounds;
    /// Cares how much of what is found is looked at.
    type Granular: Granular;
    /// Runs functions where the data lie.
    type Programs: Programs;

    /// The user's locks.
    fn locks(&mut self) -> Option<&mut Self::Locks>;
    /// Watches.
    fn watches(&mut self) -> Option<&mut Self::Watch>;
    /// Messages.
    fn messages(&mut self) -> Option<&mut Self::Messages>;
    /// The wait for durability.
    fn deferral(&mut self) -> Option<&mut Self::Deferral>;
    /// Attempts, and changes at probes.
    fn optimistic(&mut self) -> Option<&mut Self::Optimistic>;
    /// What transactions have read.
    fn read_sets(&mut self) -> Option<&mut Self::ReadSets>;
    /// What the session takes.
    fn bounds(&mut self) -> Option<&mut Self::Bounds>;
    /// Searches whose caller looks at a part.
    fn granular(&mut self) -> Option<&mut Self::Granular>;
    /// Functions that run where the data lie.
    fn programs(&mut self) -> Option<&mut Self::Programs>;
}

/// The names of the facets, in the order of [`facets_of`].
pub const FACETS: [&str; 9] =
    ["locks", "watches", "messages", "deferral", "optimistic", "read sets", "bounds", "granular", "programs"];

/// Which facets a session has, in the order of [`FACETS`].
pub fn facets_of<S: Facets + ?Sized>(session: &mut S) -> [bool; 9] {
    [
        session.locks().is_some(),
        session.watches().is_some(),
        session.messages().is_some(),
        session.deferral().is_some(),
        session.optimistic().is_some(),
        session.read_sets().is_some(),
        session.bounds().is_some(),
        session.granular().is_some(),
        session.programs().is_some(),
    ]
}
