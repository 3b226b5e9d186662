//! Applying decided operations to latched leaves, one page step each. Repair uses the same code.
//!
//! Invariants
//! - The record has been published, and every leaf it names is latched by this session.
//! - Applying again changes nothing: a value is set, not added; runs of the record itself are never
//!   freed, whoever finds them.
//!
//! What if we are killed? In a step: undo restores the page, repair applies the whole record again.
//! Between steps: the same. Runs that were cut off are locked until their step is over.

use perilune_shm::words;
use perilune_store::Error;

use super::{descend, Which};
use crate::error::{Attempt, Stop};
use crate::image::layout::{phase, Run};
use crate::limits::{FREED, PAGE, VOLATILE};
use crate::page::{self, find, leaf_count, Found, NoSave, Page, Save, RECORD_BIG};
use crate::session::extent;
use crate::session::patch::{self, Parts};
use crate::session::record::{Kind, Op};
use crate::session::{PageUndo, Seat};

/// The runs that the record's own values lie in, sorted: never to be freed by it.
pub(crate) fn own_runs(ops: &[Op<'_>], image: &crate::image::Image) -> Vec<u64> {
    let mut runs: Vec<u64> = ops
        .iter()
        .filter(|op| op.big && op.kind == Kind::Set)
        .filter_map(|op| extent::parse(image, op.value))
        .flat_map(|(_, runs)| runs.into_iter().map(Run::to_word))
        .collect();
    runs.sort_unstable();
    runs
}

/// Applies the operations of a record in order, finding their leaves, all latched by `seat`.
///
/// # Errors
/// `Busy`, `Restart` when an inner page on the way is being changed by somebody else, who waits for
/// nobody: wait for him and apply again. `Fail` when a leaf is not latched; that cannot be.
pub(crate) fn apply(seat: &Seat, ops: &[Op<'_>], generation: u32) -> Attempt<()> {
    let own = own_runs(ops, &seat.image);
    for op in ops {
        let which = if op.volatile { Which::Volatile } else { Which::Main };
        if op.kind == Kind::RemovePrefix {
            apply_removal(seat, which, op, generation, &own)?;
        } else {
            let leaf = descend(&seat.image, which, op.key, seat.id)?;
            apply_to(seat, leaf.number, op, generation, &own);
        }
    }
    Ok(())
}

/// Applies a setting or removal of one value to its leaf.
#[inline]
pub(crate) fn apply_to(seat: &Seat, number: u32, op: &Op<'_>, generation: u32, own: &[u64]) {
    let found = find(seat.image.page(number), op.key);
    apply_found(seat, number, found, op, generation, own);
}

/// Applies a setting or removal of one value whose place in the leaf is known.
#[inline]
pub(crate) fn apply_found(seat: &Seat, number: u32, found: Found, op: &Op<'_>, generation: u32, own: &[u64]) {
    let page = seat.image.page(number);
    if op.kind == Kind::Remove && !found.equal {
        return;
    }
    if op.kind == Kind::Patch {
        return write_over(seat, number, found, op, generation);
    }
    if found.equal {
        cut_off(seat, page, found.index, own);
    }
    seat.begin_step();
    change(page, &mut PageUndo { seat, number }, found, op);
    seat.set_phase(phase::NONE);
    settle(seat, op, generation);
}

/// Applies a setting or removal of one value, whose place is known, in the step of a leaf of which all is saved. No long
/// value comes or goes.
#[inline]
pub(crate) fn change_saved(page: &Page, found: Found, op: &Op<'_>) {
    if op.kind.sets() || found.equal {
        change(page, &mut NoSave, found, op);
    }
}

/// Changes a leaf by a setting or removal of one value, whose place there is `found`.
#[inline]
pub(super) fn change(page: &Page, save: &mut impl Save, found: Found, op: &Op<'_>) {
    let flags = if op.big { RECORD_BIG } else { 0 };
    match (op.kind, found.equal) {
        (Kind::Set | Kind::Patch, true) => {
            if !page::leaf_replace(page, save, found.index, flags, op.stored()) {
                rebuild(page, save, Some(found.index));
                insert(page, op);
            }
        }
        (Kind::Set | Kind::Patch, false) => {
            if !page::leaf_insert(page, save, found.index, op.key, flags, op.stored()) {
                rebuild(page, save, None);
                insert(page, op);
            }
        }
        _ => page::leaf_remove(page, save, found.index),
    }
}

/// After a step: the new value's runs become part of the tree, cut-off runs are freed.
#[inline]
fn settle(seat: &Seat, op: &Op<'_>, generation: u32) {
    if op.big {
        if let Some((_, runs)) = extent::parse(&seat.image, op.value) {
            // NB: what the volatile tree holds belongs to no snapshot.
            let born = if op.volatile { VOLATILE } else { generation };
            for run in runs {
                seat.publish_run(run, born);
            }
        }
    }
    seat.settle_freed(generation);
}

/// Writes bytes over parts of a long value: first what they take the place of is noted for freeing, then they are
/// written where no older generation has pages, then the list of runs changes, if it does.
///
/// What if we are killed? All of it is done again. Before the list has changed, the old one still says which
/// stretches are to be freed. After that only the notes say it, and they are complete. The bytes are written again,
/// the same at the same places; nobody has read them, for the leaf is latched.
fn write_over(seat: &Seat, number: u32, found: Found, op: &Op<'_>, generation: u32) {
    let (page, image) = (seat.image.page(number), &seat.image);
    let mut before = Vec::new();
    if found.equal && page::append_value(page, found.index, &mut before) & RECORD_BIG == 0 {
        before.clear();
    }
    let parts = Parts::of(op.value).and_then(|parts| {
        let (_, runs) = extent::parse(image, parts.list)?;
        Some((patch::decode(parts.patches)?, runs, parts))
    });
    let Some((patches, runs, parts)) = parts else { return };
    let is_new = before != parts.list;
    if is_new {
        if let Some((_, old)) = extent::parse(image, &before) {
            patch::without(&old, &runs).into_iter().for_each(|run| seat.note_freed(run));
        }
    }
    patch::write(image, &runs, &patches);
    if is_new {
        seat.begin_step();
        change(page, &mut PageUndo { seat, number }, found, op);
        seat.set_phase(phase::NONE);
    }
    parts
        .fresh
        .iter()
        .filter(|run| runs.contains(run))
        .for_each(|run| seat.publish_patched(*run, generation));
    seat.settle_freed(generation);
}

/// Notes the runs of record `index` for freeing, unless they are the record's own.
#[inline]
fn cut_off(seat: &Seat, page: &Page, index: usize, own: &[u64]) {
    for run in runs_at(seat, page, index).into_iter().filter(|run| own.binary_search(&run.to_word()).is_err())
    {
        seat.note_freed(run);
    }
}

/// The runs of the value of record `index`, if it has such.
#[inline]
fn runs_at(seat: &Seat, page: &Page, index: usize) -> Vec<Run> {
    let (offset, len, flags) = page::value_place(page, index);
    if flags & RECORD_BIG == 0 {
        return Vec::new();
    }
    let mut list = Vec::new();
    words::append(page, offset, len, &mut list);
    extent::parse(&seat.image, &list).map_or_else(Vec::new, |(_, runs)| runs)
}

/// Compacts a page in place, without record `drop`; the whole page is saved.
fn rebuild(page: &Page, save: &mut impl Save, drop: Option<usize>) {
    save.save(0, PAGE);
    if let Some(compact) = page::compacted(page, drop) {
        words::copy(&compact, page);
    }
}

/// Inserts into a page that has just been compacted and saved.
fn insert(page: &Page, op: &Op<'_>) {
    let flags = if op.big { RECORD_BIG } else { 0 };
    let index = find(page, op.key).index;
    let inserted = page::leaf_insert(page, &mut NoSave, index, op.key, flags, op.stored());
    // The room was checked before the record was published.
    assert!(inserted, "a leaf has less room than was checked");
}

/// The first key above all that begin with `prefix` (which does not begin with 0xFF).
pub(crate) fn removal_end(prefix: &[u8]) -> Vec<u8> {
    let len = prefix.iter().rposition(|byte| *byte != 0xff).map_or(0, |last| last + 1);
    let mut end = prefix[..len].to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// Removes all keys with a prefix from the latched leaves.
///
/// # Errors
/// As [`apply`].
fn apply_removal(seat: &Seat, which: Which, op: &Op<'_>, generation: u32, own: &[u64]) -> Attempt<()> {
    let end = removal_end(op.key);
    let mut from = op.key.to_vec();
    let mut fence = Vec::new();
    loop {
        let leaf = descend(&seat.image, which, &from, seat.id)?;
        if !seat.holds(leaf.number) {
            return Err(Stop::Fail(Error::Internal(format!("session {} does not hold its leaves", seat.id))));
        }
        remove_from(seat, leaf.number, op.key, &end, generation, own);
        page::hi_fence(seat.image.page(leaf.number), &mut fence);
        if fence.is_empty() || fence >= end {
            return Ok(());
        }
        std::mem::swap(&mut from, &mut fence);
        from.push(0);
    }
}

/// Removes all keys with a prefix from `leaves`, which begin with the first that may have any. No other page is looked
/// at, so nobody is waited for.
pub(crate) fn apply_removal_to(seat: &Seat, leaves: &[u32], op: &Op<'_>, generation: u32, own: &[u64]) {
    let end = removal_end(op.key);
    let mut fence = Vec::new();
    let is_last = |leaf: &u32| {
        remove_from(seat, *leaf, op.key, &end, generation, own);
        page::hi_fence(seat.image.page(*leaf), &mut fence);
        fence.is_empty() || fence >= end
    };
    assert!(leaves.iter().any(is_last), "a removal meets leaves that are not held");
}

/// Removes the keys from `from` to below `end` from one leaf, in steps that cut off few runs.
fn remove_from(seat: &Seat, number: u32, from: &[u8], end: &[u8], generation: u32, own: &[u64]) {
    let page = seat.image.page(number);
    loop {
        let first = find(page, from).index;
        let last = beyond_prefix(page, end);
        if first >= last {
            return;
        }
        let mut cut = first;
        let mut noted = 0;
        while cut < last {
            noted += runs_at(seat, page, cut).len();
            if cut > first && noted > FREED {
                break;
            }
            cut_off(seat, page, cut, own);
            cut += 1;
        }
        seat.begin_step();
        page::leaf_remove_range(page, &mut PageUndo { seat, number }, first, cut);
        seat.set_phase(phase::NONE);
        seat.settle_freed(generation);
    }
}

/// The index of the first record that is not below `end`.
fn beyond_prefix(page: &Page, end: &[u8]) -> usize {
    let mut fence = Vec::new();
    page::hi_fence(page, &mut fence);
    if !fence.is_empty() && fence.as_slice() < end {
        leaf_count(page)
    } else {
        find(page, end).index
    }
}
