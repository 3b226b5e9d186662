//! The bytes of one page: a slotted B+tree page with fences, a common prefix, key heads and hints.
//!
//! Example: both fences of a leaf begin with `person` 00, so these 7 bytes are its prefix. Of the key
//! `^person(7,"name")`, which goes on with 2E F0 6E 61 6D 65 00, the slot holds the head 2E F0 6E 61, and the heap
//! holds 6D 65 00 and the value. A search compares heads, which lie side by side as numbers, and looks into the
//! heap only where they are equal.
//!
//! Invariants
//! - Every key of a page lies in `(lo, hi]`; an empty fence is infinite. All keys share the first `prefix_len`
//!   bytes of the fences and are stored without them; what is left is the *suffix*.
//! - Most suffixes of a leaf may begin with its *stem*, which those are stored without, too (see `stem`).
//! - Slots stand in key order. A slot holds the first bytes of its suffix (behind the stem) as a big-endian number,
//!   its *head* (4 bytes in a leaf, 8 in an inner page); the rest of the suffix lies in the heap.
//! - An inner slot's child covers the keys up to and including its separator; the upper child the rest.
//! - The heap grows down from the page's end and begins with the fences.
//! - A reader may meet torn bytes: every function here that reads takes any bytes without panic or endless loop,
//!   and its answer counts only after the latch word has been checked again.
//!
//! Follows "B-Trees Are Back" (SIGMOD 2025) for heads and hints. Format: `docs/format/pages.md`. Deliberately
//! absent: latches, page numbers of others, generations, what keys and values mean.

mod build;
mod builder;
mod check;
mod edit;
mod entries;
mod parting;
mod search;
mod stem;

#[cfg(test)]
mod tests;

pub(crate) use build::{
    compacted, empty_leaf, inner_bytes, inner_of, leaf_bytes, leaf_of, merged, new_root, separator_between,
    split, store, Split,
};
pub(crate) use check::check;
pub(crate) use edit::{
    inner_insert, inner_remove, inner_room, inner_set_child, leaf_append, leaf_insert, leaf_remove,
    leaf_remove_range, leaf_replace, NoSave, Save,
};
pub(crate) use entries::copy_records;
pub(crate) use parting::{parting, Ahead, Coming, Parting};
pub(crate) use search::{
    contains, find, find_child, find_far, find_near, gap_near, is_key, leads, lines_near, next_is,
    place_near, prefetch_near, previous_is, Found, Lines,
};

#[cfg(test)]
pub(crate) use search::is_gap;

use perilune_shm::words::{self, u16_at, u32_at, u64_at, u8_at, Block};

pub(crate) use stem::common;
use stem::Sought;

use crate::limits::{PAGE, PAGE_HEAD, PAGE_WORDS};

/// A page's bytes.
pub(crate) type Page = Block<PAGE_WORDS>;

/// Kind of a page that holds records.
pub(crate) const LEAF: u8 = 1;
/// Kind of a page that holds separators and children.
pub(crate) const INNER: u8 = 2;

/// Page flag: belongs to the volatile tree.
pub(crate) const FLAG_VOLATILE: u16 = 1;

/// Record flag: the value lies in runs, the record holds their list.
pub(crate) const RECORD_BIG: u16 = 1;

const KIND: usize = 0;
const LEVEL: usize = 1;
const COUNT: usize = 2;
const HEAP_TOP: usize = 4;
const GARBAGE: usize = 6;
const PREFIX_LEN: usize = 8;
const LO_OFF: usize = 10;
const LO_LEN: usize = 12;
const HI_OFF: usize = 14;
const HI_LEN: usize = 16;
const FLAGS: usize = 18;
const UPPER: usize = 20;
const SELF: usize = 24;
const BORN: usize = 28;
const BASE_OFF: usize = 32;
const STEM_LEN: usize = 34;
const HINTS: usize = 64;
const HINT_COUNT: usize = 16;
/// Hints are kept in pages with more slots than this.
const HINTS_FROM: usize = 32;

/// How slots of one kind of page lie.
pub(crate) trait Slots {
    /// Bytes of a slot.
    const SIZE: usize;
    /// Bytes of a suffix that lie in the slot.
    const HEAD: usize;
    /// Bytes before the rest of the suffix in the heap.
    const BEFORE_TAIL: usize;
    /// Pages may have a stem.
    const STEMMED: bool;
    /// The head of slot `index`.
    fn head(page: &Page, index: usize) -> u64;
    /// Heap offset and length of slot `index`: of its suffix behind the stem, if it begins with that; else the length
    /// has [`APART`], and the whole suffix lies in the heap.
    fn place(page: &Page, index: usize) -> (usize, usize);
}

