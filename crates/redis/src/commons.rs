//! What the clients of a server have to do with each other: they wait for keys, see what others do, ask all others, hold them
//! back.
//!
//! Invariant: a part that nobody uses costs a command one load.
//!
//! Deliberately absent: what clients of other servers do, which lies in the tree.

use std::sync::atomic::AtomicUsize;
use std::sync::Arc;

use perilune::Database;

use crate::cursors::Cursors;
use crate::inquiry::Inquiries;
use crate::invalidation::Switch;
use crate::monitors::Monitors;
use crate::nodes::Waiters;
use crate::pause::Pause;

/// What is common to them.
#[derive(Debug)]
pub(crate) struct Commons {
    inquiries: Inquiries,
    monitors: Monitors,
    cursors: Arc<Cursors>,
    pause: Pause,
    broadcast: Switch,
    blocked: AtomicUsize,
    waiters: Waiters,
}

impl Commons {
    pub(crate) fn new(database: &Database) -> Commons {
        Commons {
            inquiries: Inquiries::default(),
            monitors: Monitors::default(),
            cursors: Arc::default(),
            pause: Pause::default(),
            broadcast: Switch::default(),
            blocked: AtomicUsize::new(0),
            waiters: Waiters::new(database),
        }
    }

    /// What they have asked all servers.
    pub(crate) fn inquiries(&self) -> &Inquiries {
        &self.inquiries
    }

    /// Who sees all commands.
    #[inline]
    pub(crate) fn monitors(&self) -> &Monitors {
        &self.monitors
    }

    /// Where their scans are.
    pub(crate) fn cursors(&self) -> &Arc<Cursors> {
        &self.cursors
    }

    /// Whether commands are held back.
    #[inline]
    pub(crate) fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Whether clients of any server are to be told of all keys that change.
    #[inline]
    pub(crate) fn broadcast(&self) -> &Switch {
        &self.broadcast
    }

    /// How many wait for keys, those among them that are just about to.
    #[inline]
    pub(crate) fn blocked(&self) -> &AtomicUsize {
        &self.blocked
    }

    /// Threads that wait for them.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }
}
