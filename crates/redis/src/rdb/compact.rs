//! The compact forms of small values: listpack, ziplist, zipmap, intset. Each is one string of the dump.
//!
//! Invariant: nothing outside the string is looked at; what does not add up is refused.

use super::reader::{Result, Wrong};
use crate::keyspace::Scored;
use crate::numbers::double_of;

type Bytes = Vec<u8>;

const DAMAGED: Wrong = Wrong::Damaged("a compact value is damaged");

fn damaged<T>(found: Option<T>) -> Result<T> {
    found.ok_or(DAMAGED)
}

/// Takes bytes off the front, while there are enough.
struct Slice<'b>(&'b [u8]);

impl<'b> Slice<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// An integer of `count` bytes, least significant first, with its sign.
    fn integer(&mut self, count: usize) -> Option<i64> {
        let bytes = self.take(count)?;
        let negative = bytes.last()? & 0x80 != 0;
        let mut whole = if negative { [0xFF; 8] } else { [0; 8] };
        whole.get_mut(..count)?.copy_from_slice(bytes);
        Some(i64::from_le_bytes(whole))
    }

    /// A length of `count` bytes, least significant first.
    fn length(&mut self, count: usize) -> Option<usize> {
        let mut whole = [0; 8];
        whole.get_mut(..count)?.copy_from_slice(self.take(count)?);
        usize::try_from(u64::from_le_bytes(whole)).ok()
    }
}

fn text(integer: i64) -> Bytes {
    integer.to_string().into_bytes()
}

/// The elements of a listpack.
pub(super) fn listpack(bytes: &[u8]) -> Result<Vec<Bytes>> {
    damaged(listpack_elements(bytes))
}

fn listpack_elements(bytes: &[u8]) -> Option<Vec<Bytes>> {
    let mut slice = Slice(bytes);
    let (total, _count) = (slice.length(4)?, slice.length(2)?);
    let mut elements = Vec::new();
    (total == bytes.len()).then_some(())?;
    while slice.0.first()? != &0xFF {
        let before = slice.0.len();
        elements.push(listpack_element(&mut slice)?);
        let taken = before - slice.0.len();
        // Behind each stands how long it is, for walks backwards.
        let back = match taken {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        slice.take(back)?;
    }
    (slice.0.len() == 1).then_some(elements)
}

fn listpack_element(slice: &mut Slice<'_>) -> Option<Bytes> {
    let first = slice.byte()?;
    let low = |bits: u8| usize::from(first & ((1 << bits) - 1));
    Some(match first {
        0..=0x7F => text(i64::from(first)),
        0x80..=0xBF => slice.take(low(6))?.to_vec(),
        0xC0..=0xDF => {
            let number = (low(5) << 8 | usize::from(slice.byte()?)) as i64;
            text(if number >= 1 << 12 { number - (1 << 13) } else { number })
        }
        0xE0..=0xEF => {
            let length = low(4) << 8 | usize::from(slice.byte()?);
            slice.take(length)?.to_vec()
        }
        0xF0 => {
            let length = slice.length(4)?;
            slice.take(length)?.to_vec()
        }
        0xF1 => text(slice.integer(2)?),
        0xF2 => text(slice.integer(3)?),
        0xF3 => text(slice.integer(4)?),
        0xF4 => text(slice.integer(8)?),
        _ => return None,
    })
}

/// The elements of a ziplist.
pub(super) fn ziplist(bytes: &[u8]) -> Result<Vec<Bytes>> {
    damaged(ziplist_elements(bytes))
}

fn ziplist_elements(bytes: &[u8]) -> Option<Vec<Bytes>> {
    let mut slice = Slice(bytes);
    let (total, _tail, _count) = (slice.length(4)?, slice.length(4)?, slice.length(2)?);
    let mut elements = Vec::new();
    (total == bytes.len()).then_some(())?;
    while slice.0.first()? != &0xFF {
        if slice.byte()? == 0xFE {
            slice.take(4)?;
        }
        let first = slice.byte()?;
        elements.push(match first {
            0..=0x3F => slice.take(usize::from(first))?.to_vec(),
            0x40..=0x7F => {
                let length = usize::from(first & 0x3F) << 8 | usize::from(slice.byte()?);
                slice.take(length)?.to_vec()
            }
            0x80 => {
                let length = u32::from_be_bytes(slice.take(4)?.try_into().ok()?);
                slice.take(usize::try_from(length).ok()?)?.to_vec()
            }
            0xC0 => text(slice.integer(2)?),
            0xD0 => text(slice.integer(4)?),
            0xE0 => text(slice.integer(8)?),
            0xF0 => text(slice.integer(3)?),
            0xFE => text(slice.integer(1)?),
            0xF1..=0xFD => text(i64::from(first & 0x0F) - 1),
            _ => return None,
        });
    }
    (slice.0.len() == 1).then_some(elements)
}

/// The fields of a zipmap.
pub(super) fn zipmap(bytes: &[u8]) -> Result<Vec<(Bytes, Bytes)>> {
    damaged(zipmap_fields(bytes))
}

fn zipmap_fields(bytes: &[u8]) -> Option<Vec<(Bytes, Bytes)>> {
    let mut slice = Slice(bytes.get(1..)?);
    let length = |slice: &mut Slice<'_>| match slice.byte()? {
        length @ 0..=253 => Some(usize::from(length)),
        254 => slice.length(4),
        255 => None,
    };
    let mut fields = Vec::new();
    while slice.0.first()? != &0xFF {
        let count = length(&mut slice)?;
        let field = slice.take(count)?.to_vec();
        let count = length(&mut slice)?;
        let free = slice.byte()?;
        let value = slice.take(count)?.to_vec();
        slice.take(usize::from(free))?;
        fields.push((field, value));
    }
    (slice.0.len() == 1).then_some(fields)
}

/// The members of an intset.
pub(super) fn intset(bytes: &[u8]) -> Result<Vec<Bytes>> {
    damaged(intset_members(bytes))
}

fn intset_members(bytes: &[u8]) -> Option<Vec<Bytes>> {
    let mut slice = Slice(bytes);
    let (width, count) = (slice.length(4)?, slice.length(4)?);
    let right = matches!(width, 2 | 4 | 8) && width.checked_mul(count)? == slice.0.len();
    right.then_some(())?;
    (0..count).map(|_| slice.integer(width).map(text)).collect()
}

/// Fields and values that stand in turn.
pub(super) fn pairs(elements: Vec<Bytes>) -> Result<Vec<(Bytes, Bytes)>> {
    if elements.len() % 2 == 1 {
        return Err(DAMAGED);
    }
    let mut elements = elements.into_iter();
    let mut all = Vec::new();
    while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
        all.push((field, value));
    }
    Ok(all)
}

/// Members and scores that stand in turn.
pub(super) fn scores(elements: Vec<Bytes>) -> Result<Vec<Scored>> {
    let scored = |(member, score): (Bytes, Bytes)| {
        double_of(&score)
            .map(|score| Scored { member, score })
            .ok_or(Wrong::Damaged("a score that is no number"))
    };
    pairs(elements)?.into_iter().map(scored).collect()
}
