//! Whether a page keeps its invariants; for `verify` and for tests.

use perilune_shm::words::{self, u16_at};

use super::search::lower_bound;
use super::stem::{self, Sought};
use super::{
    bottom, count, flags, garbage, heap_top, hi_fence, key_into, kind, level, lo_fence, prefix_len,
    self_number, separator_bytes, taken, value_place, InnerSlots, LeafSlots, Page, Slots, APART,
    FLAG_VOLATILE, HINTS, HINTS_FROM, HINT_COUNT, HI_LEN, HI_OFF, INNER, LEAF, LO_LEN, LO_OFF,
};
use crate::limits::{INLINE_MAX, KEY_MAX, PAGE, PAGE_HEAD};

/// Checks one page that nobody is changing.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(page: &Page, number: u32) -> Result<(), String> {
    if self_number(page) != number {
        return Err(format!("the page says it is page {}", self_number(page)));
    }
    if flags(page) & !FLAG_VOLATILE != 0 {
        return Err(format!("unknown page flags {:#x}", flags(page)));
    }
    match (kind(page), level(page)) {
        (LEAF, 0) => check_slots::<LeafSlots>(page),
        (INNER, 1..) => check_slots::<InnerSlots>(page),
        (kind, level) => Err(format!("kind {kind} does not go with level {level}")),
    }
}

fn check_slots<S: Slots>(page: &Page) -> Result<(), String> {
    let slots = count::<S>(page);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    lo_fence(page, &mut lo);
    hi_fence(page, &mut hi);
    let common = stem::common(&lo, &hi);
    if prefix_len(page) != common {
        return Err(format!("the prefix has {} bytes, the fences share {common}", prefix_len(page)));
    }
    if usize::from(u16_at(page, LO_OFF)) + usize::from(u16_at(page, LO_LEN)) != PAGE {
        return Err("the lower fence does not end the page".into());
    }
    let hi_off = usize::from(u16_at(page, HI_OFF));
    if hi_off + usize::from(u16_at(page, HI_LEN)) != usize::from(u16_at(page, LO_OFF)) {
        return Err("the upper fence does not lie below the lower".into());
    }
    if heap_top(page) > PAGE {
        return Err(format!("the heap begins at {}, beyond the page", heap_top(page)));
    }
    check_stem::<S>(page, hi_off, &lo[..common])?;
    let fences = PAGE - bottom(page);
    let mut heap = fences;
    let (mut key, mut before) = (Vec::new(), lo);
    for slot in 0..slots {
        key_into::<S>(page, slot, &mut key);
        check_key::<S>(page, slot, &key, &before, &hi)?;
        heap += slot_heap::<S>(page, slot)?;
        std::mem::swap(&mut key, &mut before);
    }
    if heap_top(page) < PAGE_HEAD + slots * S::SIZE || heap + garbage(page) != PAGE - heap_top(page) {
        return Err(format!(
            "the heap has {} bytes, its records, fences and garbage {}",
            PAGE - heap_top(page),
            heap + garbage(page)
        ));
    }
    check_hints::<S>(page, slots)
}

fn check_key<S: Slots>(page: &Page, slot: usize, key: &[u8], before: &[u8], hi: &[u8]) -> Result<(), String> {
    if key.len() > KEY_MAX {
        return Err(format!("slot {slot}: a key of {} bytes", key.len()));
    }
    // NB: the key before the first slot's is the lower fence, which is exclusive too.
    if !(key > before || slot == 0 && before.is_empty()) {
        return Err(format!("slot {slot} is out of order"));
    }
    if !hi.is_empty() && key > hi {
        return Err(format!("slot {slot} lies beyond the upper fence"));
    }
    let sought = Sought::of::<S>(page, key);
    if S::head(page, slot) != sought.head {
        return Err(format!("slot {slot} has a wrong head"));
    }
    if S::STEMMED && (S::place(page, slot).1 & APART != 0) != sought.is_apart {
        return Err(format!("slot {slot} says something else of the stem than its key"));
    }
    let found = lower_bound::<S>(page, key);
    if found.index != slot || !found.equal {
        return Err(format!("slot {slot} is not found by its key"));
    }
    Ok(())
}

fn check_stem<S: Slots>(page: &Page, hi_off: usize, prefix: &[u8]) -> Result<(), String> {
    if stem::len(page) == 0 {
        return Ok(());
    }
    let (offset, len) = stem::base(page);
    match S::STEMMED {
        false => Err("an inner page with a stem".into()),
        true if len > KEY_MAX || offset + len != hi_off => {
            Err("prefix and stem do not lie below the upper fence".into())
        }
        true if !stem::base_of(page).starts_with(prefix) => {
            Err("what precedes the stem is not the prefix".into())
        }
        true => Ok(()),
    }
}

fn slot_heap<S: Slots>(page: &Page, slot: usize) -> Result<usize, String> {
    let (offset, suffix_len) = S::place(page, slot);
    let bytes = if kind(page) == LEAF {
        let (_, value_len, _) = value_place(page, slot);
        if value_len > INLINE_MAX {
            return Err(format!("slot {slot}: an inline value of {value_len} bytes"));
        }
        // NB: a shortened record keeps its place, the rest counts as garbage.
        taken(page, slot)
    } else {
        separator_bytes(suffix_len)
    };
    if bytes > 0 && (offset < heap_top(page) || offset + bytes > PAGE) {
        return Err(format!("slot {slot} points outside the heap"));
    }
    Ok(bytes)
}

fn check_hints<S: Slots>(page: &Page, slots: usize) -> Result<(), String> {
    if slots <= HINTS_FROM {
        return Ok(());
    }
    let distance = slots / (HINT_COUNT + 1);
    for k in 0..HINT_COUNT {
        let hint = u64::from(words::u32_at(page, HINTS + k * 4));
        if hint != S::head(page, distance * (k + 1)) >> (8 * S::HEAD - 32) {
            return Err(format!("hint {k} is not its slot's head"));
        }
    }
    Ok(())
}
