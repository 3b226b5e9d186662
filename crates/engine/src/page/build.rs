//! Whole pages laid out anew: empty, compacted, split, merged.
//!
//! A new page is built in private memory and stored into its place in one go, so that what can fail
//! (a merge that does not fit) fails before anything shared is touched. What lies between its slots and its heap
//! means nothing, and is not stored.

use perilune_shm::words::{self, put_u16, put_u32};

use super::builder::Builder;
use super::edit::Save;
use super::search::{contains, lower_bound};
use super::stem;
use super::{
    child, flags, heap_top, hi_fence, inner_count, key_into, kind, leaf_count, level, lo_fence, prefix_len,
    record_bytes, separator_bytes, taken, InnerSlots, LeafSlots, Page, Slots, BORN, GARBAGE, INNER, LEAF,
    SELF, UPPER,
};
use crate::limits::{PAGE, PAGE_HEAD};

/// Two pages in place of one, and the key that divides them (greatest possible key of the left).
pub(crate) struct Split {
    pub(crate) left: Box<Page>,
    pub(crate) right: Box<Page>,
    pub(crate) separator: Vec<u8>,
}

/// Stores a built page over `target`: all of it that means something. `save` is told of that before.
pub(crate) fn store(built: &Page, target: &Page, save: &mut impl Save) {
    let slot = if kind(built) == LEAF { LeafSlots::SIZE } else { InnerSlots::SIZE };
    let slots = if kind(built) == LEAF { leaf_count(built) } else { inner_count(built) };
    let heap = heap_top(built) & !7;
    for (from, until) in [(0, PAGE_HEAD + slots * slot), (heap, PAGE)] {
        if from < until {
            save.save(from, until - from);
            words::copy_part(built, from, target, from, until - from);
        }
    }
}

/// A leaf without records and fences.
pub(crate) fn empty_leaf(flags: u16) -> Box<Page> {
    Builder::new(LEAF, 0, flags, &[], &[], &[]).finish()
}

/// A leaf with `records` (key, flags, value) between two fences; None if they do not fit.
pub(crate) fn leaf_of<'a>(
    lo: &[u8],
    hi: &[u8],
    records: impl Iterator<Item = (&'a [u8], u16, &'a [u8])>,
) -> Option<Box<Page>> {
    let records: Vec<_> = records.collect();
    let stem = stem::of_most(records.len(), stem::common(lo, hi), |index, key| {
        key.extend_from_slice(records[index].0)
    });
    first_built([&stem, &[]], |stem| {
        let mut builder = Builder::new(LEAF, 0, 0, lo, hi, stem);
        for (key, flags, value) in &records {
            builder.push_record(key, *flags, value)?;
        }
        Some(builder)
    })
}

/// The first of these stems with which all that belongs into a leaf fits.
fn first_built<const N: usize>(
    stems: [&[u8]; N],
    mut build: impl FnMut(&[u8]) -> Option<Builder>,
) -> Option<Box<Page>> {
    stems.into_iter().find_map(&mut build).map(Builder::finish)
}

/// An inner page over `children`, each with the upper fence it has; None if they do not fit. The fence of
/// the last is the page's own.
pub(crate) fn inner_of(level: u8, lo: &[u8], children: &[(Vec<u8>, u32)]) -> Option<Box<Page>> {
    let ((hi, upper), others) = children.split_last()?;
    let mut builder = Builder::new(INNER, level, 0, lo, hi, &[]);
    for (separator, child) in others {
        builder.push_separator(separator, *child)?;
    }
    let page = builder.finish();
    put_u32(&page, UPPER, *upper);
    Some(page)
}

/// Bytes that a leaf takes for records with these lengths of key and value, at most, its fences being `lo`
/// and one that is not longer than `last`, the last key.
pub(crate) fn leaf_bytes(lo: &[u8], last: &[u8], records: impl Iterator<Item = (usize, usize)>) -> usize {
    let prefix = stem::common(lo, last);
    let each = records.map(|(key, value)| LeafSlots::SIZE + record_bytes(key - prefix.min(key), value));
    PAGE_HEAD + lo.len() + last.len() + 3 + each.sum::<usize>()
}

