//! What a transaction writes to one tree at one level.
//!
//! Invariants
//! - Writes lie in the order of their keys as long as they are few, and when they have been sorted. Else they lie in the order
//!   in which they came and are found by digests of their keys; a tree of keys knows the order of the first ones, which is
//!   asked for seldom.
//! - Two keys of one digest are told apart: as soon as there are such, the tree knows all keys, and is asked for those that
//!   digests do not find.
//! - A removal of a prefix comes before the writes: one under the prefix is a later one. No removal is covered by another.

use std::collections::btree_map::{self, BTreeMap};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use perilune_shm::words;

use super::reads::digest;
use super::spread::Numbered;
use crate::page::common;
use crate::tree::removal_end;

/// So many are kept in order.
const SORTED_MAX: usize = 8;

/// Bytes of memory that a write takes besides its key and its value, or a removal besides its prefix; rather more, since what
/// finds them doubles when it grows.
const OWN_BYTES: usize = 288;

/// A key, and its value if it is to have one.
pub(super) struct Write {
    key: Arc<[u8]>,
    value: Option<Vec<u8>>,
}

impl Write {
    fn bytes(&self) -> usize {
        OWN_BYTES + self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// The digest of a key that is looked for, once it is wanted.
pub(super) struct Sought<'a> {
    key: &'a [u8],
    digest: Option<u64>,
}

impl<'a> Sought<'a> {
    pub(super) fn new(key: &'a [u8]) -> Sought<'a> {
        Sought { key, digest: None }
    }

    #[inline]
    fn digest(&mut self) -> u64 {
        *self.digest.get_or_insert_with(|| digest_of(self.key))
    }
}

#[inline]
fn digest_of(key: &[u8]) -> u64 {
    let digest = digest(true, [key, &[]]);
    #[cfg(test)]
    let digest = digest & ALIKE.get();
    digest
}

#[cfg(test)]
thread_local! {
    /// Bits of digests that are taken: with few, keys have the same.
    pub(super) static ALIKE: std::cell::Cell<u64> = const { std::cell::Cell::new(u64::MAX) };
}

/// All writes.
#[derive(Default)]
pub(super) struct Writes {
    entries: Vec<Write>,
    /// Where the entries of keys are, by their digests; of two keys of the same one, one of them. Empty: they are in order.
    table: Numbered<usize>,
    has_twins: bool,
    /// Where the first entries stand, by their keys in order.
    order: BTreeMap<Arc<[u8]>, usize>,
    removals: BTreeSet<Vec<u8>>,
    /// Of all entries and removals.
    bytes: usize,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.removals.is_empty()
    }

    /// Bytes of memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all out; keeps some memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.forget_places();
        self.removals.clear();
    }

    fn forget_places(&mut self) {
        if !self.table.is_empty() {
            self.table = Numbered::default();
            self.order.clear();
            self.has_twins = false;
        }
    }

    fn is_sorted(&self) -> bool {
        self.table.is_empty()
    }

    #[inline]
    fn find(&self, sought: &mut Sought<'_>) -> Option<usize> {
        let key = sought.key;
        if self.is_sorted() {
            if self.entries.len() <= SORTED_MAX {
                return self.entries.iter().position(|write| *write.key == *key);
            }
            return self.entries.binary_search_by(|write| (*write.key).cmp(key)).ok();
        }
        match self.table.get(&sought.digest()) {
            Some(at) if *self.entries[*at].key == *key => Some(*at),
            None if !self.has_twins => None,
            _ => self.order.get(key).copied(),
        }
    }

    /// The value that a key is to have, if one; none if it is not written.
    #[inline]
    pub(super) fn get(&self, sought: &mut Sought<'_>) -> Option<Option<&[u8]>> {
        self.find(sought).map(|at| self.entries[at].value.as_deref())
    }

    /// Writes a key; answers whether it was written to have a value before.
    pub(super) fn put(&mut self, sought: &mut Sought<'_>, value: Option<&[u8]>) -> bool {
        let Some(at) = self.find(sought) else {
            self.insert(sought, Write { key: sought.key.into(), value: value.map(<[u8]>::to_vec) });
            return false;
        };
        self.bytes -= self.entries[at].value.as_ref().map_or(0, Vec::len);
        self.bytes += value.map_or(0, <[u8]>::len);
        match (&mut self.entries[at].value, value) {
            (Some(old), Some(value)) => {
                value.clone_into(old);
                true
            }
            (old, value) => std::mem::replace(old, value.map(<[u8]>::to_vec)).is_some(),
        }
    }

