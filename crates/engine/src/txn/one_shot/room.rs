//! Room for many writes of a one-shot transaction: the leaves are split before one is latched, each as often as it takes.
//!
//! Few writes meet a full leaf now and then: it is split then, and all of the end tried again. Of a thousand new nodes in one
//! place each leaf has to be split, and the rest would be looked at a thousand times.
//!
//! Invariant: nothing is concluded from what is seen here. A leaf that changes behind this is short of room again once it is
//! latched, or no longer what was read.

use super::ending::Refusal;
use super::OneShot;
use crate::access::Access;
use crate::limits::{ONE_SHOT_SMALL, ONE_SHOT_SPLITS};
use crate::page;
use crate::session::record::Kind;

impl Access {
    /// Splits leaves until each seems to have room for what is to be written there.
    ///
    /// # Errors
    /// Somebody was in the way, or has changed a leaf; one belongs to an earlier generation.
    pub(super) fn find_room(&self, one_shot: &mut OneShot) -> Result<(), Refusal> {
        let count = one_shot.writes.len();
        if count <= ONE_SHOT_SMALL {
            return Ok(());
        }
        // NB: each split parts two of the writes, or a leaf that is full of others.
        let mut splits = ONE_SHOT_SPLITS + count;
        let (mut at, mut first, mut leaf, mut need) = (0, 0, 0, 0);
        while at < count {
            let write = &one_shot.writes.all()[at];
            let (key, value) = (one_shot.writes.key(write), one_shot.writes.value(write));
            let met = self.leaf_for(one_shot, write, key).ok_or(Refusal::Changed)?;
            if met.number != leaf {
                (leaf, first, need) = (met.number, at, 0);
            }
            let (page, sets) = (self.seat.image.page(leaf), write.kind == Kind::Set);
            let found = write.place.unwrap_or_else(|| page::find(page, key));
            if sets {
                need += match found.equal {
                    true => page::growth(page, found.index, value.len()),
                    false => page::need(page, key, value.len()) + 8,
                };
            }
            let is_short = sets && need > 0 && need > page::leaf_free(page);
            if write.place.is_none() {
                let near = one_shot.leaves.find(leaf).filter(|index| one_shot.leaves.all()[*index] == met);
                if let Some(near) = near {
                    one_shot.writes.find_again(at, near, found);
                }
            }
            at += 1;
            if is_short {
                splits = splits.checked_sub(1).ok_or(Refusal::Changed)?;
                self.split_for(one_shot, at - 1)?;
                // What was counted of the leaf is counted again, in its halves.
                (at, leaf) = (first, 0);
            }
        }
        Ok(())
    }
}