/// Bytes that an inner page takes for separators of these lengths, the last of which is its upper fence.
pub(crate) fn inner_bytes(lo: &[u8], last: &[u8], separators: impl Iterator<Item = usize>) -> usize {
    let prefix = stem::common(lo, last);
    let each = separators.map(|key| InnerSlots::SIZE + separator_bytes(key - prefix.min(key)));
    PAGE_HEAD + lo.len() + last.len() + 3 + each.sum::<usize>()
}

/// A root over two pages.
pub(crate) fn new_root(level: u8, flags: u16, separator: &[u8], left: u32, right: u32) -> Box<Page> {
    let mut builder = Builder::new(INNER, level, flags, &[], &[], &[]);
    // One separator always fits an inner page without fences.
    let _ = builder.push_separator(separator, left);
    let page = builder.finish();
    put_u32(&page, UPPER, right);
    page
}

/// A copy of a page without garbage, and without record `drop` of a leaf. It keeps its stem, so that it has room for
/// what had room before.
pub(crate) fn compacted(source: &Page, drop: Option<usize>) -> Option<Box<Page>> {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(source, &mut lo);
    hi_fence(source, &mut hi);
    let stem = stem_behind(source, prefix_len(source));
    let mut builder = Builder::new(kind(source), level(source), flags(source), &lo, &hi, &stem);
    let slots = if kind(source) == LEAF { leaf_count(source) } else { inner_count(source) };
    let cut = drop.unwrap_or(slots);
    builder.push_slots(source, 0, cut)?;
    builder.push_slots(source, (cut + 1).min(slots), slots)?;
    Some(keep_identity(source, builder.finish()))
}

/// Copies what identifies a page and, in an inner page, its upper child.
fn keep_identity(source: &Page, page: Box<Page>) -> Box<Page> {
    put_u32(&page, SELF, words::u32_at(source, SELF));
    put_u32(&page, BORN, words::u32_at(source, BORN));
    if kind(source) == INNER {
        put_u32(&page, UPPER, words::u32_at(source, UPPER));
    }
    page
}

/// Splits a page so that `key`, which is about to be inserted at slot `index`, finds room on its side.
/// A page that grows at its end is split 90/10, a leaf where the first of a group comes behind that, others in the middle or where
/// groups meet near it. If `before` is given, another key
/// about to be inserted into the same leaf, the two are parted. None: the page is damaged.
pub(crate) fn split(source: &Page, key: &[u8], index: usize, before: Option<&[u8]>) -> Option<Split> {
    if kind(source) == LEAF {
        // NB: others may have split the leaf since both keys were found to belong to it.
        let parted = before
            .filter(|before| contains(source, before))
            .and_then(|before| cut_leaf(source, &separator_between(before, key)));
        parted.or_else(|| split_leaf(source, key, index))
    } else {
        split_inner(source, index)
    }
}

/// Tries cuts, the wished one first, then ever farther from it: long fences may keep a half from fitting.
fn first_that_fits(
    wish: usize,
    cuts: std::ops::RangeInclusive<usize>,
    mut cut_at: impl FnMut(usize) -> Option<Split>,
) -> Option<Split> {
    let (low, high) = cuts.into_inner();
    let wish = wish.clamp(low, high);
    (0..=high - low).find_map(|far| {
        let below = wish.checked_sub(far).filter(|cut| *cut >= low);
        let above = Some(wish + far).filter(|cut| *cut <= high && far > 0);
        below.and_then(&mut cut_at).or_else(|| above.and_then(&mut cut_at))
    })
}

fn split_leaf(source: &Page, new_key: &[u8], index: usize) -> Option<Split> {
    let slots = leaf_count(source);
    if slots < 2 {
        return cut_leaf(source, &separator_at(source, new_key, index.min(slots)));
    }
    if let Some(parted) = part_before(source, slots, new_key, index) {
        return Some(parted);
    }
    let middle = cut_slot::<LeafSlots>(source, slots, index);
    let wish = if index < slots { between_groups(source, slots, middle) } else { middle };
    first_that_fits(wish, 1..=slots - 1, |cut| cut_leaf(source, &separator_at(source, new_key, cut)))
}

/// A separator between slots `cut - 1` and `cut`; where there is no slot, the new key takes its place.
fn separator_at(source: &Page, new_key: &[u8], cut: usize) -> Vec<u8> {
    let (mut last, mut first) = (new_key.to_vec(), new_key.to_vec());
    if cut > 0 {
        key_into::<LeafSlots>(source, cut - 1, &mut last);
    }
    if cut < leaf_count(source) {
        key_into::<LeafSlots>(source, cut, &mut first);
    }
    separator_between(&last, &first)
}

