//! Whole pages laid out anew: empty, compacted, split, merged.
//!
//! A new page is built in private memory and stored into its place in one go, so that what can fail
//! (a merge that does not fit) fails before anything shared is touched. What lies between its slots and its heap
//! means nothing, and is not stored.

use perilune_shm::words::{self, put_u16, put_u32};

use super::edit::Save;
use super::search::{contains, lower_bound};
use super::{
    child, flags, head_of, heap_top, hi_fence, inner_count, key_into, kind, leaf_count, level, lo_fence,
    prefix_len, put_hints, record_bytes, separator_bytes, value_place, InnerSlots, LeafSlots, Page, Slots,
    BORN, COUNT, FLAGS, GARBAGE, HEAP_TOP, HI_LEN, HI_OFF, INNER, KIND, LEAF, LEVEL, LO_LEN, LO_OFF,
    PREFIX_LEN, SELF, UPPER,
};
use crate::limits::{INLINE_MAX, KEY_MAX, PAGE, PAGE_HEAD, PAGE_WORDS};

/// Two pages in place of one, and the key that divides them (greatest possible key of the left).
pub(crate) struct Split {
    pub(crate) left: Box<Page>,
    pub(crate) right: Box<Page>,
    pub(crate) separator: Vec<u8>,
}

/// A page being laid out, in plain bytes: what is put together record by record is made words at the end.
struct Builder {
    words: Box<[[u8; 8]; PAGE_WORDS]>,
    kind: u8,
    prefix_len: usize,
    slots: usize,
    heap_top: usize,
}

impl Builder {
    fn new(kind: u8, level: u8, flags: u16, lo: &[u8], hi: &[u8]) -> Builder {
        let prefix_len = lo.iter().zip(hi).take_while(|(a, b)| a == b).count();
        let lo_off = PAGE - lo.len();
        let hi_off = lo_off - hi.len();
        let words = Box::new([[0; 8]; PAGE_WORDS]);
        let mut builder = Builder { words, kind, prefix_len, slots: 0, heap_top: hi_off & !3 };
        builder.put(KIND, &[kind]);
        builder.put(LEVEL, &[level]);
        builder.put(lo_off, lo);
        builder.put(hi_off, hi);
        let short = [(FLAGS, usize::from(flags)), (LO_OFF, lo_off), (LO_LEN, lo.len()), (HI_OFF, hi_off)];
        for (at, value) in short.into_iter().chain([(HI_LEN, hi.len()), (PREFIX_LEN, prefix_len)]) {
            builder.put_u16(at, value);
        }
        builder
    }

