//! Where the reads of a one-shot transaction have found keys, so that a write to the same key needs no search.
//!
//! Invariant: a place holds for its leaf under the word with which it was read, and for no later one.

use std::ops::Range;

use crate::page::Found;
use crate::tree::Neighbour;

/// So many are remembered: what is written has mostly been looked for just before.
const PLACES: usize = 8;

/// An answer.
struct Known {
    /// The index of the leaf among those read.
    leaf: usize,
    found: Found,
    /// The key that stands there, or would.
    key: Range<usize>,
    /// The key whose neighbour that is, if it belongs to the same leaf; else empty.
    from: Range<usize>,
    /// Where a key between the two would stand.
    between: usize,
}

/// The last answers.
#[derive(Default)]
pub(super) struct Places {
    places: Vec<Known>,
    bytes: Vec<u8>,
}

impl Places {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }

    /// Remembers where `key` stands in a leaf, and that of the key `from` it is the neighbour on this side.
    #[inline]
    pub(super) fn note(&mut self, leaf: usize, found: Found, key: &[u8], from: Option<(&[u8], Neighbour)>) {
        if self.places.len() == PLACES {
            self.clear();
        }
        let (from, side) = from.unwrap_or((&[], Neighbour::AtOrNext));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(from);
        let between = found.index + usize::from(side == Neighbour::Previous);
        let (key, from) = (start..middle, middle..self.bytes.len());
        self.places.push(Known { leaf, found, key, from, between });
    }

    /// The leaf of `key`, by its index, and its place there.
    #[inline]
    pub(super) fn place_of(&self, key: &[u8]) -> Option<(usize, Found)> {
        self.places.iter().rev().find_map(|known| {
            let (found, from) = (&self.bytes[known.key.clone()], &self.bytes[known.from.clone()]);
            if key == found {
                return Some((known.leaf, known.found));
            }
            let between = !from.is_empty() && (key < found) != (key < from) && key != from;
            between.then_some((known.leaf, Found { index: known.between, equal: false }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(index: usize, equal: bool) -> Option<(usize, Found)> {
        Some((7, Found { index, equal }))
    }

    #[test]
    fn an_answer_tells_of_its_key_and_of_what_lies_before_it() {
        let mut places = Places::default();
        places.note(7, Found { index: 4, equal: false }, b"m", None);
        assert_eq!(places.place_of(b"m"), at(4, false));
        assert_eq!((places.place_of(b"l"), places.place_of(b"n")), (None, None));
        places.clear();
        assert_eq!(places.place_of(b"m"), None);
        let found = Found { index: 4, equal: true };
        for side in [Neighbour::Next, Neighbour::AtOrNext] {
            places.clear();
            places.note(7, found, b"m", Some((b"f", side)));
            assert_eq!((places.place_of(b"m"), places.place_of(b"g")), (at(4, true), at(4, false)));
            // The key itself may be there, or not.
            for key in [b"e", b"f", b"n"] {
                assert_eq!(places.place_of(key), None, "{key:?}");
            }
        }
        places.clear();
        places.note(7, found, b"m", Some((b"t", Neighbour::Previous)));
        assert_eq!((places.place_of(b"m"), places.place_of(b"n")), (at(4, true), at(5, false)));
        for key in [b"l", b"t", b"u"] {
            assert_eq!(places.place_of(key), None, "{key:?}");
        }
    }
}
