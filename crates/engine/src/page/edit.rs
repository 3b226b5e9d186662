//! Changes of a page in place. Each names the byte ranges it is about to change to a [`Save`] first,
//! so that they can be put back if the writer dies half-way.
//!
//! The caller has made sure of the room (see `leaf_free`, `inner_room`): contiguous room where an
//! insertion says so, else it compacts first. Nothing here allocates, fails or panics on good pages.

use perilune_shm::words::{self, put_bytes, put_u16, put_u32, put_u64, u16_at, u64_at};

use super::stem::Sought;
use super::{
    body_bytes, child, count, first_changed_hints, gap, garbage, head_of, heap_top, inner_count, leaf_count,
    prefix_len, put_hints, put_hints_from, separator_bytes, tail_len, taken, value_place, InnerSlots,
    LeafSlots, Page, Slots, COUNT, GARBAGE, HEAP_TOP, HINTS, UPPER,
};
use crate::limits::{PAGE, PAGE_HEAD};

/// Is told of each byte range of the page before it is changed.
pub(crate) trait Save {
    /// `len` bytes from `offset` on are about to change.
    fn save(&mut self, offset: usize, len: usize);
}

/// For pages that nobody can reach yet.
pub(crate) struct NoSave;

impl Save for NoSave {
    #[inline(always)]
    fn save(&mut self, _offset: usize, _len: usize) {}
}

/// Whether a record of these lengths can be inserted without compaction.
#[inline]
fn has_gap(page: &Page, tail_len: usize, value_len: usize) -> bool {
    gap::<LeafSlots>(page) >= LeafSlots::SIZE + body_bytes(tail_len, value_len)
}

/// Inserts a record at slot `index`; false (and nothing changed) when the page must be compacted first.
#[inline]
pub(crate) fn leaf_insert(
    page: &Page,
    save: &mut impl Save,
    index: usize,
    key: &[u8],
    flags: u16,
    value: &[u8],
) -> bool {
    let laid = Sought::of::<LeafSlots>(page, key);
    if !has_gap(page, laid.tail().len(), value.len()) {
        return false;
    }
    let slots = leaf_count(page);
    let slot = PAGE_HEAD + index * 8;
    let first = first_changed_hints(slots, index);
    if first == 0 {
        save.save(0, PAGE_HEAD);
    } else {
        // Of the head only the counts change, and the hints of slots that move.
        save.save(0, 8);
        let hints = HINTS + first * 8;
        if hints < PAGE_HEAD {
            save.save(hints, PAGE_HEAD - hints);
        }
    }
    // What lies behind the last slot is nobody's yet.
    if index < slots {
        save.save(slot, (slots - index) * 8);
    }
    let offset = put_record(page, laid.tail(), flags, value);
    if index < slots {
        words::shift(page, slot, slot + 8, (slots - index) * 8);
    }
    put_u64(page, slot, laid.leaf_slot(offset));
    put_u16(page, COUNT, (slots + 1) as u16);
    put_hints_from::<LeafSlots>(page, first);
    true
}

/// Adds records behind all others. There is contiguous room for them, and they ascend.
#[inline]
pub(crate) fn leaf_append<'a>(
    page: &Page,
    save: &mut impl Save,
    records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    // What lies between slots and heap is nobody's yet: only the head tells where they end.
    save.save(0, PAGE_HEAD);
    let mut slots = leaf_count(page);
    // NB: put together outside, where bytes are cheap; the page gets whole words.
    let mut heap = [0; PAGE];
    let end = heap_top(page).min(PAGE);
    let mut top = end;
    for (key, value) in records {
        let laid = Sought::of::<LeafSlots>(page, key);
        let tail = laid.tail();
        top = top.saturating_sub(body_bytes(tail.len(), value.len()));
        put_bytes(&mut heap, top, &(value.len() as u32).to_le_bytes());
        put_bytes(&mut heap, top + 4, tail);
        put_bytes(&mut heap, top + 4 + tail.len(), value);
        put_u64(page, PAGE_HEAD + slots * 8, laid.leaf_slot(top));
        slots += 1;
    }
    words::write(page, top, &heap[top..end]);
    put_u16(page, HEAP_TOP, top as u16);
    put_u16(page, COUNT, slots as u16);
    put_hints::<LeafSlots>(page);
}

/// Writes a record below the heap and moves the heap's top; the page's head has been saved.
#[inline]
fn put_record(page: &Page, tail: &[u8], flags: u16, value: &[u8]) -> usize {
    let offset = heap_top(page) - body_bytes(tail.len(), value.len());
    let heading = value.len() as u32 | u32::from(flags) << 16;
    words::write_parts(page, offset, heading, tail, value);
    put_u16(page, HEAP_TOP, offset as u16);
    offset
}

