//! Leaves made ready for a commit: copied where they are of an earlier generation, split where they have no room.
//!
//! A commit that finds one leaf without room, or of an earlier generation, will probably find many. So one pass
//! prepares all leaves that its operations will meet from there on. Else the commit would begin again for each, and
//! take time in proportion to operations times splits.
//!
//! Deliberately absent: any promise. Others may change what was made ready; the commit looks again.

use perilune_store::Result;

use super::bare::BareReads;
use super::commit::{which_of, Held, Target};
use super::overlay::Overlay;
use crate::access::Access;
use crate::error::{Attempt, Stop};
use crate::page::{self, find, Page};
use crate::repair::Patience;
use crate::session::record::{Kind, Op};
use crate::session::Epoch;
use crate::tree::{self, Beside, Which};

/// What a look at one leaf has found of the operations that begin in it.
enum Finding {
    /// There is room for all before this one, with which another leaf begins, or the end.
    Ready(usize),
    /// The leaf is of an earlier generation.
    Foreign,
    /// From this one on there is no room.
    Short(usize),
}

impl Access {
    /// The first operation whose leaf has no room for all that is to be set in it.
    pub(super) fn short_of_room(&self, overlay: &Overlay, ops: &[Op<'_>], held: &Held) -> Option<usize> {
        let mut leaf = 0;
        let mut need = 0;
        for (at, op) in ops.iter().enumerate() {
            if !op.kind.sets() {
                continue;
            }
            let page = self.seat.image.page(held.of_op[at]);
            if held.of_op[at] != leaf {
                leaf = held.of_op[at];
                need = 0;
            }
            need += need_of(overlay, op, page);
            if need > page::leaf_free(page) {
                return Some(at);
            }
        }
        None
    }

    /// Makes leaves ready for the operations from `first` on. No latch is held, before and after. `bare` follows what becomes of
    /// leaves.
    ///
    /// # Errors
    /// Of copying and splitting: `DatabaseFull`, and whatever ends writing.
    pub(super) fn make_ready(
        &self,
        overlay: &Overlay,
        ops: &[Op<'_>],
        first: usize,
        bare: &mut BareReads,
        patience: &mut Patience,
    ) -> Result<()> {
        let mut at = first;
        while at < ops.len() {
            let (which, key) = (which_of(&ops[at]), ops[at].key);
            if ops[at].kind == Kind::RemovePrefix {
                at += 1;
                continue;
            }
            let stop = match self.look(overlay, ops, at) {
                Ok(Finding::Ready(next)) => {
                    at = next;
                    None
                }
                Ok(Finding::Foreign) => Some(Stop::Copy),
                Ok(Finding::Short(short)) => {
                    let of_tree = |op: &&Op<'_>| which_of(op) == which;
                    let ahead = |at: usize| ops.get(at).filter(of_tree).and_then(Op::coming);
                    tree::split(&self.seat, which, ops[short].key, 0, Beside::Operations(short, &ahead))
                        .map(|halves| bare.follow(&halves))
                        .err()
                }
                Err(stop) => Some(stop),
            };
            let stop = match stop {
                Some(Stop::Copy) => self.copy_path_telling(key, |copied| bare.follow_copy(copied)).err(),
                stop => stop,
            };
            if let Some(stop) = stop {
                self.overcome(stop, which, key, patience)?;
            }
        }
        Ok(())
    }

    /// Looks at the leaf of operation `at`, which sets or removes one key, and at those behind it in the same leaf.
    fn look(&self, overlay: &Overlay, ops: &[Op<'_>], at: usize) -> Attempt<Finding> {
        let which = which_of(&ops[at]);
        let mut held = Held::default();
        let target = Target { which, key: ops[at].key, op: at, range: false };
        let leaf = self.latch_leaf(&target, target.key, &mut held)?;
        let finding = self.judge(overlay, ops, at, leaf);
        self.seat.release_unchanged(leaf);
        self.seat.forget_latch();
        Ok(finding)
    }

    /// Judges the operations from `at` on by what their leaf, which is latched, has room for.
    fn judge(&self, overlay: &Overlay, ops: &[Op<'_>], at: usize, leaf: u32) -> Finding {
        let (image, which) = (&self.seat.image, which_of(&ops[at]));
        let page = image.page(leaf);
        if which == Which::Main && image.life(leaf).born != Epoch::read(image).generation {
            return Finding::Foreign;
        }
        let mut fence = Vec::new();
        page::hi_fence(page, &mut fence);
        let mut need = 0;
        for (next, op) in ops.iter().enumerate().skip(at) {
            if op.kind == Kind::RemovePrefix
                || which_of(op) != which
                || !fence.is_empty() && *op.key > fence[..]
            {
                return Finding::Ready(next);
            }
            if op.kind.sets() {
                need += need_of(overlay, op, page);
            }
            if need > page::leaf_free(page) {
                return Finding::Short(next);
            }
        }
        Finding::Ready(ops.len())
    }
}

/// Bytes that setting takes in a latched leaf, at most.
fn need_of(overlay: &Overlay, op: &Op<'_>, page: &Page) -> usize {
    let new = page::need(page, op.key, op.stored().len());
    let found = find(page, op.key);
    if found.equal && !overlay.is_removed(which_of(op), op.key) {
        new.saturating_sub(page::taken(page, found.index))
    } else {
        new + 8
    }
}
