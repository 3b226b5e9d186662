//! Pages that a structure change takes and replaces: a split, a merge, a copy.
//!
//! Problem: who is killed in the midst of a split has taken pages that nobody names yet, and is about to free pages that
//! somebody still names. Idea: both are noted at the seat first: *fresh* pages before they are taken, *stale* ones before
//! they are cut off. Once the change is decided (`settle_structure`), stale ones die and the notes go; else repair gives the
//! fresh ones back.
//!
//! Invariants
//! - A page is noted before it is taken.
//! - A fresh page is nobody's until it is published.

use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::latch::{self, State};
use perilune_store::{Error, Result};

use super::{ordered, Seat};
use crate::image::layout::{session, Life, Run};
use crate::limits::CHANGED_PAGES;

impl Seat {
    /// Forgets the fresh and stale pages of the structure change before.
    pub(crate) fn begin_structure(&self) {
        ordered();
        self.put(session::FRESH_COUNT, 0);
        self.put(session::STALE_COUNT, 0);
    }

    /// Takes a fresh page. Its content may be written; it is nobody's until it is published.
    ///
    /// # Errors
    /// `NoSpace` and what else growing can answer; fresh pages taken before are given back.
    pub(crate) fn take_fresh(&self) -> Result<u32> {
        self.try_take_fresh().inspect_err(|_| self.give_back_fresh())
    }

    fn try_take_fresh(&self) -> Result<u32> {
        let count = self.get(session::FRESH_COUNT) as usize;
        if count >= CHANGED_PAGES {
            return Err(Error::Internal("a structure change takes too many pages".into()));
        }
        let mut cursor = self.cursor.get();
        let page = self.image.take_page(self.id, self.frees.get(), &mut cursor, |page| {
            self.put(session::FRESH + count, page.into());
            ordered();
            self.put(session::FRESH_COUNT, count as u64 + 1);
            ordered();
        })?;
        self.cursor.set(cursor);
        Ok(page)
    }

    /// Notes that page `number`, latched, is to die with the structure change under way.
    pub(crate) fn note_stale(&self, number: u32) {
        let count = self.get(session::STALE_COUNT);
        self.put(session::STALE + count as usize % CHANGED_PAGES, number.into());
        ordered();
        self.put(session::STALE_COUNT, count + 1);
    }

    /// The fresh pages noted.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = u32> + '_ {
        let count = (self.get(session::FRESH_COUNT) as usize).min(CHANGED_PAGES);
        (0..count).map(|k| self.get(session::FRESH + k) as u32)
    }

    /// The stale pages noted.
    pub(crate) fn stale(&self) -> impl Iterator<Item = u32> + '_ {
        let count = (self.get(session::STALE_COUNT) as usize).min(CHANGED_PAGES);
        (0..count).map(|k| self.get(session::STALE + k) as u32)
    }

    /// Gives back the fresh pages of a structure change that did not happen.
    pub(crate) fn give_back_fresh(&self) {
        for number in self.fresh() {
            self.image.free_locked(Run { first: number, pages: 1 }, self.id, None);
        }
        self.put(session::FRESH_COUNT, 0);
    }

    /// Notes the generation of the structure change under way, before it is decided.
    pub(crate) fn set_structure_generation(&self, generation: u32) {
        self.put(session::STRUCTURE_GEN, generation.into());
        ordered();
    }

    /// See [`Seat::set_structure_generation`].
    pub(crate) fn structure_generation(&self) -> u32 {
        self.get(session::STRUCTURE_GEN) as u32
    }

    /// Publishes the fresh pages and marks the stale ones dead, after the change itself (phase DONE).
    /// Idempotent: only words still locked are touched, so repair calls it too.
    pub(crate) fn settle_structure(&self, generation: u32, least: u64) {
        for number in self.fresh() {
            let word = self.image.latch(number);
            let seen = latch::load(word);
            if seen.is_locked_by(self.id) && seen.state() == State::Dead {
                ordered();
                latch::release(word, State::Tree, seen.version().max(least) + 1);
            }
        }
        for number in self.stale() {
            let word = self.image.latch(number);
            let seen = latch::load(word);
            if seen.is_locked_by(self.id) {
                self.image.note_death(number, generation, false);
                ordered();
                latch::release(word, State::Dead, seen.version() + 1);
                self.image.count_dead(1);
            }
        }
    }

    /// Sets a fresh page's generations, before it is published.
    pub(crate) fn note_birth(&self, number: u32, born: u32) {
        let died = if born == crate::limits::VOLATILE { born } else { 0 };
        self.image.life_word(number).store(Life { born, died, ..Life::default() }.to_word(), Relaxed);
    }

    /// Sets the generations of a page of a run that a patch has written, in the main tree.
    pub(super) fn note_patched_birth(&self, number: u32, born: u32) {
        self.image
            .life_word(number)
            .store(Life { born, was_run: true, ..Life::default() }.to_word(), Relaxed);
    }
}
