//! A search for the nearest key, and how much of what it finds its caller looks at.
//!
//! Invariant: the caller's answer is the same for all keys of which it looks at the same part.

use std::borrow::Cow;

use perilune_store::Granularity;

use crate::wire::child_of;

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// What a [`Granularity`] means for keys, whose codes the store does not know.
pub(crate) trait PartOfKey {
    /// The part of `key` that is looked at.
    fn part(self, key: &[u8]) -> &[u8];
    /// Whether another key with the same part would be another answer.
    fn looks_at_all(self, key: &[u8]) -> bool;
    /// The length of the key whose children are looked for.
    fn parent(self) -> Option<usize>;
}

impl PartOfKey for Granularity {
    fn part(self, key: &[u8]) -> &[u8] {
        match self {
            Granularity::Whole => key,
            Granularity::Child(parent) | Granularity::Entry(parent) => child_of(key, parent).unwrap_or(key),
            Granularity::Start(bytes) => &key[..bytes.min(key.len())],
        }
    }

    fn looks_at_all(self, key: &[u8]) -> bool {
        match self {
            Granularity::Whole => true,
            Granularity::Child(parent) => child_of(key, parent).is_none(),
            Granularity::Entry(_) => self.part(key) == key,
            Granularity::Start(_) => false,
        }
    }

    fn parent(self) -> Option<usize> {
        match self {
            Granularity::Child(parent) | Granularity::Entry(parent) => Some(parent),
            Granularity::Whole | Granularity::Start(_) => None,
        }
    }
}

/// What is looked for: the first key from a place on, or the last before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'s> {
    pub(crate) forward: bool,
    pub(crate) from: &'s [u8],
    /// Forward only: the key at the place counts.
    pub(crate) inclusive: bool,
    /// Forward what lies behind (empty: nothing does), backward the least key that counts.
    pub(crate) bound: &'s [u8],
    pub(crate) with_value: bool,
    pub(crate) granularity: Granularity,
}

impl Search<'_> {
    /// The place from which keys count: from here on, or before it.
    pub(crate) fn start(&self) -> Cow<'_, [u8]> {
        if self.forward && !self.inclusive {
            // Nothing lies between a key and itself with a zero behind it.
            Cow::Owned([self.from, &[0]].concat())
        } else {
            Cow::Borrowed(self.from)
        }
    }

    /// Whether the value of a key that it finds is looked at.
    pub(crate) fn wants_value(&self, key: &[u8]) -> bool {
        self.with_value && self.granularity.looks_at_all(key)
    }
}
