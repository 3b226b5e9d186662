//! The end of a one-shot transaction: its leaves are latched, what it has read is looked at once more, and its writes are
//! published as one record. Or it goes on as a whole transaction.
//!
//! What stands in the way and can be done is done, and the end tried again: a leaf without room is split, one of an earlier
//! generation is copied. What was read of the old page is true of the new ones, whose words are noted instead.
//!
//! Invariants
//! - Latches are only tried; none is left when a function here returns.
//! - Pages are split and copied without a latch of the transaction's own.

use perilune_shm::latch;
use perilune_store::{Error, Result};

use super::super::latched::Latched;
use super::super::Transaction;
use super::writes::Write;
use super::{OneShot, LOOKED_AT};
use crate::access::Access;
use crate::error::Stop;
use crate::limits::{HELD, ONE_SHOT_SMALL, ONE_SHOT_SPLITS, ONE_SHOT_WRITES, RECORD_INLINE_MAX};
use crate::page;
use crate::session::record::{Kind, Op};
use crate::session::{Counter, Seat};
use crate::tree::{self, Beside, Copied, Halves, Seen, Which};

impl OneShot {
    /// Notes that a page was split, if it has been read: all that was read of it is true of its halves together. False: it
    /// was no longer what was read.
    pub(super) fn follow(&mut self, halves: &Halves) -> bool {
        if let Some(index) = self.leaves.find(halves.old.number) {
            if !self.leaves.split(index, halves) {
                return false;
            }
            // Places are those in the old page.
            let moved = self.writes.all_mut().iter_mut().filter(|write| write.near == index);
            moved.for_each(|write| write.place = None);
        }
        let mut counted = self.counted.iter_mut().filter(|seen| seen.number == halves.old.number);
        if let Some(seen) = counted.next() {
            if *seen != halves.old || counted.next().is_some() {
                return false;
            }
            *seen = halves.left;
            self.counted.push(halves.right);
        }
        true
    }

    /// Notes that a page was copied, if it has been read: all that was read of it is true of the copy, places too. False: it
    /// was no longer what was read.
    fn follow_copy(&mut self, Copied { old, new }: Copied) -> bool {
        let is_same = |seen: &Seen| seen.number != old.number || *seen == old;
        if !self.counted.iter().all(is_same) {
            return false;
        }
        self.counted.iter_mut().filter(|seen| **seen == old).for_each(|seen| *seen = new);
        self.leaves.find(old.number).is_none_or(|index| self.leaves.replace(index, old, new))
    }

    /// Whether all that was read is still there; some may be latched by this session.
    fn holds(&self, seat: &Seat) -> bool {
        let is_same = |seen: &Seen| {
            let word = seat.image.latch(seen.number);
            if seat.holds(seen.number) {
                // NB: one that was located anew for a write may have been latched later than it was read.
                return latch::load(word).version() == seen.word.version();
            }
            latch::validate(word, seen.word)
        };
        self.leaves.all().iter().all(is_same) && self.counted.iter().all(is_same)
    }
}

/// Why a one-shot transaction was not published.
pub(super) enum Refusal {
    /// Somebody was faster, or is in the way.
    Changed,
    /// Others keep writers out, which ends: a one-shot transaction does not wait for it.
    KeptOut,
    /// Something must be done first that a one-shot transaction does not do, as to wait for room.
    Barred,
    /// A leaf belongs to an earlier generation.
    Foreign,
    /// The leaf of this write has no room for it and those before it there.
    Short(usize),
}

/// What it means to a one-shot transaction that its epoch does not admit it.
fn refusal_of(stop: Stop) -> Refusal {
    match stop {
        Stop::Copy => Refusal::Foreign,
        Stop::Lease => Refusal::KeptOut,
        _ => Refusal::Barred,
    }
}

impl Access {
    /// Has `txn`, which has neither read nor written yet, go on from a one-shot transaction, which ends.
    ///
    /// # Errors
    /// `Conflict`: what that has read is no longer so; then `txn` is doomed, too.
    pub(crate) fn hand_over(&self, one_shot: &mut OneShot, txn: &mut Transaction) -> Result<()> {
        one_shot.end();
        if one_shot.met || !self.is_one_state(one_shot) {
            txn.doomed = true;
            return Err(Error::Conflict);
        }
        txn.reads.rest_on_leaves(one_shot.leaves.all().iter().chain(&one_shot.counted).copied());
        let writes = &one_shot.writes;
        for write in writes.all() {
            let key = writes.key(write);
            match write.kind {
                Kind::Set => txn.set(Which::Main, key, writes.value(write)),
                _ => txn.remove(Which::Main, key),
            }
        }
        Ok(())
    }