/// Bit of a slot's length: the suffix does not begin with the page's stem.
const APART: usize = 1 << 15;

/// Slots of a leaf: `{head u32, offset u16, length u16}`.
pub(crate) struct LeafSlots;
/// Slots of an inner page: `{head u64, offset u16, suffix length u16, child u32}`.
pub(crate) struct InnerSlots;

impl Slots for LeafSlots {
    const SIZE: usize = 8;
    const HEAD: usize = 4;
    const BEFORE_TAIL: usize = 4;
    const STEMMED: bool = true;

    #[inline(always)]
    fn head(page: &Page, index: usize) -> u64 {
        u64_at(page, PAGE_HEAD + index * 8) & 0xffff_ffff
    }

    #[inline(always)]
    fn place(page: &Page, index: usize) -> (usize, usize) {
        let slot = u64_at(page, PAGE_HEAD + index * 8);
        ((slot >> 32 & 0xffff) as usize, (slot >> 48) as usize)
    }
}

impl Slots for InnerSlots {
    const SIZE: usize = 16;
    const HEAD: usize = 8;
    const BEFORE_TAIL: usize = 0;
    const STEMMED: bool = false;

    #[inline(always)]
    fn head(page: &Page, index: usize) -> u64 {
        u64_at(page, PAGE_HEAD + index * 16)
    }

    #[inline(always)]
    fn place(page: &Page, index: usize) -> (usize, usize) {
        let word = u64_at(page, PAGE_HEAD + index * 16 + 8);
        ((word & 0xffff) as usize, (word >> 16 & 0xffff) as usize)
    }
}

/// The kind: [`LEAF`], [`INNER`], or anything in a torn page.
#[inline(always)]
pub(crate) fn kind(page: &Page) -> u8 {
    u8_at(page, KIND)
}

/// Levels below: 0 in a leaf.
#[inline(always)]
pub(crate) fn level(page: &Page) -> u8 {
    u8_at(page, LEVEL)
}

/// Number of slots, never more than fit.
#[inline(always)]
pub(crate) fn count<S: Slots>(page: &Page) -> usize {
    usize::from(u16_at(page, COUNT)).min((PAGE - PAGE_HEAD) / S::SIZE)
}

/// Number of records of a leaf.
#[inline(always)]
pub(crate) fn leaf_count(page: &Page) -> usize {
    count::<LeafSlots>(page)
}

/// Number of separators of an inner page.
#[inline(always)]
pub(crate) fn inner_count(page: &Page) -> usize {
    count::<InnerSlots>(page)
}

/// Flags, see [`FLAG_VOLATILE`].
#[inline(always)]
pub(crate) fn flags(page: &Page) -> u16 {
    u16_at(page, FLAGS)
}

/// Bytes that all keys share.
#[inline(always)]
pub(crate) fn prefix_len(page: &Page) -> usize {
    usize::from(u16_at(page, PREFIX_LEN))
}

/// The page's own number.
pub(crate) fn self_number(page: &Page) -> u32 {
    u32_at(page, SELF)
}

/// The generation in which the page was born, as it says itself.
pub(crate) fn born(page: &Page) -> u32 {
    u32_at(page, BORN)
}

/// Writes the page's own number and the generation it was born in (only while it is built).
pub(crate) fn put_identity(page: &Page, number: u32, born: u32) {
    words::put_u32(page, SELF, number);
    words::put_u32(page, BORN, born);
}

/// Child `index` of an inner page; the upper child if there is no such slot.
#[inline(always)]
pub(crate) fn child(page: &Page, index: usize) -> u32 {
    if index < inner_count(page) {
        u32_at(page, PAGE_HEAD + index * 16 + 12)
    } else {
        u32_at(page, UPPER)
    }
}

#[inline(always)]
fn heap_top(page: &Page) -> usize {
    usize::from(u16_at(page, HEAP_TOP))
}

/// Bytes of the heap that nothing uses any more.
#[inline(always)]
pub(crate) fn garbage(page: &Page) -> usize {
    usize::from(u16_at(page, GARBAGE))
}

/// Bytes between slots and heap.
#[inline(always)]
fn gap<S: Slots>(page: &Page) -> usize {
    heap_top(page).saturating_sub(PAGE_HEAD + count::<S>(page) * S::SIZE)
}

/// Bytes that a new slot and its heap part may take, after compaction.
#[inline(always)]
pub(crate) fn free_bytes<S: Slots>(page: &Page) -> usize {
    gap::<S>(page) + garbage(page)
}

/// Free bytes of a leaf, after compaction.
#[inline(always)]
pub(crate) fn leaf_free(page: &Page) -> usize {
    free_bytes::<LeafSlots>(page)
}

