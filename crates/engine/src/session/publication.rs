//! Steps, and the ring of records: where a change begins and ends, and the moment in which it is published.
//!
//! A *step* is a series of changes of pages that is undone as one. A record lies behind the ring's head; moving the head
//! publishes it, by a CAS that fails if somebody has frozen the head (`control`).
//!
//! Invariants
//! - `head - applied` spans at most one record.
//! - The tail moves only when the log has what it passes, or needs it not.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use perilune_shm::latch::LatchWord;

use super::{level_of, ordered, Seat};
use crate::image::layout::{control, phase, session, SESSIONS_AT, SESSION_BYTES};
use crate::image::Image;
use crate::limits::{RING, RING_WORTH, VERSION_MAX};

impl Seat {
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
    pub(super) fn note_epoch(&self, generation: u32, flush: u64) {
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
