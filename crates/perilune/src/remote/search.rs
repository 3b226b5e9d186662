//! A search for the nearest key, and how much of what it finds its caller looks at.
//!
//! Invariant: the caller's answer is the same for all keys of which it looks at the same part.

use std::borrow::Cow;

/// A key and its value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// How much of the key that is found the caller looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// All of it, and the value.
    Whole,
    /// In which child it lies of the node whose key has so many bytes.
    Child(usize),
    /// A child, and its value, or that it has none.
    Entry(usize),
    /// So many bytes from its start.
    Start(usize),
}

impl Glance {
    /// The part of `key` that is looked at.
    pub(super) fn part(self, key: &[u8]) -> &[u8] {
        match self {
            Glance::Whole => key,
            Glance::Child(parent) | Glance::Entry(parent) => child_of(key, parent).unwrap_or(key),
            Glance::Start(bytes) => &key[..bytes.min(key.len())],
        }
    }

    /// Whether another key with the same part would be another answer.
    pub(super) fn is_exact(self, key: &[u8]) -> bool {
        match self {
            Glance::Whole => true,
            Glance::Child(parent) => child_of(key, parent).is_none(),
            Glance::Entry(_) => self.part(key) == key,
            Glance::Start(_) => false,
        }
    }

    /// The length of the key whose children are looked for.
    pub(super) fn parent(self) -> Option<usize> {
        match self {
            Glance::Child(parent) | Glance::Entry(parent) => Some(parent),
            Glance::Whole | Glance::Start(_) => None,
        }
    }
}

/// The child that `key` lies in of the node whose key are its first `parent` bytes.
pub(super) fn child_of(key: &[u8], parent: usize) -> Option<&[u8]> {
    let length = perilune_key::code_len(key.get(parent..)?).ok()?;
    key.get(..parent + length)
}

/// What is looked for: the first key from a place on, or the last before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'s> {
    pub(super) forward: bool,
    pub(super) from: &'s [u8],
    /// Forward only: the key at the place counts.
    pub(super) inclusive: bool,
    /// Forward what lies behind (empty: nothing does), backward the least key that counts.
    pub(super) bound: &'s [u8],
    pub(super) with_value: bool,
    pub(super) glance: Glance,
}

impl Search<'_> {
    /// The place from which keys count: from here on, or before it.
    pub(super) fn start(&self) -> Cow<'_, [u8]> {
        if self.forward && !self.inclusive {
            // Nothing lies between a key and itself with a zero behind it.
            Cow::Owned([self.from, &[0]].concat())
        } else {
            Cow::Borrowed(self.from)
        }
    }

    /// Whether the value of a key that it finds is looked at.
    pub(super) fn wants_value(&self, key: &[u8]) -> bool {
        self.with_value && self.glance.is_exact(key)
    }
}

/// Where the step of a walk begins that follows the one that has found `key`.
pub(super) fn step_behind(key: &[u8], forward: bool, parent: Option<usize>) -> Vec<u8> {
    match (parent.and_then(|parent| child_of(key, parent)), forward) {
        (Some(child), true) => [child, &[0xFF]].concat(),
        (None, true) => [key, &[0]].concat(),
        (child, false) => child.unwrap_or(key).to_vec(),
    }
}
