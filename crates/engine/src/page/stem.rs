//! What most keys of a leaf begin with behind the prefix: its *stem*.
//!
//! Problem: a leaf at whose end one subtree gives way to another has a short prefix, so all heads of a subtree are
//! alike and tell nothing. Idea: the bytes that most of its keys share are kept once, and heads are of what follows
//! them.
//!
//! Example: a leaf has the last keys below `^person` and the first below `^place`. Its fences share only `p`, and
//! the head of each person would be `erso`. With the stem `erson` 00 the head of `^person(7,"name")` is 2E F0 6E
//! 61. Keys below `^place` do not begin with the stem: they stand *apart*, behind all that do.
//!
//! Invariants
//! - The page has the *base*, prefix and stem one behind the other, below its fences: whoever reads a key finds
//!   both in one place. Without a stem there is no base.
//! - The stem is chosen when a leaf is laid out anew by a split, a merge or a bulk load, and stays until the next
//!   one: what a key takes in a leaf does not depend on when it comes.
//! - A suffix apart from the stem has head 0 if it is below all that begin with the stem, and the greatest head if
//!   it is above them. So slots, in the order of keys, stand in the order of heads.
//! - Of slots with the same head those apart come first if it is 0, and last if it is the greatest.
//!
//! Deliberately absent: inner pages, whose heads are twice as long and whose fences are farther apart.

use std::cmp::Ordering;
use std::ops::Range;

use perilune_shm::words::{self, u16_at};

use super::{head_of, key_into, prefix_len, LeafSlots, Page, Slots, APART, BASE_OFF, LO_OFF, STEM_LEN};
use crate::limits::{KEY_MAX, PAGE};

/// A leaf with fewer records has no stem of its own.
pub(super) const RECORDS_MIN: usize = 16;

/// A shorter stem is not worth the place where it lies, which is one more to be read.
pub(super) const STEM_MIN: usize = 6;

/// A key to be looked for, or laid out, in a page.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    /// The head of its slot.
    pub(super) head: u64,
    /// The suffix behind the stem; all of it if that stands apart.
    pub(super) rest: &'a [u8],
    pub(super) is_apart: bool,
}

