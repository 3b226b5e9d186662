//! What a one-shot transaction wants written: its nodes, looked up by their keys and given in the order of these.
//!
//! Mostly keys come in ascending order, or there are few. So the order is a list of indices: one that comes behind all
//! others is appended, for any other the list is searched by halves, and moved.
//!
//! Invariant: no key is there twice.

use std::cmp::Ordering;
use std::ops::Range;

use crate::page::{Coming, Found};
use crate::session::record::{op_bytes, Kind, Op, HEADING};

/// A value that is to be set, or removed.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) kind: Kind,
    key: Range<usize>,
    value: Range<usize>,
    /// The leaf that was read last before it, by its index: what is written has mostly been looked for.
    pub(super) near: usize,
    /// Where the key stands in that leaf, if a read has told.
    pub(super) place: Option<Found>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Writes {
    all: Vec<Write>,
    /// Their indices, by their keys.
    order: Vec<u32>,
    /// Keys and values, one behind the other.
    bytes: Vec<u8>,
}

impl Writes {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.order.clear();
        self.bytes.clear();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes of keys and values, with those that are no longer wanted.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the record of all.
    pub(super) fn record_bytes(&self) -> usize {
        let bytes = |write: &Write| op_bytes(write.key.len(), write.value.len());
        HEADING + self.all.iter().map(bytes).sum::<usize>()
    }

    /// All, in the order in which they came; by their keys once they are sorted.
    #[inline]
    pub(super) fn all(&self) -> &[Write] {
        &self.all
    }

    #[inline]
    pub(super) fn all_mut(&mut self) -> &mut [Write] {
        &mut self.all
    }

    #[inline]
    pub(super) fn key(&self, write: &Write) -> &[u8] {
        &self.bytes[write.key.clone()]
    }

    #[inline]
    pub(super) fn value(&self, write: &Write) -> &[u8] {
        &self.bytes[write.value.clone()]
    }

    /// The operation that a write is in the log.
    #[inline]
    pub(super) fn op(&self, write: &Write) -> Op<'_> {
        Op { kind: write.kind, volatile: false, big: false, key: self.key(write), value: self.value(write) }
    }

    /// What the write with this index asks of its leaf, if there is one.
    pub(super) fn coming(&self, index: usize) -> Option<Coming<'_>> {
        let write = self.all.get(index)?;
        Some(Coming { key: self.key(write), value: write.kind.sets().then_some(write.value.len()) })
    }

    /// The key of the write at a place in the order.
    #[inline]
    fn key_at(&self, place: usize) -> &[u8] {
        self.key(&self.all[self.order[place] as usize])
    }

    /// The place in the order of the first key that is not below this one.
    fn place_of(&self, key: &[u8]) -> usize {
        self.order.partition_point(|index| self.key(&self.all[*index as usize]) < key)
    }

    /// The index of the write of `key`, or its place in the order.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let Some(last) = self.order.len().checked_sub(1) else { return Err(0) };
        match self.key_at(last).cmp(key) {
            Ordering::Less => return Err(self.order.len()),
            Ordering::Equal => return Ok(self.order[last] as usize),
            Ordering::Greater => {}
        }
        let place = self.place_of(key);
        if self.key_at(place) == key {
            Ok(self.order[place] as usize)
        } else {
            Err(place)
        }
    }

    /// Those with a key in `from..end`, by their keys; without an `end` to the last one.
    pub(super) fn within(&self, from: &[u8], end: &[u8]) -> impl DoubleEndedIterator<Item = &Write> {
        let low = if self.is_empty() { 0 } else { self.place_of(from) };
        let high = if end.is_empty() || low == self.len() { self.len() } else { self.place_of(end) };
        self.order[low..high.max(low)].iter().map(|index| &self.all[*index as usize])
    }

    /// Gives a write that is there another kind and value.
    pub(super) fn change(&mut self, index: usize, kind: Kind, value: &[u8]) {
        let own = &mut self.all[index];
        own.kind = kind;
        if own.value.len() == value.len() {
            self.bytes[own.value.clone()].copy_from_slice(value);
        } else {
            own.value = self.bytes.len()..self.bytes.len() + value.len();
            self.bytes.extend_from_slice(value);
        }
    }

    /// Adds one that is not there, whose key has this place in the order.
    #[inline]
    pub(super) fn add(
        &mut self,
        place: usize,
        kind: Kind,
        [key, value]: [&[u8]; 2],
        near: usize,
        found: Option<Found>,
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let (key, value) = (start..middle, middle..self.bytes.len());
        // NB: there are far fewer than 2^32.
        self.order.insert(place, self.all.len() as u32);
        self.all.push(Write { kind, key, value, near, place: found });
    }

    /// Notes where the key of one stands, in a leaf that was read.
    pub(super) fn find_again(&mut self, index: usize, near: usize, found: Found) {
        (self.all[index].near, self.all[index].place) = (near, Some(found));
    }

    /// Forgets one.
    pub(super) fn take(&mut self, index: usize) {
        self.all.swap_remove(index);
        let moved = self.all.len();
        self.order.retain(|other| *other as usize != index);
        if let Some(last) = self.order.iter_mut().find(|other| **other as usize == moved) {
            *last = index as u32;
        }
    }

    /// Brings all into the order of their keys.
    pub(super) fn sort(&mut self) {
        if self.order.iter().enumerate().any(|(place, index)| place != *index as usize) {
            self.all = self.order.iter().map(|index| self.all[*index as usize].clone()).collect();
            self.order.iter_mut().enumerate().for_each(|(place, index)| *index = place as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (*state >> 33) as usize % below
    }

    #[test]
    fn writes_are_found_changed_and_forgotten_as_in_a_map() {
        let (mut state, mut writes) = (1, Writes::default());
        for round in 0..200 {
            let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
            writes.clear();
            let (count, range) = (random(&mut state, 300), 1 + random(&mut state, 500));
            for step in 0..count {
                // Some rounds ascend.
                let number = if round % 3 == 0 { step } else { random(&mut state, range) };
                let key = format!("key{number:05}").into_bytes();
                let value = vec![step as u8; random(&mut state, 4)];
                match writes.find(&key) {
                    Ok(index) if step % 5 == 0 => {
                        writes.take(index);
                        model.remove(&key);
                    }
                    Ok(index) => {
                        assert_eq!(writes.value(&writes.all()[index]), model[&key]);
                        writes.change(index, Kind::Set, &value);
                        model.insert(key, value);
                    }
                    Err(place) => {
                        assert!(!model.contains_key(&key));
                        writes.add(place, Kind::Set, [&key, &value], 0, None);
                        model.insert(key, value);
                    }
                }
            }
            let low = format!("key{:05}", random(&mut state, range)).into_bytes();
            for high in [Vec::new(), format!("key{:05}", random(&mut state, range)).into_bytes()] {
                let lies = |key: &[u8]| low.as_slice() <= key && (high.is_empty() || key < high.as_slice());
                let expected: Vec<_> = model.keys().filter(|key| lies(key)).cloned().collect();
                let found: Vec<_> =
                    writes.within(&low, &high).map(|write| writes.key(write).to_vec()).collect();
                assert_eq!(found, expected, "round {round}");
            }
            writes.sort();
            let pair = |write: &Write| (writes.key(write).to_vec(), writes.value(write).to_vec());
            assert!(writes.all().iter().map(pair).eq(model.into_iter()), "round {round}");
        }
    }
}
