//! Remembers where keys stood whose neighbours were asked for: who comes again for the head of a subtree, or for its end,
//! finds it without a search, though others have written meanwhile.
//!
//! Invariants
//! - What is remembered is a guess: the leaf's own records and fences say whether it still holds, under the word that
//!   the answer is checked with.
//! - A guess that fails costs a few comparisons, and is forgotten.
//!
//! Deliberately absent: keys that are read or written themselves, which come at random; `Fingers` has the last ones.

use std::cell::Cell;

use perilune_shm::latch::{self, State};

use super::{Seen, Which};
use crate::image::Image;
use crate::page::{self, LEAF};

/// So many guesses, by the hash of the key; half a KiB for each session.
const SLOTS: usize = 64;

/// Guesses: the leaf of a key (0: none), and how many of its records were below the key.
pub(crate) struct Gaps([Cell<(u32, u16)>; SLOTS]);

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps([const { Cell::new((0, 0)) }; SLOTS])
    }
}

impl Gaps {
    #[inline]
    fn slot(&self, key: &[u8]) -> &Cell<(u32, u16)> {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let add =
            |hash: u64, bytes: [u8; 8]| (hash.rotate_left(23) ^ u64::from_le_bytes(bytes)).wrapping_mul(ODD);
        let hash = match key.last_chunk::<8>() {
            // Eight by eight, and the last eight, of which some may have been among those.
            Some(last) => key.as_chunks::<8>().0.iter().fold(add(0, *last), |hash, chunk| add(hash, *chunk)),
            None => key.iter().fold(0, |hash, byte| add(hash, u64::from(*byte).to_le_bytes())),
        };
        &self.0[(hash >> 32) as usize % SLOTS]
    }

    /// Remembers that `below` records of the leaf that covers `key` are below it.
    #[inline]
    pub(super) fn note(&self, key: &[u8], leaf: u32, below: usize) {
        self.slot(key).set((leaf, below as u16));
    }

    /// The leaf that covers `key`, and how many of its records are below it, if the guess was good, or one off.
    #[inline]
    pub(super) fn find(&self, image: &Image, which: Which, key: &[u8]) -> Option<(Seen, usize)> {
        let slot = self.slot(key);
        let (number, below) = slot.get();
        if number == 0 {
            return None;
        }
        let word = latch::load(image.latch(number));
        if word.locked() || word.state() != State::Tree {
            return None;
        }
        let page = image.page(number);
        if page::kind(page) == LEAF && page::flags(page) == which.page_flags() {
            let below = usize::from(below);
            // Whoever works at an end moves it by one.
            let guesses = [Some(below), below.checked_add(1), below.checked_sub(1)];
            if let Some(below) = guesses.into_iter().flatten().find(|guess| page::is_gap(page, *guess, key)) {
                slot.set((number, below as u16));
                return Some((Seen { number, word }, below));
            }
        }
        slot.set((0, 0));
        None
    }
}
