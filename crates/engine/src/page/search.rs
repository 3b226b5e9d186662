//! Finding a key's place in a page, safely on torn bytes.
//!
//! Hints narrow the slots to a seventeenth, a branch-free lower bound over heads finds the place, and
//! only slots with the same head are compared whole.

use std::cmp::Ordering;

use perilune_shm::words::{self, u16_at, u32_at, u64_at};

use super::stem::{self, Sought};
use super::{
    bottom, child, count, head_of, heap_top, prefix_len, InnerSlots, LeafSlots, Page, Slots, APART, HINTS,
    HINTS_FROM, HINT_COUNT, HI_LEN, HI_OFF, LO_LEN, LO_OFF,
};
use crate::limits::{PAGE, PAGE_HEAD};

/// Where a key is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first slot whose key is not smaller.
    pub(crate) index: usize,
    /// Whether that slot's key is the key.
    pub(crate) equal: bool,
}

/// A search that has narrowed down to this number of slots compares them one by one.
const COUNTED: usize = 12;

/// Finds `key` among the records of a leaf.
#[inline]
pub(crate) fn find(page: &Page, key: &[u8]) -> Found {
    lower_bound::<LeafSlots>(page, key)
}

/// Finds `key` in a leaf that is likely not to be in the cache: its record is asked for before it is found.
#[inline]
pub(crate) fn find_far(page: &Page, key: &[u8]) -> Found {
    let sought = Sought::of::<LeafSlots>(page, key);
    prefetch_record(page, sought.head);
    place_of::<LeafSlots>(page, &sought)
}

/// Finds which slot of an inner page covers `key`, and its child.
#[inline]
pub(crate) fn find_child(page: &Page, key: &[u8]) -> (usize, u32) {
    let index = lower_bound::<InnerSlots>(page, key).index;
    (index, child(page, index))
}

/// Finds `key` if it is record `at` of a leaf or the next, or stands beside one of them. None: search.
#[inline]
pub(crate) fn find_near(page: &Page, key: &[u8], at: usize) -> Option<Found> {
    let slots = count::<LeafSlots>(page);
    if at >= slots {
        return None;
    }
    let sought = Sought::of::<LeafSlots>(page, key);
    let compare = |index| compare_record(page, index, &sought);
    let next = at + 1;
    match compare(at) {
        Ordering::Equal => Some(Found { index: at, equal: true }),
        // The key was absent when it was looked for last, and is looked for again.
        Ordering::Greater if at == 0 || compare(at - 1) == Ordering::Less => {
            Some(Found { index: at, equal: false })
        }
        Ordering::Greater => None,
        Ordering::Less if next == slots => Some(Found { index: next, equal: false }),
        Ordering::Less => match compare(next) {
            Ordering::Less => None,
            order => Some(Found { index: next, equal: order == Ordering::Equal }),
        },
    }
}

/// Finds `key` beside record `at` of a leaf: if it is that record's key, or lies between it and its neighbour (or the
/// fence). That also proves that the leaf covers the key. None: search.
#[inline]
pub(crate) fn place_near(page: &Page, key: &[u8], at: usize) -> Option<Found> {
    let slots = count::<LeafSlots>(page);
    let (start, _) = key.split_at_checked(prefix_len(page).min(PAGE))?;
    if at >= slots || words::compare(page, stem::base(page).0, start.len(), start).is_ne() {
        return None;
    }
    let sought = Sought::of::<LeafSlots>(page, key);
    let compare = |index| compare_record(page, index, &sought);
    let next = at + 1;
    let (index, equal, is_there) = match compare(at) {
        Ordering::Equal => (at, true, true),
        Ordering::Greater if at == 0 => (0, false, fence(page, LO_OFF, key).is_none_or(Ordering::is_lt)),
        Ordering::Greater => (at, false, compare(at - 1).is_lt()),
        Ordering::Less if next == slots => {
            (next, false, fence(page, HI_OFF, key).is_none_or(Ordering::is_ge))
        }
        Ordering::Less => {
            let order = compare(next);
            (next, order.is_eq(), order.is_ge())
        }
    };
    is_there.then_some(Found { index, equal })
}

