//! Runs of pages for long values: claimed before a write, published with it, freed after it.
//!
//! Problem: the bytes of a long value are written before the record that names them, and those of the value before must
//! live until nobody needs them. Idea: runs are noted at the seat: *claimed* ones until their record is published, *freed*
//! ones from the step on that cuts them off, *long* ones until the log has their bytes.
//!
//! Invariants
//! - A run is noted before it is taken, and before it is cut off.
//! - No run is freed before the step that cuts it off is over: until then undo may bring it back.

use perilune_shm::latch::{self, State};
use perilune_store::Result;

use super::{kept_of_session, ordered, Seat};
use crate::image::layout::{session, Run};
use crate::limits::{CLAIMED, FREED};

impl Seat {
    /// Forgets the runs claimed by the operation before.
    #[inline(always)]
    pub(crate) fn begin_claims(&self) {
        self.put(session::CLAIMED_COUNT, 0);
        self.put(session::FREED_COUNT, 0);
        self.put(session::OVERFLOW, 0);
    }

    /// Takes a run of pages for a value.
    ///
    /// # Errors
    /// `NoSpace` and what else growing can answer.
    pub(crate) fn take_run(&self, pages: u32) -> Result<Run> {
        let count = self.get(session::CLAIMED_COUNT) as usize;
        self.image.take_run(self.id, pages, |run| {
            if count < CLAIMED {
                self.put(session::CLAIMED_LIST + count, run.to_word());
                ordered();
                self.put(session::CLAIMED_COUNT, count as u64 + 1);
            } else {
                self.put(session::OVERFLOW, self.get(session::OVERFLOW) | session::OVERFLOW_CLAIMED);
            }
            ordered();
        })
    }

    /// Gives claimed runs back that were not published (only those still locked and DEAD).
    pub(crate) fn give_back_runs(&self, runs: &[Run]) {
        for run in runs {
            self.image.free_locked(*run, self.id, None);
        }
    }

    /// The runs noted as claimed.
    pub(crate) fn claimed(&self) -> Vec<Run> {
        let count = (self.get(session::CLAIMED_COUNT) as usize).min(CLAIMED);
        (0..count).map(|k| Run::from_word(self.get(session::CLAIMED_LIST + k))).collect()
    }

    /// Makes a claimed run part of the tree: its pages become EXTENT, born now. Idempotent.
    pub(crate) fn publish_run(&self, run: Run, generation: u32) {
        self.publish_run_as(run, |number| self.note_birth(number, generation));
    }

    /// Makes a claimed run that a patch has written part of the tree. Idempotent.
    pub(crate) fn publish_patched(&self, run: Run, generation: u32) {
        self.publish_run_as(run, |number| self.note_patched_birth(number, generation));
    }

    fn publish_run_as(&self, run: Run, note_birth: impl Fn(u32)) {
        for number in run.first..run.first + run.pages {
            let word = self.image.latch(number);
            let seen = latch::load(word);
            if seen.is_locked_by(self.id) && seen.state() == State::Dead {
                note_birth(number);
                ordered();
                latch::release(word, State::Extent, seen.version() + 1);
            }
        }
    }

    /// Notes a run that the step under way cuts off the tree, and locks it: it is freed after the
    /// step, never before, for until then undo may bring it back.
    pub(crate) fn note_freed(&self, run: Run) {
        let count = self.get(session::FREED_COUNT) as usize;
        debug_assert!(count < FREED);
        self.put(session::FREED_LIST + count % FREED, run.to_word());
        ordered();
        self.put(session::FREED_COUNT, count as u64 + 1);
        ordered();
        for number in run.first..run.first + run.pages {
            let word = self.image.latch(number);
            let seen = latch::load(word);
            if !seen.locked() && seen.state() == State::Extent {
                latch::try_lock_as(word, seen, self.id, State::Dead);
            }
        }
    }

    /// Frees the runs noted by [`Seat::note_freed`].
    #[inline(always)]
    pub(crate) fn settle_freed(&self, generation: u32) {
        if self.get(session::FREED_COUNT) != 0 {
            self.settle_some_freed(generation);
        }
    }

    #[cold]
    fn settle_some_freed(&self, generation: u32) {
        for run in self.freed() {
            self.image.free_locked(run, self.id, Some(generation));
        }
        ordered();
        self.put(session::FREED_COUNT, 0);
    }

    /// The runs noted as freed.
    pub(crate) fn freed(&self) -> Vec<Run> {
        let count = (self.get(session::FREED_COUNT) as usize).min(FREED);
        (0..count).map(|k| Run::from_word(self.get(session::FREED_LIST + k))).collect()
    }

    /// Notes the runs of a long record before it is published: they are kept for the log.
    pub(crate) fn keep_long(&self, runs: &[Run]) {
        for (index, run) in runs.iter().enumerate().take(session::LONG_RUNS) {
            self.put(session::LONG_LIST + index, run.to_word());
        }
        ordered();
        self.put(session::LONG_COUNT, runs.len() as u64);
        ordered();
    }

    /// The runs kept for the log.
    pub(crate) fn kept_long(&self) -> Vec<Run> {
        kept_of_session(&self.image, self.id)
    }

    /// Frees the runs kept for the log, if it has passed them (or `now`, when the record was not published);
    /// false when it has not.
    pub(crate) fn free_long(&self, now: bool) -> bool {
        let runs = self.kept_long();
        if runs.is_empty() {
            return true;
        }
        if !now && self.tail() < self.head() {
            return false;
        }
        self.give_back_runs(&runs);
        ordered();
        self.put(session::LONG_COUNT, 0);
        true
    }
}
