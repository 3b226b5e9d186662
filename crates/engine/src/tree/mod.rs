//! The B+tree: optimistic descent, reads, writes, structure changes. See `README.md` beside this.
//!
//! Invariants
//! - Everything here is one *attempt*: it never waits, and answers `Stop` when it cannot go on.
//! - A page's number and latch word together name its content: equal word, equal bytes.
//! - The child's word is loaded before the parent's is re-checked, so the child covers the key.
//!
//! Deliberately absent: retrying and repair (`access`), transactions (`txn`).

mod apply;
mod count;
mod entries;
mod estimate;
mod gaps;
mod groups;
mod probe;
mod read;
mod root;
mod run;
mod structure;
mod write;

#[cfg(test)]
pub(crate) mod tests;

use std::cell::Cell;
use std::sync::atomic::Ordering::Acquire;

use perilune_shm::latch::{self, LatchWord, State};

use crate::error::{Attempt, Stop};
use crate::image::layout::control;
use crate::image::Image;
use crate::limits::HEIGHT_MAX;
use crate::page::{
    self, contains, find, find_child, find_far, find_near, Found, Page, FLAG_VOLATILE, INNER, LEAF,
};
use crate::proof;

pub(crate) use apply::{apply, apply_found, apply_removal_to, apply_to, change_saved, own_runs, removal_end};
pub(crate) use count::count;
pub(crate) use entries::{copy_entries, entries, index_after, side_of, Read};
pub(crate) use estimate::estimate;
pub(crate) use gaps::Aim;
pub(crate) use groups::Groups;
pub(crate) use probe::{aim_probe, meet_beside, meet_probe};
pub(crate) use read::{
    get, has_value, list_of, neighbour, pieces, pieces_at, place, presence, value_at, Neighbour, Reader,
    Seek, Visit, Wanted,
};
pub(crate) use run::{write_run, Draft, Pairs, Progress};
pub(crate) use structure::{copy_one, lower_root, merge, split, Beside, Copied, Halves, Merge};
pub(crate) use write::{place_value, placed_runs, write, Action, Outcome};

/// Which of the two trees of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Which {
    /// The data.
    Main,
    /// Locks, waiters, messages; empty after a crash of the machine.
    Volatile,
}

impl Which {
    /// Offset of the control word that names the root.
    #[inline(always)]
    pub(crate) fn root_word(self) -> usize {
        match self {
            Which::Main => control::ROOT,
            Which::Volatile => control::VROOT,
        }
    }

    /// The flags of this tree's pages.
    #[inline(always)]
    pub(crate) fn page_flags(self) -> u16 {
        match self {
            Which::Main => 0,
            Which::Volatile => FLAG_VOLATILE,
        }
    }
}

/// A page as it was met: its number, and the latch word under which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) number: u32,
    pub(crate) word: LatchWord,
}

impl Seen {
    /// Checks that what was read from the page is one state.
    #[inline(always)]
    pub(crate) fn check(self, image: &Image) -> Attempt<()> {
        if latch::validate(image.latch(self.number), self.word) {
            Ok(())
        } else {
            Err(Stop::Restart)
        }
    }
}

/// After this number of misses in a row the finger is tried only at one of so many accesses.
const FINGER_TRIES: u32 = 8;

/// After misses in a row, the remembered place in a leaf is tried only every so many accesses.
const PLACE_TRIES: u32 = 4;

/// Remembers the last two leaves that were accessed in each tree, and the place of the last `next` in one. Two leaves, since a
/// queue is worked at both ends, in turns.
#[derive(Default)]
pub(crate) struct Fingers {
    leaf: [Cell<u32>; 2],
    /// The leaf before that one.
    other: [Cell<u32>; 2],
    /// How often in a row the finger was of no use.
    misses: Cell<u32>,
    /// The leaf in which a key was looked for last, and the place where it was found or would be.
    spot: Cell<(u32, u32)>,
    /// How often in a row `spot` was of no use.
    strays: Cell<u32>,
    root: root::Root,
    /// Where the keys stood whose neighbours were asked for.
    gaps: gaps::Gaps,
    /// The highest number of bytes of a long value that are read at once; 0: any.
    long: Cell<usize>,
    /// Leaf, its word, and the index of the record that `next` answered last.
    place: Cell<(u32, u64, usize)>,
}

