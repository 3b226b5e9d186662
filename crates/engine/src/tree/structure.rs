//! Structure changes: copies of pages of an earlier generation, splits, merges, a lower root. Never logged, each
//! atomic.
//!
//! Problem: such a change touches two or three pages and perhaps the root's number, and its process may be killed
//! between any two stores. Idea: what is there is saved in the undo area before it is changed; one store, phase
//! DONE, decides whether repair takes the change back or finishes it.
//!
//! All go the same way: take fresh pages, under no latch; latch the parent and the pages top-down, all or none;
//! begin the step; read the epoch, and require that every existing page to be modified was born in its generation;
//! publish, with no record; save, build, modify; store phase DONE; give fresh pages and dead ones their words; end
//! the step; release the rest.
//!
//! Example: leaf 57 is full. Page 90 is taken and gets the upper half, 57 keeps the lower half, their parent gets a
//! separator and the child 90. A root that has only one child left gives its place to that child: the lower root.
//!
//! What if we are killed? In phase CHANGING repair restores pages and shared words and frees the fresh pages; in
//! phase DONE it finishes the words. The epoch is read after the last latch and no further existing page is
//! touched, so every change belongs to one generation.

use std::sync::atomic::Ordering::{Relaxed, Release};

use perilune_shm::latch::{self, LatchWord, State};
use perilune_shm::words;

use super::{path, Seen, Step, Which};
use crate::error::{Attempt, Stop};
use crate::image::layout::{control, phase};
use crate::limits::{PAGE, VOLATILE};
use crate::page::{self, inner_count, Ahead, NoSave, Page, Save, INNER};
use crate::session::{Counter, Epoch, PageUndo, Seat};

/// Gives everything back and ends the step of a change that is not to be.
fn abandon(seat: &Seat, latched: &[Seen]) {
    seat.set_phase(phase::NONE);
    for seen in latched.iter().rev() {
        seat.release_unchanged(seen.number);
        seat.forget_latch();
    }
    seat.give_back_fresh();
}

/// Latches all pages, top-down, or none.
fn latch_all(seat: &Seat, pages: &[Seen]) -> Attempt<()> {
    for (count, seen) in pages.iter().enumerate() {
        if !seat.try_latch(seen.number, seen.word) {
            for held in pages[..count].iter().rev() {
                seat.release_unchanged(held.number);
                seat.forget_latch();
            }
            seat.give_back_fresh();
            return Err(Stop::Restart);
        }
    }
    Ok(())
}

/// Begins the step and publishes the change. `modified` are existing pages to be changed, all latched;
/// they must have been born in the generation that is answered.
fn decide(seat: &Seat, which: Which, latched: &[Seen], modified: &[Seen]) -> Attempt<u32> {
    loop {
        seat.begin_step();
        let epoch = Epoch::read(&seat.image);
        if let Err(stop) = epoch.admits(seat) {
            abandon(seat, latched);
            return Err(stop);
        }
        let foreign = |seen: &Seen| seat.image.life(seen.number).born != epoch.generation;
        if which == Which::Main && modified.iter().any(foreign) {
            abandon(seat, latched);
            return Err(Stop::Copy);
        }
        seat.set_structure_generation(epoch.generation);
        if seat.publish(0) {
            return Ok(if which == Which::Main { epoch.generation } else { VOLATILE });
        }
        seat.set_phase(phase::NONE);
    }
}

/// The end of every change: decided, settled, released.
fn finish(seat: &Seat, generation: u32, least: u64, held: &[Seen]) {
    seat.set_phase(phase::DONE);
    seat.settle_structure(generation, least);
    seat.set_phase(phase::NONE);
    for seen in held.iter().rev() {
        seat.release(seen.number, least);
        seat.forget_latch();
    }
    seat.stale().for_each(|_| seat.forget_latch());
    // NB: not all notes: the operation that needed this change may have claimed runs.
    seat.begin_structure();
}

/// Stores a new root's number, saved first; the first time in a generation, the root of the one before
/// is kept for the cut that is under way.
fn set_root(seat: &Seat, which: Which, old: Seen, number: u32, generation: u32) {
    let image = &seat.image;
    let before = generation.wrapping_sub(1);
    let at = control::ROOT_PREV + 8 * (before as usize & 1);
    if which == Which::Main && (image.control(at).load(Relaxed) >> 32) as u32 != before {
        seat.save_shared_word(at);
        image.control(at).store(u64::from(before) << 32 | u64::from(old.number), Release);
    }
    seat.save_shared_word(which.root_word());
    image.control(which.root_word()).store(number.into(), Release);
}

/// A page that was copied, as it was, and the one in its place, which says the same, as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) old: Seen,
    pub(crate) new: Seen,
}

