//! What an open transaction has read at the server: conditions of its commit.
//!
//! Invariants
//! - Each answer of the server that the body may have seen is a condition, in the form in which the commit
//!   sends it, and no more of it than the body can have looked at.
//! - A key is read once: what was read of it is what every later read answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use perilune_resp::ArgumentsBuf;
use perilune_store::Granularity;

use crate::limits::VALUE_BYTES;
use crate::search::{Pair, PartOfKey, Search};
use crate::wire::{FIRST, FIRST_UNDER, HAS, HAS_PIECE, IS, IS_ABSENT, LAST, LAST_UNDER};

/// The conditions, and what is known of single keys.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    conditions: ArgumentsBuf,
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Keys of which it is known that they have values, and not which.
    valued: BTreeSet<Vec<u8>>,
    count: usize,
    bytes: usize,
}

impl Reads {
    /// What was read at `key`: a value, none; or it was not read.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.values.get(key).map(|value| value.as_deref())
    }

    /// The server answered `value` for `key`.
    pub(crate) fn value(&mut self, key: &[u8], value: Option<&[u8]>) {
        if self.values.contains_key(key) {
            return;
        }
        match value {
            Some(value) => self.add(&[IS, key, value]),
            None => self.add(&[IS_ABSENT, key]),
        }
        self.values.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
    }

    /// The server answered that the value at `key` has so many bytes, and this piece.
    pub(crate) fn piece(&mut self, key: &[u8], at: &Range<usize>, length: usize, piece: &[u8]) {
        // NB: no value is that long, and the numbers stay some that the server reads.
        let [start, end] = [at.start, at.end].map(|at| at.min(VALUE_BYTES));
        let [start, end, length] = [start, end, length].map(|number| number.to_string().into_bytes());
        self.add(&[HAS_PIECE, key, &start, &end, &length, piece]);
    }

    /// Whether there is a value at `key`, if that is known.
    pub(crate) fn has(&self, key: &[u8]) -> Option<bool> {
        self.get(key).map(|value| value.is_some()).or(self.valued.contains(key).then_some(true))
    }

    /// The server answered whether there is a value at `key`.
    pub(crate) fn existence(&mut self, key: &[u8], is_there: bool) {
        if self.has(key).is_some() {
            return;
        }
        if !is_there {
            return self.value(key, None);
        }
        self.add(&[HAS, key]);
        self.valued.insert(key.to_vec());
    }

    /// The server answered whether there is anything below `key`.
    pub(crate) fn descendants(&mut self, key: &[u8], are_there: bool) {
        let end = [key, &[0xFF]].concat();
        if are_there {
            self.add(&[FIRST_UNDER, key, b"0", &end, key]);
        } else {
            self.add(&[FIRST, key, b"0", &end, b""]);
        }
    }

    /// The server answered `found` for a search: the condition is the part of the key that is looked at. `masked`: the
    /// transaction has written there itself, so that the search goes on behind it: then it is all of it.
    pub(crate) fn found(&mut self, search: &Search<'_>, found: Option<&Pair>, masked: bool) {
        let granularity = if masked { Granularity::Whole } else { search.granularity };
        let key = found.map_or(&[][..], |(key, _)| key);
        let is_exact = found.is_none() || granularity.looks_at_all(key);
        let part = if is_exact { key } else { granularity.part(key) };
        if search.forward {
            let tag = if is_exact { FIRST } else { FIRST_UNDER };
            self.add(&[tag, search.from, if search.inclusive { b"1" } else { b"0" }, search.bound, part]);
        } else {
            let tag = if is_exact { LAST } else { LAST_UNDER };
            self.add(&[tag, search.from, search.bound, part]);
        }
        if let Some((key, value)) = found.filter(|(key, _)| !masked && search.wants_value(key)) {
            self.value(key, Some(value));
        }
    }

    fn add(&mut self, parts: &[&[u8]]) {
        self.count += 1;
        for part in parts {
            self.conditions.push(part);
            self.bytes += part.len();
        }
    }

    pub(crate) fn conditions(&self) -> &ArgumentsBuf {
        &self.conditions
    }

    /// How many answers of the server they rest on.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
