//! What a transaction has written and nobody else sees yet.
//!
//! Invariants
//! - `prefixes` are removed before `writes` apply; a write that a later removal covers is gone.
//! - A nested level starts as a copy of its parent's overlay, so one overlay always tells all.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use perilune_store::Write;

use crate::fault::Fault;
use crate::state::State;

/// Prefixes removed, then keys set (Some) or removed (None).
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    prefixes: BTreeSet<Vec<u8>>,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.writes.is_empty()
    }

    pub(crate) fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.writes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
    }

    pub(crate) fn remove_prefix(&mut self, prefix: &[u8]) {
        self.writes.retain(|key, _| !key.starts_with(prefix));
        if !self.covers(prefix) {
            self.prefixes.insert(prefix.to_vec());
        }
    }

    fn covers(&self, key: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Whether this overlay alone decides what is at `key`; if so, the value or None.
    pub(crate) fn decides(&self, key: &[u8]) -> Option<Option<&Vec<u8>>> {
        match self.writes.get(key) {
            Some(value) => Some(value.as_ref()),
            None => self.covers(key).then_some(None),
        }
    }

    /// Whether it decides anything about keys that begin with `prefix`.
    pub(crate) fn touches(&self, prefix: &[u8]) -> bool {
        let related = |key: &Vec<u8>| key.starts_with(prefix) || prefix.starts_with(key);
        self.prefixes.iter().any(related) || self.writes.keys().any(|key| key.starts_with(prefix))
    }

    /// The first key set after (or at) `from`.
    pub(crate) fn next(&self, from: &[u8], inclusive: bool) -> Option<(&Vec<u8>, &Vec<u8>)> {
        let lower = if inclusive { Bound::Included(from) } else { Bound::Excluded(from) };
        self.writes
            .range::<[u8], _>((lower, Bound::Unbounded))
            .find_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    /// The last key set before `from`.
    pub(crate) fn previous(&self, from: &[u8]) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.writes
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from)))
            .rev()
            .find_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    /// Shows the writes as a commit hook sees them: prefixes first, then by key.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        for prefix in &self.prefixes {
            visit(Write::RemovePrefix(prefix));
        }
        for (key, value) in &self.writes {
            match value {
                Some(value) => visit(Write::Set(key, value)),
                None => visit(Write::Remove(key)),
            }
        }
    }

    /// Applies the writes to the committed map, and raises the flags of the watches that they touch.
    pub(crate) fn apply(self, state: &mut State) {
        for prefix in &self.prefixes {
            let kept = state.fault == Some(Fault::KeptDescendants);
            state.map.retain(|key, _| !key.starts_with(prefix) || (kept && key != prefix));
            state.watches.touch_prefix(prefix);
        }
        for (key, value) in self.writes {
            state.watches.touch(&key);
            match value {
                Some(value) => state.map.insert(key, value),
                None => state.map.remove(&key),
            };
        }
    }
}
