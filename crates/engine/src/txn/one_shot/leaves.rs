//! The leaves that a one-shot transaction has read, each once, with the word under which it was read.
//!
//! A scan reads a thousand of them, mostly one behind the other, and a transfer three. So the leaf of before is looked at
//! first; then all, while there are few; then a table by their numbers.
//!
//! Invariant: a leaf that was met under two words is told, for what was read of it was never one state.

use super::super::spread::Numbered;
use crate::limits::ONE_SHOT_LEAVES;
use crate::tree::{Halves, Seen};

/// Beyond so many they are looked up in a table.
const LINEAR: usize = 16;

/// What has come of noting a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It was there before.
    Known,
    New,
    /// It was there before, under another word.
    Changed,
    /// There is no room for it.
    Full,
}

/// The leaves.
#[derive(Default)]
pub(super) struct Leaves {
    leaves: Vec<Seen>,
    /// Where leaves stand, by their numbers; not kept while there are few.
    index: Numbered<usize>,
    /// The index of the leaf that was read last.
    last: usize,
}

impl Leaves {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.leaves.clear();
        if !self.index.is_empty() {
            self.index = Numbered::default();
        }
        self.last = 0;
    }

    /// The leaves, in the order in which they were first read.
    #[inline]
    pub(super) fn all(&self) -> &[Seen] {
        &self.leaves
    }

    /// Whether there is no room for another one.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.leaves.len() >= ONE_SHOT_LEAVES
    }

    /// The index of the leaf that was read last.
    #[inline]
    pub(super) fn last(&self) -> usize {
        self.last
    }

    /// Says which one was read last.
    #[inline]
    pub(super) fn set_last(&mut self, index: usize) {
        self.last = index;
    }

    /// Where a leaf stands.
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<usize> {
        if self.leaves.get(self.last).is_some_and(|seen| seen.number == number) {
            return Some(self.last);
        }
        if self.leaves.len() <= LINEAR {
            return self.leaves.iter().position(|seen| seen.number == number);
        }
        self.index.get(&u64::from(number)).copied()
    }

    /// Notes a leaf as the one that was read last.
    #[inline]
    pub(super) fn note(&mut self, leaf: Seen) -> Noted {
        match self.find(leaf.number) {
            Some(index) => {
                self.last = index;
                if self.leaves[index].word == leaf.word {
                    Noted::Known
                } else {
                    Noted::Changed
                }
            }
            None if !self.is_full() => {
                self.last = self.leaves.len();
                self.push(leaf);
                Noted::New
            }
            None => Noted::Full,
        }
    }

    fn push(&mut self, leaf: Seen) {
        self.leaves.push(leaf);
        let count = self.leaves.len();
        if count > LINEAR {
            // The first time all of them, from then on the one that has come.
            let first = if count == LINEAR + 1 { 0 } else { count - 1 };
            let new = self.leaves.iter().enumerate().skip(first);
            self.index.extend(new.map(|(at, seen)| (u64::from(seen.number), at)));
        }
    }

    /// Puts the halves of a leaf in its place; false if it is not what was read, or there is no room.
    pub(super) fn split(&mut self, index: usize, halves: &Halves) -> bool {
        let Halves { old, left, right } = *halves;
        if self.is_full() || !self.replace(index, old, left) {
            return false;
        }
        self.push(right);
        true
    }

    /// Puts another leaf, which says the same, in the place of one; false if that is not what was read.
    pub(super) fn replace(&mut self, index: usize, old: Seen, new: Seen) -> bool {
        if self.leaves[index] != old {
            return false;
        }
        self.leaves[index] = new;
        if self.leaves.len() > LINEAR {
            self.index.remove(&u64::from(old.number));
            self.index.insert(u64::from(new.number), index);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use perilune_shm::latch::LatchWord;

    use super::*;

    fn halves(old: Seen, left: Seen, right: Seen) -> Halves {
        Halves { old, left, right }
    }

    fn leaf(number: u32, version: u64) -> Seen {
        Seen { number, word: LatchWord::from_raw(version << 32) }
    }

    #[test]
    fn each_leaf_is_noted_once_however_many_there_are() {
        let mut leaves = Leaves::default();
        for round in 0..3 {
            for number in 1..=ONE_SHOT_LEAVES as u32 {
                let noted = leaves.note(leaf(number * 7, 1));
                assert_eq!(noted, if round == 0 { Noted::New } else { Noted::Known }, "{number}");
                assert_eq!(leaves.last(), number as usize - 1);
            }
        }
        assert_eq!(leaves.note(leaf(7, 2)), Noted::Changed);
        assert_eq!(leaves.note(leaf(8, 1)), Noted::Full);
        leaves.clear();
        assert_eq!((leaves.find(7), leaves.note(leaf(7, 2))), (None, Noted::New));
    }

    #[test]
    fn halves_stand_for_the_leaf_that_was_split() {
        // NB: in the tiny engine there is no room for more.
        for count in [1, LINEAR as u32 - 1, LINEAR as u32, LINEAR as u32 + 1, 40] {
            if count as usize >= ONE_SHOT_LEAVES {
                continue;
            }
            let mut leaves = Leaves::default();
            (0..count).for_each(|number| _ = leaves.note(leaf(number, 1)));
            assert!(!leaves.split(0, &halves(leaf(0, 2), leaf(0, 3), leaf(99, 1))), "it is another one");
            assert!(leaves.split(0, &halves(leaf(0, 1), leaf(0, 3), leaf(99, 1))));
            assert_eq!((leaves.note(leaf(0, 3)), leaves.note(leaf(99, 1))), (Noted::Known, Noted::Known));
            assert_eq!(leaves.all().len(), count as usize + 1);
            assert!(!leaves.replace(0, leaf(0, 1), leaf(98, 1)), "it is another one");
            assert!(leaves.replace(0, leaf(0, 3), leaf(98, 7)));
            assert_eq!((leaves.note(leaf(98, 7)), leaves.find(0)), (Noted::Known, None));
        }
    }
}
