//! A transaction's own writes, level by level, and what they hide of the trees.
//!
//! Nothing of a transaction is shared before its commit, yet its reads must see its writes. So writes go here, and each
//! read looks here first. Example: `^a(1)` is set at level 1 and removed at level 2. A read at level 2 finds nothing;
//! after a rollback of level 2 it finds the value of level 1; after one of level 1, what the tree has.
//!
//! Invariant: an inner level hides an outer one, the outermost hides the trees.

use std::ops::Bound;

use super::patches::Patches;
use super::writes::{Sought, Writes};
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

/// All levels' writes.
pub(crate) struct Overlay {
    levels: Vec<[Writes; 2]>,
    /// Parts of long values that are written over; of the main tree.
    pub(super) patches: Patches,
    /// The memory of the level that was closed last.
    spare: [Writes; 2],
}

impl Overlay {
    /// One level without writes.
    pub(crate) fn new() -> Overlay {
        Overlay { levels: vec![Default::default()], patches: Patches::default(), spare: Default::default() }
    }

    /// Makes it one level without writes.
    pub(crate) fn clear(&mut self) {
        self.levels.truncate(1);
        self.levels.iter_mut().flatten().for_each(Writes::clear);
        self.patches.clear();
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
        self.levels.iter().flatten().all(Writes::is_empty) && self.patches.is_empty()
    }

    /// Bytes of memory that all writes take.
    pub(crate) fn bytes(&self) -> usize {
        self.levels.iter().flatten().map(Writes::bytes).sum()
    }

    /// Opens a level.
    pub(crate) fn push(&mut self) {
        self.levels.push(std::mem::take(&mut self.spare));
    }

    /// Drops the innermost level.
    pub(super) fn drop_level(&mut self) {
        if !self.patches.is_empty() {
            self.patches.drop_level(self.levels.len());
        }
        let Some(mut level) = self.levels.pop() else { return };
        level.iter_mut().for_each(Writes::clear);
        self.spare = level;
    }

    /// Merges the innermost level into the one around it.
    pub(crate) fn merge_level(&mut self) {
        let Some(mut inner) = self.levels.pop() else { return };
        if !self.patches.is_empty() {
            let depth = self.levels.len();
            self.patches.forget(depth, |key| inner[Which::Main as usize].says(key));
            self.patches.merge_level(depth + 1);
        }
        let Some(outer) = self.levels.last_mut() else { return };
        for (outer, inner) in outer.iter_mut().zip(&mut inner) {
            outer.absorb(inner);
        }
        self.spare = inner;
    }

    fn innermost(&mut self, which: Which) -> &mut Writes {
        if self.levels.is_empty() {
            self.push();
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last][which as usize]
    }

    /// Notes a value; answers whether the same level has given the key one before.
    pub(super) fn set(&mut self, which: Which, key: &[u8], value: &[u8]) -> bool {
        self.forget_patches(which, |patched| patched == key);
        self.innermost(which).put(&mut Sought::new(key), Some(value))
    }

    /// Notes that a key has no value.
    pub(super) fn remove(&mut self, which: Which, key: &[u8]) {
        self.forget_patches(which, |patched| patched == key);
        self.innermost(which).put(&mut Sought::new(key), None);
    }

    /// Notes that no key with this prefix has a value.
    pub(super) fn remove_prefix(&mut self, which: Which, prefix: &[u8]) {
        self.forget_patches(which, |patched| patched.starts_with(prefix));
        self.innermost(which).remove_prefix(prefix);
    }

    /// Forgets patches of the innermost level whose keys it writes otherwise.
    #[inline]
    fn forget_patches(&mut self, which: Which, is_written: impl Fn(&[u8]) -> bool) {
        if which == Which::Main && !self.patches.is_empty() {
            self.patches.forget(self.levels.len(), is_written);
        }
    }

    /// What the innermost level that knows `key` says.
    #[inline]
    pub(crate) fn lookup(&self, which: Which, key: &[u8]) -> Lookup<'_> {
        let mut sought = Sought::new(key);
        for level in self.levels.iter().rev() {
            let writes = &level[which as usize];
            match writes.get(&mut sought) {
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
        let in_force = |key: &&[u8]| matches!(self.lookup(which, key), Lookup::Value(_));
        let candidates = self.levels.iter().filter_map(|level| {
            let mut keys = level[which as usize].range(bounds.0, bounds.1).map(|key| &key[..]);
            match side {
                Neighbour::Previous => keys.rev().find(in_force),
                _ => keys.find(in_force),
            }
        });
        match side {
            Neighbour::Previous => candidates.max(),
            _ => candidates.min(),
        }
    }

    /// The first key from `low` on before `high` that any level writes, or the last one.
    pub(crate) fn written(&self, which: Which, low: &[u8], high: &[u8], backwards: bool) -> Option<&[u8]> {
        let within = (Bound::Included(low), Bound::Excluded(high));
        let keys = self.levels.iter().filter_map(|level| {
            let mut keys = level[which as usize].range(within.0, within.1).map(|key| &key[..]);
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
            let last = level[which as usize].removals().range::<[u8], _>(before).next_back();
            last.is_some_and(|prefix| removal_end(prefix)[..] > *low)
        })
    }

    /// Merges all levels into one, and brings its writes into order.
    pub(crate) fn flatten(&mut self) {
        while self.levels.len() > 1 {
            self.merge_level();
        }
        self.levels.iter_mut().flatten().for_each(Writes::sort);
    }

    /// Has the order of all keys written known: to be called before [`Overlay::neighbour`] and [`Overlay::written`].
    pub(super) fn arrange(&mut self, which: Which) {
        self.levels.iter_mut().for_each(|level| level[which as usize].arrange());
    }

    /// Removals of the outermost level, in order.
    pub(crate) fn removals(&self, which: Which) -> impl Iterator<Item = &[u8]> {
        self.levels[..1]
            .iter()
            .flat_map(move |level| level[which as usize].removals().iter().map(Vec::as_slice))
    }

    /// Writes of the outermost level, in order.
    pub(crate) fn values(&self, which: Which) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.levels[..1].iter().flat_map(move |level| level[which as usize].all())
    }

    /// Whether a removal of the outermost level covers `key`.
    pub(crate) fn is_removed(&self, which: Which, key: &[u8]) -> bool {
        self.levels[..1].iter().any(|level| level[which as usize].covering(key).is_some())
    }
}
