//! The ordered byte map behind local trees: a `BTreeMap` with an undo log of levels.
//!
//! Invariants
//! - `log` holds the former value of every key changed since the outermost level began, oldest first;
//!   it is empty while no level is open.
//! - `levels[i]` is the length of `log` when level `i` began, so the list never descends.
//!
//! Deliberately absent: sharing between threads, durability, knowledge of what a key means.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A key's bytes and a value's bytes, as they lie in the map.
pub(crate) type Pair<'a> = (&'a Vec<u8>, &'a Vec<u8>);

/// What a key held before a change: `None` when it was absent.
#[derive(Debug)]
struct Former {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

/// An ordered map of byte strings whose changes can be taken back level by level.
#[derive(Debug, Default)]
pub(crate) struct ByteMap {
    tree: BTreeMap<Vec<u8>, Vec<u8>>,
    log: Vec<Former>,
    levels: Vec<usize>,
}

impl ByteMap {
    /// The value at `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.tree.get(key)
    }

    /// The first pair at or after `from` (`inclusive`), or after it.
    pub(crate) fn after(&self, from: &[u8], inclusive: bool) -> Option<Pair<'_>> {
        let low = if inclusive { Bound::Included(from) } else { Bound::Excluded(from) };
        self.tree.range::<[u8], _>((low, Bound::Unbounded)).next()
    }

    /// The last pair before `from`.
    pub(crate) fn before(&self, from: &[u8]) -> Option<Pair<'_>> {
        self.tree.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from))).next_back()
    }

    /// Puts `value` at `key`.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        let former = match self.tree.get_mut(key) {
            Some(place) if self.levels.is_empty() => {
                // The common overwrite outside transactions keeps its allocation.
                place.clear();
                place.extend_from_slice(value);
                return;
            }
            Some(place) => Some(std::mem::replace(place, value.to_vec())),
            None => {
                self.tree.insert(key.to_vec(), value.to_vec());
                None
            }
        };
        self.remember(key, former);
    }

    /// Removes `key`; true when it was there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some(former) = self.tree.remove(key) else { return false };
        self.remember(key, Some(former));
        true
    }

    /// Removes every key that begins with `prefix`.
    pub(crate) fn remove_prefix(&mut self, prefix: &[u8]) {
        let doomed: Vec<Vec<u8>> = self
            .tree
            .range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(prefix))
            .cloned()
            .collect();
        for key in doomed {
            if let Some(value) = self.tree.remove(&key) {
                if !self.levels.is_empty() {
                    self.log.push(Former { key, value: Some(value) });
                }
            }
        }
    }

    /// How many levels are open.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Opens a level.
    pub(crate) fn begin(&mut self) {
        self.levels.push(self.log.len());
    }

    /// Ends the innermost level and keeps its changes; false when none is open.
    pub(crate) fn commit(&mut self) -> bool {
        if self.levels.pop().is_none() {
            return false;
        }
        if self.levels.is_empty() {
            self.log.clear();
        }
        true
    }

    /// Ends the innermost level and takes its changes back; false when none is open.
    pub(crate) fn rollback(&mut self) -> bool {
        let Some(start) = self.levels.pop() else { return false };
        for Former { key, value } in self.log.drain(start..).rev() {
            match value {
                Some(value) => self.tree.insert(key, value),
                None => self.tree.remove(&key),
            };
        }
        true
    }

    fn remember(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        if !self.levels.is_empty() {
            self.log.push(Former { key: key.to_vec(), value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(map: &ByteMap) -> Vec<(Vec<u8>, Vec<u8>)> {
        map.tree.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    #[test]
    fn rollback_restores_each_level() {
        let mut map = ByteMap::default();
        map.set(b"a", b"1");
        map.set(b"b", b"2");
        let before = pairs(&map);
        map.begin();
        map.set(b"a", b"9");
        map.set(b"c", b"3");
        let outer = pairs(&map);
        map.begin();
        map.remove_prefix(b"");
        map.set(b"a", b"7");
        map.set(b"a", b"8");
        assert!(map.rollback());
        assert_eq!(pairs(&map), outer);
        assert!(map.rollback());
        assert_eq!(pairs(&map), before);
        assert!(!map.rollback());
    }

    #[test]
    fn inner_commit_belongs_to_the_outer_level() {
        let mut map = ByteMap::default();
        map.begin();
        map.begin();
        map.set(b"a", b"1");
        assert!(map.commit());
        assert!(map.rollback());
        assert!(pairs(&map).is_empty());
        map.begin();
        map.set(b"a", b"1");
        assert!(map.commit());
        assert!(map.log.is_empty());
        assert!(!map.commit());
    }

    #[test]
    fn neighbours_and_prefixes() {
        let mut map = ByteMap::default();
        for key in [&b"a"[..], b"a\x01", b"a\xfe", b"b"] {
            map.set(key, b"");
        }
        assert_eq!(map.after(b"a", false).map(|(key, _)| &key[..]), Some(&b"a\x01"[..]));
        assert_eq!(map.after(b"a", true).map(|(key, _)| &key[..]), Some(&b"a"[..]));
        assert_eq!(map.before(b"a\xff").map(|(key, _)| &key[..]), Some(&b"a\xfe"[..]));
        assert_eq!(map.before(b"a").map(|(key, _)| &key[..]), None);
        map.remove_prefix(b"a");
        assert_eq!(pairs(&map).len(), 1);
    }
}