/// Compares a fence, by where the page's head tells its place, with `key`; none: there is no such fence.
#[inline]
fn fence(page: &Page, place: usize, key: &[u8]) -> Option<Ordering> {
    // In the page's head the length of a fence stands behind its offset.
    let (at, len) = (usize::from(u16_at(page, place)), usize::from(u16_at(page, place + 2)).min(PAGE));
    (len > 0).then(|| words::compare(page, at, len, key))
}

/// Lines of a leaf, by their numbers, where these lay: the base, the record behind a place and the one before it.
pub(crate) type Lines = [u8; 3];

/// Bytes of a line of memory.
const LINE: usize = 64;

const _: () = assert!(PAGE / LINE <= 256, "a byte tells a line");

/// The lines that are read where a place in a leaf is looked at.
#[inline]
pub(crate) fn lines_near(page: &Page, index: usize) -> Lines {
    let record = |index| LeafSlots::place(page, index).0;
    // NB: any numbers do, they are only guesses.
    [stem::base(page).0, record(index), record(index.saturating_sub(1))].map(|at| (at / LINE) as u8)
}

/// Prefetches the lines that will be read and written at about this place of a leaf.
#[inline]
pub(crate) fn prefetch_near(page: &Page, index: usize, [base, next, before]: Lines) {
    let slot = PAGE_HEAD + index * LeafSlots::SIZE;
    // A queue is worked at its ends: since the guess was made a record may have been put beside that place, or taken away.
    let [base, next, before] = [base, next, before].map(|line| usize::from(line) * LINE);
    for at in
        [0, HINTS, slot - LeafSlots::SIZE, slot, base, next.wrapping_sub(LINE), next, next + LINE, before]
    {
        words::prefetch(page, at);
    }
}

/// Whether `key` lies in the page's fences.
#[inline]
pub(crate) fn contains(page: &Page, key: &[u8]) -> bool {
    let (lo, hi) = (usize::from(u16_at(page, LO_OFF)), usize::from(u16_at(page, HI_OFF)));
    let lo_len = usize::from(u16_at(page, LO_LEN));
    let hi_len = usize::from(u16_at(page, HI_LEN));
    // What both fences begin with is compared once, and both ends with the rest.
    let prefix = prefix_len(page).min(lo_len).min(hi_len).min(PAGE);
    let Some((start, suffix)) = key.split_at_checked(prefix) else { return false };
    let fence =
        |offset: usize, len: usize| words::compare(page, offset + prefix, (len - prefix).min(PAGE), suffix);
    (prefix == 0 || words::compare(page, lo, prefix, start) == Ordering::Equal)
        && (lo_len == 0 || fence(lo, lo_len) == Ordering::Less)
        && (hi_len == 0 || fence(hi, hi_len) != Ordering::Less)
}

/// The first slot whose key is not smaller than `key`, which lies in the page's fences.
#[inline]
pub(super) fn lower_bound<S: Slots>(page: &Page, key: &[u8]) -> Found {
    place_of::<S>(page, &Sought::of::<S>(page, key))
}

/// The first slot whose key is not smaller than one that is ready to be looked for.
#[inline]
fn place_of<S: Slots>(page: &Page, sought: &Sought<'_>) -> Found {
    let head = sought.head;
    let slots = count::<S>(page);
    let (low, high) = narrow::<S>(page, head, slots);
    let mut index = low;
    let mut rest = high - low;
    while rest > COUNTED {
        let half = rest / 2;
        index += if S::head(page, index + half - 1) < head { half } else { 0 };
        rest -= half;
    }
    // Loads that do not wait for each other: counting a few is faster than halving them.
    index += (index..index + rest).map(|slot| usize::from(S::head(page, slot) < head)).sum::<usize>();
    if index >= slots || S::head(page, index) != head {
        return Found { index, equal: false };
    }
    match compare_slot::<S>(page, index, sought) {
        Ordering::Equal => Found { index, equal: true },
        Ordering::Greater => Found { index, equal: false },
        Ordering::Less => among_equal_heads::<S>(page, index + 1, slots, sought),
    }
}