impl Fingers {
    /// See [`perilune_store::Bounds::limit_reads`].
    pub(crate) fn limit_reads(&self, bytes: usize) {
        self.long.set(bytes);
    }

    /// Whether so many bytes of a long value are more than are read at once.
    pub(crate) fn is_beyond(&self, bytes: usize) -> bool {
        self.long.get() != 0 && bytes > self.long.get()
    }

    /// Points at a leaf that is likely to be wanted next.
    #[inline(always)]
    pub(crate) fn point(&self, which: Which, leaf: u32) {
        self.misses.set(0);
        self.turn_to(which, leaf);
    }

    #[inline(always)]
    fn turn_to(&self, which: Which, leaf: u32) {
        let last = self.slot(which).replace(leaf);
        if last != leaf {
            self.other[which as usize].set(last);
        }
    }

    /// Finds `key` in the leaf that was located for it: beside what was found last, if it is that leaf and keys
    /// come in order, or one is asked for several times.
    #[inline(always)]
    fn find(&self, leaf: u32, page: &Page, key: &[u8]) -> Found {
        if self.misses.get() != 0 {
            return find_far(page, key);
        }
        let (number, at) = self.spot.get();
        let strays = self.strays.get();
        if number == leaf && (strays < PLACE_TRIES || strays.is_multiple_of(PLACE_TRIES)) {
            if let Some(found) = find_near(page, key, at as usize) {
                self.strays.set(0);
                self.spot.set((leaf, found.index as u32));
                return found;
            }
        }
        self.strays.set(strays.wrapping_add(1));
        let found = find(page, key);
        self.spot.set((leaf, found.index as u32));
        found
    }

    #[inline(always)]
    fn slot(&self, which: Which) -> &Cell<u32> {
        &self.leaf[which as usize]
    }
}

/// Loads a page's latch word; a page that is latched by another session is `Busy`, one that is unproved is proved.
#[inline(always)]
fn meet(image: &Image, number: u32, me: u16) -> Attempt<Seen> {
    let word = latch::load(image.latch(number));
    if word.locked() && !(me != 0 && word.is_locked_by(me)) {
        return Err(Stop::Busy(number));
    }
    if word.state() != State::Tree || image.proofs.is_own() {
        return Ok(Seen { number, word: proof::tree_page(image, number, word)? });
    }
    Ok(Seen { number, word })
}

/// Finds the leaf that covers `key`. `me` is the session whose own latches do not count (0: all do).
#[inline]
pub(crate) fn descend(image: &Image, which: Which, key: &[u8], me: u16) -> Attempt<Seen> {
    let root = meet_root(image, which, me)?;
    descend_from(image, root, key, me)
}

/// Finds the leaf that covers `key`, from a page on that does.
#[inline]
fn descend_from(image: &Image, from: Seen, key: &[u8], me: u16) -> Attempt<Seen> {
    let mut at = from;
    for _ in 0..HEIGHT_MAX {
        let page = image.page(at.number);
        if page::kind(page) == LEAF {
            return Ok(at);
        }
        let (_, child) = find_child(page, key);
        at = meet_child(image, at, child, me)?;
    }
    Err(Stop::Restart)
}

#[inline(always)]
fn meet_root(image: &Image, which: Which, me: u16) -> Attempt<Seen> {
    let root = image.control(which.root_word());
    let number = root.load(Acquire) as u32;
    let at = meet(image, number, me)?;
    if root.load(Acquire) as u32 != number {
        return Err(Stop::Restart);
    }
    Ok(at)
}

#[inline(always)]
fn meet_child(image: &Image, parent: Seen, child: u32, me: u16) -> Attempt<Seen> {
    if u64::from(child) >= image.npages() {
        return Err(Stop::Restart);
    }
    let met = meet(image, child, me);
    // NB: only an unchanged parent says that the child is a page of this tree at all.
    parent.check(image)?;
    met.map_err(|stop| name_range(image, parent, child, stop))
}

/// Names in an error about a damaged page the keys that it covers, which its parent knows.
#[cold]
fn name_range(image: &Image, parent: Seen, child: u32, stop: Stop) -> Stop {
    let Stop::Fail(error) = stop else { return stop };
    let error = proof::with_range(error, image.page(parent.number), child);
    parent.check(image).err().unwrap_or(Stop::Fail(error))
}

