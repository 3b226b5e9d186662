//! A session's seat in shared memory: undo area, redo ring, and the notes that repair reads.
//!
//! One thread works at a seat at a time: its own, or, when its process has died, one repairer's.
//! The words are written in program order with compiler fences between them: a killed thread leaves
//! all its stores up to one instruction, so nothing stronger is needed for repair. Other threads meet
//! only `head`, through the publication handshake (`control`).
//!
//! Invariants
//! - Phase CHANGING: the undo area, walked backwards, restores every byte changed since the step began.
//! - `head - applied` spans at most one record; all leaves it names are latched by this session.
//! - A page, run or latch is noted before it is taken.
//!
//! Deliberately absent: what records mean (`record`), who repairs whom (`repair`).

mod epoch;
pub(crate) mod extent;
mod limit;
pub(crate) mod patch;
pub(crate) mod record;
mod undo;
pub(crate) mod wake;

use std::cell::Cell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{compiler_fence, AtomicU64, Ordering};
use std::sync::Arc;

use perilune_shm::latch::{self, LatchWord, State};
use perilune_shm::words::Block;
use perilune_store::{Error, Result};

use crate::image::bell;
use crate::image::layout::{
    control, phase, session, Life, Run, SESSIONS_AT, SESSION_BYTES, SESSION_HEAD_WORDS, SESSION_RING,
    SESSION_UNDO,
};
use crate::image::Image;
use crate::limits::{CHANGED_PAGES, CLAIMED, FREED, HELD, RING, RING_WORTH, SESSIONS, UNDO, VERSION_MAX};

pub(crate) use epoch::{lease_session, level_of, Epoch};
pub(crate) use limit::{Limit, Whom};
pub(crate) use undo::PageUndo;

/// Keeps the compiler from moving stores across a point where we may be killed.
#[inline(always)]
pub(crate) fn ordered() {
    compiler_fence(Ordering::SeqCst);
}

/// Counters of a session, in its head; see `handle::Statistics`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    Writes,
    Commits,
    Conflicts,
    Splits,
    Merges,
    Copies,
    Leases,
    Repairs,
    Locks,
    LockWaits,
}

/// How many kinds of [`Counter`] there are.
pub(crate) const COUNTERS: usize = 10;

/// The highest number of a session ever claimed, as a reader sees it who writes nothing shared.
pub(crate) fn sessions_ever(image: &Image) -> u16 {
    image.control(control::SESSIONS_HIGH).load(Acquire).min(SESSIONS as u64) as u16
}

/// Where the head of session `id` stands, frozen or not.
pub(crate) fn head_of_session(image: &Image, id: u16) -> u64 {
    let at = SESSIONS_AT + usize::from(id) * SESSION_BYTES + session::HEAD * 8;
    image.shm.word(at).load(Acquire) & !session::FROZEN
}

/// The runs of a long record that session `id` keeps for the log.
pub(crate) fn kept_of_session(image: &Image, id: u16) -> Vec<Run> {
    let head = SESSIONS_AT + usize::from(id) * SESSION_BYTES;
    let word = |index: usize| image.shm.word(head + index * 8).load(Acquire);
    let count = (word(session::LONG_COUNT) as usize).min(session::LONG_RUNS);
    (0..count).map(|k| Run::from_word(word(session::LONG_LIST + k))).collect()
}

/// A session's place in shared memory.
pub(crate) struct Seat {
    pub(crate) image: Arc<Image>,
    pub(crate) id: u16,
    base: usize,
    /// Where the search for free pages goes on.
    cursor: Cell<u64>,
    /// Up to this position the ring is known to have room.
    room: Cell<u64>,
    /// The flush number of the last record.
    flush: Cell<u64>,
    /// Its generation.
    generation: Cell<u32>,
    /// Whether what is under way frees space, and may use what is kept for that.
    pub(crate) frees: Cell<bool>,
    /// How long others are waited for.
    limit: Cell<Limit>,
}

impl Seat {
    /// The seat of session `id`, which the caller owns or repairs.
    pub(crate) fn new(image: Arc<Image>, id: u16) -> Seat {
        let base = SESSIONS_AT + usize::from(id) * SESSION_BYTES;
        let cursor = Cell::new(crate::limits::SEGMENT_RESERVED);
        let (room, flush, generation) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let limit = Cell::new(Limit::of(image.wait_limit));
        let frees = Cell::new(false);
        Seat { image, id, base, cursor, room, flush, generation, frees, limit }
    }

