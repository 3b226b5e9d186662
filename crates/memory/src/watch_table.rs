//! Watches: a flag for each, raised by every commit that touches what is watched.
//!
//! A watch is of one key, or of all keys with a prefix. Removing the prefix `ab` raises watches of `ab`, `abc`, and
//! of the prefix `a`.

use std::collections::BTreeMap;

use perilune_store::{Error, Result, WatchId, WatchScope};

#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) session: u64,
    pub(crate) requests: Vec<(Vec<u8>, WatchScope)>,
    pub(crate) touched: bool,
}

/// All watches of a store, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    pub(crate) registered: BTreeMap<u64, Registered>,
}

impl Watches {
    /// A write at `key`.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.raise(|watched, scope| match scope {
            WatchScope::Key => key == watched,
            WatchScope::Prefix => key.starts_with(watched),
        });
    }

    /// The removal of all keys with `prefix`.
    pub(crate) fn touch_prefix(&mut self, prefix: &[u8]) {
        self.raise(|watched, scope| {
            watched.starts_with(prefix) || (scope == WatchScope::Prefix && prefix.starts_with(watched))
        });
    }

    pub(crate) fn raise(&mut self, touches: impl Fn(&[u8], WatchScope) -> bool) {
        for watch in self.registered.values_mut() {
            watch.touched |= watch.requests.iter().any(|(key, scope)| touches(key, *scope));
        }
    }

    pub(crate) fn drop_session(&mut self, session: u64) {
        self.registered.retain(|_, watch| watch.session != session);
    }

    pub(crate) fn of_session(&mut self, id: WatchId, session: u64) -> Result<&mut Registered> {
        let watch = self.registered.get_mut(&id.0).filter(|watch| watch.session == session);
        watch.ok_or_else(|| Error::Invalid(format!("this session has no watch {}: register one first", id.0)))
    }
}
