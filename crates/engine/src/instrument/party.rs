//! One process's part in a place: what a session does, what a repairer does, and looks at what others have left.
//!
//! Example: `kill_step` forks; the child sets a key as party 0, one instruction at a time; after each the parent joins as
//! party 1, for which party 0 is dead, repairs it, and compares what it finds.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::region::Access as Mapping;
use perilune_store::{
    Decision, Error, LockMode, LockOwner, LockRequest, Message, Probe, ProbeTarget, Probed, Result,
};

use super::{Shape, Tree, Write, PARTIES, PATIENCE};
use crate::access::Access;
use crate::image::layout::{control, phase, session, ProcessState};
use crate::image::{io_error, Image};
use crate::lock::{entry, Locks};
use crate::session::patch::Patch;
use crate::session::{Counter, Seat};
use crate::tree::{Action, Neighbour, Seek, Wanted, Which};
use crate::txn::{OneShot, ProbedDraft};
use crate::{message, page, pin, repair, verify};

/// One process's part in a place.
pub struct Party {
    access: Access,
    number: u16,
}

impl Party {
    pub(super) fn new(image: Arc<Image>, number: u16) -> Party {
        Party { access: Access::new(Seat::new(image, number + 1)), number }
    }

    fn image(&self) -> &Arc<Image> {
        &self.access.seat.image
    }

