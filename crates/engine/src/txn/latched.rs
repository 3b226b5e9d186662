//! Few leaves, latched after they were met, and one record published over them.
//!
//! Invariants
//! - Leaves are latched with the words under which they were met, so what was found in them before is true; one that has
//!   changed since is latched if it still covers its operations, whose places are then found again.
//! - Who is waited for with latches held is waited for in the order of keys, and briefly; else latches are only tried.
//! - Operations are given in the order of their keys: those of one leaf stand side by side.
//! - The latched leaves are the first ones of those met.
//!
//! What if we are killed? Before the record is published nothing has happened, after that repair applies it whole.

use perilune_shm::latch::{self, LatchWord, State};
use perilune_shm::platform;

use crate::error::{Attempt, Stop};
use crate::image::layout::phase;
use crate::limits::{LATCH_PAUSES, PAGE};
use crate::page::{self, find, Found, Save};
use crate::session::record::{Kind, Op};
use crate::session::{Epoch, PageUndo, Seat};
use crate::tree::{self, Seen, Which};

/// From so many operations of one leaf on that move others there all of it is saved once, and not what each of them changes.
const TOGETHER: usize = 8;

/// Leaves met and latched so far, and for each of up to `N` operations its leaf and its place there.
pub(super) struct Latched<'a, const N: usize> {
    seat: &'a Seat,
    /// Leaves that were met, and the words under which that was or, once they are latched, those before that.
    leaves: [u32; N],
    words: [LatchWord; N],
    met: usize,
    latched: usize,
    /// The generation in which those latched were born; none if they are of several.
    born: Option<u32>,
    of_op: [u32; N],
    places: [Found; N],
}