/// Slots between which the head must lie, by the hints.
#[inline(always)]
fn narrow<S: Slots>(page: &Page, head: u64, slots: usize) -> (usize, usize) {
    if slots <= HINTS_FROM {
        return (0, slots);
    }
    let short = (head >> (8 * S::HEAD - 32)) as u32;
    let mut smaller = 0;
    for pair in 0..HINT_COUNT / 2 {
        let word = u64_at(page, HINTS + pair * 8);
        smaller += usize::from((word as u32) < short) + usize::from(((word >> 32) as u32) < short);
    }
    let mut not_greater = smaller;
    while not_greater < HINT_COUNT && u32_at(page, HINTS + not_greater * 4) <= short {
        not_greater += 1;
    }
    let distance = slots / (HINT_COUNT + 1);
    // The lines that are left are asked for together; the search itself would meet them one by one.
    let first = PAGE_HEAD + distance * smaller * S::SIZE;
    words::prefetch(page, first + 64);
    words::prefetch(page, first + 128);
    let high = if not_greater < HINT_COUNT { (distance * (not_greater + 1) + 1).min(slots) } else { slots };
    ((distance * smaller).min(high), high)
}

/// Asks for the record of a head where it lies if heads and records are evenly spread and the page is as it
/// was laid out: then it comes while the slots do. A wrong guess costs nothing but its two lines.
#[inline(always)]
fn prefetch_record(page: &Page, head: u64) {
    let slots = count::<LeafSlots>(page);
    if slots <= HINTS_FROM {
        return;
    }
    // The line through two hints a third of the page apart; keys are seldom more even than that.
    let hint = |k: usize| i64::from(u32_at(page, HINTS + k * 4));
    let (from, to) = (hint(0), hint(HINT_COUNT - 1));
    let steps = (head as i64 - from) as f32 * (HINT_COUNT - 1) as f32 / (to - from) as f32;
    let share = (steps + 1.0) * (slots / (HINT_COUNT + 1)) as f32 / slots as f32;
    let bottom = bottom(page);
    let heap = bottom.saturating_sub(heap_top(page));
    // NB: equal hints make this infinite or no number at all, which the conversion turns into a bound.
    let above = (share * heap as f32) as usize;
    let end = bottom - above.min(heap);
    words::prefetch(page, end.wrapping_sub(1));
    words::prefetch(page, end.wrapping_sub(32));
}

/// Lower bound in the run of slots with the key's own head, from `low` on.
fn among_equal_heads<S: Slots>(page: &Page, mut low: usize, mut high: usize, sought: &Sought<'_>) -> Found {
    let tail = Tail::of::<S>(sought);
    let mut equal = false;
    while low < high {
        let middle = (low + high) / 2;
        let order =
            S::head(page, middle).cmp(&sought.head).then_with(|| tail.compare_slot::<S>(page, middle));
        equal |= order == Ordering::Equal;
        if order == Ordering::Less {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Found { index: low, equal }
}

/// What of a suffix does not lie in a slot's head, to be compared with many: its first bytes as numbers.
struct Tail<'a> {
    sought: &'a Sought<'a>,
    first: u64,
    second: u64,
}

impl<'a> Tail<'a> {
    #[inline(always)]
    fn of<S: Slots>(sought: &'a Sought<'a>) -> Tail<'a> {
        let from = |at: usize| sought.rest.get(S::HEAD + at..).map_or(0, words::leading);
        Tail { sought, first: from(0), second: from(8) }
    }

    /// Compares the key of a slot with the one that is looked for, where their heads are equal.
    #[inline(always)]
    fn compare_slot<S: Slots>(&self, page: &Page, index: usize) -> Ordering {
        let (offset, len) = S::place(page, index);
        if S::STEMMED && (len & APART != 0 || self.sought.is_apart) {
            return stem::compare_apart::<S>(page, index, self.sought);
        }
        let suffix = self.sought.rest;
        if len <= S::HEAD || suffix.len() <= S::HEAD {
            return len.cmp(&suffix.len());
        }
        let (tail, len) = (&suffix[S::HEAD..], (len - S::HEAD).min(PAGE));
        let at = offset + S::BEFORE_TAIL;
        let order = words::leading_at(page, at, len).cmp(&self.first);
        // NB: as of heads, of two that are equal with zeros behind them the shorter is a prefix of the longer.
        if order.is_ne() || len <= 8 || tail.len() <= 8 {
            return order.then(len.cmp(&tail.len()));
        }
        let order = words::leading_at(page, at + 8, len - 8).cmp(&self.second);
        if order.is_ne() || len <= 16 || tail.len() <= 16 {
            return order.then(len.cmp(&tail.len()));
        }
        words::compare(page, at + 16, len - 16, &tail[16..])
    }
}

