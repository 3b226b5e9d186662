//! Watches: waiting, without polling, until a commit of any process touches a node or a subtree.

use std::time::Duration;

use perilune_store::{Error as StoreError, Watch, WatchId, WatchRequest, WatchScope as StoreScope};

use crate::{limits, Error, NodeRef, Result, Session};

/// What of a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// Its own value.
    Node,
    /// Its value and all below it.
    Subtree,
}

impl Session {
    /// Watches several places of the database at once. Every commit that begins after this returns
    /// and touches one of them is noticed; now and then one that touches none is reported too, so
    /// read and compare. The watch ends with [`Session::unwatch`], the session or the process.
    ///
    /// # Errors
    /// `LocalNode`: nobody else can change those; `LimitReached`; `ReadOnly`.
    pub fn watch<'n, N: Into<NodeRef<'n>>>(
        &mut self,
        places: impl IntoIterator<Item = (N, WatchScope)>,
    ) -> Result<WatchId> {
        let mut requests = Vec::new();
        for (node, scope) in places {
            let node = node.into();
            if node.is_local() {
                return Err(Error::LocalNode { operation: "watched" });
            }
            let scope = match scope {
                WatchScope::Node => StoreScope::Key,
                WatchScope::Subtree => StoreScope::Prefix,
            };
            requests.push(WatchRequest { key: node.encoded(), scope });
        }
        if requests.len() > limits::WATCH_PLACES {
            let limit = limits::WATCH_PLACES as u64;
            return Err(StoreError::LimitReached { what: "places in one watch", limit }.into());
        }
        Ok(self.trees.database.watch(&requests)?)
    }

    /// Waits until the watch has noticed something since it began or since the last answer `true`;
    /// false after `timeout` (`None`: for ever).
    ///
    /// # Errors
    /// `TransactionState` inside a transaction; `Invalid` for a watch that has ended.
    pub fn wait(&mut self, watch: WatchId, timeout: Option<Duration>) -> Result<bool> {
        Ok(self.trees.database.wait(watch, timeout)?)
    }

    /// A file descriptor for event loops: readable when [`Session::wait`] would answer true. It
    /// belongs to the watch and lives as long; `wait` with a zero timeout clears it.
    ///
    /// # Errors
    /// I/O when no descriptor is to be had.
    pub fn watch_descriptor(&mut self, watch: WatchId) -> Result<i32> {
        Ok(self.trees.database.watch_descriptor(watch)?)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, watch: WatchId) {
        self.trees.database.unwatch(watch);
    }
}
