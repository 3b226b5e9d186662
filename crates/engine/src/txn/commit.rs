//! The commit: latch, check, publish, apply, release.
//!
//! 1. Long values are written to runs of pages, which nobody can reach yet.
//! 2. The leaves of all writes are latched, in the order of their keys. A leaf of an earlier generation is copied, one
//!    without room is split: for that all latches are released, and the commit begins again.
//! 3. The reads are checked once more. If one has changed, the transaction has failed, and its body runs again.
//! 4. One record with all writes is published by one compare-and-swap: now it has happened, for all to see.
//! 5. The record is applied, leaf by leaf; then all latches are released.
//!
//! Invariant: every leaf of the record is latched from before its publication until after its application, so nobody
//! sees a part of it.
//!
//! What if we are killed? Before step 4 nothing has happened: repair releases the latches and frees the runs. After it
//! repair applies the whole record again.
//!
//! Deliberately absent: reads (`reads`), writes that are not committed yet (`overlay`), one-shot transactions (`one_shot`).

use std::time::{Duration, Instant};

use perilune_shm::latch;
use perilune_store::{Durability, Error, Result};

use super::bare::BareReads;
use super::overlay::Overlay;
use super::Transaction;
use crate::access::Access;
use crate::control::take_lease;
use crate::error::{Attempt, Stop};
use crate::image::layout::Run;
use crate::limits::{COMMIT_LEAVES_MAX, LEASE_WAIT, PAGE, RECORD_INLINE_MAX};
use crate::log;
use crate::page::{self, RECORD_BIG};
use crate::repair::Patience;
use crate::session::extent::List;
use crate::session::patch::Plan;
use crate::session::record::{record_bytes, Kind, Op};
use crate::session::{Counter, Epoch, Limit, Seat};
use crate::tree::{self, descend, removal_end, Seen, Which};

/// A place to be latched: an operation's key, or all leaves that meet its prefix.
pub(super) struct Target<'a> {
    pub(super) which: Which,
    pub(super) key: &'a [u8],
    pub(super) op: usize,
    pub(super) range: bool,
}

/// Leaves latched so far, in order, each with the highest key that was looked for in it.
#[derive(Default)]
pub(super) struct Held {
    pub(super) leaves: Vec<u32>,
    /// For each of them, the operation that it was latched for.
    wanted_by: Vec<usize>,
    /// The leaf of each operation (of a removal: its first).
    pub(super) of_op: Vec<u32>,
    /// The tree, number and upper fence of the leaf of the last key, if that was no range: it has all keys up to there.
    last: Option<(Which, u32)>,
    fence: Vec<u8>,
    /// The commit has slept for others before: it spins no more while it holds any of these.
    is_tired: bool,
}

impl Held {
    /// The leaf of a target that is the same as that of the one before, which is not above it.
    #[inline]
    fn same_leaf(&self, target: &Target<'_>) -> Option<u32> {
        let (which, leaf) = self.last?;
        let covers = self.fence.is_empty() || *target.key <= self.fence[..];
        (!target.range && which == target.which && covers).then_some(leaf)
    }
}