/// Bytes between slots and heap of a leaf: room without compaction.
pub(crate) fn leaf_gap(page: &Page) -> usize {
    gap::<LeafSlots>(page)
}

/// Where the heap ends: below the fences and the base.
#[inline(always)]
fn bottom(page: &Page) -> usize {
    let at = if u16_at(page, STEM_LEN) == 0 { HI_OFF } else { BASE_OFF };
    usize::from(u16_at(page, at) & !3).min(PAGE)
}

/// Bytes of slots and live records or separators, fences and base not counted.
pub(crate) fn content_bytes(page: &Page) -> usize {
    let free = if kind(page) == LEAF { leaf_free(page) } else { free_bytes::<InnerSlots>(page) };
    (PAGE - PAGE_HEAD).saturating_sub(free + PAGE - bottom(page))
}

/// Whether a leaf that has lost a record holds so little that it is worth while to try a merge. Said at every eighth record that is
/// left, and at the last: who empties a leaf beside full ones tries in vain each time, for the price of several removals.
#[inline]
pub(crate) fn is_sparse(page: &Page) -> bool {
    leaf_count(page).is_multiple_of(8) && content_bytes(page) < PAGE / 4
}

/// Heap bytes of a record in a leaf without a stem.
#[inline(always)]
pub(crate) fn record_bytes(suffix_len: usize, value_len: usize) -> usize {
    body_bytes(suffix_len.saturating_sub(4), value_len)
}

/// Heap bytes of a leaf record, so many of whose key's lie there.
#[inline(always)]
fn body_bytes(tail_len: usize, value_len: usize) -> usize {
    (4 + tail_len + value_len + 3) & !3
}

/// How many bytes of the key of record `index` lie in the heap.
#[inline(always)]
fn tail_len(page: &Page, index: usize) -> usize {
    let (_, len) = LeafSlots::place(page, index);
    if len & APART == 0 {
        len.saturating_sub(LeafSlots::HEAD)
    } else {
        len & !APART
    }
}

/// Heap bytes that the record of a key and a value of this length takes in this leaf, which covers the key.
#[inline]
pub(crate) fn need(page: &Page, key: &[u8], value_len: usize) -> usize {
    body_bytes(Sought::of::<LeafSlots>(page, key).tail().len(), value_len)
}

/// Heap bytes that record `index` takes more with a value of this length.
#[inline]
pub(crate) fn growth(page: &Page, index: usize, value_len: usize) -> usize {
    let tail_len = tail_len(page, index);
    body_bytes(tail_len, value_len).saturating_sub(body_bytes(tail_len, value_place(page, index).1))
}

/// Asks for what every search in a page begins with.
#[inline(always)]
pub(crate) fn expect(page: &Page) {
    words::prefetch(page, HINTS);
}

/// Heap bytes that record `index` takes.
#[inline]
pub(crate) fn taken(page: &Page, index: usize) -> usize {
    body_bytes(tail_len(page, index), value_place(page, index).1)
}

/// Heap bytes of an inner page's separator.
fn separator_bytes(suffix_len: usize) -> usize {
    (suffix_len.saturating_sub(8) + 3) & !3
}

/// What a record's heading says: where its value lies, how long it is, its flags.
#[inline(always)]
pub(crate) fn value_place(page: &Page, index: usize) -> (usize, usize, u16) {
    let (offset, _) = LeafSlots::place(page, index);
    let heading = u32_at(page, offset);
    let value_len = (heading & 0xffff) as usize;
    (offset + 4 + tail_len(page, index), value_len.min(PAGE), (heading >> 16) as u16)
}

/// Appends the value of record `index` to `out` and answers its flags.
#[inline]
pub(crate) fn append_value(page: &Page, index: usize, out: &mut Vec<u8>) -> u16 {
    let (offset, len, flags) = value_place(page, index);
    words::append(page, offset, len, out);
    flags
}

/// Replaces `out` by the whole key of slot `index`.
#[inline]
pub(crate) fn key_into<S: Slots>(page: &Page, index: usize, out: &mut Vec<u8>) {
    out.clear();
    let (offset, suffix_len) = S::place(page, index);
    if S::STEMMED && suffix_len & APART != 0 {
        words::append(page, usize::from(u16_at(page, LO_OFF)), prefix_len(page).min(PAGE), out);
        words::append(page, offset + S::BEFORE_TAIL, (suffix_len & !APART).min(PAGE), out);
        return;
    }
    let (base, base_len) = if S::STEMMED { stem::base(page) } else { stem::prefix(page) };
    words::append(page, base, base_len.min(PAGE), out);
    let head = S::head(page, index) << (64 - 8 * S::HEAD);
    let in_slot = suffix_len.min(S::HEAD);
    // A copy of constant size, cut, beats one of 0 to 8 bytes.
    let end = out.len() + in_slot;
    out.extend_from_slice(&head.to_be_bytes());
    out.truncate(end);
    words::append(page, offset + S::BEFORE_TAIL, (suffix_len - in_slot).min(PAGE), out);
}