    #[inline(always)]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.words.as_flattened_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The same of a size that the compiler knows.
    #[inline(always)]
    fn put_array<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.words.as_flattened_mut().get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = bytes;
        }
    }

    #[inline(always)]
    fn put_u16(&mut self, at: usize, value: usize) {
        self.put_array(at, (value as u16).to_le_bytes());
    }

    /// Takes heap room beside one slot more; None when there is none.
    #[inline(always)]
    fn take<S: Slots>(&mut self, bytes: usize) -> Option<(usize, usize)> {
        let slot = PAGE_HEAD + self.slots * S::SIZE;
        if self.heap_top < slot + S::SIZE + bytes {
            return None;
        }
        self.heap_top -= bytes;
        self.slots += 1;
        Some((slot, self.heap_top))
    }

    fn push_record(&mut self, key: &[u8], flags: u16, value: &[u8]) -> Option<()> {
        let suffix = &key[self.prefix_len..];
        let (slot, offset) = self.take::<LeafSlots>(record_bytes(suffix.len(), value.len()))?;
        let tail = suffix.get(LeafSlots::HEAD..).unwrap_or(&[]);
        self.put_array(offset, (value.len() as u32 | u32::from(flags) << 16).to_le_bytes());
        self.put(offset + 4, tail);
        self.put(offset + 4 + tail.len(), value);
        self.put_array(slot, leaf_slot(head_of::<LeafSlots>(suffix), offset, suffix.len()).to_le_bytes());
        Some(())
    }

    fn push_separator(&mut self, key: &[u8], child: u32) -> Option<()> {
        let suffix = &key[self.prefix_len..];
        let (slot, offset) = self.take::<InnerSlots>(separator_bytes(suffix.len()))?;
        self.put(offset, suffix.get(InnerSlots::HEAD..).unwrap_or(&[]));
        self.put_array(slot, head_of::<InnerSlots>(suffix).to_le_bytes());
        let word = offset as u64 | (suffix.len() as u64) << 16 | u64::from(child) << 32;
        self.put_array(slot + 8, word.to_le_bytes());
        Some(())
    }

    /// Adds the slots `from..to` of `source`.
    fn push_slots(&mut self, source: &Page, from: usize, to: usize) -> Option<()> {
        if kind(source) == LEAF {
            return self.push_records(source, from, to);
        }
        let mut key = Vec::with_capacity(KEY_MAX);
        for index in from..to {
            key_into::<InnerSlots>(source, index, &mut key);
            self.push_separator(&key, child(source, index))?;
        }
        Some(())
    }

    /// The same of a leaf.
    fn push_records(&mut self, source: &Page, from: usize, to: usize) -> Option<()> {
        let Some(more) = self.prefix_len.checked_sub(prefix_len(source)) else {
            return self.push_keys(source, from, to);
        };
        // NB: one copy of all of it, for words are dear one by one.
        let mut whole = [[0; 8]; PAGE_WORDS];
        words::read_words(source, 0, &mut whole);
        let whole = whole.as_flattened();
        for index in from..to {
            let slot = PAGE_HEAD + index * LeafSlots::SIZE;
            let slot = u64::from_le_bytes(*whole.get(slot..)?.first_chunk()?);
            let (place, suffix_len) = ((slot >> 32 & 0xffff) as usize, (slot >> 48) as usize);
            let record = whole.get(place..)?;
            let heading = u32::from_le_bytes(*record.first_chunk()?);
            let value_len = ((heading & 0xffff) as usize).min(INLINE_MAX);
            let tail_len = suffix_len.saturating_sub(LeafSlots::HEAD);
            let body = record.get(4..4 + tail_len + value_len)?;
            self.push_body((slot as u32, suffix_len, more), heading, body)?;
        }
        Some(())
    }

    /// Adds a record of a page whose prefix is `more` bytes shorter: the head and length that its suffix has there, its
    /// heading, the rest of the suffix with the value behind it.
    #[inline(always)]
    fn push_body(
        &mut self,
        (head, suffix_len, more): (u32, usize, usize),
        heading: u32,
        body: &[u8],
    ) -> Option<()> {
        let tail = &body[..suffix_len.saturating_sub(LeafSlots::HEAD)];
        let next = |at: usize| (words::leading(tail.get(at..).unwrap_or(&[])) >> 32) as u32;
        let new_head = match more {
            0 => head,
            1..LeafSlots::HEAD => head << (8 * more) | next(0) >> (32 - 8 * more),
            _ => next(more - LeafSlots::HEAD),
        };
        let body = &body[more.min(tail.len())..];
        let (slot, offset) = self.take::<LeafSlots>((4 + body.len() + 3) & !3)?;
        self.put_array(offset, heading.to_le_bytes());
        self.put(offset + 4, body);
        let slot_word = leaf_slot(new_head.into(), offset, suffix_len.checked_sub(more)?);
        self.put_array(slot, slot_word.to_le_bytes());
        Some(())
    }

    /// Adds records whose page has a longer prefix.
    fn push_keys(&mut self, source: &Page, from: usize, to: usize) -> Option<()> {
        let (mut key, mut value) = (Vec::with_capacity(KEY_MAX), Vec::new());
        for index in from..to {
            let (offset, len, flags) = value_place(source, index);
            key_into::<LeafSlots>(source, index, &mut key);
            value.clear();
            words::append(source, offset, len.min(INLINE_MAX), &mut value);
            self.push_record(&key, flags, &value)?;
        }
        Some(())
    }

    fn finish(mut self) -> Box<Page> {
        self.put_u16(COUNT, self.slots);
        self.put_u16(HEAP_TOP, self.heap_top);
        let page = words::boxed(&self.words);
        if self.kind == LEAF {
            put_hints::<LeafSlots>(&page);
        } else {
            put_hints::<InnerSlots>(&page);
        }
        page
    }
}

/// The word of a leaf's slot.
#[inline(always)]
fn leaf_slot(head: u64, offset: usize, suffix_len: usize) -> u64 {
    head | (offset as u64) << 32 | (suffix_len as u64) << 48
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
    Builder::new(LEAF, 0, flags, &[], &[]).finish()
}

/// A leaf with `records` (key, flags, value) between two fences; None if they do not fit.
pub(crate) fn leaf_of<'a>(
    lo: &[u8],
    hi: &[u8],
    records: impl Iterator<Item = (&'a [u8], u16, &'a [u8])>,
) -> Option<Box<Page>> {
    let mut builder = Builder::new(LEAF, 0, 0, lo, hi);
    for (key, flags, value) in records {
        builder.push_record(key, flags, value)?;
    }
    Some(builder.finish())
}