impl<'a, const N: usize> Latched<'a, N> {
    pub(super) fn new(seat: &'a Seat) -> Latched<'a, N> {
        let nowhere = Found { index: 0, equal: false };
        let word = LatchWord::from_raw(0);
        let (leaves, words, of_op, places) = ([0; N], [word; N], [0; N], [nowhere; N]);
        Latched { seat, leaves, words, met: 0, latched: 0, born: None, of_op, places }
    }

    fn all(&self) -> &[u32] {
        &self.leaves[..self.latched]
    }

    /// Whether a leaf is latched; mostly it is the last one.
    #[inline]
    pub(super) fn has(&self, leaf: u32) -> bool {
        // NB: there may be a thousand.
        self.all().last() == Some(&leaf) || self.seat.holds(leaf)
    }

    /// The leaf of operation `at`.
    pub(super) fn leaf_of(&self, at: usize) -> u32 {
        self.of_op[at]
    }

    /// Where the key of operation `at` stands in its leaf, or would, before the first is applied.
    pub(super) fn place_of(&self, at: usize) -> Found {
        self.places[at]
    }

    /// Says that operation `at` is one of this leaf, and those before it are of this or others.
    #[inline]
    pub(super) fn meet(&mut self, at: usize, leaf: Seen) {
        self.of_op[at] = leaf.number;
        // NB: if it has changed since it was met for another, it is not latched by that word, and all places are found again.
        if self.met == 0 || self.leaves[self.met - 1] != leaf.number {
            (self.leaves[self.met], self.words[self.met]) = (leaf.number, leaf.word);
            self.met += 1;
        }
    }

    /// Says that operation `at` is one of this leaf, which is held.
    #[inline]
    pub(super) fn assign(&mut self, at: usize, leaf: u32) {
        debug_assert!(self.has(leaf));
        self.of_op[at] = leaf;
    }

    /// Says that operation `at` stands, or would, at this place of its leaf, by the word under which that was met.
    #[inline]
    pub(super) fn put(&mut self, at: usize, place: Found) {
        self.places[at] = place;
    }

    /// Tries to latch the next leaf that was met, with this word.
    #[inline]
    fn try_next(&mut self, word: LatchWord) -> bool {
        let number = self.leaves[self.latched];
        if Seat::version_exhausted(word) || !self.seat.try_latch(number, word) {
            return false;
        }
        let born = self.seat.image.life(number).born;
        self.born = Some(born).filter(|born| self.latched == 0 || self.born == Some(*born));
        self.words[self.latched] = word;
        self.latched += 1;
        true
    }

    /// Latches one more leaf, which is not held, with the word under which it was met; false: somebody was faster.
    #[inline]
    pub(super) fn try_latch(&mut self, leaf: Seen) -> bool {
        debug_assert!(self.met == self.latched && !self.has(leaf.number));
        self.leaves[self.met] = leaf.number;
        self.met += 1;
        self.try_next(leaf.word)
    }

    /// Latches all leaves that were met; in those that have changed since, finds the places anew.
    ///
    /// # Errors
    /// `Busy`, `Restart`: those before are latched.
    #[inline]
    pub(super) fn latch_met(&mut self, ops: &[Op<'_>]) -> Attempt<()> {
        while self.latched < self.met {
            if !self.try_next(self.words[self.latched]) {
                self.latch_changed(ops)?;
            }
        }
        Ok(())
    }

    /// Latches the next leaf that was met, which has changed or is latched by somebody.
    #[cold]
    fn latch_changed(&mut self, ops: &[Op<'_>]) -> Attempt<()> {
        let (image, number) = (&self.seat.image, self.leaves[self.latched]);
        let of_leaf = |at: &usize| self.of_op[*at] == number;
        let Some(first) = (0..ops.len()).find(of_leaf) else { return Err(Stop::Restart) };
        let last = (first..ops.len()).take_while(of_leaf).last().unwrap_or(first);
        for _ in 0..LATCH_PAUSES {
            let word = latch::load(image.latch(number));
            if word.locked() {
                platform::spin_pause();
                continue;
            }
            // NB: what is seen here is true if the word can be latched.
            let covers = |at: usize| tree::covers(image.page(number), Which::Main, ops[at].key);
            if word.state() != State::Tree || !covers(first) || !covers(last) {
                return Err(Stop::Restart);
            }
            if self.try_next(word) {
                for (op, place) in ops[first..=last].iter().zip(&mut self.places[first..=last]) {
                    *place = find(image.page(number), op.key);
                }
                return Ok(());
            }
        }
        Err(Stop::Busy(number))
    }

    /// Gives everything back as it was.
    pub(super) fn release_unchanged(&self) {
        for leaf in self.all().iter().rev() {
            self.seat.release_unchanged(*leaf);
        }
        self.seat.forget_latches(self.latched);
    }

    /// The epoch.
    ///
    /// # Errors
    /// What keeps us from writing; `Copy`: a leaf belongs to an earlier generation.
    pub(super) fn epoch(&self) -> Attempt<Epoch> {
        let image = &self.seat.image;
        let epoch = Epoch::read(image);
        epoch.admits(self.seat)?;
        match self.born == Some(epoch.generation) || self.latched == 0 {
            true => Ok(epoch),
            false => Err(Stop::Copy),
        }
    }

    /// The first operation whose leaf has no room for it and those before it, if any. All leaves are latched, and all
    /// places known.
    pub(super) fn short_of_room(&self, ops: &[Op<'_>]) -> Option<usize> {
        let (mut leaf, mut need) = (0, 0);
        for (at, op) in ops.iter().enumerate() {
            if self.of_op[at] != leaf {
                (leaf, need) = (self.of_op[at], 0);
            }
            let (page, found) = (self.seat.image.page(leaf), self.places[at]);
            debug_assert_eq!(found, find(page, op.key));
            if op.kind != Kind::Set {
                continue;
            }
            need += if found.equal {
                page::growth(page, found.index, op.value.len())
            } else {
                page::need(page, op.key, op.value.len()) + 8
            };
            if need > 0 && need > page::leaf_free(page) {
                return Some(at);
            }
        }
        None
    }

    /// Publishes the record, whose operations [`Seat::write_ops`] has written in `len` bytes, applies it, releases the
    /// leaves. Answers which operation has left its leaf sparse, if one has. The places are known.
    ///
    /// # Errors
    /// As [`Latched::epoch`]: nothing has happened, and the leaves are still held.
    pub(super) fn publish(&self, ops: &[Op<'_>], len: u64, mut epoch: Epoch) -> Attempt<Option<usize>> {
        let seat = self.seat;
        let versions = self.words[..self.latched].iter().map(|word| word.version());
        let seq = versions.max().unwrap_or(0);
        seat.set_seq(seq);
        loop {
            seat.write_heading(epoch.generation, epoch.flush, ops, len);
            if seat.publish(len) {
                break;
            }
            epoch = self.epoch()?;
        }
        let mut at = 0;
        while at < ops.len() {
            let beside = self.of_op[at..ops.len()].iter().take_while(|leaf| **leaf == self.of_op[at]).count();
            self.apply_to_leaf(at, &ops[at..at + beside], epoch.generation);
            at += beside;
        }
        seat.set_applied();
        let sparse = ops
            .iter()
            .zip(&self.of_op)
            .position(|(op, leaf)| op.kind == Kind::Remove && page::is_sparse(seat.image.page(*leaf)));
        for leaf in self.all().iter().rev() {
            // The next version of the newest of them is one of each.
            seat.release_at(*leaf, seq + 1);
        }
        seat.forget_latches(self.latched);
        seat.notify_each(ops.iter().map(|op| op.key));
        Ok(sparse)
    }

    /// Applies operations of one leaf, the first of which is operation `first`; the record is published.
    #[inline]
    fn apply_to_leaf(&self, first: usize, ops: &[Op<'_>], generation: u32) {
        let (seat, leaf) = (self.seat, self.of_op[first]);
        let page = seat.image.page(leaf);
        let places = &self.places[first..first + ops.len()];
        if self.append_to_leaf(leaf, places, ops) {
            return;
        }
        let is_long =
            |found: &Found| found.equal && page::value_place(page, found.index).2 & page::RECORD_BIG != 0;
        let moving = places.iter().zip(ops).filter(|(found, op)| found.equal != op.kind.sets()).count();
        let as_one = moving >= TOGETHER && !places.iter().any(is_long);
        if as_one {
            // What if we are killed? As in the step of one operation: all of the page is put back, and applied again.
            seat.begin_step();
            PageUndo { seat, number: leaf }.save(0, PAGE);
        }
        // How far those applied have moved what lies behind them.
        let mut moved = 0;
        for (op, found) in ops.iter().zip(places) {
            let place = Found { index: found.index.wrapping_add_signed(moved), ..*found };
            debug_assert_eq!(place, find(page, op.key));
            if as_one {
                tree::change_saved(page, place, op);
            } else {
                tree::apply_found(seat, leaf, place, op, generation, &[]);
            }
            moved += match op.kind {
                Kind::Set => isize::from(!found.equal),
                _ => -isize::from(found.equal),
            };
        }
        if as_one {
            seat.set_phase(phase::NONE);
        }
    }

    /// Applies operations that all set new values behind what is in a leaf, in one step; false: they do something else, or
    /// there is no room without moving others.
    #[inline]
    fn append_to_leaf(&self, leaf: u32, places: &[Found], ops: &[Op<'_>]) -> bool {
        let (seat, page) = (self.seat, self.seat.image.page(leaf));
        let slots = page::leaf_count(page);
        if ops.len() < TOGETHER || places.iter().any(|found| found.equal || found.index != slots) {
            return false;
        }
        let need: usize = ops.iter().map(|op| page::need(page, op.key, op.value.len()) + 8).sum();
        if need > page::leaf_gap(page) || ops.iter().any(|op| op.kind != Kind::Set || op.big) {
            return false;
        }
        // What if we are killed? Its head is put back, and what was written behind it means nothing; then all is applied again.
        seat.begin_step();
        let save = &mut PageUndo { seat, number: leaf };
        page::leaf_append(page, save, ops.iter().map(|op| (op.key, op.value)));
        seat.set_phase(phase::NONE);
        true
    }
}
