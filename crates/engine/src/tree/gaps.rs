//! Remembers the places of keys whose neighbours were asked for. Each command on a hash asks for the first key of the
//! hash; with its place remembered it is found without a search, even if others have written meanwhile.
//!
//! Invariants
//! - A place is a guess. The leaf's own records and fences say whether it still holds, and the answer is checked by
//!   the leaf's word like any other.
//! - A guess of another key in the same slot is told by its tag, without a look at its leaf. Where others have moved a
//!   place it is looked for in its leaf; a guess whose leaf no longer covers the key is forgotten.
//! - Who is about to find several keys prefetches the cache lines of all of them first: they come from memory at
//!   once, instead of one after the other.
//!
//! Deliberately absent: keys that are read or written themselves, which come at random; `Fingers` has the last ones.

use std::cell::{Cell, OnceCell};

use perilune_shm::latch::{self, State};

use super::{Seen, Which};
use crate::image::Image;
use crate::page::{self, Lines, LEAF};

/// The number of guesses, found by the hash of the key: 96 KiB for each session that asks for neighbours.
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
    /// What was read of the leaf there.
    lines: Lines,
}

/// Which guess a key has, if any.
#[derive(Clone, Copy, Default)]
pub(crate) struct Aim {
    slot: u16,
    tag: u16,
}

/// Guesses; there is none at all before the first one is noted.
#[derive(Default)]
pub(crate) struct Gaps(OnceCell<Box<[Cell<Guess>]>>);

impl Gaps {
    /// Which guess a key has.
    #[inline]
    pub(super) fn place(key: &[u8]) -> Aim {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let add =
            |hash: u64, bytes: [u8; 8]| (hash.rotate_left(23) ^ u64::from_le_bytes(bytes)).wrapping_mul(ODD);
        let hash = match key.last_chunk::<8>() {
            // Eight by eight, and the last eight, of which some may have been among those.
            Some(last) => key.as_chunks::<8>().0.iter().fold(add(0, *last), |hash, chunk| add(hash, *chunk)),
            None => key.iter().fold(0, |hash, byte| add(hash, u64::from(*byte).to_le_bytes())),
        };
        Aim { slot: ((hash >> 32) as usize % SLOTS) as u16, tag: (hash >> 48) as u16 }
    }

    /// Takes aim at a key: what a right guess leads to is asked for, to be there when it is found.
    #[inline]
    pub(crate) fn aim(&self, image: &Image, key: &[u8]) -> Aim {
        let aim = Gaps::place(key);
        if let Some(guess) = self.guess(aim).map(Cell::get) {
            if guess.leaf != 0 && guess.tag == aim.tag {
                page::prefetch_near(image.page(guess.leaf), usize::from(guess.below), guess.lines);
            }
        }
        aim
    }

    #[inline(always)]
    fn guess(&self, aim: Aim) -> Option<&Cell<Guess>> {
        self.0.get()?.get(usize::from(aim.slot))
    }

    /// Remembers that `below` records of `leaf`, which covers the key aimed at, are below that.
    #[inline]
    pub(super) fn note(&self, image: &Image, aim: Aim, leaf: u32, below: usize) {
        let guesses = self.0.get_or_init(|| vec![Cell::default(); SLOTS].into());
        let lines = page::lines_near(image.page(leaf), below);
        guesses[usize::from(aim.slot)].set(Guess { leaf, below: below as u16, tag: aim.tag, lines });
    }

    /// The leaf that covers `key`, at which `aim` was taken, and how many of its records are below it, if the leaf was
    /// guessed right.
    #[inline]
    pub(super) fn find(&self, image: &Image, which: Which, key: &[u8], aim: Aim) -> Option<(Seen, usize)> {
        let slot = self.guess(aim)?;
        let Guess { leaf: number, below, tag, .. } = slot.get();
        if number == 0 || tag != aim.tag {
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
                let lines = page::lines_near(page, below);
                slot.set(Guess { leaf: number, below: below as u16, tag, lines });
                return Some((Seen { number, word }, below));
            }
        }
        slot.set(Guess::default());
        None
    }
}
