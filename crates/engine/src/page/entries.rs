//! Copying records of a leaf out of it, many at once, with their whole keys.
//!
//! Whoever walks over a leaf pays for what is the same for all of its records (where the base lies, how long it is) once,
//! and copies of each what its slot and its heading tell: head, rest of the key and value, of which the last two lie one
//! behind the other in the page as they do in the copy.
//!
//! Invariants
//! - Torn bytes make wrong entries, never a panic, and never more than [`BYTES_MAX`] and one record more of them.
//! - What is copied stops before a record whose value lies elsewhere: how long that is does not show here.
//!
//! Deliberately absent: which records are wanted, and whether the page was what it seemed to be.

use perilune_shm::words::{self, u32_at, u64_at};
use perilune_store::Ends;

use super::{key_into, stem, value_place, LeafSlots, Page, Slots, RECORD_BIG};
use crate::limits::{KEY_MAX, PAGE, PAGE_HEAD};

/// No record is begun beyond so many bytes of entries: what lies before them is still near when it is looked at.
const BYTES_MAX: usize = 32 << 10;

/// A base up to so long is copied without a call.
const SHORT: usize = 16;

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

/// What all records that do not stand apart begin with.
struct Base {
    len: usize,
    /// Of a short one, and of what lies behind it.
    short: [u8; SHORT],
    /// Of another.
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
    let mut base = Base { len: base_len.min(KEY_MAX), short: [0; SHORT], long: Vec::new() };
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
    /// Copies a record; None if its value is a long one.
    #[inline(always)]
    fn record(&mut self, base: &Base, index: usize) -> Option<Ends> {
        let page = self.page;
        let slot = u64_at(page, PAGE_HEAD + index * LeafSlots::SIZE);
        let (offset, len) = ((slot >> 32 & 0xffff) as usize, (slot >> 48) as usize);
        let heading = u32_at(page, offset);
        let is_long = self.values && (heading >> 16) as u16 & RECORD_BIG != 0;
        if is_long || len > PAGE {
            return self.odd_record(index);
        }
        let value_len = if self.values { (heading & 0xffff) as usize } else { 0 };
        let (in_slot, tail_len) = (len.min(LeafSlots::HEAD), len.saturating_sub(LeafSlots::HEAD));
        let body_len = tail_len + value_len.min(PAGE);
        let (base_len, rounded) = (base.len, body_len.next_multiple_of(8));
        // Copies of constant size go beyond what is wanted, and are written over.
        let to = self.room(base_len + SHORT + rounded);
        if base_len <= SHORT {
            to[..SHORT].copy_from_slice(&base.short);
        } else {
            to[..base_len].copy_from_slice(&base.long);
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

    /// Copies a record that stands apart: its length says so by its highest bit. None if its value is a long one.
    #[cold]
    fn odd_record(&mut self, index: usize) -> Option<Ends> {
        let (offset, len, flags) = value_place(self.page, index);
        if self.values && flags & RECORD_BIG != 0 {
            return None;
        }
        let mut entry = Vec::new();
        key_into::<LeafSlots>(self.page, index, &mut entry);
        let key = self.at + entry.len();
        if self.values {
            words::append(self.page, offset, len, &mut entry);
        }
        self.room(entry.len())[..entry.len()].copy_from_slice(&entry);
        self.at += entry.len();
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