/// Copies the highest page of an earlier generation on the path to `key`; none when there is none
/// down to `level`.
///
/// # Errors
/// `Restart`, `Busy`, `Lease`, `Fail`.
pub(crate) fn copy_one(seat: &Seat, key: &[u8], level: u8) -> Attempt<Option<Copied>> {
    seat.begin_structure();
    let steps = path(&seat.image, Which::Main, key, level)?;
    let generation = seat.image.generation();
    let Some(depth) = steps.iter().position(|step| seat.image.life(step.at.number).born != generation) else {
        return Ok(None);
    };
    let fresh = seat.take_fresh()?;
    let old = steps[depth].at;
    let parent = depth.checked_sub(1).map(|above| steps[above]);
    let latched: Vec<Seen> = parent.iter().map(|step| step.at).chain([old]).collect();
    latch_all(seat, &latched)?;
    let modified: Vec<Seen> = parent.iter().map(|step| step.at).collect();
    let generation = decide(seat, Which::Main, &latched, &modified)?;
    if seat.image.life(old.number).born == generation {
        abandon(seat, &latched);
        return Err(Stop::Restart);
    }
    let copy = seat.image.page(fresh);
    words::copy(seat.image.page(old.number), copy);
    page::put_identity(copy, fresh, generation);
    seat.note_birth(fresh, generation);
    match parent {
        Some(Step { at, index }) => {
            let save = &mut PageUndo { seat, number: at.number };
            page::inner_set_child(seat.image.page(at.number), save, index, fresh);
        }
        None => set_root(seat, Which::Main, old, fresh, generation),
    }
    seat.note_stale(old.number);
    // NB: told while it is held: as soon as it is not, others may change it.
    let copied = Copied { old, new: to_be_released(seat, fresh, old.word.version()) };
    finish(seat, generation, old.word.version(), &modified);
    seat.count(Counter::Copies);
    Ok(Some(copied))
}

/// A page that was split, as it was, and the two in its place, which together say the same, as they are now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves {
    pub(crate) old: Seen,
    pub(crate) left: Seen,
    pub(crate) right: Seen,
}

/// What a leaf is to be split for, besides its key.
#[derive(Clone, Copy)]
pub(crate) enum Beside<'o, 'a> {
    /// Nothing.
    Nothing,
    /// Another key of the leaf, before it, from which it is to be parted.
    Before(&'o [u8]),
    /// Operations in the order of their keys; the key is that of the one with this number.
    Operations(usize, Ahead<'o, 'a>),
}

/// Splits the page of `level` on the path to `key`, or its parent if that is full: the halves are those of the page that
/// has been split.
///
/// # Errors
/// `Copy`, `Restart`, `Busy`, `Lease`, `Fail`.
pub(crate) fn split(
    seat: &Seat,
    which: Which,
    key: &[u8],
    level: u8,
    beside: Beside<'_, '_>,
) -> Attempt<Halves> {
    seat.begin_structure();
    let steps = path(&seat.image, which, key, level)?;
    let Some((last, above)) = steps.split_last() else { return Err(Stop::Restart) };
    let old = last.at;
    let parent = above.last().copied();
    let right = seat.take_fresh()?;
    let root = if parent.is_none() { Some(seat.take_fresh()?) } else { None };
    let latched: Vec<Seen> = parent.iter().map(|step| step.at).chain([old]).collect();
    latch_all(seat, &latched)?;
    let page = seat.image.page(old.number);
    let Some(halves) = divide(page, key, level, beside) else {
        abandon(seat, &latched);
        return Err(Stop::Restart);
    };
    let mut roomy = None;
    if let Some(step) = parent {
        let above = seat.image.page(step.at.number);
        if !page::inner_room(above, &halves.separator) {
            roomy = page::compacted(above, None).filter(|page| page::inner_room(page, &halves.separator));
            if roomy.is_none() {
                abandon(seat, &latched);
                return split(seat, which, key, level + 1, Beside::Nothing);
            }
        }
    }
    let generation = decide(seat, which, &latched, &latched)?;
    build_right(seat, right, &halves.right, generation);
    match (parent, root) {
        (Some(step), _) => {
            let above = seat.image.page(step.at.number);
            let save = &mut PageUndo { seat, number: step.at.number };
            if let Some(compact) = roomy {
                save.save(0, PAGE);
                words::copy(&compact, above);
            }
            page::inner_insert(above, save, step.index, &halves.separator, right);
        }
        (None, Some(root)) => {
            let over = page::new_root(level + 1, which.page_flags(), &halves.separator, old.number, right);
            build_right(seat, root, &over, generation);
            set_root(seat, which, old, root, generation);
        }
        (None, None) => {}
    }
    page::store(&halves.left, page, &mut PageUndo { seat, number: old.number });
    // NB: told while both are held: as soon as they are not, others may change them.
    let version = old.word.version();
    let [left, right] = [old.number, right].map(|number| to_be_released(seat, number, version));
    let halves = Halves { old, left, right };
    finish(seat, generation, old.word.version(), &latched);
    seat.count(Counter::Splits);
    Ok(halves)
}

/// The halves of a page that is latched.
fn divide(page: &Page, key: &[u8], level: u8, beside: Beside<'_, '_>) -> Option<page::Split> {
    if level > 0 {
        return page::split(page, key, page::find_child(page, key).0, None);
    }
    let index = |key: &[u8]| page::find(page, key).index;
    match beside {
        Beside::Nothing => page::split(page, key, index(key), None),
        Beside::Before(before) => page::split(page, key, index(key), Some(before)),
        Beside::Operations(at, ahead) => {
            let page::Parting { before, key } = page::parting(page, at, ahead)?;
            page::split(page, &key, index(&key), before.as_deref())
        }
    }
}

/// What [`finish`] is about to make of a page that is held, of a change of versions from `least` on.
fn to_be_released(seat: &Seat, number: u32, least: u64) -> Seen {
    let word = latch::load(seat.image.latch(number));
    Seen { number, word: LatchWord::unlocked(State::Tree, word.version().max(least) + 1) }
}

/// Stores a new page's bytes into a fresh page.
fn build_right(seat: &Seat, number: u32, built: &Page, generation: u32) {
    page::put_identity(built, number, generation);
    page::store(built, seat.image.page(number), &mut NoSave);
    seat.note_birth(number, generation);
}

/// What has come of an attempt to merge a page with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// The two are one.
    Done,
    /// The page is its parent's only child: merging the parent may help.
    OnlyChild,
    /// There is no neighbour that it would fit.
    Nothing,
}