    /// Takes over what another level has written later.
    pub(super) fn absorb(&mut self, inner: &mut Writes) {
        if self.is_empty() {
            return std::mem::swap(self, inner);
        }
        for prefix in &inner.removals {
            self.remove_prefix(prefix);
        }
        for write in inner.entries.drain(..) {
            let key = Arc::clone(&write.key);
            let mut sought = Sought::new(&key);
            match self.find(&mut sought) {
                Some(at) => {
                    self.bytes -= self.entries[at].bytes();
                    self.bytes += write.bytes();
                    self.entries[at].value = write.value;
                }
                None => self.insert(&mut sought, write),
            }
        }
        inner.clear();
    }

    /// Adds a write of a key that is not written.
    fn insert(&mut self, sought: &mut Sought<'_>, write: Write) {
        self.bytes += write.bytes();
        if self.is_sorted() {
            if self.entries.len() < SORTED_MAX {
                let at = self.entries.partition_point(|before| before.key < write.key);
                return self.entries.insert(at, write);
            }
            for at in 0..self.entries.len() {
                self.note(digest_of(&self.entries[at].key), at);
            }
        }
        self.note(sought.digest(), self.entries.len());
        self.entries.push(write);
        if self.has_twins {
            self.arrange();
        }
    }

    /// Says where the entry of a key of this digest is.
    fn note(&mut self, digest: u64, at: usize) {
        self.has_twins |= *self.table.entry(digest).or_insert(at) != at;
    }

    /// Has the order of all keys known: to be called before it is asked for.
    pub(super) fn arrange(&mut self) {
        if !self.is_sorted() {
            let known = self.order.len();
            let rest = self.entries.iter().enumerate().skip(known);
            self.order.extend(rest.map(|(at, write)| (Arc::clone(&write.key), at)));
        }
    }

    /// Brings all into order.
    pub(super) fn sort(&mut self) {
        if self.is_sorted() {
            return;
        }
        let mut places: Vec<(u64, usize)> = (0..self.entries.len()).map(|at| (0, at)).collect();
        sort_places(&self.entries, &mut places);
        let mut entries: Vec<Option<Write>> = self.entries.drain(..).map(Some).collect();
        self.entries.extend(places.iter().filter_map(|(_, at)| entries[*at].take()));
        self.forget_places();
    }

    /// Takes a write out; the order of all is known.
    fn take_out(&mut self, key: &[u8]) {
        let mut sought = Sought::new(key);
        let Some(at) = self.find(&mut sought) else { return };
        self.bytes -= self.entries[at].bytes();
        if self.is_sorted() {
            self.entries.remove(at);
            return;
        }
        let last = self.entries.len() - 1;
        self.order.remove(key);
        if self.table.get(&sought.digest()) == Some(&at) {
            self.table.remove(&sought.digest());
        }
        self.entries.swap_remove(at);
        if let Some(moved) = self.entries.get(at) {
            self.order.insert(Arc::clone(&moved.key), at);
            if let Some(place) = self.table.get_mut(&digest_of(&moved.key)).filter(|place| **place == last) {
                *place = at;
            }
        }
        if self.table.is_empty() {
            // NB: what is left, if anything, are twins of those that have gone.
            self.order.clear();
            self.entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
            self.has_twins = false;
        }
    }

    /// The removal that covers `key`. As no removal covers another, it is the last not above the key.
    #[inline]
    pub(super) fn covering(&self, key: &[u8]) -> Option<&[u8]> {
        if self.removals.is_empty() {
            return None;
        }
        let last = self.removals.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        key.starts_with(last).then_some(last)
    }

    /// Whether it says what becomes of `key`.
    pub(super) fn says(&self, key: &[u8]) -> bool {
        self.get(&mut Sought::new(key)).is_some() || self.covering(key).is_some()
    }

    pub(super) fn remove_prefix(&mut self, prefix: &[u8]) {
        self.arrange();
        let end = removal_end(prefix);
        let below = (Bound::Included(prefix), Bound::Excluded(&end[..]));
        let keys: Vec<Arc<[u8]>> = self.range(below.0, below.1).cloned().collect();
        for key in keys {
            self.take_out(&key);
        }
        if self.covering(prefix).is_none() {
            let covered: Vec<_> = self.removals.range::<[u8], _>(below).cloned().collect();
            for removal in covered {
                self.bytes -= OWN_BYTES + removal.len();
                self.removals.remove(&removal);
            }
            self.bytes += OWN_BYTES + prefix.len();
            self.removals.insert(prefix.to_vec());
        }
    }

