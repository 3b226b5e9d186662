//! What an open transaction has written, over what lies at the server.
//!
//! Nothing is sent before the commit. So a read looks here first, and a search goes on over what is hidden here.
//!
//! Example: a transaction removes `^a` with all below and sets `^a(2)`. Then `^a(1)` is absent, whatever the server has,
//! and the next key behind `^a` is `^a(2)`.
//!
//! Invariants
//! - A removed prefix hides what lies at the server below it; `writes` lies over both.
//! - `log` holds how to take back every change since the outermost level began, oldest first; `levels[i]` is its length
//!   when level `i` began.

use std::collections::BTreeMap;
use std::ops::Bound;

/// What keys become; none: removed.
pub(crate) type Entries = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The writes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// New values; none: removed.
    writes: Entries,
    prefixes: Vec<Vec<u8>>,
    log: Vec<Former>,
    levels: Vec<usize>,
    bytes: usize,
}

#[derive(Debug)]
enum Former {
    /// A key had this entry, or none.
    Entry(Vec<u8>, Option<Option<Vec<u8>>>),
    /// A prefix was added.
    Prefix,
}

/// What the overlay says of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen<'o> {
    /// It has this value.
    Value(&'o [u8]),
    /// It has none.
    Absent,
    /// What the server says.
    Unknown,
}

impl Overlay {
    /// What it says of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Seen<'_> {
        match self.writes.get(key) {
            Some(Some(value)) => Seen::Value(value),
            Some(None) => Seen::Absent,
            None if self.removed_prefix(key).is_some() => Seen::Absent,
            None => Seen::Unknown,
        }
    }

    /// The removed prefix that `key` begins with.
    pub(crate) fn removed_prefix(&self, key: &[u8]) -> Option<&[u8]> {
        self.prefixes.iter().find(|prefix| key.starts_with(prefix)).map(Vec::as_slice)
    }

    /// Whether it says anything of `key` or what lies below it.
    pub(crate) fn is_over(&self, key: &[u8]) -> bool {
        let below = self.writes.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next();
        below.is_some_and(|(written, _)| written.starts_with(key))
            || self.prefixes.iter().any(|prefix| prefix.starts_with(key) || key.starts_with(prefix))
    }

    /// The first key with a new value from `from` on and before `end`.
    pub(crate) fn after(&self, from: &[u8], inclusive: bool, end: Option<&[u8]>) -> Option<(&[u8], &[u8])> {
        let low = if inclusive { Bound::Included(from) } else { Bound::Excluded(from) };
        let range = self.writes.range::<[u8], _>((low, Bound::Unbounded));
        range
            .take_while(|(key, _)| end.is_none_or(|end| key.as_slice() < end))
            .find_map(|(key, value)| value.as_ref().map(|value| (key.as_slice(), value.as_slice())))
    }

    /// The last key with a new value before `from` and not before `begin`.
    pub(crate) fn before(&self, from: &[u8], begin: &[u8]) -> Option<(&[u8], &[u8])> {
        let range = self.writes.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from)));
        range
            .rev()
            .take_while(|(key, _)| key.as_slice() >= begin)
            .find_map(|(key, value)| value.as_ref().map(|value| (key.as_slice(), value.as_slice())))
    }

    /// Writes a value, or with `None` removes it.
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
        let former = self.writes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        self.log.push(Former::Entry(key.to_vec(), former));
    }

    /// Removes all keys that begin with `prefix`.
    pub(crate) fn remove_prefix(&mut self, prefix: &[u8]) {
        let below = self.writes.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        let doomed: Vec<Vec<u8>> =
            below.map(|(key, _)| key).take_while(|key| key.starts_with(prefix)).cloned().collect();
        for key in doomed {
            let former = self.writes.remove(&key);
            self.log.push(Former::Entry(key, former));
        }
        self.bytes += prefix.len();
        self.prefixes.push(prefix.to_vec());
        self.log.push(Former::Prefix);
    }

    /// Bytes that were written, those overwritten included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many writes there are.
    pub(crate) fn len(&self) -> usize {
        self.writes.len() + self.prefixes.len()
    }

    /// The removed prefixes, then the writes by key.
    pub(crate) fn parts(&self) -> (&[Vec<u8>], &Entries) {
        (&self.prefixes, &self.writes)
    }

    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn begin(&mut self) {
        self.levels.push(self.log.len());
    }

    /// Ends a nested level; what it wrote belongs to the one around it.
    pub(crate) fn merge(&mut self) {
        self.levels.pop();
    }

    /// Ends a level and takes back what it wrote.
    pub(crate) fn rollback(&mut self) {
        let start = self.levels.pop().unwrap_or(0);
        for former in self.log.drain(start..).rev() {
            match former {
                Former::Entry(key, Some(entry)) => {
                    self.writes.insert(key, entry);
                }
                Former::Entry(key, None) => {
                    self.writes.remove(&key);
                }
                Former::Prefix => {
                    self.prefixes.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_lie_over_each_other_and_are_taken_back() {
        let mut overlay = Overlay::default();
        overlay.begin();
        overlay.set(b"a", Some(b"1"));
        overlay.set(b"ab", Some(b"2"));
        overlay.set(b"b", None);
        overlay.begin();
        overlay.remove_prefix(b"a");
        assert_eq!(overlay.get(b"a"), Seen::Absent);
        assert_eq!(overlay.get(b"ax"), Seen::Absent);
        assert_eq!(overlay.get(b"c"), Seen::Unknown);
        assert!(overlay.is_over(b"a") && overlay.is_over(b"ax") && overlay.is_over(b"b"));
        assert!(overlay.is_over(b"") && !overlay.is_over(b"bb") && !overlay.is_over(b"c"));
        overlay.set(b"ac", Some(b"3"));
        assert_eq!(overlay.after(b"a", true, None), Some((&b"ac"[..], &b"3"[..])));
        assert_eq!(overlay.after(b"a", true, Some(b"ac")), None);
        overlay.rollback();
        assert_eq!(overlay.get(b"ab"), Seen::Value(b"2"));
        assert_eq!(overlay.get(b"ax"), Seen::Unknown);
        assert_eq!(overlay.before(b"b", b"a"), Some((&b"ab"[..], &b"2"[..])));
        assert_eq!(overlay.before(b"ab", b"aa"), None);
        overlay.begin();
        overlay.set(b"a", None);
        overlay.merge();
        assert_eq!(overlay.get(b"a"), Seen::Absent);
        overlay.rollback();
        assert_eq!((overlay.len(), overlay.depth()), (0, 0));
    }
}