    /// Checks that all that a one-shot transaction has read until now is one state.
    ///
    /// # Errors
    /// `Conflict` when it is not: it has failed.
    pub(crate) fn validate_one_shot(&self, one_shot: &mut OneShot) -> Result<()> {
        if one_shot.failed || !self.is_one_state(one_shot) {
            return one_shot.fail();
        }
        Ok(())
    }

    /// Whether all that was read is still there; no leaf is latched.
    pub(super) fn is_one_state(&self, one_shot: &mut OneShot) -> bool {
        let holds = one_shot.holds(&self.seat);
        one_shot.met |= !holds;
        holds
    }

    /// Ends a one-shot transaction, with its writes if they are to be kept; false: it has done nothing, and
    /// what it saw may never have been one state.
    ///
    /// # Errors
    /// `WritesStopped`, `NoSpace`, `Io`: the log takes nothing now.
    pub(crate) fn end_one_shot(&self, one_shot: &mut OneShot, keep: bool) -> Result<bool> {
        if one_shot.failed {
            return Ok(false);
        }
        if !keep || one_shot.writes.is_empty() {
            return Ok(self.is_one_state(one_shot));
        }
        one_shot.writes.sort();
        if one_shot.writes.record_bytes() >= RECORD_INLINE_MAX {
            return Ok(false);
        }
        self.make_room(RECORD_INLINE_MAX)?;
        let _operation = self.operation();
        // NB: to prepare what many writes need takes longer than the rest of a small transaction.
        let count = one_shot.writes.len();
        if count <= ONE_SHOT_SMALL {
            self.end_with::<ONE_SHOT_SMALL>(one_shot)
        } else if count <= HELD {
            self.end_with::<HELD>(one_shot)
        } else {
            self.end_with::<ONE_SHOT_WRITES>(one_shot)
        }
    }