/// One page of a path, and the index of its child on the path.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: Seen,
    index: usize,
}

/// The pages from the root down to `level` on the way to `key`.
fn path(image: &Image, which: Which, key: &[u8], level: u8) -> Attempt<Vec<Step>> {
    let mut at = meet_root(image, which, 0)?;
    let mut steps = Vec::with_capacity(4);
    for _ in 0..HEIGHT_MAX {
        let page = image.page(at.number);
        let here = page::level(page);
        if here <= level || page::kind(page) != INNER {
            at.check(image)?;
            steps.push(Step { at, index: 0 });
            return if here == level { Ok(steps) } else { Err(Stop::Restart) };
        }
        let (index, child) = find_child(page, key);
        let below = meet_child(image, at, child, 0)?;
        steps.push(Step { at, index });
        at = below;
    }
    Err(Stop::Restart)
}

/// Finds the leaf that covers `key`, by the finger if that still fits.
#[inline]
pub(crate) fn locate(image: &Image, fingers: &Fingers, which: Which, key: &[u8], me: u16) -> Attempt<Seen> {
    let misses = fingers.misses.get();
    // Keys that come at random never hit it: then it is tried only now and then.
    if misses < FINGER_TRIES || misses.is_multiple_of(FINGER_TRIES) {
        for number in [fingers.slot(which).get(), fingers.other[which as usize].get()] {
            if let Some(seen) = covering(image, which, number, key, me) {
                fingers.point(which, number);
                return Ok(seen);
            }
        }
    }
    fingers.misses.set(misses.wrapping_add(1));
    let mut from = meet_root(image, which, me)?;
    // NB: a page that is latched by ourselves changes under one word.
    if which == Which::Main && !from.word.locked() && page::kind(image.page(from.number)) == INNER {
        let child = fingers.root.child(image, from, key);
        from = meet_child(image, from, child, me)?;
    }
    let seen = descend_from(image, from, key, me)?;
    fingers.turn_to(which, seen.number);
    Ok(seen)
}

/// Descents for several keys of the main tree from a root that is met once.
pub(crate) struct Descents<'a> {
    image: &'a Image,
    fingers: &'a Fingers,
    root: Seen,
    /// Whether the root is no leaf.
    is_inner: bool,
}

impl<'a> Descents<'a> {
    /// Meets the root.
    ///
    /// # Errors
    /// `Busy`, `Restart`.
    #[inline]
    pub(crate) fn new(image: &'a Image, fingers: &'a Fingers) -> Attempt<Descents<'a>> {
        let root = meet_root(image, Which::Main, 0)?;
        Ok(Descents { image, fingers, root, is_inner: page::kind(image.page(root.number)) == INNER })
    }

    /// The leaf that covers `key`.
    ///
    /// # Errors
    /// As [`Descents::new`]: also where the root has changed since.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &[u8]) -> Attempt<Seen> {
        if !self.is_inner {
            return Ok(self.root);
        }
        // NB: as long as its word is the same, the root covers all keys: who makes another changes it.
        let child = self.fingers.root.child(self.image, self.root, key);
        let from = meet_child(self.image, self.root, child, 0)?;
        descend_from(self.image, from, key, 0)
    }
}

/// Whether a page is a leaf of the tree that covers `key`.
#[inline(always)]
pub(crate) fn covers(page: &Page, which: Which, key: &[u8]) -> bool {
    page::kind(page) == LEAF && page::flags(page) == which.page_flags() && contains(page, key)
}

/// The page `number`, if it is a leaf of the tree that covers `key` and nobody else has latched it.
#[inline(always)]
fn covering(image: &Image, which: Which, number: u32, key: &[u8], me: u16) -> Option<Seen> {
    if number == 0 {
        return None;
    }
    let word = latch::load(image.latch(number));
    // NB: a process that only reads compares pages for itself: the leaf that it remembers has been compared, although
    // nobody has marked it so.
    let is_there = word.state() == State::Tree || word.state() == State::Unproved && image.proofs.is_own();
    if !is_there || word.locked() && !(me != 0 && word.is_locked_by(me)) {
        return None;
    }
    covers(image.page(number), which, key).then_some(Seen { number, word })
}
