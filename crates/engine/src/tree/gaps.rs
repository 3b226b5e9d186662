//! Remembers where keys stood whose neighbours were asked for: who comes again for the head of a subtree, or for its end,
//! finds it without a search, though others have written meanwhile.
//!
//! Invariants
//! - What is remembered is a guess: the leaf's own records and fences say whether it still holds, under the word that
//!   the answer is checked with.
//! - A guess of another key in the same slot is told by its tag, without a look at its leaf. Where others have moved a
//!   place it is looked for in its leaf; a guess whose leaf no longer covers the key is forgotten.
//!
//! Deliberately absent: keys that are read or written themselves, which come at random; `Fingers` has the last ones.

use std::cell::{Cell, OnceCell};

use perilune_shm::latch::{self, State};

use super::{Seen, Which};
use crate::image::Image;
use crate::page::{self, LEAF};

/// So many guesses, by the hash of the key: 64 KiB for each session that asks for neighbours.
const SLOTS: usize = 8192;

/// A guess.
#[derive(Clone, Copy, Default)]
struct Guess {
    /// The leaf of the key; 0: none.
    leaf: u32,
    /// How many of its records were below the key.
    below: u16,
    /// What of the key's hash does not say its slot.
    tag: u16,
}

/// Guesses; there is none at all before the first one is noted.
#[derive(Default)]
pub(crate) struct Gaps(OnceCell<Box<[Cell<Guess>]>>);

impl Gaps {
    /// The slot of a key, and its tag.
    #[inline]
    fn place(key: &[u8]) -> (usize, u16) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let add =
            |hash: u64, bytes: [u8; 8]| (hash.rotate_left(23) ^ u64::from_le_bytes(bytes)).wrapping_mul(ODD);
        let hash = match key.last_chunk::<8>() {
            // Eight by eight, and the last eight, of which some may have been among those.
            Some(last) => key.as_chunks::<8>().0.iter().fold(add(0, *last), |hash, chunk| add(hash, *chunk)),
            None => key.iter().fold(0, |hash, byte| add(hash, u64::from(*byte).to_le_bytes())),
        };
        ((hash >> 32) as usize % SLOTS, (hash >> 48) as u16)
    }

    /// Remembers that `below` records of the leaf that covers `key` are below it.
    #[inline]
    pub(super) fn note(&self, key: &[u8], leaf: u32, below: usize) {
        let (slot, tag) = Gaps::place(key);
        let guesses = self.0.get_or_init(|| vec![Cell::default(); SLOTS].into());
        guesses[slot].set(Guess { leaf, below: below as u16, tag });
    }

    /// The leaf that covers `key`, and how many of its records are below it, if the leaf was guessed right.
    #[inline]
    pub(super) fn find(&self, image: &Image, which: Which, key: &[u8]) -> Option<(Seen, usize)> {
        let guesses = self.0.get()?;
        let (slot, own) = Gaps::place(key);
        let slot = &guesses[slot];
        let Guess { leaf: number, below, tag } = slot.get();
        if number == 0 || tag != own {
            return None;
        }
        let word = latch::load(image.latch(number));
        if word.locked() || word.state() != State::Tree {
            return None;
        }
        let page = image.page(number);
        if page::kind(page) == LEAF && page::flags(page) == which.page_flags() {
            // Others in the leaf move it by any number.
            let found = page::gap_near(page, usize::from(below), key)
                .or_else(|| page::contains(page, key).then(|| page::find(page, key).index));
            if let Some(below) = found {
                slot.set(Guess { leaf: number, below: below as u16, tag });
                return Some((Seen { number, word }, below));
            }
        }
        slot.set(Guess::default());
        None
    }
}
