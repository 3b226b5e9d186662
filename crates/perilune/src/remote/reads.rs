//! What an open transaction has read at the server: conditions of its commit.
//!
//! Invariants
//! - Each answer of the server that the body may have seen is a condition, in the form in which the commit
//!   sends it.
//! - A key is read once: what was read of it is what every later read answers.

use std::collections::BTreeMap;

use perilune_resp::ArgumentsBuf;

use super::search::{Pair, Search};

/// The value at a key is this.
pub(super) const IS: &[u8] = b"=";
/// There is no value at a key.
pub(super) const IS_ABSENT: &[u8] = b"!";
/// The first key in a range is this.
pub(super) const FIRST: &[u8] = b">";
/// The last key in a range is this.
pub(super) const LAST: &[u8] = b"<";
/// Removes all keys that begin so.
pub(super) const KILL: &[u8] = b"k";
/// Writes a value.
pub(super) const SET: &[u8] = b"s";
/// Removes a value.
pub(super) const REMOVE: &[u8] = b"d";
/// Posts a message.
pub(super) const POST: &[u8] = b"p";

/// The conditions, and what is known of single keys.
#[derive(Debug, Default)]
pub(super) struct Reads {
    conditions: ArgumentsBuf,
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    count: usize,
    bytes: usize,
}

impl Reads {
    /// What was read at `key`: a value, none; or it was not read.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.values.get(key).map(|value| value.as_deref())
    }

    /// The server answered `value` for `key`.
    pub(super) fn value(&mut self, key: &[u8], value: Option<&[u8]>) {
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

    /// The server answered `found` for a search.
    pub(super) fn found(&mut self, search: &Search<'_>, found: Option<&Pair>) {
        let key = found.map_or(&[][..], |(key, _)| key);
        if search.forward {
            self.add(&[FIRST, search.from, if search.inclusive { b"1" } else { b"0" }, search.bound, key]);
        } else {
            self.add(&[LAST, search.from, search.bound, key]);
        }
        if let Some((key, value)) = found.filter(|(key, _)| search.wants_value(key)) {
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

    pub(super) fn conditions(&self) -> &ArgumentsBuf {
        &self.conditions
    }

    /// How many answers of the server they rest on.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