impl Access {
    /// Commits: all levels are merged. Answers the number of the flush it belongs to, or None when
    /// nothing was written. `deadline`: when to give up waiting (None: a minute).
    ///
    /// # Errors
    /// `Conflict`: nothing was written. Else what writing can answer.
    pub(crate) fn commit(&self, txn: &mut Transaction, deadline: Option<Instant>) -> Result<Option<u64>> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        txn.overlay.flatten();
        if txn.overlay.is_empty() {
            if txn.has_lost_lease() {
                txn.validate(self)?;
            }
            return Ok(None);
        }
        let is_removal = txn.overlay.patches.is_empty()
            && [Which::Main, Which::Volatile]
                .iter()
                .all(|which| txn.overlay.values(*which).all(|(_, value)| value.is_none()));
        let frees = self.seat.frees.get();
        self.seat.frees.set(frees || is_removal);
        let committed = self.commit_flat(txn, deadline);
        self.seat.frees.set(frees);
        committed.map(Some)
    }

    /// Commits the one level that is left, which writes something.
    fn commit_flat(&self, txn: &mut Transaction, deadline: Option<Instant>) -> Result<u64> {
        self.make_room_for_record()?;
        let _operation = self.operation();
        self.seat.begin_claims();
        let (lists, plans, record) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken = Taken { seat: &self.seat, lists, plans, record, published: false };
        let overlay = std::mem::replace(&mut txn.overlay, Overlay::new());
        taken.place_values(&overlay)?;
        let deadline = deadline.unwrap_or_else(|| Instant::now() + LEASE_WAIT);
        loop {
            taken.plan_patches(self, &overlay)?;
            let Taken { lists, plans, record, .. } = &mut taken;
            let ops = operations(&overlay, lists, plans);
            *record = self.seat.runs_for_record(record_bytes(&ops))?;
            self.seat.keep_long(record);
            if let Some(flush) = self.commit_ops(txn, &overlay, &ops, (plans, record), deadline)? {
                self.seat.count(Counter::Commits);
                self.tidy_after(&ops);
                taken.published = true;
                return Ok(flush);
            }
            // A value that was to be patched is another one now.
            taken.give_back_plans();
        }
    }

    /// Makes room for any record that lies in the ring, and for a long one.
    fn make_room_for_record(&self) -> Result<()> {
        self.make_room(RECORD_INLINE_MAX)?;
        if self.seat.free_long(false) {
            return Ok(());
        }
        log::drain(&self.seat)?;
        self.seat.free_long(false);
        Ok(())
    }

    /// Repeats attempts until one publishes or the reads fail; None: plans are no longer good.
    fn commit_ops(
        &self,
        txn: &mut Transaction,
        overlay: &Overlay,
        ops: &[Op<'_>],
        prepared: (&[Planned], &[Run]),
        deadline: Instant,
    ) -> Result<Option<u64>> {
        let targets = targets(ops);
        let mut patience = Patience::new();
        loop {
            let is_tired = !patience.is_awake();
            let mut held = Held { of_op: vec![0; ops.len()], is_tired, ..Held::default() };
            let result = self.attempt(txn, overlay, ops, prepared, &targets, &mut held);
            let (stop, at) = match result {
                Ok(flush) => return Ok(Some(flush)),
                Err(failed) => failed,
            };
            for leaf in held.leaves.iter().rev() {
                self.seat.release_unchanged(*leaf);
                self.seat.forget_latch();
            }
            // NB: for a page it is waited to the limit, which says for whom.
            if !matches!(stop, Stop::Busy(_) | Stop::Fail(_)) && Instant::now() >= deadline {
                return Err(Error::Conflict);
            }
            match (stop, at) {
                (Stop::Fail(error), _) => return Err(error),
                (stop @ (Stop::Busy(_) | Stop::Restart), _) => {
                    patience.sleep_next();
                    patience.wait_for_stop(&self.seat, stop)?;
                }
                (Stop::Stale, _) => return Ok(None),
                (Stop::Lease, None) if !self.seat.limit().may_be_alone => {
                    let what = "pages written by a transaction that never takes exclusive mode";
                    return Err(Error::LimitReached { what, limit: COMMIT_LEAVES_MAX as u64 });
                }
                (Stop::Lease, None) if txn.lease.is_none() => {
                    // Too many leaves: the apply runs alone.
                    txn.lease = take_lease(&self.seat, 0, deadline)?;
                }
                (Stop::Copy, Some(op)) if ops[op].kind == Kind::RemovePrefix => {
                    // NB: for all of them at once. Else each costs an attempt at all operations once more.
                    ops.iter()
                        .filter(|op| op.kind == Kind::RemovePrefix)
                        .try_for_each(|op| self.copy_range(op, &mut txn.reads.bare))?;
                }
                (Stop::Split | Stop::Copy, Some(op)) => {
                    // What comes before it in the same leaf needs its room as well.
                    let same = |before: &usize| {
                        ops[*before].kind != Kind::RemovePrefix && held.of_op[*before] == held.of_op[op]
                    };
                    let first = (0..op).rev().take_while(same).last().unwrap_or(op);
                    self.make_ready(overlay, ops, first, &mut txn.reads.bare, &mut patience)?;
                }
                (stop, at) => {
                    let op = &ops[at.unwrap_or(0)];
                    self.overcome(stop, which_of(op), op.key, &mut patience)?;
                }
            }
        }
    }

    /// One attempt. On failure: why, and at which operation; latches are still held.
    #[allow(clippy::type_complexity)]
    fn attempt(
        &self,
        txn: &mut Transaction,
        overlay: &Overlay,
        ops: &[Op<'_>],
        (plans, record): (&[Planned], &[Run]),
        targets: &[Target<'_>],
        held: &mut Held,
    ) -> std::result::Result<u64, (Stop, Option<usize>)> {
        // NB: what needs no latch is done before the first, for which others wait from then on.
        let len = self.seat.write_body(ops, record);
        for target in targets {
            if let Some(leaf) = held.same_leaf(target) {
                held.of_op[target.op] = leaf;
                continue;
            }
            if let Some(leaf) = txn.reads.leaf_of(target.which, target.key) {
                self.fingers.point(target.which, leaf);
            }
            self.latch_target(target, held).map_err(|stop| (stop, Some(target.op)))?;
            if held.leaves.len() > COMMIT_LEAVES_MAX && txn.lease.is_none() {
                return Err((Stop::Lease, None));
            }
        }
        let mut epoch = self.admitted(ops, held)?;
        txn.validate_holding(self, self.seat.id).map_err(|error| (Stop::Fail(error), None))?;
        if let Some(op) = self.short_of_room(overlay, ops, held) {
            return Err((Stop::Split, Some(op)));
        }
        self.fill_plans(ops, plans, held, epoch.generation).map_err(|stop| (stop, None))?;
        let seq = held.leaves.iter().map(|leaf| self.version(*leaf)).max().unwrap_or(0);
        self.seat.set_seq(seq);
        loop {
            self.seat.head_record(epoch.generation, epoch.flush, ops, record, len);
            if self.seat.publish(len) {
                break;
            }
            epoch = self.admitted(ops, held)?;
        }
        self.apply_all(ops, held, epoch.generation);
        self.seat.set_applied();
        for leaf in held.leaves.iter().rev() {
            self.seat.release(*leaf, seq);
            self.seat.forget_latch();
        }
        let is_removal = |op: &&Op<'_>| op.kind == Kind::RemovePrefix;
        ops.iter().filter(is_removal).for_each(|op| self.seat.notify(op.key, true));
        self.seat.notify_each(ops.iter().filter(|op| !is_removal(op)).map(|op| op.key));
        Ok(epoch.flush)
    }

    /// Makes sure that what is to be patched is what the plans are for, and that their new runs hold what it holds. The leaves
    /// are latched.
    fn fill_plans(
        &self,
        ops: &[Op<'_>],
        plans: &[Planned],
        held: &Held,
        generation: u32,
    ) -> std::result::Result<(), Stop> {
        let image = &self.seat.image;
        let patches = ops.iter().zip(&held.of_op).filter(|(op, _)| op.kind == Kind::Patch);
        for ((op, leaf), planned) in patches.zip(plans) {
            let page = image.page(*leaf);
            let (found, mut list) = (page::find(page, op.key), Vec::new());
            let is_long = found.equal && page::append_value(page, found.index, &mut list) & RECORD_BIG != 0;
            if !is_long || !planned.plan.is_for(image, &list, generation) {
                return Err(Stop::Stale);
            }
            let is_filled = |seen: Seen| seen.number == *leaf && seen.word.version() == self.version(*leaf);
            if !planned.filled.is_some_and(is_filled) {
                planned.plan.prove(image)?;
                planned.plan.fill(image);
            }
        }
        Ok(())
    }

    /// Plans how the long value at `key` is patched, and fills what it will lie in; None when there is no such value.
    ///
    /// # Errors
    /// As [`Plan::make`].
    fn plan(&self, key: &[u8], patches: &[u8]) -> Result<Option<Planned>> {
        let image = &self.seat.image;
        let found = self.read(|| tree::list_of(image, &self.fingers, Which::Main, key))?;
        let Some((list, seen)) = found else { return Ok(None) };
        let plan = Plan::make(&self.seat, list, image.generation(), patches)?;
        let is_proved = match plan.prove(image) {
            Err(Stop::Fail(error)) => {
                plan.give_back(&self.seat);
                return Err(error);
            }
            proved => proved.is_ok(),
        };
        plan.fill(image);
        // If it is still what it was, it has been all the while.
        let filled = (is_proved && seen.check(image).is_ok()).then_some(seen);
        Ok(Some(Planned { key: key.to_vec(), plan, filled }))
    }

    fn version(&self, leaf: u32) -> u64 {
        latch::load(self.seat.image.latch(leaf)).version()
    }

    /// Latches the leaf or leaves of a target, waiting for others.
    fn latch_target(&self, target: &Target<'_>, held: &mut Held) -> Attempt<()> {
        let mut fence = Vec::new();
        let mut leaf = self.latch_leaf(target, target.key, held)?;
        held.of_op[target.op] = leaf;
        held.last = (!target.range).then_some((target.which, leaf));
        if !target.range {
            // NB: it is latched, so its fences stay.
            page::hi_fence(self.seat.image.page(leaf), &mut held.fence);
            return Ok(());
        }
        let end = removal_end(target.key);
        loop {
            page::hi_fence(self.seat.image.page(leaf), &mut fence);
            if fence.is_empty() || fence >= end {
                return Ok(());
            }
            fence.push(0);
            leaf = self.latch_leaf(target, &fence, held)?;
        }
    }

    /// Latches the leaf that covers `key`, one of a target's, unless we hold it.
    pub(super) fn latch_leaf(&self, target: &Target<'_>, key: &[u8], held: &mut Held) -> Attempt<u32> {
        let mut patience = Patience::new();
        loop {
            let stop = match tree::locate(&self.seat.image, &self.fingers, target.which, key, self.seat.id) {
                Ok(leaf) if leaf.word.locked() => return Ok(leaf.number),
                Ok(leaf) if Seat::version_exhausted(leaf.word) => {
                    return Err(Stop::Fail(Error::Internal("a page has reached its last version".into())))
                }
                Ok(leaf) => {
                    if self.seat.try_latch(leaf.number, leaf.word) {
                        held.leaves.push(leaf.number);
                        held.wanted_by.push(target.op);
                        return Ok(leaf.number);
                    }
                    Stop::Restart
                }
                Err(stop) => stop,
            };
            match stop {
                // NB: who sleeps holds nothing: else who waits for one that is stopped would keep others waiting.
                stop @ (Stop::Busy(_) | Stop::Restart)
                    if !held.leaves.is_empty() && (held.is_tired || !patience.is_awake()) =>
                {
                    return Err(stop);
                }
                stop @ (Stop::Busy(_) | Stop::Restart) => patience.wait_for_stop(&self.seat, stop)?,
                stop => return Err(stop),
            }
        }
    }

    /// Reads the epoch and requires every latched leaf of the main tree to belong to it.
    fn admitted(&self, ops: &[Op<'_>], held: &Held) -> std::result::Result<Epoch, (Stop, Option<usize>)> {
        let image = &self.seat.image;
        let epoch = Epoch::read(image);
        let admitted = if ops.iter().all(|op| op.volatile) {
            epoch.admits_volatile(self.seat.id)
        } else {
            epoch.admits(&self.seat)
        };
        admitted.map_err(|stop| (stop, Some(0)))?;
        let foreign = |leaf: u32| {
            page::flags(image.page(leaf)) == Which::Main.page_flags()
                && image.life(leaf).born != epoch.generation
        };
        if let Some(at) = held.leaves.iter().position(|leaf| foreign(*leaf)) {
            return Err((Stop::Copy, Some(held.wanted_by[at])));
        }
        Ok(epoch)
    }

    /// Copies all leaves of an earlier generation that a removal meets. No latch is held.
    fn copy_range(&self, op: &Op<'_>, bare: &mut BareReads) -> Result<()> {
        let end = removal_end(op.key);
        let mut at = op.key.to_vec();
        let mut patience = Patience::new();
        loop {
            match self.copy_path_telling(&at, |copied| bare.follow_copy(copied)) {
                Ok(()) => {}
                Err(stop) => {
                    self.overcome(stop, Which::Main, &at, &mut patience)?;
                    continue;
                }
            }
            let fence = self.read(|| {
                let leaf = descend(&self.seat.image, Which::Main, &at, 0)?;
                let mut fence = Vec::new();
                page::hi_fence(self.seat.image.page(leaf.number), &mut fence);
                leaf.check(&self.seat.image)?;
                Ok(fence)
            })?;
            if fence.is_empty() || fence >= end {
                return Ok(());
            }
            at = fence;
            at.push(0);
        }
    }

    fn apply_all(&self, ops: &[Op<'_>], held: &Held, generation: u32) {
        let own = tree::own_runs(ops, &self.seat.image);
        for (op, leaf) in ops.iter().zip(&held.of_op) {
            if op.kind == Kind::RemovePrefix {
                // NB: not found anew. It has happened, and above the leaves somebody may be stopped in a change.
                let first = held.leaves.iter().position(|held| held == leaf).unwrap_or(0);
                tree::apply_removal_to(&self.seat, &held.leaves[first..], op, generation, &own);
            } else {
                tree::apply_to(&self.seat, *leaf, op, generation, &own);
            }
        }
    }

    /// Merges leaves that the commit has left sparse. It is tidying: what fails is left as it is, and nobody is waited for,
    /// since the commit has happened.
    fn tidy_after(&self, ops: &[Op<'_>]) {
        let limit = self.seat.set_limit(Limit::of(Duration::ZERO));
        self.tidy_each(ops);
        self.seat.set_limit(limit);
    }

    fn tidy_each(&self, ops: &[Op<'_>]) {
        for op in ops.iter().filter(|op| !op.kind.sets()) {
            let which = which_of(op);
            let end = if op.kind == Kind::RemovePrefix { removal_end(op.key) } else { Vec::new() };
            let mut at = op.key.to_vec();
            let mut fence = Vec::new();
            while let Ok(sparse) = self.is_sparse(which, &at, &mut fence) {
                if sparse && self.tidy(which, &at) {
                    continue;
                }
                if fence.is_empty() || fence >= end {
                    break;
                }
                at.clone_from(&fence);
                at.push(0);
            }
        }
    }

    /// Whether the leaf that covers `key` holds little; its upper fence is copied into `fence`.
    fn is_sparse(&self, which: Which, key: &[u8], fence: &mut Vec<u8>) -> Result<bool> {
        self.read(|| {
            let leaf = descend(&self.seat.image, which, key, 0)?;
            let page = self.seat.image.page(leaf.number);
            page::hi_fence(page, fence);
            let content = page::content_bytes(page);
            leaf.check(&self.seat.image)?;
            Ok(content < PAGE / 4)
        })
    }
}

#[inline]
pub(super) fn which_of(op: &Op<'_>) -> Which {
    if op.volatile {
        Which::Volatile
    } else {
        Which::Main
    }
}

/// The record's operations: by tree, removals of prefixes first, then by key.
fn operations<'a>(
    overlay: &'a Overlay,
    lists: &'a [(Which, Vec<u8>, List)],
    plans: &'a [Planned],
) -> Vec<Op<'a>> {
    let mut ops = Vec::new();
    // They stand in the order of the values that they are of.
    let mut lists = lists.iter().peekable();
    for which in [Which::Main, Which::Volatile] {
        let volatile = which == Which::Volatile;
        let empty: &[u8] = &[];
        ops.extend(overlay.removals(which).map(|key| Op {
            kind: Kind::RemovePrefix,
            volatile,
            big: false,
            key,
            value: empty,
        }));
        ops.extend(overlay.values(which).map(|(key, value)| {
            let list = lists.next_if(|(w, k, _)| *w == which && k == key).map(|(_, _, list)| list);
            match (value, list) {
                (None, _) => Op { kind: Kind::Remove, volatile, big: false, key, value: empty },
                (Some(_), Some(list)) => {
                    Op { kind: Kind::Set, volatile, big: true, key, value: list.as_bytes() }
                }
                (Some(value), None) => Op { kind: Kind::Set, volatile, big: false, key, value },
            }
        }));
        if which == Which::Main && !plans.is_empty() {
            ops.extend(plans.iter().map(|Planned { key, plan, .. }| Op {
                kind: Kind::Patch,
                volatile,
                big: true,
                key,
                value: &plan.value,
            }));
            let removals = ops.iter().take_while(|op| op.kind == Kind::RemovePrefix).count();
            ops[removals..].sort_by_key(|op| op.key);
        }
    }
    ops
}

/// What to latch, in (tree, key) order.
fn targets<'a>(ops: &[Op<'a>]) -> Vec<Target<'a>> {
    let mut targets: Vec<Target<'a>> = ops
        .iter()
        .enumerate()
        .map(|(op, it)| Target { which: which_of(it), key: it.key, op, range: it.kind == Kind::RemovePrefix })
        .collect();
    // Without removals the operations are in this order.
    if targets.iter().any(|target| target.range) {
        targets.sort_by(|a, b| (a.which, a.key, !a.range).cmp(&(b.which, b.key, !b.range)));
    }
    targets
}

/// How a value is to be patched.
struct Planned {
    key: Vec<u8>,
    plan: Plan,
    /// The new runs hold what the value held when its leaf was this.
    filled: Option<Seen>,
}

/// Runs taken for a commit: given back if it does not come about; a record's own always.
struct Taken<'a> {
    seat: &'a Seat,
    lists: Vec<(Which, Vec<u8>, List)>,
    plans: Vec<Planned>,
    record: Vec<Run>,
    published: bool,
}

impl Taken<'_> {
    fn place_values(&mut self, overlay: &Overlay) -> Result<()> {
        for which in [Which::Main, Which::Volatile] {
            for (key, value) in overlay.values(which) {
                if let Some(list) = value.map_or(Ok(None), |value| tree::place_value(self.seat, value))? {
                    self.lists.push((which, key.to_vec(), list));
                }
            }
        }
        Ok(())
    }

    fn plan_patches(&mut self, access: &Access, overlay: &Overlay) -> Result<()> {
        for (key, patches) in overlay.patches.outermost() {
            // NB: what is no long value any more has changed since it was read.
            self.plans.push(access.plan(key, patches)?.ok_or(Error::Conflict)?);
        }
        Ok(())
    }

    /// Gives back what plans have taken, and the record's runs.
    fn give_back_plans(&mut self) {
        self.plans.drain(..).for_each(|planned| planned.plan.give_back(self.seat));
        self.seat.free_long(true);
        self.record.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Repair of the own session follows, by the notes.
            return;
        }
        if !self.published {
            for (_, _, list) in &self.lists {
                self.seat.give_back_runs(&list.runs);
            }
            self.plans.iter().for_each(|planned| planned.plan.give_back(self.seat));
        }
        // NB: what has been published is the log's until the tail has passed it.
        let is_logged = self.published && log::level(&self.seat.image) != Durability::None;
        if !self.record.is_empty() && is_logged {
            // Without success now they are freed before the next long record, or with the session.
            let _ = log::drain(self.seat);
        }
        self.seat.free_long(!is_logged);
        self.seat.forget_notes();
    }
}
