//! Few leaves, latched by trying, and one record published over them.
//!
//! Invariants
//! - Latches are only tried, never waited for, so that their order means nothing.
//! - Operations are given in the order of their keys: those of one leaf stand side by side.
//!
//! What if we are killed? Before the record is published nothing has happened, after that repair applies it whole.

use perilune_shm::latch;

use crate::error::{Attempt, Stop};
use crate::page::{self, find, Found};
use crate::session::record::{Kind, Op};
use crate::session::{Epoch, Seat};
use crate::tree::{self, Seen};

/// Leaves latched so far, and for each of up to `N` operations its leaf and its place there.
pub(super) struct Latched<'a, const N: usize> {
    seat: &'a Seat,
    leaves: [u32; N],
    count: usize,
    of_op: [u32; N],
    places: [Found; N],
}

impl<'a, const N: usize> Latched<'a, N> {
    pub(super) fn new(seat: &'a Seat) -> Latched<'a, N> {
        let nowhere = Found { index: 0, equal: false };
        Latched { seat, leaves: [0; N], count: 0, of_op: [0; N], places: [nowhere; N] }
    }

    fn all(&self) -> &[u32] {
        &self.leaves[..self.count]
    }

    pub(super) fn has(&self, leaf: u32) -> bool {
        self.all().contains(&leaf)
    }

    /// The leaf of operation `at`.
    pub(super) fn leaf_of(&self, at: usize) -> u32 {
        self.of_op[at]
    }

    /// Where the key of operation `at` stands in its leaf, or would, before the first is applied.
    pub(super) fn place_of(&self, at: usize) -> Found {
        self.places[at]
    }

    /// Latches the leaf of operation `at`, unless it is held; false: somebody was faster.
    pub(super) fn try_latch(&mut self, at: usize, leaf: Seen) -> bool {
        self.of_op[at] = leaf.number;
        if self.has(leaf.number) {
            return true;
        }
        let latched = !Seat::version_exhausted(leaf.word) && self.seat.try_latch(leaf.number, leaf.word);
        if latched {
            self.leaves[self.count] = leaf.number;
            self.count += 1;
        }
        latched
    }

    /// Says that operation `at` is one of this leaf, which is held.
    #[inline]
    pub(super) fn assign(&mut self, at: usize, leaf: u32) {
        debug_assert!(self.has(leaf));
        self.of_op[at] = leaf;
    }

    /// Gives everything back as it was.
    pub(super) fn release_unchanged(&self) {
        for leaf in self.all().iter().rev() {
            self.seat.release_unchanged(*leaf);
            self.seat.forget_latch();
        }
    }

    /// The epoch.
    ///
    /// # Errors
    /// What keeps us from writing; `Copy`: a leaf belongs to an earlier generation.
    pub(super) fn epoch(&self) -> Attempt<Epoch> {
        let image = &self.seat.image;
        let epoch = Epoch::read(image);
        epoch.admits(image, self.seat.id)?;
        match self.all().iter().all(|leaf| image.life(*leaf).born == epoch.generation) {
            true => Ok(epoch),
            false => Err(Stop::Copy),
        }
    }

    /// Finds the place of each operation, where `known` does not say it; the first one whose leaf has no room for it and
    /// those before it, if any.
    pub(super) fn find_places(
        &mut self,
        ops: &[Op<'_>],
        known: impl Fn(usize) -> Option<Found>,
    ) -> Option<usize> {
        let (mut leaf, mut need) = (0, 0);
        for (at, op) in ops.iter().enumerate() {
            if self.of_op[at] != leaf {
                (leaf, need) = (self.of_op[at], 0);
            }
            let page = self.seat.image.page(leaf);
            let found = known(at).unwrap_or_else(|| find(page, op.key));
            debug_assert_eq!(found, find(page, op.key));
            self.places[at] = found;
            if op.kind != Kind::Set {
                continue;
            }
            let new = page::need(page, op.key, op.value.len());
            need += if found.equal { new.saturating_sub(page::taken(page, found.index)) } else { new + 8 };
            if need > page::leaf_free(page) {
                return Some(at);
            }
        }
        None
    }

    /// Publishes the record, applies it, releases the leaves. Answers which operation has left its leaf sparse, if one
    /// has. The places have been found.
    ///
    /// # Errors
    /// As [`Latched::epoch`]: nothing has happened, and the leaves are still held.
    pub(super) fn publish(&self, ops: &[Op<'_>], mut epoch: Epoch) -> Attempt<Option<usize>> {
        let seat = self.seat;
        let version = |leaf: &u32| latch::load(seat.image.latch(*leaf)).version();
        let seq = self.all().iter().map(version).max().unwrap_or(0);
        seat.set_seq(seq);
        loop {
            let len = seat.write_record(epoch.generation, epoch.flush, ops, &[]);
            if seat.publish(len) {
                break;
            }
            epoch = self.epoch()?;
        }
        // How far those applied to a leaf have moved what lies behind them there.
        let (mut last, mut moved) = (0, 0);
        for (at, op) in ops.iter().enumerate() {
            let (leaf, found) = (self.of_op[at], self.places[at]);
            if leaf != last {
                (last, moved) = (leaf, 0);
            }
            let place = Found { index: found.index.wrapping_add_signed(moved), ..found };
            debug_assert_eq!(place, find(seat.image.page(leaf), op.key));
            tree::apply_found(seat, leaf, place, op, epoch.generation, &[]);
            moved += match op.kind {
                Kind::Set => isize::from(!found.equal),
                _ => -isize::from(found.equal),
            };
        }
        seat.set_applied();
        let sparse = ops
            .iter()
            .zip(&self.of_op)
            .position(|(op, leaf)| op.kind == Kind::Remove && page::is_sparse(seat.image.page(*leaf)));
        for leaf in self.all().iter().rev() {
            seat.release(*leaf, seq);
            seat.forget_latch();
        }
        seat.notify_each(ops.iter().map(|op| op.key));
        Ok(sparse)
    }
}