/// Divides a leaf at a separator; None when a half does not fit its new fences.
fn cut_leaf(source: &Page, separator: &[u8]) -> Option<Split> {
    let slots = leaf_count(source);
    let found = lower_bound::<LeafSlots>(source, separator);
    let cut = found.index + usize::from(found.equal);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(source, &mut lo);
    hi_fence(source, &mut hi);
    let left = keep_identity(source, leaf_part(source, 0, cut, (&lo, separator))?);
    let right = leaf_part(source, cut, slots, (separator, &hi))?;
    Some(Split { left, right, separator: separator.to_vec() })
}

/// A leaf with the records `from..to` of another between two fences.
fn leaf_part(source: &Page, from: usize, to: usize, fences: (&[u8], &[u8])) -> Option<Box<Page>> {
    let prefix_len = stem::common(fences.0, fences.1);
    let stem = stem::for_part(source, from, to, prefix_len);
    let old = stem_behind(source, prefix_len);
    first_built([&stem, &old, &[]], |stem| {
        let mut part = Builder::new(LEAF, 0, flags(source), fences.0, fences.1, stem);
        part.push_slots(source, from, to)?;
        Some(part)
    })
}

/// What is left of the stem of a leaf behind a prefix of `prefix_len` bytes.
fn stem_behind(source: &Page, prefix_len: usize) -> Vec<u8> {
    let mut base = stem::base_of(source);
    base.drain(..prefix_len.min(base.len()));
    if stem::len(source) == 0 {
        base.clear();
    }
    base
}

fn split_inner(source: &Page, index: usize) -> Option<Split> {
    // NB: with the longest separators a page may hold one or two; a half may then have none at all.
    match inner_count(source) {
        0 => None,
        slots @ (1 | 2) => cut_inner(source, slots / 2),
        slots => {
            let wish = cut_slot::<InnerSlots>(source, slots, index);
            first_that_fits(wish, 1..=slots - 2, |cut| cut_inner(source, cut))
        }
    }
}

fn cut_inner(source: &Page, cut: usize) -> Option<Split> {
    let slots = inner_count(source);
    let mut separator = Vec::new();
    key_into::<InnerSlots>(source, cut, &mut separator);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(source, &mut lo);
    hi_fence(source, &mut hi);
    let mut left = Builder::new(INNER, level(source), flags(source), &lo, &separator, &[]);
    left.push_slots(source, 0, cut)?;
    let mut right = Builder::new(INNER, level(source), flags(source), &separator, &hi, &[]);
    right.push_slots(source, cut + 1, slots)?;
    let (left, right) = (keep_identity(source, left.finish()), right.finish());
    put_u32(&left, UPPER, child(source, cut));
    put_u32(&right, UPPER, child(source, slots));
    Some(Split { left, right, separator })
}

/// The first slot of the right page: by bytes in the middle, or near the end of a page that grows there.
fn cut_slot<S: Slots>(source: &Page, slots: usize, index: usize) -> usize {
    let bytes = |slot: usize| {
        S::SIZE
            + if kind(source) == LEAF {
                taken(source, slot)
            } else {
                separator_bytes(S::place(source, slot).1)
            }
    };
    let total: usize = (0..slots).map(bytes).sum();
    let goal = if index >= slots { total * 9 / 10 } else { total / 2 };
    let mut sum = 0;
    for slot in 0..slots {
        sum += bytes(slot);
        if sum > goal {
            // The slot that crosses the goal goes where it leaves the halves more even.
            return if sum - goal < bytes(slot) / 2 { slot + 1 } else { slot };
        }
    }
    slots
}

/// Splits a leaf between the new key and the record behind it, if that key becomes the first of a group, as in a list that grows at
/// its left: then more are to be expected before it, and none behind.
fn part_before(source: &Page, slots: usize, new_key: &[u8], index: usize) -> Option<Split> {
    if slots < stem::RECORDS_MIN || index > slots / 2 {
        return None;
    }
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    match index.checked_sub(1) {
        Some(last) => key_into::<LeafSlots>(source, last, &mut before),
        None => lo_fence(source, &mut before),
    }
    key_into::<LeafSlots>(source, index, &mut behind);
    let begins = stem::common(new_key, &behind) >= stem::common(&before, new_key) + stem::STEM_MIN;
    begins.then(|| cut_leaf(source, &separator_between(new_key, &behind)))?
}

