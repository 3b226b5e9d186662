//! A session's seat in shared memory: undo area, redo ring, and the notes that repair reads.
//!
//! Problem: a thread may be killed between any two instructions. Whoever then repairs its work has nothing but what
//! lies in shared memory. So whatever the thread holds or is about to change is written there first.
//!
//! Example: a set at seat 5 notes leaf 57 and latches it, writes its record behind the ring's head, publishes it by
//! moving the head, begins a step, saves the bytes of the page in the undo area, changes the page, ends the step,
//! stores `applied`, and releases the leaf.
//!
//! One thread works at a seat at a time: its own, or, when its process has died, one repairer's. The words are
//! written in program order with compiler fences between them: a killed thread leaves all its stores up to one
//! instruction, so nothing stronger is needed for repair. Other threads meet only `head`, through the publication
//! handshake (`control`).
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
mod publication;
pub(crate) mod record;
mod runs;
mod structure;
mod undo;
pub(crate) mod wake;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{compiler_fence, Ordering};
use std::sync::Arc;

use perilune_shm::latch::{self, LatchWord, State};
use perilune_shm::words::Block;

use crate::image::bell;
use crate::image::layout::{
    control, session, Run, SESSIONS_AT, SESSION_BYTES, SESSION_HEAD_WORDS, SESSION_RING, SESSION_UNDO,
};
use crate::image::Image;
use crate::limits::{HELD, RING, SESSIONS, UNDO};

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
}
