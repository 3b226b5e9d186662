//! Copying records of a leaf out of it, many at once, with their whole keys.
//!
//! Whoever walks over many records would find and put together each by itself. Here what is the same for all
//! records of a leaf (where the base lies, how long it is) is found once. Of each record the head is copied from
//! its slot; the rest of the key and the value lie one behind the other in the page, as they do in the copy, and
//! are copied as one piece.
//!
//! Invariants
//! - Torn bytes make wrong entries, never a panic, and never more than [`BYTES_MAX`] and one record more of them.
//! - Copying stops before a record whose value lies in pages of its own: its length does not show here.
//!
//! Deliberately absent: which records are wanted, and whether the page was what it seemed to be.

use perilune_shm::words::{self, u32_at, u64_at};
use perilune_store::Ends;

use super::{stem, LeafSlots, Page, Slots, APART, RECORD_BIG};
use crate::limits::{KEY_MAX, PAGE, PAGE_HEAD};

/// No record is begun beyond so many bytes of entries: what lies before them is still near when it is looked at.
const BYTES_MAX: usize = 32 << 10;

/// A base up to so long is copied without a call.
const SHORT: usize = 32;

/// The buffer has at least so many bytes.
const LEAST: usize = 256;

/// Entries of one leaf, being copied.
struct Copy<'a> {
    page: &'a Page,
    values: bool,
    bytes: &'a mut Vec<u8>,
    /// Where the next entry begins.
    at: usize,
}

/// What all records begin with, those that stand apart with its first bytes.
struct Base {
    len: usize,
    /// How many bytes those begin with that stand apart.
    apart: usize,
    /// The base, if it is at most [`SHORT`] bytes long, and bytes of no account behind it.
    short: [u8; SHORT],
    /// The base, if it is longer.
    long: Vec<u8>,
}

/// Appends the records at `indices` of a leaf to `bytes` and `ends`, in that order, and answers how many; fewer, if one has a long
/// value or there are many bytes. What lies in `bytes` behind the last end is written over.
pub(crate) fn copy_records(
    page: &Page,
    indices: impl ExactSizeIterator<Item = usize>,
    values: bool,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<Ends>,
) -> usize {
    let at = ends.last().map_or(0, |ends| ends.value as usize);
    let (first, limit) = (ends.len(), at + BYTES_MAX);
    ends.reserve(indices.len());
    let (base_at, base_len) = stem::base(page);
    let len = base_len.min(KEY_MAX);
    let apart = stem::prefix(page).1.min(len);
    let mut base = Base { len, apart, short: [0; SHORT], long: Vec::new() };
    if base.len <= SHORT {
        words::read(page, base_at, &mut base.short);
    } else {
        words::append(page, base_at, base.len, &mut base.long);
    }
    let mut copy = Copy { page, values, bytes, at };
    for index in indices {
        if copy.at > limit {
            break;
        }
        let Some(end) = copy.record(&base, index) else { break };
        ends.push(end);
    }
    ends.len() - first
}

impl Copy<'_> {
    /// Copies a record; None if its value is a long one, or its bytes are torn.
    #[inline(always)]
    fn record(&mut self, base: &Base, index: usize) -> Option<Ends> {
        let page = self.page;
        let slot = u64_at(page, PAGE_HEAD + index * LeafSlots::SIZE);
        let (offset, len) = ((slot >> 32 & 0xffff) as usize, (slot >> 48) as usize);
        let heading = u32_at(page, offset);
        let is_long = self.values && (heading >> 16) as u16 & RECORD_BIG != 0;
        let (is_apart, len) = (len & APART != 0, len & !APART);
        if is_long || len > PAGE {
            return None;
        }
        let value_len = if self.values { (heading & 0xffff) as usize } else { 0 };
        // Of what stands apart all but the prefix lies in the heap.
        let (base_len, in_slot) =
            if is_apart { (base.apart, 0) } else { (base.len, len.min(LeafSlots::HEAD)) };
        let tail_len = len - in_slot;
        let body_len = tail_len + value_len.min(PAGE);
        let rounded = body_len.next_multiple_of(8);
        // Copies of constant size go beyond what is wanted, and are written over.
        let to = self.room(base_len + SHORT + rounded);
        if base.len <= SHORT {
            to[..SHORT].copy_from_slice(&base.short);
        } else {
            to[..base_len].copy_from_slice(&base.long[..base_len]);
        }
        if let Some(head) = to[base_len..].first_chunk_mut::<4>() {
            *head = (slot as u32).to_be_bytes();
        }
        let body = base_len + in_slot;
        words::read(page, offset + LeafSlots::BEFORE_TAIL, &mut to[body..body + rounded]);
        let key = self.at + base_len + len;
        self.at = key + body_len - tail_len;
        Some(Ends { key: key as u32, value: self.at as u32 })
    }

    /// The memory of the next entry, of at least so many bytes.
    #[inline(always)]
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < self.at + bytes {
            self.grow(bytes);
        }
        &mut self.bytes[self.at..self.at + bytes]
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.bytes.resize((self.at + bytes).next_power_of_two().max(LEAST), 0);
    }
}