/// Whether the key of record `index` of a leaf begins with `start`; then replaces `out` by what follows that.
#[inline]
pub(crate) fn key_behind(page: &Page, index: usize, start: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let (offset, len) = LeafSlots::place(page, index);
    let (base, in_slot) = match len & APART {
        0 => (stem::base(page), len.min(LeafSlots::HEAD)),
        _ => (stem::prefix(page), 0),
    };
    let head = (LeafSlots::head(page, index) as u32).to_be_bytes();
    let tail = offset + LeafSlots::BEFORE_TAIL;
    let tail_len = (len & !APART).saturating_sub(in_slot).min(PAGE);
    let (base, base_len) = (base.0, base.1.min(PAGE));
    // In the base, in the slot, in the heap; mostly all in the base.
    let (first, rest) = start.split_at(start.len().min(base_len));
    let (second, third) = rest.split_at(rest.len().min(in_slot));
    let goes_on = |(second, third): (&[u8], &[u8])| {
        head[..in_slot].starts_with(second)
            && third.len() <= tail_len
            && words::compare(page, tail, third.len(), third).is_eq()
    };
    let begins = words::compare(page, base, first.len(), first).is_eq()
        && (rest.is_empty() || goes_on((second, third)));
    if begins {
        words::append(page, base + first.len(), base_len - first.len(), out);
        out.extend_from_slice(&head[second.len()..in_slot]);
        words::append(page, tail + third.len(), tail_len - third.len(), out);
    }
    begins
}

/// Replaces `out` by the key of record `index` of a leaf.
#[inline]
pub(crate) fn leaf_key(page: &Page, index: usize, out: &mut Vec<u8>) {
    key_into::<LeafSlots>(page, index, out);
}

/// Replaces `out` by the lower fence (exclusive; empty: there is none).
#[inline]
pub(crate) fn lo_fence(page: &Page, out: &mut Vec<u8>) {
    out.clear();
    words::append(page, usize::from(u16_at(page, LO_OFF)), usize::from(u16_at(page, LO_LEN)).min(PAGE), out);
}

/// Replaces `out` by the upper fence (inclusive; empty: there is none).
#[inline]
pub(crate) fn hi_fence(page: &Page, out: &mut Vec<u8>) {
    out.clear();
    words::append(page, usize::from(u16_at(page, HI_OFF)), usize::from(u16_at(page, HI_LEN)).min(PAGE), out);
}

/// Whether the page has an upper fence.
#[cfg(test)]
pub(crate) fn has_hi_fence(page: &Page) -> bool {
    u16_at(page, HI_LEN) != 0
}

/// Whether the page has a lower fence.
#[cfg(test)]
pub(crate) fn has_lo_fence(page: &Page) -> bool {
    u16_at(page, LO_LEN) != 0
}

/// The first `HEAD` bytes of a suffix as a number, zero padded.
#[inline(always)]
fn head_of<S: Slots>(suffix: &[u8]) -> u64 {
    words::leading(suffix) >> (64 - 8 * S::HEAD)
}

/// Recomputes the hints after slots have changed. The hints' bytes have been saved by the caller.
fn put_hints<S: Slots>(page: &Page) {
    put_hints_from::<S>(page, 0);
}

/// The first pair of hints that changes if a leaf of `slots` slots gets one more at `index`; HINT_COUNT / 2: none.
#[inline]
fn first_changed_hints(slots: usize, index: usize) -> usize {
    let distance = slots / (HINT_COUNT + 1);
    if slots <= HINTS_FROM || distance != (slots + 1) / (HINT_COUNT + 1) {
        return 0;
    }
    // Hint k shows slot distance * (k + 1).
    if index > distance * HINT_COUNT {
        return HINT_COUNT / 2;
    }
    index.div_ceil(distance).saturating_sub(1) / 2
}

/// Writes the pairs of hints from `first` on, where those before have not changed.
#[inline]
fn put_hints_from<S: Slots>(page: &Page, first: usize) {
    let slots = count::<S>(page);
    if slots <= HINTS_FROM {
        return;
    }
    let distance = slots / (HINT_COUNT + 1);
    let hint = |k: usize| S::head(page, distance * (k + 1)) >> (8 * S::HEAD - 32) & 0xffff_ffff;
    for pair in first..HINT_COUNT / 2 {
        words::put_u64(page, HINTS + pair * 8, hint(2 * pair) | hint(2 * pair + 1) << 32);
    }
}