impl<'a> Sought<'a> {
    /// A key that the page covers.
    #[inline(always)]
    pub(super) fn of<S: Slots>(page: &Page, key: &'a [u8]) -> Sought<'a> {
        let prefix = prefix_len(page);
        let suffix = key.get(prefix..).unwrap_or(&[]);
        let len = if S::STEMMED { usize::from(u16_at(page, STEM_LEN)) } else { 0 };
        if len == 0 {
            return Sought { head: head_of::<S>(suffix), rest: suffix, is_apart: false };
        }
        let at = usize::from(u16_at(page, BASE_OFF)) + prefix;
        Sought::behind(suffix, len, |start| words::compare(page, at, len.min(PAGE), start))
    }

    /// A key that is `suffix` behind the stem of a leaf that is being laid out.
    #[inline(always)]
    pub(super) fn with_stem(suffix: &'a [u8], stem: &[u8]) -> Sought<'a> {
        Sought::behind(suffix, stem.len(), |start| stem.cmp(start))
    }

    /// `compare` compares the stem, of `len` bytes, with what the suffix begins with.
    #[inline(always)]
    fn behind(suffix: &'a [u8], len: usize, compare: impl FnOnce(&[u8]) -> Ordering) -> Sought<'a> {
        let (start, rest) = suffix.split_at(len.min(suffix.len()));
        match compare(start) {
            Ordering::Equal => Sought { head: head_of::<LeafSlots>(rest), rest, is_apart: false },
            Ordering::Greater => Sought { head: 0, rest: suffix, is_apart: true },
            Ordering::Less => Sought { head: 0xffff_ffff, rest: suffix, is_apart: true },
        }
    }

    /// What of the key lies in the heap of a leaf.
    #[inline(always)]
    pub(super) fn tail(&self) -> &'a [u8] {
        if self.is_apart {
            self.rest
        } else {
            self.rest.get(LeafSlots::HEAD..).unwrap_or(&[])
        }
    }

    /// The word of its slot in a leaf, whose record lies at `offset`.
    #[inline(always)]
    pub(super) fn leaf_slot(&self, offset: usize) -> u64 {
        let len = self.rest.len() | if self.is_apart { APART } else { 0 };
        self.head | (offset as u64) << 32 | (len as u64) << 48
    }
}

/// Compares a slot's suffix with one that has the same head, where either stands apart.
#[cold]
pub(super) fn compare_apart<S: Slots>(page: &Page, index: usize, sought: &Sought<'_>) -> Ordering {
    let (offset, len) = S::place(page, index);
    let is_below = sought.head == 0;
    match (len & APART != 0, sought.is_apart) {
        (true, true) => words::compare(page, offset + S::BEFORE_TAIL, (len & !APART).min(PAGE), sought.rest),
        (true, false) if is_below => Ordering::Less,
        (false, true) if !is_below => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// How long the stem is.
#[inline(always)]
pub(super) fn len(page: &Page) -> usize {
    usize::from(u16_at(page, STEM_LEN))
}

/// Where the prefix lies, and how long it is.
#[inline(always)]
pub(super) fn prefix(page: &Page) -> (usize, usize) {
    (usize::from(u16_at(page, LO_OFF)), prefix_len(page))
}

/// Where the beginning lies that all keys share but those that stand apart, and how long it is.
#[inline(always)]
pub(super) fn base(page: &Page) -> (usize, usize) {
    match len(page) {
        0 => prefix(page),
        len => (usize::from(u16_at(page, BASE_OFF)), prefix_len(page) + len),
    }
}

/// Compares the first `len` bytes of the stem, which has no fewer, with `bytes`.
#[inline]
pub(super) fn compare(page: &Page, len: usize, bytes: &[u8]) -> Ordering {
    words::compare(page, usize::from(u16_at(page, BASE_OFF)) + prefix_len(page), len, bytes)
}

/// The base as bytes.
pub(super) fn base_of(page: &Page) -> Vec<u8> {
    let (at, len) = base(page);
    let mut bytes = Vec::with_capacity(KEY_MAX);
    words::append(page, at, len.min(PAGE), &mut bytes);
    bytes
}

/// How many bytes two keys have in common.
pub(crate) fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The stem of a leaf to be laid out with `records` records that all begin with `prefix_len` bytes: what three quarters of
/// them share. `key_of` tells the key of one.
pub(super) fn of_most(records: usize, prefix_len: usize, key_of: impl Fn(usize, &mut Vec<u8>)) -> Vec<u8> {
    if records < RECORDS_MIN {
        return Vec::new();
    }
    let (mut first, mut last) = (Vec::with_capacity(KEY_MAX), Vec::with_capacity(KEY_MAX));
    key_of(records / 8, &mut first);
    key_of(records - 1 - records / 8, &mut last);
    let len = common(&first, &last);
    first.truncate(len);
    first.drain(..prefix_len.min(len));
    if first.len() < STEM_MIN {
        first.clear();
    }
    first
}

/// The stem for records `from..to` of a leaf, behind a prefix of `prefix_len` bytes: that of most of them, or the one that the
/// leaf has, if that saves more.
pub(super) fn for_part(source: &Page, from: usize, to: usize, prefix_len: usize) -> Vec<u8> {
    let records = to.saturating_sub(from);
    let new = of_most(records, prefix_len, |index, key| key_into::<LeafSlots>(source, from + index, key));
    let mut old = base_of(source);
    if len(source) == 0 || old.len() <= prefix_len {
        return new;
    }
    if new.starts_with(&old[prefix_len..]) {
        return new;
    }
    let members = members(source, from, to, &old);
    old.drain(..prefix_len);
    let saved = |stem: &[u8], members: usize| {
        (members * stem.len()) as isize - ((records - members) * LeafSlots::HEAD + stem.len()) as isize
    };
    let (of_new, of_old) = (saved(&new, records - records / 4), saved(&old, members));
    match (of_old > of_new, of_old > 0) {
        (true, true) => old,
        (true, false) => Vec::new(),
        (false, _) => new,
    }
}

/// How many of the records `from..to` begin with `start`.
fn members(source: &Page, from: usize, to: usize, start: &[u8]) -> usize {
    let first = first_that(source, from..to, |key| key >= start);
    first_that(source, first..to, |key| !key.starts_with(start)) - first
}

/// The first of these records of a leaf whose key is such a one, as all behind it are; the end if none is.
pub(super) fn first_that(source: &Page, records: Range<usize>, is: impl Fn(&[u8]) -> bool) -> usize {
    let mut key = Vec::with_capacity(KEY_MAX);
    let (mut low, mut high) = (records.start, records.end);
    while low < high {
        let middle = (low + high) / 2;
        key_into::<LeafSlots>(source, middle, &mut key);
        (low, high) = if is(&key) { (low, middle) } else { (middle + 1, high) };
    }
    low
}
