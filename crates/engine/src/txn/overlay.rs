//! A transaction's own writes, level by level, and what they hide of the trees.
//!
//! Invariants
//! - In one level a removal of a prefix comes before the level's writes: a write under the prefix is a
//!   later one. No removal in a level is covered by another.
//! - An inner level hides an outer one, the outermost hides the trees.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::tree::{removal_end, Neighbour, Which};

/// What the overlay says about a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    /// It has this value.
    Value(&'a [u8]),
    /// It has none; if a removal says so, of this prefix.
    Absent(Option<&'a [u8]>),
    /// Nothing: ask the tree.
    Unknown,
}

/// The writes of one tree at one level.
#[derive(Default)]
struct Writes {
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    removals: BTreeSet<Vec<u8>>,
}

impl Writes {
    /// The removal that covers `key`. As no removal covers another, it is the last not above the key.
    fn covering(&self, key: &[u8]) -> Option<&[u8]> {
        if self.removals.is_empty() {
            return None;
        }
        let last = self.removals.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        key.starts_with(last).then_some(last)
    }

    fn remove_prefix(&mut self, prefix: &[u8]) {
        let end = removal_end(prefix);
        let below = (Bound::Included(prefix), Bound::Excluded(&end[..]));
        let keys: Vec<_> = self.values.range::<[u8], _>(below).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.values.remove(&key);
        }
        if self.covering(prefix).is_none() {
            let covered: Vec<_> = self.removals.range::<[u8], _>(below).cloned().collect();
            for removal in covered {
                self.removals.remove(&removal);
            }
            self.removals.insert(prefix.to_vec());
        }
    }
}

/// All levels' writes.
pub(crate) struct Overlay {
    levels: Vec<[Writes; 2]>,
}

impl Overlay {
    /// One level without writes.
    pub(crate) fn new() -> Overlay {
        Overlay { levels: vec![Default::default()] }
    }

    /// Makes it one level without writes.
    pub(crate) fn clear(&mut self) {
        self.levels.truncate(1);
        for writes in self.levels.iter_mut().flatten() {
            writes.values.clear();
            writes.removals.clear();
        }
        if self.levels.is_empty() {
            self.push();
        }
    }

    /// Number of levels.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether nothing has been written.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().flatten().all(|writes| writes.values.is_empty() && writes.removals.is_empty())
    }

    /// Opens a level.
    pub(crate) fn push(&mut self) {
        self.levels.push(Default::default());
    }

    /// Drops the innermost level.
    pub(crate) fn drop_level(&mut self) {
        self.levels.pop();
    }

    /// Merges the innermost level into the one around it.
    pub(crate) fn merge_level(&mut self) {
        let Some(inner) = self.levels.pop() else { return };
        let Some(outer) = self.levels.last_mut() else { return };
        for (outer, inner) in outer.iter_mut().zip(inner) {
            for prefix in &inner.removals {
                outer.remove_prefix(prefix);
            }
            outer.values.extend(inner.values);
        }
    }

    fn innermost(&mut self, which: Which) -> &mut Writes {
        if self.levels.is_empty() {
            self.push();
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last][which as usize]
    }

    /// Notes a value.
    pub(crate) fn set(&mut self, which: Which, key: &[u8], value: &[u8]) {
        self.innermost(which).values.insert(key.to_vec(), Some(value.to_vec()));
    }

    /// Notes that a key has no value.
    pub(crate) fn remove(&mut self, which: Which, key: &[u8]) {
        self.innermost(which).values.insert(key.to_vec(), None);
    }

    /// Notes that no key with this prefix has a value.
    pub(crate) fn remove_prefix(&mut self, which: Which, prefix: &[u8]) {
        self.innermost(which).remove_prefix(prefix);
    }

    /// What the innermost level that knows `key` says.
    #[inline]
    pub(crate) fn lookup(&self, which: Which, key: &[u8]) -> Lookup<'_> {
        for level in self.levels.iter().rev() {
            let writes = &level[which as usize];
            match writes.values.get(key) {
                Some(Some(value)) => return Lookup::Value(value),
                Some(None) => return Lookup::Absent(None),
                None => {}
            }
            if let Some(prefix) = writes.covering(key) {
                return Lookup::Absent(Some(prefix));
            }
        }
        Lookup::Unknown
    }

    /// The neighbour of `from` among the keys with a value of the overlay's own.
    pub(crate) fn neighbour(&self, which: Which, from: &[u8], side: Neighbour) -> Option<&[u8]> {
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = match side {
            Neighbour::Next => (Bound::Excluded(from), Bound::Unbounded),
            Neighbour::AtOrNext => (Bound::Included(from), Bound::Unbounded),
            Neighbour::Previous => (Bound::Unbounded, Bound::Excluded(from)),
        };
        let in_force = |key: &&Vec<u8>| matches!(self.lookup(which, key), Lookup::Value(_));
        let candidates = self.levels.iter().filter_map(|level| {
            let mut keys = level[which as usize].values.range::<[u8], _>(bounds).map(|(key, _)| key);
            match side {
                Neighbour::Previous => keys.rev().find(in_force),
                _ => keys.find(in_force),
            }
        });
        match side {
            Neighbour::Previous => candidates.max().map(Vec::as_slice),
            _ => candidates.min().map(Vec::as_slice),
        }
    }

    /// The first key from `low` on before `high` that any level writes, or the last one.
    pub(crate) fn written(&self, which: Which, low: &[u8], high: &[u8], backwards: bool) -> Option<&[u8]> {
        let within = (Bound::Included(low), Bound::Excluded(high));
        let keys = self.levels.iter().filter_map(|level| {
            let mut keys = level[which as usize].values.range::<[u8], _>(within).map(|(key, _)| &key[..]);
            if backwards {
                keys.next_back()
            } else {
                keys.next()
            }
        });
        if backwards {
            keys.max()
        } else {
            keys.min()
        }
    }

    /// Whether any level removes a prefix of keys from `low` on before `high`.
    pub(crate) fn removes_within(&self, which: Which, low: &[u8], high: &[u8]) -> bool {
        self.levels.iter().any(|level| {
            // As no removal covers another, the last one that begins before `high` ends last.
            let before = (Bound::Unbounded, Bound::Excluded(high));
            let last = level[which as usize].removals.range::<[u8], _>(before).next_back();
            last.is_some_and(|prefix| removal_end(prefix)[..] > *low)
        })
    }

    /// Merges all levels into one.
    pub(crate) fn flatten(&mut self) {
        while self.levels.len() > 1 {
            self.merge_level();
        }
    }

    /// Removals of the outermost level, in order.
    pub(crate) fn removals(&self, which: Which) -> impl Iterator<Item = &[u8]> {
        self.levels[..1]
            .iter()
            .flat_map(move |level| level[which as usize].removals.iter().map(Vec::as_slice))
    }

    /// Writes of the outermost level, in order.
    pub(crate) fn values(&self, which: Which) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.levels[..1].iter().flat_map(move |level| {
            level[which as usize].values.iter().map(|(k, v)| (k.as_slice(), v.as_deref()))
        })
    }

    /// Whether a removal of the outermost level covers `key`.
    pub(crate) fn is_removed(&self, which: Which, key: &[u8]) -> bool {
        self.levels[..1].iter().any(|level| level[which as usize].covering(key).is_some())
    }
}
