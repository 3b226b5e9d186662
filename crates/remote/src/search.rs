//! A search for the nearest key, and how much of what it finds its caller looks at.
//!
//! Invariant: the caller's answer is the same for all keys of which it looks at the same part.

use std::cmp::Ordering;

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
    /// The place from which keys count: from here on, or before it. It may have one more byte.
    pub(crate) fn start(&self) -> (&[u8], Option<u8>) {
        // Nothing lies between a key and itself with a zero behind it.
        (self.from, (self.forward && !self.inclusive).then_some(0))
    }

    /// On which side of `key` that place lies.
    pub(crate) fn compare_start(&self, key: &[u8]) -> Ordering {
        let (start, more) = self.start();
        match more {
            Some(more) => match key.split_at_checked(start.len()) {
                Some((begin, rest)) => start.cmp(begin).then_with(|| [more][..].cmp(rest)),
                // NB: a beginning of the place lies before it, as it does without that byte.
                None => start.cmp(key),
            },
            None => start.cmp(key),
        }
    }

    /// Whether that place is this one, which may have one more byte, too.
    pub(crate) fn starts_at(&self, place: &[u8], place_more: Option<u8>) -> bool {
        let (start, more) = self.start();
        let is_with_last = |long: &[u8], short: &[u8], last: Option<u8>| {
            long.split_last().is_some_and(|(end, begin)| Some(*end) == last && begin == short)
        };
        match (more, place_more) {
            (Some(_), None) => is_with_last(place, start, more),
            (None, Some(_)) => is_with_last(start, place, place_more),
            _ => more == place_more && start == place,
        }
    }

    /// Whether the value of a key that it finds is looked at.
    pub(crate) fn wants_value(&self, key: &[u8]) -> bool {
        self.with_value && self.granularity.looks_at_all(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_compared_as_if_they_were_put_together() {
        let keys: Vec<Vec<u8>> = ["", "a", "a\0", "a\0\0", "a\0b", "a\u{1}", "ab", "b"]
            .iter()
            .map(|key| key.as_bytes().to_vec())
            .collect();
        for from in &keys {
            for (forward, inclusive) in [(true, true), (true, false), (false, false)] {
                let granularity = Granularity::Whole;
                let search = Search { forward, from, inclusive, bound: &[], with_value: false, granularity };
                let (start, more) = search.start();
                let whole: Vec<u8> = start.iter().copied().chain(more).collect();
                assert_eq!(whole.len(), from.len() + usize::from(forward && !inclusive));
                for key in &keys {
                    assert_eq!(search.compare_start(key), whole.cmp(key), "{from:?} {forward} {key:?}");
                    for place_more in [None, Some(0), Some(0xFF)] {
                        let place: Vec<u8> = key.iter().copied().chain(place_more).collect();
                        assert_eq!(search.starts_at(key, place_more), whole == place, "{from:?} {place:?}");
                    }
                }
            }
        }
    }
}