/// Where two groups of keys meet near the middle of a leaf, if it lies within one whose keys have much in common: then each half
/// gets a longer prefix or stem. Else the middle.
fn between_groups(source: &Page, slots: usize, middle: usize) -> usize {
    let (low, high) = (slots / 4, slots - slots / 4);
    if slots < stem::RECORDS_MIN || !(low + 1..high).contains(&middle) {
        return middle;
    }
    let key = |slot| {
        let mut key = Vec::new();
        key_into::<LeafSlots>(source, slot, &mut key);
        key
    };
    let right = key(middle);
    let shared = stem::common(&key(low), &key(high - 1));
    if stem::common(&key(middle - 1), &right) < shared + stem::STEM_MIN {
        return middle;
    }
    let group = &right[..=shared];
    let begin = stem::first_that(source, low..middle, |key| key >= group);
    let end = stem::first_that(source, middle..high, |key| !key.starts_with(group));
    match (begin > low, end < high) {
        (true, true) if middle - begin > end - middle => end,
        (true, _) => begin,
        (false, true) => end,
        (false, false) => middle,
    }
}

/// The shortest key `s` with `last <= s < first` that is easily had.
pub(crate) fn separator_between(last: &[u8], first: &[u8]) -> Vec<u8> {
    let common = stem::common(last, first);
    if last.len() <= common + 1 {
        return last.to_vec();
    }
    if first.len() > common + 1 {
        return first[..=common].to_vec();
    }
    if first.len() == common + 1 && last[common] + 1 < first[common] {
        let mut separator = last[..=common].to_vec();
        separator[common] += 1;
        return separator;
    }
    last.to_vec()
}

/// One page in place of two neighbours divided by `separator`; None when they do not fit.
pub(crate) fn merged(left: &Page, right: &Page, separator: &[u8]) -> Option<Box<Page>> {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(left, &mut lo);
    hi_fence(right, &mut hi);
    let page = if kind(left) == LEAF {
        merged_leaves(left, right, (&lo, &hi))?
    } else {
        let mut builder = Builder::new(INNER, level(left), flags(left), &lo, &hi, &[]);
        builder.push_slots(left, 0, inner_count(left))?;
        builder.push_separator(separator, child(left, inner_count(left)))?;
        builder.push_slots(right, 0, inner_count(right))?;
        builder.finish()
    };
    let page = keep_identity(left, page);
    if kind(left) == INNER {
        put_u32(&page, UPPER, child(right, inner_count(right)));
    }
    put_u16(&page, GARBAGE, 0);
    Some(page)
}

fn merged_leaves(left: &Page, right: &Page, fences: (&[u8], &[u8])) -> Option<Box<Page>> {
    let (in_left, in_right) = (leaf_count(left), leaf_count(right));
    let prefix_len = stem::common(fences.0, fences.1);
    let stem = stem::of_most(in_left + in_right, prefix_len, |index, key| {
        let (page, index) = if index < in_left { (left, index) } else { (right, index - in_left) };
        key_into::<LeafSlots>(page, index, key);
    });
    let (of_left, of_right) = (stem_behind(left, prefix_len), stem_behind(right, prefix_len));
    first_built([&stem, &of_left, &of_right, &[]], |stem| {
        let mut builder = Builder::new(LEAF, 0, flags(left), fences.0, fences.1, stem);
        builder.push_slots(left, 0, in_left)?;
        builder.push_slots(right, 0, in_right)?;
        Some(builder)
    })
}

#[cfg(test)]
mod tests {
    use super::separator_between;

    #[test]
    fn separators_divide_and_are_short() {
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"abc", b"abd", b"abc"),
            (b"abcde", b"abxyz", b"abx"),
            (b"ab", b"abx", b"ab"),
            (b"abcd", b"ac", b"abcd"),
            (b"abcd", b"ae", b"ac"),
            (b"a\0\0", b"b", b"a\0\0"),
        ];
        for (last, first, expected) in cases {
            let separator = separator_between(last, first);
            assert_eq!(separator, expected);
            assert!(last <= &separator[..] && &separator[..] < first);
        }
    }
}