/// An inner page over `children`, each with the upper fence it has; None if they do not fit. The fence of
/// the last is the page's own.
pub(crate) fn inner_of(level: u8, lo: &[u8], children: &[(Vec<u8>, u32)]) -> Option<Box<Page>> {
    let ((hi, upper), others) = children.split_last()?;
    let mut builder = Builder::new(INNER, level, 0, lo, hi);
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
    let prefix = lo.iter().zip(last).take_while(|(a, b)| a == b).count();
    let each = records.map(|(key, value)| LeafSlots::SIZE + record_bytes(key - prefix.min(key), value));
    PAGE_HEAD + lo.len() + last.len() + 3 + each.sum::<usize>()
}

/// Bytes that an inner page takes for separators of these lengths, the last of which is its upper fence.
pub(crate) fn inner_bytes(lo: &[u8], last: &[u8], separators: impl Iterator<Item = usize>) -> usize {
    let prefix = lo.iter().zip(last).take_while(|(a, b)| a == b).count();
    let each = separators.map(|key| InnerSlots::SIZE + separator_bytes(key - prefix.min(key)));
    PAGE_HEAD + lo.len() + last.len() + 3 + each.sum::<usize>()
}

/// A root over two pages.
pub(crate) fn new_root(level: u8, flags: u16, separator: &[u8], left: u32, right: u32) -> Box<Page> {
    let mut builder = Builder::new(INNER, level, flags, &[], &[]);
    // One separator always fits an inner page without fences.
    let _ = builder.push_separator(separator, left);
    let page = builder.finish();
    put_u32(&page, UPPER, right);
    page
}

/// The same page without garbage, and without record `drop` of a leaf.
pub(crate) fn compacted(source: &Page, drop: Option<usize>) -> Option<Box<Page>> {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(source, &mut lo);
    hi_fence(source, &mut hi);
    let mut builder = Builder::new(kind(source), level(source), flags(source), &lo, &hi);
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
/// A page that grows at its end is split 90/10, others in the middle. If `before` is given, another key
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
    let wish = cut_slot::<LeafSlots>(source, slots, index);
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
    let mut left = Builder::new(LEAF, 0, flags(source), &lo, separator);
    left.push_slots(source, 0, cut)?;
    let mut right = Builder::new(LEAF, 0, flags(source), separator, &hi);
    right.push_slots(source, cut, slots)?;
    let left = keep_identity(source, left.finish());
    Some(Split { left, right: right.finish(), separator: separator.to_vec() })
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
    let mut left = Builder::new(INNER, level(source), flags(source), &lo, &separator);
    left.push_slots(source, 0, cut)?;
    let mut right = Builder::new(INNER, level(source), flags(source), &separator, &hi);
    right.push_slots(source, cut + 1, slots)?;
    let (left, right) = (keep_identity(source, left.finish()), right.finish());
    put_u32(&left, UPPER, child(source, cut));
    put_u32(&right, UPPER, child(source, slots));
    Some(Split { left, right, separator })
}

/// The first slot of the right page: by bytes in the middle, or near the end of a page that grows there.
fn cut_slot<S: Slots>(source: &Page, slots: usize, index: usize) -> usize {
    let bytes = |slot: usize| {
        let (_, suffix_len) = S::place(source, slot);
        S::SIZE
            + if kind(source) == LEAF {
                record_bytes(suffix_len, value_place(source, slot).1)
            } else {
                separator_bytes(suffix_len)
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

/// The shortest key `s` with `last <= s < first` that is easily had.
pub(crate) fn separator_between(last: &[u8], first: &[u8]) -> Vec<u8> {
    let common = last.iter().zip(first).take_while(|(a, b)| a == b).count();
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
    let mut builder = Builder::new(kind(left), level(left), flags(left), &lo, &hi);
    if kind(left) == LEAF {
        builder.push_slots(left, 0, leaf_count(left))?;
        builder.push_slots(right, 0, leaf_count(right))?;
    } else {
        builder.push_slots(left, 0, inner_count(left))?;
        builder.push_separator(separator, child(left, inner_count(left)))?;
        builder.push_slots(right, 0, inner_count(right))?;
    }
    let page = keep_identity(left, builder.finish());
    if kind(left) == INNER {
        put_u32(&page, UPPER, child(right, inner_count(right)));
    }
    put_u16(&page, GARBAGE, 0);
    Some(page)
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
