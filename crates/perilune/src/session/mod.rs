//! A session: one thread's way into the database, and the local trees private to it.
//!
//! Invariants
//! - Each operation is atomic by itself, or belongs to the open transaction.
//! - The buffers are scratch space: no operation relies on what an earlier one left there.
//!
//! The operations stand beside this file, by what they do: `values` (one node's value), `pieces` (parts of one), `walk`
//! (neighbours), `entries` (ends of ranges), `subtree` (whole trees), `batch` (many nodes), `probed` (some, as a function of them
//! says); and in `transaction`, `cursor`, `lock`, `watch`, `channel` of the crate.

mod batch;
mod conditional;
mod entries;
mod pieces;
mod probed;
mod serving;
mod trees;
mod values;
mod walk;

use std::fmt;

use perilune_store::{LockOwner, Locks, Transactions};

use crate::backend::{Backend, BackendSession};
use crate::local::LocalTrees;
use crate::Result;

pub use self::batch::Batch;
pub use self::conditional::Conditional;
pub use self::entries::RangeEnds;
pub use self::pieces::Piece;
pub use self::probed::{Probe, ProbeResult, Probed};
pub use self::serving::Serving;
pub use self::values::Data;
pub use self::walk::{Neighbour, Steps};

pub(crate) use self::trees::Trees;

/// One thread's way into a database.
///
/// A session can move to another thread, but is used by one at a time; open one per thread. It owns
/// its local trees, locks and watches: they go when it is dropped.
///
/// Nodes whose name begins with `^` live in the database, shared by all processes; nodes without
/// it live in this session's memory. Both kinds take the same operations, and both take part in
/// transactions.
pub struct Session {
    pub(crate) trees: Trees,
    pub(crate) owner: LockOwner,
    /// The outermost transaction must run again, whatever its body answers.
    pub(crate) rerun: bool,
    /// The value read last.
    pub(crate) value: Vec<u8>,
    /// The value being written.
    pub(crate) encoded: Vec<u8>,
    /// The key a search found.
    pub(crate) found: Vec<u8>,
    /// Where a search starts.
    pub(crate) from: Vec<u8>,
    /// Where it ends.
    pub(crate) end: Vec<u8>,
}

impl Session {
    pub(crate) fn open(backend: &Backend) -> Result<Session> {
        Session::of(backend.session()?)
    }

    pub(crate) fn at_snapshot(backend: &Backend) -> Result<Session> {
        Session::of(backend.snapshot()?)
    }

    fn of(mut database: BackendSession) -> Result<Session> {
        let owner = database.new_lock_owner();
        Ok(Session {
            trees: Trees { database, local: LocalTrees::default() },
            owner,
            rerun: false,
            value: Vec::new(),
            encoded: Vec::new(),
            found: Vec::new(),
            from: Vec::new(),
            end: Vec::new(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        while self.trees.database.depth() > 0 {
            if self.trees.rollback().is_err() {
                break;
            }
        }
        // Nobody is left to tell; the locks of a session that cannot release them go with its process.
        let _ = self.trees.database.unlock_all(self.owner);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("depth", &self.depth()).finish_non_exhaustive()
    }
}