    /// How long others are waited for.
    pub(crate) fn limit(&self) -> Limit {
        self.limit.get()
    }

    /// Changes how long others are waited for; answers how long it was.
    pub(crate) fn set_limit(&self, limit: Limit) -> Limit {
        self.limit.replace(limit)
    }

    /// The words of session `id`'s head.
    pub(crate) fn head_words_of(image: &Image, id: u16) -> &Block<SESSION_HEAD_WORDS> {
        image.shm.block(SESSIONS_AT + usize::from(id) * SESSION_BYTES)
    }

    #[inline(always)]
    pub(crate) fn head_words(&self) -> &Block<SESSION_HEAD_WORDS> {
        self.image.shm.block(self.base)
    }

    #[inline(always)]
    fn undo_words(&self) -> &Block<{ UNDO / 8 }> {
        self.image.shm.block(self.base + SESSION_UNDO)
    }

    #[inline(always)]
    fn ring_words(&self) -> &Block<{ RING / 8 }> {
        self.image.shm.block(self.base + SESSION_RING)
    }

    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        self.head_words()[index & (SESSION_HEAD_WORDS - 1)].load(Relaxed)
    }

    #[inline(always)]
    fn put(&self, index: usize, value: u64) {
        self.head_words()[index & (SESSION_HEAD_WORDS - 1)].store(value, Relaxed);
    }

    /// Counts one event for `stat`.
    #[inline(always)]
    pub(crate) fn count(&self, counter: Counter) {
        if self.id == 0 {
            // A reader of a database opened read-only: nothing may be written.
            return;
        }
        let index = session::STATISTICS + counter as usize;
        self.put(index, self.get(index) + 1);
    }

    /// Counts many events at once, of a session that may write.
    pub(crate) fn count_many(&self, counter: Counter, events: usize) {
        let index = session::STATISTICS + counter as usize;
        self.put(index, self.get(index) + events as u64);
    }

    /// What has been counted, in the order of [`Counter`].
    pub(crate) fn counters(&self) -> [u64; COUNTERS] {
        std::array::from_fn(|index| self.get(session::STATISTICS + index))
    }

    /// Marks the begin of an operation. Killed from here on: watches of everything are woken.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        self.put(session::IN_OP, 1);
        ordered();
    }

    /// Marks the end of an operation: nothing noted matters any more.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        ordered();
        self.put(session::HELD_COUNT, 0);
        self.put(session::IN_OP, 0);
        if self.get(session::STOPS_AGAIN) != 0 {
            self.stop_again();
        }
    }

    /// Whether an operation was under way.
    pub(crate) fn is_in_operation(&self) -> bool {
        self.get(session::IN_OP) != 0
    }

    // --- latches -------------------------------------------------------------------------------

    /// Tries to latch page `number`, seen unlocked with `seen`. Noted first, so that repair finds it.
    #[inline]
    pub(crate) fn try_latch(&self, number: u32, seen: LatchWord) -> bool {
        let held = self.get(session::HELD_COUNT);
        if (held as usize) < HELD {
            self.put(session::HELD_LIST + held as usize, number.into());
        } else {
            self.put(session::OVERFLOW, self.get(session::OVERFLOW) | session::OVERFLOW_HELD);
        }
        self.put(session::HELD_COUNT, held + 1);
        ordered();
        if latch::try_lock(self.image.latch(number), seen, self.id) {
            return true;
        }
        self.put(session::HELD_COUNT, held);
        false
    }

    /// Forgets the latch noted last, which has been released.
    #[inline(always)]
    pub(crate) fn forget_latch(&self) {
        ordered();
        self.put(session::HELD_COUNT, self.get(session::HELD_COUNT).saturating_sub(1));
    }

    /// Forgets so many latches noted last, all of which have been released.
    #[inline(always)]
    pub(crate) fn forget_latches(&self, count: usize) {
        ordered();
        self.put(session::HELD_COUNT, self.get(session::HELD_COUNT).saturating_sub(count as u64));
    }

    /// Wakes those who watch `key` (and, if `below`, what lies below it), if anybody watches anything.
    #[inline(always)]
    pub(crate) fn notify(&self, key: &[u8], below: bool) {
        if self.image.control(control::FILTER).load(Relaxed) & bell::FILTER_BITS != 0 {
            bell::ring(&self.image, key, below);
        }
    }

    /// Wakes those who watch any of `keys`, if anybody watches anything.
    #[inline]
    pub(crate) fn notify_each<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        if self.image.control(control::FILTER).load(Relaxed) & bell::FILTER_BITS != 0 {
            bell::ring_each(&self.image, keys);
        }
    }

    /// Whether this session holds the latch of page `number`.
    #[inline]
    pub(crate) fn holds(&self, number: u32) -> bool {
        latch::load(self.image.latch(number)).is_locked_by(self.id)
    }

    /// Releases a tree page, unchanged or changed, with the next version, at least `least + 1`.
    #[inline]
    pub(crate) fn release(&self, number: u32, least: u64) {
        let word = self.image.latch(number);
        let version = latch::load(word).version().max(least);
        latch::release(word, State::Tree, version + 1);
    }

    /// Releases a tree page with this version, which is above the one it had.
    #[inline]
    pub(crate) fn release_at(&self, number: u32, version: u64) {
        latch::release(self.image.latch(number), State::Tree, version);
    }

    /// Releases a tree page that was not changed.
    #[inline]
    pub(crate) fn release_unchanged(&self, number: u32) {
        let word = self.image.latch(number);
        latch::release(word, State::Tree, latch::load(word).version());
    }

    /// Latches noted as held (they may be held no more), and whether there are more than noted.
    pub(crate) fn held(&self) -> (Vec<u32>, bool) {
        let count = (self.get(session::HELD_COUNT) as usize).min(HELD);
        let list = (0..count).map(|k| self.get(session::HELD_LIST + k) as u32).collect();
        (list, self.get(session::OVERFLOW) != 0)
    }

    /// Forgets all notes of latches and pages (after everything has been given back).
    pub(crate) fn forget_notes(&self) {
        for index in [
            session::HELD_COUNT,
            session::FRESH_COUNT,
            session::STALE_COUNT,
            session::CLAIMED_COUNT,
            session::FREED_COUNT,
            session::OVERFLOW,
        ] {
            self.put(index, 0);
        }
    }

    // --- pages of structure changes ------------------------------------------------------------

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

    /// Publishes the fresh pages and buries the stale ones, after the change itself (phase DONE).
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
                self.image.bury(number, generation, false);
                ordered();
                latch::release(word, State::Dead, seen.version() + 1);
                self.image.count_dead(1);
            }
        }
    }

    /// Sets a fresh page's generations, before it is published.
    pub(crate) fn bear(&self, number: u32, born: u32) {
        let died = if born == crate::limits::VOLATILE { born } else { 0 };
        self.image.life_word(number).store(Life { born, died, ..Life::default() }.to_word(), Relaxed);
    }

    /// Sets the generations of a page of a run that a patch has written, in the main tree.
    fn bear_patched(&self, number: u32, born: u32) {
        self.image
            .life_word(number)
            .store(Life { born, was_run: true, ..Life::default() }.to_word(), Relaxed);
    }

    // --- runs of values ------------------------------------------------------------------------

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
        self.publish_run_as(run, |number| self.bear(number, generation));
    }

    /// Makes a claimed run that a patch has written part of the tree. Idempotent.
    pub(crate) fn publish_patched(&self, run: Run, generation: u32) {
        self.publish_run_as(run, |number| self.bear_patched(number, generation));
    }

    fn publish_run_as(&self, run: Run, bear: impl Fn(u32)) {
        for number in run.first..run.first + run.pages {
            let word = self.image.latch(number);
            let seen = latch::load(word);
            if seen.is_locked_by(self.id) && seen.state() == State::Dead {
                bear(number);
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

    // --- steps and publication -----------------------------------------------------------------

    /// The phase of the step under way, see [`phase`].
    #[inline(always)]
    pub(crate) fn phase(&self) -> u64 {
        self.get(session::STEP) & 3
    }

    /// Changes the phase. Every change counts, so that a waiter sees a step end even if it misses
    /// the moment.
    #[inline(always)]
    pub(crate) fn set_phase(&self, phase: u64) {
        ordered();
        let step = self.get(session::STEP);
        self.head_words()[session::STEP].store((step >> 2).wrapping_add(1) << 2 | phase, Release);
        ordered();
    }

    /// Begins a step: from here on every change is saved first.
    #[inline(always)]
    pub(crate) fn begin_step(&self) {
        self.put(session::UNDO_LEN, 0);
        self.set_phase(phase::CHANGING);
    }

    /// The step count and phase, as other threads read them.
    pub(crate) fn step(&self) -> u64 {
        self.head_words()[session::STEP].load(Acquire)
    }

    /// Position behind the last record, without the FROZEN bit.
    #[inline(always)]
    pub(crate) fn head(&self) -> u64 {
        self.get(session::HEAD) & !session::FROZEN
    }

    /// The word that control freezes.
    #[inline(always)]
    pub(crate) fn head_word(&self) -> &AtomicU64 {
        &self.head_words()[session::HEAD]
    }

    /// Position up to which records have been applied.
    #[inline(always)]
    pub(crate) fn applied(&self) -> u64 {
        self.head_words()[session::APPLIED].load(Acquire)
    }

    /// Publishes what was written beyond the head: the operation is decided. False when a control
    /// word has changed meanwhile: read it again. `len` 0 publishes a structure change.
    #[inline(always)]
    pub(crate) fn publish(&self, len: u64) -> bool {
        let head = self.get(session::HEAD) & !session::FROZEN;
        ordered();
        if self.head_word().compare_exchange(head, head + len, AcqRel, Acquire).is_ok() {
            ordered();
            return true;
        }
        self.head_word().fetch_and(!session::FROZEN, AcqRel);
        false
    }

    /// Notes that the record up to the head has been applied.
    #[inline(always)]
    pub(crate) fn set_applied(&self) {
        ordered();
        let head = self.get(session::HEAD) & !session::FROZEN;
        self.head_words()[session::APPLIED].store(head, Release);
        ordered();
    }

    /// Position from which on records may still be needed for the log.
    pub(crate) fn tail(&self) -> u64 {
        self.head_words()[session::TAIL].load(Acquire)
    }

    /// Gives the ring up to `tail` free. Only for the owner of the log; at level none for the session.
    pub(crate) fn set_tail(&self, tail: u64) {
        self.head_words()[session::TAIL].store(tail, Release);
    }

    /// Whether the ring is known to have room for `need` bytes.
    #[inline(always)]
    pub(crate) fn has_room(&self, need: usize) -> bool {
        self.head() + need as u64 <= self.room.get()
    }

    /// Bytes that the ring is known to have room for.
    pub(crate) fn room(&self) -> usize {
        self.room.get().saturating_sub(self.head()) as usize
    }

    /// Whether so much of the ring waits for the log that it is worth while to have it emptied.
    pub(crate) fn is_filling(&self) -> bool {
        let flags = self.image.control(control::FLAGS).load(Relaxed);
        level_of(flags) != perilune_store::Durability::None
            && self.head().saturating_sub(self.tail()) > RING_WORTH as u64
    }

    #[inline(always)]
    fn note_epoch(&self, generation: u32, flush: u64) {
        self.generation.set(generation);
        self.flush.set(flush);
    }

    /// The flush number of the last record written here.
    pub(crate) fn flush(&self) -> u64 {
        self.flush.get()
    }

    /// The generation of the last record written here.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Looks whether the ring has room for `need` bytes.
    pub(crate) fn find_room(&self, need: usize) -> bool {
        self.room.set(self.tail() + RING as u64);
        self.has_room(need)
    }

    /// Notes the highest version among the latched leaves of the record about to be published.
    #[inline(always)]
    pub(crate) fn set_seq(&self, seq: u64) {
        self.put(session::SEQ, seq);
    }

    /// See [`Seat::set_seq`].
    pub(crate) fn seq(&self) -> u64 {
        self.get(session::SEQ)
    }

    /// Whether any page version is near its end.
    pub(crate) fn version_exhausted(seen: LatchWord) -> bool {
        seen.version() >= VERSION_MAX
    }

    /// The word that says whose session this is.
    pub(crate) fn owner_word(&self) -> &AtomicU64 {
        &self.head_words()[session::OWNER]
    }

    /// The word that says whose session `id` is.
    pub(crate) fn owner_word_of(image: &Image, id: u16) -> &AtomicU64 {
        image.shm.word(SESSIONS_AT + usize::from(id) * SESSION_BYTES + session::OWNER * 8)
    }
}