/// Compares a slot's suffix with one that is sought, their heads being equal.
#[inline(always)]
fn compare_slot<S: Slots>(page: &Page, index: usize, sought: &Sought<'_>) -> Ordering {
    let (offset, len) = S::place(page, index);
    if S::STEMMED && (len & APART != 0 || sought.is_apart) {
        return stem::compare_apart::<S>(page, index, sought);
    }
    let suffix = sought.rest;
    if len <= S::HEAD || suffix.len() <= S::HEAD {
        // NB: heads are zero padded, so here the shorter one is a prefix of the longer.
        return len.cmp(&suffix.len());
    }
    words::compare(page, offset + S::BEFORE_TAIL, (len - S::HEAD).min(PAGE), &suffix[S::HEAD..])
}

/// Compares the suffix of a record of a leaf with one that is sought.
#[inline(always)]
fn compare_record(page: &Page, index: usize, sought: &Sought<'_>) -> Ordering {
    let order = LeafSlots::head(page, index).cmp(&sought.head);
    order.then_with(|| compare_slot::<LeafSlots>(page, index, sought))
}

/// Whether the key of record `index` of a leaf, which exists, begins with `key`, which the leaf covers.
#[inline]
fn begins_with(page: &Page, index: usize, key: &[u8]) -> bool {
    // What lies between the fences has their common prefix.
    let mut suffix = key.get(prefix_len(page)..).unwrap_or(&[]);
    let (offset, len) = LeafSlots::place(page, index);
    if len & APART != 0 {
        let len = len & !APART;
        return len >= suffix.len()
            && words::compare(page, offset + LeafSlots::BEFORE_TAIL, suffix.len(), suffix).is_eq();
    }
    let in_stem = suffix.len().min(stem::len(page));
    if in_stem > 0 {
        let (start, rest) = suffix.split_at(in_stem);
        if stem::compare(page, in_stem, start).is_ne() {
            return false;
        }
        suffix = rest;
    }
    let in_head = suffix.len().min(LeafSlots::HEAD);
    let mask = !(0xffff_ffffu64 >> (8 * in_head)) & 0xffff_ffff;
    let tail = &suffix[in_head..];
    len >= suffix.len()
        && LeafSlots::head(page, index) & mask == head_of::<LeafSlots>(suffix) & mask
        && words::compare(page, offset + LeafSlots::BEFORE_TAIL, tail.len(), tail).is_eq()
}

/// Whether keys that begin with `key`, which the leaf covers, may stand behind the leaf.
#[inline]
fn may_go_on(page: &Page, key: &[u8]) -> bool {
    // The upper fence is not below the key: if it does not begin with it, it is above all that do.
    let hi_len = usize::from(u16_at(page, HI_LEN));
    hi_len >= key.len() && words::compare(page, usize::from(u16_at(page, HI_OFF)), key.len(), key).is_eq()
}