/// Merges the page of `level` on the path to `key` with a neighbour under the same parent, if one of the
/// two is empty or both fill less than 60 % of a page.
///
/// # Errors
/// `Restart`, `Busy`, `Lease`, `Copy`.
pub(crate) fn merge(seat: &Seat, which: Which, key: &[u8], level: u8) -> Attempt<Merge> {
    let steps = path(&seat.image, which, key, level)?;
    let Some(parent) = steps.len().checked_sub(2).map(|above| steps[above]) else {
        return Ok(Merge::Nothing);
    };
    let slots = inner_count(seat.image.page(parent.at.number));
    if slots == 0 {
        return parent.at.check(&seat.image).map(|()| Merge::OnlyChild);
    }
    if parent.index < slots && merge_pair(seat, which, parent.at, parent.index)? {
        return Ok(Merge::Done);
    }
    match parent.index.checked_sub(1) {
        Some(before) if merge_pair(seat, which, parent.at, before)? => Ok(Merge::Done),
        _ => Ok(Merge::Nothing),
    }
}

/// Merges the children `index` and `index + 1` of a parent, if that is worth while.
fn merge_pair(seat: &Seat, which: Which, parent: Seen, index: usize) -> Attempt<bool> {
    seat.begin_structure();
    let image = &seat.image;
    let above = image.page(parent.number);
    let (left, right) = (page::child(above, index), page::child(above, index + 1));
    let left = super::meet_child(image, parent, left, 0)?;
    let right = super::meet_child(image, parent, right, 0)?;
    let content = |seen: Seen| page::content_bytes(image.page(seen.number));
    let (in_left, in_right) = (content(left), content(right));
    let worth = in_left == 0 || in_right == 0 || in_left + in_right <= PAGE * 6 / 10;
    left.check(image)?;
    right.check(image)?;
    if !worth {
        return Ok(false);
    }
    let latched = [parent, left, right];
    latch_all(seat, &latched)?;
    let mut separator = Vec::new();
    page::key_into::<page::InnerSlots>(above, index, &mut separator);
    let (left_page, right_page) = (seat.image.page(left.number), seat.image.page(right.number));
    let Some(merged) = page::merged(left_page, right_page, &separator) else {
        abandon(seat, &latched);
        return Ok(false);
    };
    let generation = decide(seat, which, &latched, &latched[..2])?;
    PageUndo { seat, number: left.number }.save(0, PAGE);
    page::inner_remove(above, &mut PageUndo { seat, number: parent.number }, index);
    words::copy(&merged, left_page);
    seat.note_stale(right.number);
    let least = left.word.version().max(right.word.version());
    finish(seat, generation, least, &latched[..2]);
    seat.count(Counter::Merges);
    Ok(true)
}

/// Makes the only child of an inner root without separators the root; false when the root is no such.
///
/// # Errors
/// `Restart`, `Busy`, `Lease`.
pub(crate) fn lower_root(seat: &Seat, which: Which) -> Attempt<bool> {
    seat.begin_structure();
    let root = super::meet_root(&seat.image, which, 0)?;
    let page = seat.image.page(root.number);
    let lonely = page::kind(page) == INNER && inner_count(page) == 0;
    let child = page::child(page, 0);
    root.check(&seat.image)?;
    if !lonely {
        return Ok(false);
    }
    let latched = [root];
    latch_all(seat, &latched)?;
    let generation = decide(seat, which, &latched, &[])?;
    set_root(seat, which, root, child, generation);
    seat.note_stale(root.number);
    finish(seat, generation, root.word.version(), &[]);
    // The old root's word is DEAD now; nothing of it is held any more.
    debug_assert!(seat.image.control(which.root_word()).load(Relaxed) != u64::from(root.number) || !lonely);
    Ok(true)
}