/// Replaces the value of record `index`; false (and nothing changed) when the page must be compacted
/// with the record removed, and the record inserted anew.
#[inline]
pub(crate) fn leaf_replace(
    page: &Page,
    save: &mut impl Save,
    index: usize,
    flags: u16,
    value: &[u8],
) -> bool {
    let (offset, _) = LeafSlots::place(page, index);
    let tail_len = tail_len(page, index);
    let (value_offset, old_len, old_flags) = value_place(page, index);
    if (value.len(), flags) == (old_len, old_flags) {
        save.save(value_offset, old_len);
        words::write(page, value_offset, value);
        return true;
    }
    let old_bytes = body_bytes(tail_len, old_len);
    let new_bytes = body_bytes(tail_len, value.len());
    if new_bytes <= old_bytes {
        save.save(offset, old_bytes);
        if new_bytes < old_bytes {
            save.save(0, 8);
            put_u16(page, GARBAGE, (garbage(page) + old_bytes - new_bytes) as u16);
        }
        put_u32(page, offset, value.len() as u32 | u32::from(flags) << 16);
        words::write(page, value_offset, value);
        return true;
    }
    if gap::<LeafSlots>(page) < new_bytes {
        return false;
    }
    let slot = PAGE_HEAD + index * 8;
    save.save(0, 8);
    save.save(slot, 8);
    let top = heap_top(page) - new_bytes;
    put_u32(page, top, value.len() as u32 | u32::from(flags) << 16);
    let mut tail = [0; crate::limits::KEY_MAX];
    let tail = &mut tail[..tail_len.min(crate::limits::KEY_MAX)];
    words::read(page, offset + 4, tail);
    words::write(page, top + 4, tail);
    words::write(page, top + 4 + tail_len, value);
    put_u16(page, HEAP_TOP, top as u16);
    put_u16(page, GARBAGE, (garbage(page) + old_bytes) as u16);
    put_u64(page, slot, u64_at(page, slot) & !(0xffff << 32) | (top as u64) << 32);
    true
}

/// Removes record `index`.
#[inline]
pub(crate) fn leaf_remove(page: &Page, save: &mut impl Save, index: usize) {
    leaf_remove_range(page, save, index, index + 1);
}

/// Removes the records `from..until`.
#[inline]
pub(crate) fn leaf_remove_range(page: &Page, save: &mut impl Save, from: usize, until: usize) {
    let freed: usize = (from..until).map(|index| taken(page, index)).sum();
    let slots = leaf_count(page);
    save.save(0, PAGE_HEAD);
    save.save(PAGE_HEAD + from * 8, (slots - from) * 8);
    words::shift(page, PAGE_HEAD + until * 8, PAGE_HEAD + from * 8, (slots - until) * 8);
    put_u16(page, COUNT, (slots - (until - from)) as u16);
    put_u16(page, GARBAGE, (garbage(page) + freed) as u16);
    put_hints::<LeafSlots>(page);
}

/// Whether a separator can be inserted: now, after compaction, or not at all.
pub(crate) fn inner_room(page: &Page, separator: &[u8]) -> bool {
    let suffix_len = separator.len() - prefix_len(page).min(separator.len());
    gap::<InnerSlots>(page) >= InnerSlots::SIZE + separator_bytes(suffix_len)
}

/// Notes a split of child `index`: `separator` leads to the old child, what it led to goes to `right`.
/// The caller has checked [`inner_room`].
pub(crate) fn inner_insert(page: &Page, save: &mut impl Save, index: usize, separator: &[u8], right: u32) {
    let suffix = &separator[prefix_len(page).min(separator.len())..];
    let slots = inner_count(page);
    let left = child(page, index);
    let slot = PAGE_HEAD + index * 16;
    save.save(0, PAGE_HEAD);
    save.save(slot, (slots - index + 1) * 16);
    let offset = heap_top(page) - separator_bytes(suffix.len());
    words::write(page, offset, suffix.get(InnerSlots::HEAD..).unwrap_or(&[]));
    put_u16(page, HEAP_TOP, offset as u16);
    words::shift(page, slot, slot + 16, (slots - index) * 16);
    put_u64(page, slot, head_of::<InnerSlots>(suffix));
    put_u64(page, slot + 8, offset as u64 | (suffix.len() as u64) << 16 | u64::from(left) << 32);
    put_u16(page, COUNT, (slots + 1) as u16);
    put_child(page, index + 1, right);
    put_hints::<InnerSlots>(page);
}

/// Notes a merge of child `index` with the next: its slot goes, the next leads to it.
pub(crate) fn inner_remove(page: &Page, save: &mut impl Save, index: usize) {
    let (_, suffix_len) = InnerSlots::place(page, index);
    let left = child(page, index);
    let slots = inner_count(page);
    let slot = PAGE_HEAD + index * 16;
    save.save(0, PAGE_HEAD);
    save.save(slot, (slots - index) * 16);
    words::shift(page, slot + 16, slot, (slots - index - 1) * 16);
    put_u16(page, COUNT, (slots - 1) as u16);
    put_u16(page, GARBAGE, u16_at(page, GARBAGE) + separator_bytes(suffix_len) as u16);
    put_child(page, index, left);
    put_hints::<InnerSlots>(page);
}

/// Lets child `index` be `number`.
pub(crate) fn inner_set_child(page: &Page, save: &mut impl Save, index: usize, number: u32) {
    if index < inner_count(page) {
        save.save(PAGE_HEAD + index * 16 + 8, 8);
    } else {
        save.save(UPPER & !7, 8);
    }
    put_child(page, index, number);
}

fn put_child(page: &Page, index: usize, number: u32) {
    if index < count::<InnerSlots>(page) {
        put_u32(page, PAGE_HEAD + index * 16 + 12, number);
    } else {
        put_u32(page, UPPER, number);
    }
}
