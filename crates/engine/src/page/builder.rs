//! A page being laid out anew in private memory, record by record.
//!
//! Invariant: what is pushed ascends, and belongs between the fences; what does not fit is refused.
//!
//! Deliberately absent: which records a page gets, and which stem (`build`, `stem`).

use perilune_shm::words;

use super::stem::{self, Sought};
use super::{
    body_bytes, child, head_of, key_into, kind, prefix_len, put_hints, separator_bytes, InnerSlots,
    LeafSlots, Page, Slots, APART, BASE_OFF, COUNT, FLAGS, HEAP_TOP, HI_LEN, HI_OFF, KIND, LEAF, LEVEL,
    LO_LEN, LO_OFF, PREFIX_LEN, STEM_LEN,
};
use crate::limits::{INLINE_MAX, KEY_MAX, PAGE, PAGE_HEAD, PAGE_WORDS};

/// A page being laid out, in plain bytes: what is put together record by record is made words at the end.
pub(super) struct Builder {
    words: Box<[[u8; 8]; PAGE_WORDS]>,
    kind: u8,
    prefix_len: usize,
    /// Prefix and stem.
    base: Vec<u8>,
    slots: usize,
    heap_top: usize,
}

impl Builder {
    /// A page between two fences, a leaf with this stem.
    pub(super) fn new(kind: u8, level: u8, flags: u16, lo: &[u8], hi: &[u8], stem: &[u8]) -> Builder {
        let prefix_len = stem::common(lo, hi);
        let lo_off = PAGE - lo.len();
        let hi_off = lo_off - hi.len();
        let words = Box::new([[0; 8]; PAGE_WORDS]);
        let base = [&lo[..prefix_len], stem].concat();
        let base_off = hi_off - if stem.is_empty() { 0 } else { base.len() };
        let mut builder = Builder { words, kind, prefix_len, base, slots: 0, heap_top: base_off & !3 };
        builder.put(KIND, &[kind]);
        builder.put(LEVEL, &[level]);
        builder.put(lo_off, lo);
        builder.put(hi_off, hi);
        let short = [(FLAGS, usize::from(flags)), (LO_OFF, lo_off), (LO_LEN, lo.len()), (HI_OFF, hi_off)];
        for (at, value) in short.into_iter().chain([(HI_LEN, hi.len()), (PREFIX_LEN, prefix_len)]) {
            builder.put_u16(at, value);
        }
        if !stem.is_empty() {
            builder.put(base_off, &lo[..prefix_len]);
            builder.put(base_off + prefix_len, stem);
            builder.put_u16(BASE_OFF, base_off);
            builder.put_u16(STEM_LEN, stem.len());
        }
        builder
    }

    #[inline(always)]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.words.as_flattened_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Puts bytes whose number the compiler knows.
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

    pub(super) fn push_record(&mut self, key: &[u8], flags: u16, value: &[u8]) -> Option<()> {
        let (prefix_len, base) = (self.prefix_len, std::mem::take(&mut self.base));
        let laid = Sought::with_stem(&key[prefix_len..], &base[prefix_len..]);
        self.base = base;
        let tail = laid.tail();
        let (slot, offset) = self.take::<LeafSlots>(body_bytes(tail.len(), value.len()))?;
        self.put_array(offset, (value.len() as u32 | u32::from(flags) << 16).to_le_bytes());
        self.put(offset + 4, tail);
        self.put(offset + 4 + tail.len(), value);
        self.put_array(slot, laid.leaf_slot(offset).to_le_bytes());
        Some(())
    }

    pub(super) fn push_separator(&mut self, key: &[u8], child: u32) -> Option<()> {
        let suffix = &key[self.prefix_len..];
        let (slot, offset) = self.take::<InnerSlots>(separator_bytes(suffix.len()))?;
        self.put(offset, suffix.get(InnerSlots::HEAD..).unwrap_or(&[]));
        self.put_array(slot, head_of::<InnerSlots>(suffix).to_le_bytes());
        let word = offset as u64 | (suffix.len() as u64) << 16 | u64::from(child) << 32;
        self.put_array(slot + 8, word.to_le_bytes());
        Some(())
    }

