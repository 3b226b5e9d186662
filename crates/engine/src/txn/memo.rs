//! The last questions of a transaction for the first key within a bound, with their answers. A script that adds a
//! thousand members to a set asks a thousand times what kind of key the set is.
//!
//! An answer may be given again without asking the tree: what a transaction has read stays so for it (the question is noted
//! among its reads, which the next pass and the commit compare), and so stands beside all else it has read in one state.
//! What changes the answer is only what the transaction itself writes; whoever does tells it here first.
//!
//! Invariants
//! - A place that is in use answers what the transaction would find now, but for the value of a key that it has written: that
//!   is the overlay's to tell.
//! - Keys that come into being between where the search begins and the answer, the removal of the answer, of prefixes, and
//!   levels that are taken back put places out of use.

use crate::tree::{Neighbour, Which};

/// So many questions are remembered.
const PLACES: usize = 4;

/// Questions and answers.
#[derive(Default)]
pub(super) struct Memo {
    places: [Place; PLACES],
    next: usize,
}

/// A question, and its answer if it is in use.
#[derive(Default)]
pub(super) struct Place {
    which: Option<Which>,
    from: Vec<u8>,
    bound: Vec<u8>,
    has_answer: bool,
    answer: Vec<u8>,
    has_value: bool,
    value: Vec<u8>,
}

impl Place {
    /// The key that was found, if one was.
    pub(super) fn answer(&self) -> Option<&[u8]> {
        self.has_answer.then_some(&self.answer)
    }

    /// Its value, if that was asked for.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.has_value.then_some(&self.value)
    }
}

impl Memo {
    /// Forgets everything.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.places.iter_mut().for_each(|place| place.which = None);
    }

    /// What was answered to this question for the first key from `from` on within `bound`.
    #[inline]
    pub(super) fn recall(&self, which: Which, from: &[u8], bound: &[u8]) -> Option<&Place> {
        self.places
            .iter()
            .find(|place| place.which == Some(which) && place.from == from && place.bound == bound)
    }

    /// Remembers what was answered, in the place of what has been there for longest.
    pub(super) fn keep(
        &mut self,
        which: Which,
        [from, bound]: [&[u8]; 2],
        answer: Option<&[u8]>,
        value: Option<&[u8]>,
    ) {
        let known = self.places.iter().position(|place| place.from == from && place.bound == bound);
        let at = known.unwrap_or(self.next);
        self.next = if known.is_some() { self.next } else { (self.next + 1) % PLACES };
        let place = &mut self.places[at];
        place.which = Some(which);
        from.clone_into(&mut place.from);
        bound.clone_into(&mut place.bound);
        (place.has_answer, place.has_value) = (answer.is_some(), value.is_some());
        answer.unwrap_or_default().clone_into(&mut place.answer);
        value.unwrap_or_default().clone_into(&mut place.value);
    }

    /// A key is about to have a value, where it may have had none.
    #[inline]
    pub(super) fn appears(&mut self, which: Which, key: &[u8]) {
        for place in &mut self.places {
            let is_nearer = || {
                key >= &place.from[..]
                    && Neighbour::AtOrNext.is_within(key, &place.bound)
                    && (!place.has_answer || key < &place.answer[..])
            };
            if place.which == Some(which) && is_nearer() {
                place.which = None;
            }
        }
    }

    /// A key is about to have none.
    #[inline]
    pub(super) fn goes(&mut self, which: Which, key: &[u8]) {
        for place in &mut self.places {
            if place.which == Some(which) && place.answer() == Some(key) {
                place.which = None;
            }
        }
    }
}