    /// The removals, in order.
    pub(super) fn removals(&self) -> &BTreeSet<Vec<u8>> {
        &self.removals
    }

    /// The keys written within bounds, in order, which is known.
    pub(super) fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Range<'_> {
        if !self.is_sorted() {
            debug_assert_eq!(self.order.len(), self.entries.len());
            return Range::Many(self.order.range::<[u8], _>((low, high)));
        }
        let start = match low {
            Bound::Included(low) => self.entries.partition_point(|write| *write.key < *low),
            Bound::Excluded(low) => self.entries.partition_point(|write| *write.key <= *low),
            Bound::Unbounded => 0,
        };
        let end = match high {
            Bound::Included(high) => self.entries.partition_point(|write| *write.key <= *high),
            Bound::Excluded(high) => self.entries.partition_point(|write| *write.key < *high),
            Bound::Unbounded => self.entries.len(),
        };
        Range::Sorted(self.entries[start..end.max(start)].iter())
    }

    /// All writes, in the order of keys.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let (sorted, rest) = self.entries.split_at(if self.is_sorted() { self.entries.len() } else { 0 });
        let mut rest: Vec<&Write> = rest.iter().collect();
        rest.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        sorted.iter().chain(rest).map(|write| (&write.key[..], write.value.as_deref()))
    }
}

/// So many keys that go on alike are compared whole.
const COMPARED: usize = 16;

/// Brings places of writes into the order of their keys, which differ, by eight bytes as a number at a time behind what all of
/// them begin with.
fn sort_places(entries: &[Write], places: &mut [(u64, usize)]) {
    let key = |at: usize| &entries[at].key[..];
    let Some(first) = places.first().map(|(_, at)| key(*at)) else { return };
    let alike = places.iter().fold(first.len(), |alike, (_, at)| common(&first[..alike], key(*at)));
    for (head, at) in places.iter_mut() {
        *head = words::leading(&key(*at)[alike..]);
    }
    places.sort_unstable_by_key(|(head, _)| *head);
    for run in places.chunk_by_mut(|one, other| one.0 == other.0).filter(|run| run.len() > 1) {
        // NB: a zero behind the end of a key may stand for none: then what they begin with tells no more.
        let goes_on = run.iter().all(|(_, at)| key(*at).len() >= alike + 8);
        if run.len() > COMPARED && goes_on {
            sort_places(entries, run);
        } else {
            run.sort_unstable_by(|(_, one), (_, other)| key(*one).cmp(key(*other)));
        }
    }
}

/// Keys in order, from both ends.
pub(super) enum Range<'a> {
    Sorted(std::slice::Iter<'a, Write>),
    Many(btree_map::Range<'a, Arc<[u8]>, usize>),
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Arc<[u8]>;

    #[inline]
    fn next(&mut self) -> Option<&'a Arc<[u8]>> {
        match self {
            Range::Sorted(writes) => writes.next().map(|write| &write.key),
            Range::Many(keys) => keys.next().map(|(key, _)| key),
        }
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Range::Sorted(writes) => writes.next_back().map(|write| &write.key),
            Range::Many(keys) => keys.next_back().map(|(key, _)| key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_that_begin_alike_are_brought_into_order() {
        let mut state = 1_u64;
        let mut random = |end: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % end
        };
        for round in 0..40 {
            let (mut writes, mut expected) = (Writes::default(), BTreeMap::new());
            for number in 0..300 {
                let name = ["", "a name ", "a name of sixteen", "a name of sixteen bytes and more "]
                    [random(4) as usize];
                let zeros = "\0".repeat(random(12) as usize);
                let key = match round % 2 {
                    0 => format!("{name}{}", random(200)),
                    _ => format!("{name}{zeros}{}", ["", "\0", "x"][random(3) as usize]),
                };
                let value = number.to_string();
                writes.put(&mut Sought::new(key.as_bytes()), Some(value.as_bytes()));
                expected.insert(key.into_bytes(), value.into_bytes());
            }
            writes.sort();
            assert!(writes.entries.is_sorted_by(|one, other| one.key < other.key), "round {round}");
            let all: BTreeMap<Vec<u8>, Vec<u8>> =
                writes.all().map(|(key, value)| (key.to_vec(), value.unwrap().to_vec())).collect();
            assert_eq!(all, expected, "round {round}");
            for (key, value) in &expected {
                assert_eq!(writes.get(&mut Sought::new(key)), Some(Some(&value[..])));
            }
        }
    }
}