    /// Adds the slots `from..to` of `source`.
    pub(super) fn push_slots(&mut self, source: &Page, from: usize, to: usize) -> Option<()> {
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

    /// Adds the slots `from..to` of a leaf with their records.
    fn push_records(&mut self, source: &Page, from: usize, to: usize) -> Option<()> {
        let (prefix_len, base) = (prefix_len(source), stem::base_of(source));
        let more = self.base.strip_prefix(&base[..]).map(<[u8]>::to_vec);
        let start = more.as_deref().map(Start::of);
        // NB: one copy of all of it, for words are dear one by one.
        let mut whole = [[0; 8]; PAGE_WORDS];
        words::read_words(source, 0, &mut whole);
        let whole = whole.as_flattened();
        let mut key = Vec::with_capacity(KEY_MAX);
        for index in from..to {
            let slot = PAGE_HEAD + index * LeafSlots::SIZE;
            let slot = u64::from_le_bytes(*whole.get(slot..)?.first_chunk()?);
            let (place, len) = ((slot >> 32 & 0xffff) as usize, (slot >> 48) as usize);
            let record = whole.get(place..)?;
            let heading = u32::from_le_bytes(*record.first_chunk()?);
            let value_len = ((heading & 0xffff) as usize).min(INLINE_MAX);
            let (is_apart, len) = (len & APART != 0, len & !APART);
            let in_slot = if is_apart { 0 } else { len.min(LeafSlots::HEAD) };
            let tail_len = len - in_slot;
            let body = record.get(4..4 + tail_len + value_len)?;
            if let Some(start) = start.as_ref().filter(|_| !is_apart) {
                if start.begins(slot as u32, len, &body[..tail_len]) {
                    self.push_body((slot as u32, len, start.len), heading, body)?;
                    continue;
                }
            }
            key.clear();
            key.extend_from_slice(if is_apart { base.get(..prefix_len)? } else { &base });
            key.extend_from_slice(&(slot as u32).to_be_bytes()[..in_slot]);
            key.extend_from_slice(&body[..tail_len]);
            self.push_record(&key, (heading >> 16) as u16, &body[tail_len..])?;
        }
        Some(())
    }

    /// Adds a record of a page whose prefix and stem are `more` bytes shorter together: the head and length that its
    /// suffix has there, its heading, the rest of the suffix with the value behind it.
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
        let len = suffix_len.checked_sub(more)? as u64;
        self.put_array(slot, (u64::from(new_head) | (offset as u64) << 32 | len << 48).to_le_bytes());
        Some(())
    }

    pub(super) fn finish(mut self) -> Box<Page> {
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

/// What some suffixes of a leaf begin with, to be compared with many: its first bytes as numbers.
struct Start<'a> {
    len: usize,
    head: u32,
    head_mask: u32,
    first: u64,
    first_mask: u64,
    /// What follows those.
    rest: &'a [u8],
}

impl<'a> Start<'a> {
    fn of(start: &'a [u8]) -> Start<'a> {
        let in_tail = start.get(LeafSlots::HEAD..).unwrap_or(&[]);
        let mask = |len: usize| if len < 8 { !(u64::MAX >> (8 * len)) } else { u64::MAX };
        Start {
            len: start.len(),
            head: (words::leading(start) >> 32) as u32,
            head_mask: (mask(start.len()) >> 32) as u32,
            first: words::leading(in_tail),
            first_mask: mask(in_tail.len()),
            rest: in_tail.get(8..).unwrap_or(&[]),
        }
    }

    /// Whether a suffix of `len` bytes, its head and what is behind it, begins so.
    #[inline(always)]
    fn begins(&self, head: u32, len: usize, tail: &[u8]) -> bool {
        len >= self.len
            && (head ^ self.head) & self.head_mask == 0
            && (words::leading(tail) ^ self.first) & self.first_mask == 0
            && (self.rest.is_empty() || tail[8..].starts_with(self.rest))
    }
}