    /// Forgets all that the party remembers of pages, and, on a private mapping, what it has written.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget(&mut self) -> Result<()> {
        let image = self.image().clone();
        if image.db.access() == Mapping::Private {
            let discarded = image.db.discard().and_then(|()| image.shm.discard());
            discarded.map_err(|source| io_error("discard", &image.path, source))?;
        }
        self.access = Access::new(Seat::new(image, self.number + 1));
        Ok(())
    }

    /// Sets a value.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set(&self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.access.set(tree.which(), key, value).map(drop)
    }

    /// Writes a piece of the value at a key of the main tree.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_piece(&self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<()> {
        self.set_pieces(key, &[(offset, bytes)])
    }

    /// Writes several pieces of the value at a key of the main tree at once.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_pieces(&self, key: &[u8], pieces: &[(usize, &[u8])]) -> Result<()> {
        self.access.atomically(Instant::now() + PATIENCE, |access, txn| {
            let mut scratch = Vec::new();
            for (offset, bytes) in pieces {
                let patch = Patch { offset: *offset, bytes };
                let length = access.txn_patch(txn, key, patch, &mut scratch)?;
                assert!(length.is_some(), "there is no value to be patched");
            }
            Ok(())
        })
    }

    /// Sets the values at keys of the main tree, leaf by leaf where they ascend.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_run(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.access.set_run(pairs)
    }

    /// Sets the values at keys of the main tree, which ascend, at once, if nothing lies below them.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_all_unless_parents(&self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        self.access.set_all_unless_parents(pairs)
    }

    /// Sets values, or removes them where there is none, as probed keys; false: nothing was written.
    ///
    /// # Errors
    /// As the engine's.
    pub fn change_probed(&self, writes: &[(&[u8], Option<&[u8]>)]) -> Result<bool> {
        let probes: Vec<_> = writes.iter().map(|(key, _)| Probe { key, target: ProbeTarget::At }).collect();
        let mut change = |probed: &mut dyn Probed| {
            for (at, (key, value)) in writes.iter().enumerate() {
                match value {
                    Some(value) => probed.set(at, key, value),
                    None => probed.remove(at, key),
                }
            }
            Ok(true)
        };
        self.access.change_probed(&probes, &mut change, &mut ProbedDraft::default())
    }

    /// Reads all keys, and sets the values of some, in a one-shot transaction; false: nothing was written.
    ///
    /// # Errors
    /// As the engine's.
    pub fn attempt(&self, reads: &[&[u8]], pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        let (mut one_shot, mut value) = (OneShot::default(), Vec::new());
        one_shot.begin();
        reads.iter().try_for_each(|key| one_shot.get(&self.access, key, &mut value).map(drop))?;
        pairs.iter().try_for_each(|(key, value)| one_shot.write(key, Some(value)))?;
        one_shot.end();
        self.access.end_one_shot(&mut one_shot, true)
    }

    /// Removes a value.
    ///
    /// # Errors
    /// As the engine's.
    pub fn remove(&self, tree: Tree, key: &[u8]) -> Result<()> {
        self.access.remove(tree.which(), key).map(drop)
    }

    /// Adds to the 8-byte number at a key; a missing one is 0.
    ///
    /// # Errors
    /// As the engine's.
    pub fn add(&self, tree: Tree, key: &[u8], amount: u64) -> Result<()> {
        let change = &mut |current: Option<&[u8]>, buffer: &mut perilune_store::UpdateBuffer| {
            let old = current.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
            buffer[..8].copy_from_slice(&(old + amount).to_le_bytes());
            Ok(Decision::Write(8))
        };
        self.access.update(tree.which(), key, change).map(drop)
    }

    /// Swaps the value at a key for `new` if it is `expected`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn swap(&self, tree: Tree, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
        self.access.write(tree.which(), key, Action::Swap { expected, new }).map(drop)
    }

    /// Commits all of `writes` in one transaction, which has read the keys in `reads`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn transact(&self, reads: &[(Tree, &[u8])], writes: &[Write<'_>]) -> Result<()> {
        self.access.atomically(Instant::now() + PATIENCE, |access, txn| {
            let mut value = Vec::new();
            for (tree, key) in reads {
                access.txn_get(txn, tree.which(), key, &mut value)?;
            }
            for write in writes {
                match write {
                    Write::Set(tree, key, value) => txn.set(tree.which(), key, value),
                    Write::Remove(tree, key) => txn.remove(tree.which(), key),
                    Write::RemovePrefix(tree, prefix) => txn.remove_prefix(tree.which(), prefix),
                }
            }
            Ok(())
        })
    }

    /// Takes locks on `names`, exclusively or shared, for owner 1 of this party.
    ///
    /// # Errors
    /// As the engine's.
    pub fn lock(&self, names: &[(&[u8], LockMode)], timeout: Duration) -> Result<bool> {
        let requests: Vec<LockRequest<'_>> =
            names.iter().map(|(name, mode)| LockRequest { name, ancestors: &[], mode: *mode }).collect();
        let locks = Locks::new(self.image().clone());
        locks.lock(&self.access, LockOwner(1), &requests, Some(timeout), None)
    }

    /// Counts the lock of owner 1 on `name` down.
    ///
    /// # Errors
    /// As the engine's.
    pub fn unlock(&self, name: &[u8]) -> Result<bool> {
        Locks::new(self.image().clone()).unlock(&self.access, LockOwner(1), name)
    }

    /// Posts a message.
    ///
    /// # Errors
    /// As the engine's.
    pub fn post(&self, channel: &[u8], body: &[u8]) -> Result<u64> {
        message::post(&self.access, channel, body)
    }

    /// Takes the oldest message.
    ///
    /// # Errors
    /// As the engine's.
    pub fn receive(&self, channel: &[u8]) -> Result<Option<Message>> {
        let deadline = Instant::now() + PATIENCE;
        self.access.atomically(deadline, |access, txn| message::receive_in(access, txn, channel))
    }

    /// Begins a new generation.
    ///
    /// # Errors
    /// As the engine's.
    pub fn cut(&self) -> Result<()> {
        pin::cut(self.image(), self.access.seat.id, pin::Purpose::Snapshot).map(drop)
    }

    /// Repairs party `number`, if it has died.
    ///
    /// # Errors
    /// As the engine's.
    pub fn repair(&self, number: u16) -> Result<()> {
        repair::dead_process(self.image(), number.into())
    }

    /// Verifies both trees.
    ///
    /// # Errors
    /// `Corrupt`; also when a session of a free process is not at rest.
    pub fn verify(&self) -> Result<()> {
        verify::verify(self.image())?;
        for number in 0..PARTIES {
            let seat = Seat::new(self.image().clone(), number + 1);
            let is_free = matches!(self.image().process(number.into()), ProcessState::Free { .. });
            if is_free && (seat.owner_word().load(Relaxed) != 0 || Self::signature_of(&seat) != 0) {
                return Err(Error::Internal(format!("session {} was repaired but is not at rest", seat.id)));
            }
        }
        Ok(())
    }

    /// Shows all records of a tree in order, until `show` answers false. Since when a lock is held or
    /// waited for is shown as zero: it differs from run to run.
    ///
    /// # Errors
    /// As the engine's.
    pub fn scan(&self, tree: Tree, mut show: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let (mut from, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let which = tree.which();
        while self.access.neighbour(
            which,
            Seek { from: &from, side: Neighbour::Next, bound: &[] },
            &mut key,
            Some(Wanted::whole(&mut value)),
            &mut (),
        )? {
            if tree == Tree::Volatile {
                entry::forget_time(&key, &mut value);
            }
            if !show(&key, &value) {
                break;
            }
            std::mem::swap(&mut from, &mut key);
        }
        Ok(())
    }

    /// What the session has done and what the trees are like. Verifies them.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn shape(&self) -> Result<Shape> {
        let image = self.image();
        let report = verify::verify(image)?;
        let counted = |counter: Counter| {
            self.access.seat.head_words()[session::STATISTICS + counter as usize].load(Relaxed)
        };
        Ok(Shape {
            splits: counted(Counter::Splits),
            merges: counted(Counter::Merges),
            copies: counted(Counter::Copies),
            inner_pages: report.inner_pages,
            leaf_pages: report.leaf_pages,
            extent_pages: report.extent_pages,
            volatile_pages: report.volatile_pages,
            pages: image.npages(),
            level: page::level(image.page(image.control(control::ROOT).load(Relaxed) as u32)),
        })
    }

    /// How much the session of party `number` has noted of its operation at this moment; 0 between two operations.
    pub fn signature(&self, number: u16) -> u64 {
        Self::signature_of(&Seat::new(self.image().clone(), number + 1))
    }

    fn signature_of(seat: &Seat) -> u64 {
        let word = |index: usize| seat.head_words()[index].load(Relaxed);
        let counts = [
            session::HELD_COUNT,
            session::FRESH_COUNT,
            session::STALE_COUNT,
            session::CLAIMED_COUNT,
            session::FREED_COUNT,
        ];
        let noted = counts.iter().fold(0, |sum, index| sum << 8 | word(*index).min(255));
        let is_open = u64::from(seat.applied() != seat.head());
        // The undo area grows through a step; at rest its length means nothing.
        let saved = if seat.phase() == phase::CHANGING { word(session::UNDO_LEN) << 48 } else { 0 };
        saved ^ noted << 8 | word(session::IN_OP) << 4 | is_open << 3 | seat.phase()
    }

    /// Free and wasted bytes of the main tree's leaf that covers `key`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn leaf_room(&self, key: &[u8]) -> Result<(usize, usize)> {
        self.access.read(|| {
            let leaf = crate::tree::descend(self.image(), Which::Main, key, 0)?;
            let page = self.image().page(leaf.number);
            Ok((page::leaf_free(page), page::garbage(page)))
        })
    }

    /// Leaves only `pages` pages that were never used before the files must grow.
    pub fn spend_pages(&self, pages: u64) {
        self.image().control(control::FRONTIER).store(self.image().npages() - pages, Relaxed);
    }
}
