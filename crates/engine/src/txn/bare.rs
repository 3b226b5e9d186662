//! Leaves that a one-shot transaction had read when a whole one took over from it: only their words are known, not what was asked.
//!
//! Invariant: what was read is true as long as all have these words. A leaf that the own commit splits or copies is followed:
//! what was read of it is true of its halves, or of the copy.

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Error, Result};

use crate::access::Access;
use crate::error::Stop;
use crate::repair::Patience;
use crate::tree::{Copied, Halves, Seen};

/// Whether two words name the same content, whoever holds the latch.
pub(super) fn same(one: LatchWord, other: LatchWord) -> bool {
    one.version() == other.version() && one.state() == other.state()
}

/// The leaves; one may be there twice.
#[derive(Default)]
pub(crate) struct BareReads(Vec<Seen>);

impl BareReads {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn note(&mut self, leaves: impl Iterator<Item = Seen>) {
        self.0.extend(leaves);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Seen>()
    }

    /// Notes that a page was split, in whose place there are two.
    pub(super) fn follow(&mut self, halves: &Halves) {
        let mut has_been_read = false;
        for seen in self.0.iter_mut().filter(|seen| **seen == halves.old) {
            *seen = halves.left;
            has_been_read = true;
        }
        if has_been_read {
            self.0.push(halves.right);
        }
    }

    /// Notes that a page was copied.
    pub(super) fn follow_copy(&mut self, copied: Copied) {
        self.0.iter_mut().filter(|seen| **seen == copied.old).for_each(|seen| *seen = copied.new);
    }

    /// Whether all have the words under which they were read and are latched by nobody but `me`.
    pub(super) fn hold(&self, access: &Access, me: u16) -> bool {
        self.0.iter().all(|leaf| {
            let now = latch::load(access.seat.image.latch(leaf.number));
            same(now, leaf.word) && (!now.locked() || me != 0 && now.is_locked_by(me))
        })
    }

    /// Waits for whoever has latched one of them, `rounds` at most if latches are held by `me`.
    ///
    /// # Errors
    /// `Conflict`: one has another word, or was waited for in vain.
    pub(super) fn wait(&self, access: &Access, me: u16, rounds: u32) -> Result<()> {
        for leaf in &self.0 {
            let mut patience = Patience::new();
            loop {
                let now = latch::load(access.seat.image.latch(leaf.number));
                if !same(now, leaf.word) {
                    return Err(Error::Conflict);
                }
                if !now.locked() || me != 0 && now.is_locked_by(me) {
                    break;
                }
                if me != 0 && patience.rounds() >= rounds {
                    return Err(Error::Conflict);
                }
                patience.wait_for_stop(&access.seat, Stop::Busy(leaf.number))?;
            }
        }
        Ok(())
    }
}