/// Whether a key behind `key`, which the leaf covers, begins with it: `next` is the index of the first record behind it. None:
/// that may lie behind the leaf.
#[inline]
pub(crate) fn leads(page: &Page, next: usize, key: &[u8]) -> Option<bool> {
    if next < count::<LeafSlots>(page) {
        return Some(begins_with(page, next, key));
    }
    (!may_go_on(page, key)).then_some(false)
}

/// Compares the key of record `index` of a leaf, which exists, with `key`.
#[inline]
fn compare_key(page: &Page, index: usize, key: &[u8]) -> Ordering {
    let prefix = prefix_len(page).min(PAGE);
    let shared = &key[..prefix.min(key.len())];
    let by_prefix = words::compare(page, stem::base(page).0, prefix, shared);
    if by_prefix != Ordering::Equal {
        return by_prefix;
    }
    compare_record(page, index, &Sought::of::<LeafSlots>(page, key))
}

/// Whether the key of record `index` of a leaf, which exists, is `key`.
#[inline]
pub(crate) fn is_key(page: &Page, index: usize, key: &[u8]) -> bool {
    compare_key(page, index, key).is_eq()
}

/// The first record above `key` (not below it, if `inclusive`), if that is record `after + 1`: the usual
/// case when the record `after` was the answer before. None: search.
#[inline]
pub(crate) fn next_is(page: &Page, after: usize, key: &[u8], inclusive: bool) -> Option<usize> {
    let next = after + 1;
    if next >= count::<LeafSlots>(page) {
        return None;
    }
    let before = compare_key(page, after, key);
    if before == Ordering::Greater || before == Ordering::Equal && inclusive {
        return None;
    }
    if before == Ordering::Equal {
        return Some(next);
    }
    let at_next = compare_key(page, next, key);
    (at_next == Ordering::Greater || at_next == Ordering::Equal && inclusive).then_some(next)
}

/// Tells whether a leaf covers `key` and so many of its records are below that, by those on both sides and the fences.
#[inline(always)]
fn gap_of<'a>(page: &'a Page, key: &'a [u8]) -> Option<impl Fn(usize) -> bool + 'a> {
    let records = count::<LeafSlots>(page);
    let (start, _) = key.split_at_checked(prefix_len(page).min(PAGE))?;
    let sought = Sought::of::<LeafSlots>(page, key);
    let compare = move |index| compare_record(page, index, &sought);
    Some(move |below: usize| {
        // A key with the page's prefix is placed by the suffixes on both sides or, where there is none, by the fence.
        below <= records
            && (below == 0 || compare(below - 1) == Ordering::Less)
            && (below == records || compare(below) != Ordering::Less)
            && words::compare(page, stem::base(page).0, start.len(), start) == Ordering::Equal
            && (below > 0 || fence(page, LO_OFF, key).is_none_or(Ordering::is_lt))
            && (below < records || fence(page, HI_OFF, key).is_none_or(Ordering::is_ge))
    })
}

/// Whether a leaf covers `key`, and `below` of its records are below that.
#[cfg(test)]
pub(crate) fn is_gap(page: &Page, below: usize, key: &[u8]) -> bool {
    gap_of(page, key).is_some_and(|is_gap| is_gap(below))
}

/// How many records of a leaf are below `key`, which it covers, if that is about `below`.
#[inline]
pub(crate) fn gap_near(page: &Page, below: usize, key: &[u8]) -> Option<usize> {
    let is_gap = gap_of(page, key)?;
    // A queue is worked at its ends: a push or a pop moves the place by one.
    [Some(below), below.checked_add(1), below.checked_sub(1)]
        .into_iter()
        .flatten()
        .find(|guess| is_gap(*guess))
}

/// The last record below `key`, if that is record `after - 1`. None: search.
#[inline]
pub(crate) fn previous_is(page: &Page, after: usize, key: &[u8]) -> Option<usize> {
    let previous = after.checked_sub(1)?;
    if after >= count::<LeafSlots>(page) || compare_key(page, after, key) == Ordering::Less {
        return None;
    }
    (compare_key(page, previous, key) == Ordering::Less).then_some(previous)
}