    /// Ends it with its writes, which are up to `N`, in the order of their keys, and fit one record.
    fn end_with<const N: usize>(&self, one_shot: &mut OneShot) -> Result<bool> {
        let mut was_cut = false;
        for _ in 0..=ONE_SHOT_SPLITS {
            let published = self.find_room(one_shot).and_then(|()| self.publish_one_shot::<N>(one_shot));
            was_cut = matches!(published, Err(Refusal::Foreign));
            let overcome = match published {
                Ok(()) => {
                    self.seat.count(Counter::Commits);
                    return Ok(true);
                }
                Err(Refusal::Short(at)) => match self.split_for(one_shot, at) {
                    Err(Refusal::Foreign) => self.copy_for(one_shot),
                    split => split,
                },
                Err(Refusal::Foreign) => self.copy_for(one_shot),
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = overcome {
                one_shot.met = !matches!(refusal, Refusal::Barred | Refusal::KeptOut);
                one_shot.kept_out = matches!(refusal, Refusal::KeptOut);
                return Ok(false);
            }
        }
        // Checkpoints, one after the other, have made old what was copied each time.
        one_shot.kept_out = was_cut;
        Ok(false)
    }

    /// Latches, checks, publishes, applies, releases.
    fn publish_one_shot<const N: usize>(&self, one_shot: &OneShot) -> std::result::Result<(), Refusal> {
        let writes = &one_shot.writes;
        let (few, many);
        let ops = if let Some(first) = writes.all().first().filter(|_| writes.len() <= ONE_SHOT_SMALL) {
            let mut ops = [writes.op(first); ONE_SHOT_SMALL];
            ops.iter_mut().zip(writes.all()).for_each(|(op, write)| *op = writes.op(write));
            few = ops;
            &few[..writes.len()]
        } else {
            many = writes.all().iter().map(|write| writes.op(write)).collect::<Vec<_>>();
            &many
        };
        let mut held = Latched::<N>::new(&self.seat);
        self.publish_ops(one_shot, ops, &mut held).inspect_err(|_| held.release_unchanged())
    }

    /// Latches, checks and publishes these operations, and applies them; after a refusal latches are still held.
    fn publish_ops<const N: usize>(
        &self,
        one_shot: &OneShot,
        ops: &[Op<'_>],
        held: &mut Latched<'_, N>,
    ) -> std::result::Result<(), Refusal> {
        // NB: what needs no latch is done before the first, for which others wait from then on.
        let len = self.seat.write_ops(ops);
        for (at, op) in ops.iter().enumerate() {
            let leaf = self.leaf_for(one_shot, &one_shot.writes.all()[at], op.key).ok_or(Refusal::Changed)?;
            if !held.has(leaf.number) && !held.try_latch(leaf) {
                return Err(Refusal::Changed);
            }
            held.assign(at, leaf.number);
        }
        let epoch = held.epoch().map_err(refusal_of)?;
        // NB: that what was read is still so makes the places that reads have told good.
        if !one_shot.holds(&self.seat) {
            return Err(Refusal::Changed);
        }
        for (at, (op, write)) in ops.iter().zip(one_shot.writes.all()).enumerate() {
            let leaf = held.leaf_of(at);
            held.put(at, write.place.unwrap_or_else(|| page::find(self.seat.image.page(leaf), op.key)));
        }
        if let Some(at) = held.short_of_room(ops) {
            return Err(Refusal::Short(at));
        }
        let sparse = held.publish(ops, len, epoch).map_err(refusal_of)?;
        if let Some(at) = sparse {
            self.tidy(Which::Main, ops[at].key);
        }
        Ok(())
    }

    /// Splits the leaf of write `at`, or a page above it that has no room for that.
    ///
    /// # Errors
    /// Somebody was in the way, or has changed the leaf; a page belongs to an earlier generation.
    #[cold]
    pub(super) fn split_for(&self, one_shot: &mut OneShot, at: usize) -> std::result::Result<(), Refusal> {
        if one_shot.leaves.is_full() {
            // A whole transaction can follow the halves of a leaf that was read.
            return Err(Refusal::Barred);
        }
        let writes = &one_shot.writes;
        let ahead = |at: usize| writes.coming(at);
        let key = writes.key(&writes.all()[at]);
        match tree::split(&self.seat, Which::Main, key, 0, Beside::Operations(at, &ahead)) {
            Ok(halves) if one_shot.follow(&halves) => Ok(()),
            Err(Stop::Copy) => Err(Refusal::Foreign),
            _ => Err(Refusal::Changed),
        }
    }

    /// Copies the leaves of all writes, and what is above them, that belong to an earlier generation.
    ///
    /// # Errors
    /// Somebody was in the way, or has changed one of the leaves; there is no room for a copy.
    #[cold]
    fn copy_for(&self, one_shot: &mut OneShot) -> std::result::Result<(), Refusal> {
        for at in 0..one_shot.writes.len() {
            loop {
                match tree::copy_one(&self.seat, one_shot.writes.key(&one_shot.writes.all()[at]), 0) {
                    Ok(Some(copied)) if one_shot.follow_copy(copied) => {}
                    Ok(None) => break,
                    // A checkpoint has come meanwhile: the next try to publish meets older pages again.
                    Err(Stop::Copy) => return Ok(()),
                    Ok(Some(_)) | Err(Stop::Restart | Stop::Busy(_)) => return Err(Refusal::Changed),
                    Err(Stop::Lease) => return Err(Refusal::KeptOut),
                    Err(_) => return Err(Refusal::Barred),
                }
            }
        }
        Ok(())
    }

    /// The leaf where `key` belongs: one that was read, as a rule the one before the write.
    pub(super) fn leaf_for(&self, one_shot: &OneShot, write: &Write, key: &[u8]) -> Option<Seen> {
        // What a page that was read says is true of it if it is latched under the word it was read with.
        let covers = |seen: &&Seen| page::contains(self.seat.image.page(seen.number), key);
        let near = one_shot.leaves.all().get(write.near).filter(|seen| write.place.is_some() || covers(seen));
        // Of many it would take longer to find out which one covers it than to search from the root.
        let recent = || one_shot.leaves.all().iter().rev().take(LOOKED_AT).find(covers);
        let leaf = match near.or_else(recent) {
            Some(leaf) => *leaf,
            None => tree::locate(&self.seat.image, &self.fingers, Which::Main, key, self.seat.id).ok()?,
        };
        self.fingers.point(Which::Main, leaf.number);
        Some(leaf)
    }
}
