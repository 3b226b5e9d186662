//! Bytes of shared pages, seen through relaxed atomic 64-bit words of one size.
//!
//! This is the one module through which racy page bytes are read and written. A reader that raced
//! with a writer gets bytes that never stood together; it finds out by re-checking the page's latch
//! word (see [`crate::latch`]) and must not act on them before. So that garbage can be walked safely,
//! every offset wraps inside its block: any offset is good, none panics, none leaves the block.
//!
//! Invariants
//! - All access is by whole aligned `AtomicU64` words with `Relaxed` ordering: no undefined behaviour.
//! - A function that writes changes only the bytes it names; the caller has the block to itself (holds
//!   its latch), since the neighbours in a word are read and stored back.
//! - Blocks are little endian on every platform.
//!
//! Deliberately absent: latches, validation, knowledge of what the bytes mean.

mod moves;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

pub use moves::{copy, copy_part, shift};

/// A block of `N` words (a power of two); byte offsets wrap at `8 * N`.
pub type Block<const N: usize> = [AtomicU64; N];

/// A zeroed block that belongs to the caller alone.
#[must_use]
pub fn zeroed<const N: usize>() -> Block<N> {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// A zeroed block in memory of its own, never on a stack.
///
/// # Panics
/// Never: there are as many words as the block has.
#[must_use]
pub fn zeroed_box<const N: usize>() -> Box<Block<N>> {
    let words: Box<[AtomicU64]> = (0..N).map(|_| AtomicU64::new(0)).collect();
    words.try_into().unwrap_or_else(|_| unreachable!("{N} words were made"))
}

/// A block of its own with these bytes, word by word.
///
/// # Panics
/// Never: there are as many words as the block has.
#[must_use]
pub fn boxed<const N: usize>(bytes: &[[u8; 8]; N]) -> Box<Block<N>> {
    let words: Box<[AtomicU64]> =
        bytes.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
    words.try_into().unwrap_or_else(|_| unreachable!("{N} words were made"))
}

#[inline(always)]
fn load<const N: usize>(block: &Block<N>, index: usize) -> u64 {
    block[index & (N - 1)].load(Relaxed)
}

#[inline(always)]
fn store<const N: usize>(block: &Block<N>, index: usize, value: u64) {
    block[index & (N - 1)].store(value, Relaxed);
}

/// The byte at `offset`.
#[inline(always)]
pub fn u8_at<const N: usize>(block: &Block<N>, offset: usize) -> u8 {
    (load(block, offset >> 3) >> ((offset & 7) * 8)) as u8
}

/// The u16 at `offset`, a multiple of 2.
#[inline(always)]
pub fn u16_at<const N: usize>(block: &Block<N>, offset: usize) -> u16 {
    (load(block, offset >> 3) >> ((offset & 6) * 8)) as u16
}

/// The u32 at `offset`, a multiple of 4.
#[inline(always)]
pub fn u32_at<const N: usize>(block: &Block<N>, offset: usize) -> u32 {
    (load(block, offset >> 3) >> ((offset & 4) * 8)) as u32
}

/// The u64 at `offset`, a multiple of 8.
#[inline(always)]
pub fn u64_at<const N: usize>(block: &Block<N>, offset: usize) -> u64 {
    load(block, offset >> 3)
}

/// The 8 bytes from `offset` (any), little endian.
#[inline(always)]
fn unaligned<const N: usize>(block: &Block<N>, offset: usize) -> u64 {
    let shift = (offset & 7) * 8;
    let low = load(block, offset >> 3) >> shift;
    // Shifted in two steps, so that nothing of the second word is left where the first is whole.
    low | load(block, (offset >> 3) + 1) << 1 << (63 - shift)
}

/// The first 8 bytes of `bytes` as a big-endian number; fewer stand before zeros.
#[inline(always)]
#[must_use]
pub fn leading(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    // Loads of constant size that overlap beat a copy of variable length.
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            let low = u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()));
            u64::from(u32::from_be_bytes(*first)) << 32 | low
        }
        (_, _, [a, b, c]) => u64::from(*a) << 56 | u64::from(*b) << 48 | u64::from(*c) << 40,
        (_, _, [a, b]) => u64::from(*a) << 56 | u64::from(*b) << 48,
        (_, _, [a]) => u64::from(*a) << 56,
        _ => 0,
    }
}

/// Replaces the masked bits of the word that holds `offset`.
#[inline(always)]
fn merge<const N: usize>(block: &Block<N>, offset: usize, mask: u64, bits: u64) {
    let old = load(block, offset >> 3);
    store(block, offset >> 3, old & !mask | bits & mask);
}

/// Stores a byte at `offset`.
#[inline(always)]
pub fn put_u8<const N: usize>(block: &Block<N>, offset: usize, value: u8) {
    let shift = (offset & 7) * 8;
    merge(block, offset, 0xff << shift, u64::from(value) << shift);
}

/// Stores a u16 at `offset`, a multiple of 2.
#[inline(always)]
pub fn put_u16<const N: usize>(block: &Block<N>, offset: usize, value: u16) {
    let shift = (offset & 6) * 8;
    merge(block, offset, 0xffff << shift, u64::from(value) << shift);
}

/// Stores a u32 at `offset`, a multiple of 4.
#[inline(always)]
pub fn put_u32<const N: usize>(block: &Block<N>, offset: usize, value: u32) {
    let shift = (offset & 4) * 8;
    merge(block, offset, 0xffff_ffff << shift, u64::from(value) << shift);
}

/// Stores a u64 at `offset`, a multiple of 8.
#[inline(always)]
pub fn put_u64<const N: usize>(block: &Block<N>, offset: usize, value: u64) {
    store(block, offset >> 3, value);
}

/// Tells the processor that the bytes around `offset` will be read soon.
#[inline(always)]
pub fn prefetch<const N: usize>(block: &Block<N>, offset: usize) {
    let word: *const AtomicU64 = &raw const block[(offset >> 3) & (N - 1)];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program could see and faults on no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the instruction changes no register, flag or memory.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) word, options(nostack, preserves_flags, readonly));
    }
}

/// Copies bytes from `offset` (any) on into `out`.
#[inline]
pub fn read<const N: usize>(block: &Block<N>, offset: usize, out: &mut [u8]) {
    let (chunks, rest) = out.as_chunks_mut::<8>();
    for (index, chunk) in chunks.iter_mut().enumerate() {
        *chunk = unaligned(block, offset + 8 * index).to_le_bytes();
    }
    if !rest.is_empty() {
        let bytes = unaligned(block, offset + 8 * chunks.len()).to_le_bytes();
        rest.copy_from_slice(&bytes[..rest.len()]);
    }
}

/// Copies the words from `from`, a multiple of 8, on into `out`, as bytes.
#[inline]
pub fn read_words<const N: usize>(block: &Block<N>, from: usize, out: &mut [[u8; 8]]) {
    for (index, bytes) in out.iter_mut().enumerate() {
        *bytes = load(block, (from >> 3) + index).to_le_bytes();
    }
}

/// Appends `len` bytes from `offset` (any) on to `out`. The caller bounds `len`.
#[inline]
pub fn append<const N: usize>(block: &Block<N>, offset: usize, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(len.saturating_add(8));
    let spare = &mut out.spare_capacity_mut()[..len.next_multiple_of(8)];
    for (index, to) in spare.chunks_exact_mut(8).enumerate() {
        // NB: twice as fast as unaligned, and what is long (the records of a batch) is aligned.
        let word = if offset & 7 == 0 {
            load(block, (offset >> 3) + index)
        } else {
            unaligned(block, offset + 8 * index)
        };
        // SAFETY: `to` is 8 bytes that belong to `out`, and bytes need no alignment. (A copy of an array mapped to
        // `MaybeUninit` takes the compiler a dozen instructions for each byte.)
        unsafe { to.as_mut_ptr().cast::<[u8; 8]>().write(word.to_le_bytes()) };
    }
    // SAFETY: at least `len + 8` bytes were reserved behind `start`, and the loop has written the first
    // `len` of them, rounded up to 8.
    unsafe { out.set_len(start + len) };
}

/// Copies `bytes` to `offset` (any) on.
#[inline]
pub fn write<const N: usize>(block: &Block<N>, offset: usize, bytes: &[u8]) {
    let mut at = offset;
    let mut rest = bytes;
    let skew = at & 7;
    if skew != 0 && !rest.is_empty() {
        let count = rest.len().min(8 - skew);
        write_part(block, at, &rest[..count]);
        rest = &rest[count..];
        at += count;
    }
    let mut chunks = rest.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        store(block, at >> 3, u64::from_le_bytes(word));
        at += 8;
    }
    if !chunks.remainder().is_empty() {
        write_part(block, at, chunks.remainder());
    }
}

/// Copies `first` and `second`, one behind the other, to `offset`, a multiple of 8. The rest of the last word that
/// changes becomes zero if both together have at most 64 bytes: those are put together first, and written as whole
/// words.
#[inline]
pub fn write_pair<const N: usize>(block: &Block<N>, offset: usize, first: &[u8], second: &[u8]) {
    let len = first.len() + second.len();
    if len > SHORT {
        write(block, offset, first);
        write(block, offset + first.len(), second);
        return;
    }
    let mut bytes = [0; SHORT];
    put_bytes(&mut bytes, 0, first);
    put_bytes(&mut bytes, first.len(), second);
    for (index, word) in bytes[..(len + 7) & !7].chunks_exact(8).enumerate() {
        store(block, (offset >> 3) + index, leading(word).swap_bytes());
    }
}

/// Copies `heading`, `first` and `second`, one behind the other, to `offset`, a multiple of 4. What is left up to the
/// next multiple of 4 becomes zero if all together have at most 60 bytes: those are put together first.
#[inline]
pub fn write_parts<const N: usize>(
    block: &Block<N>,
    offset: usize,
    heading: u32,
    first: &[u8],
    second: &[u8],
) {
    let len = 4 + first.len() + second.len();
    if len > SHORT - 4 {
        put_u32(block, offset, heading);
        write(block, offset + 4, first);
        write(block, offset + 4 + first.len(), second);
        return;
    }
    let mut bytes = [0; SHORT];
    // Where they begin in the first word.
    let skew = offset & 4;
    put_bytes(&mut bytes, skew, &heading.to_le_bytes());
    put_bytes(&mut bytes, skew + 4, first);
    put_bytes(&mut bytes, skew + 4 + first.len(), second);
    let end = skew + ((len + 3) & !3);
    let word = |at: usize| bytes.get(at..).map_or(0, leading).swap_bytes();
    let mut at = 0;
    if skew != 0 {
        merge(block, offset, !0 << 32, word(0));
        at = 8;
    }
    while at + 8 <= end {
        store(block, (offset - skew + at) >> 3, word(at));
        at += 8;
    }
    if at < end {
        merge(block, offset - skew + at, !0 >> 32, word(at));
    }
}

/// Bytes of a pair that are put together before they are written.
const SHORT: usize = 64;

/// Copies bytes to `at`, without a call for the few that most keys and values have; nothing, if they do not fit.
#[inline(always)]
pub fn put_bytes<const N: usize>(to: &mut [u8; N], at: usize, from: &[u8]) {
    let Some(to) = to.get_mut(at..at + from.len()) else { return };
    match (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        (Some(first), Some(last)) if from.len() <= 16 => {
            // The two overlap as need be.
            if let Some(place) = to.first_chunk_mut() {
                *place = *first;
            }
            if let Some(place) = to.last_chunk_mut() {
                *place = *last;
            }
        }
        (None, _) => match (from.first_chunk::<4>(), from.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                if let Some(place) = to.first_chunk_mut() {
                    *place = *first;
                }
                if let Some(place) = to.last_chunk_mut() {
                    *place = *last;
                }
            }
            _ => {
                for index in [0, from.len() / 2, from.len().saturating_sub(1)] {
                    if let (Some(place), Some(byte)) = (to.get_mut(index), from.get(index)) {
                        *place = *byte;
                    }
                }
            }
        },
        _ => match (from.first_chunk::<16>(), from.last_chunk::<16>()) {
            (Some(first), Some(last)) if from.len() <= 32 => {
                if let Some(place) = to.first_chunk_mut() {
                    *place = *first;
                }
                if let Some(place) = to.last_chunk_mut() {
                    *place = *last;
                }
            }
            _ => to.copy_from_slice(from),
        },
    }
}

/// Writes 1 to 7 bytes that lie inside one word.
#[inline]
fn write_part<const N: usize>(block: &Block<N>, offset: usize, bytes: &[u8]) {
    let shift = (offset & 7) * 8;
    let mask = (u64::MAX >> (64 - 8 * bytes.len())) << shift;
    merge(block, offset, mask, leading(bytes).swap_bytes() << shift);
}

/// Compares the `len` bytes from `offset` on with `bytes`, as unsigned bytes, shorter first.
#[inline]
pub fn compare<const N: usize>(block: &Block<N>, offset: usize, len: usize, bytes: &[u8]) -> Ordering {
    let common = &bytes[..len.min(bytes.len())];
    let mut at = 0;
    let mut rest = common;
    while let Some((first, behind)) = rest.split_first_chunk::<8>() {
        let theirs = u64::from_be_bytes(*first);
        let ours = unaligned(block, offset + at).swap_bytes();
        if ours != theirs {
            return ours.cmp(&theirs);
        }
        rest = behind;
        at += 8;
    }
    if !rest.is_empty() {
        let (ours, theirs) = match common.last_chunk::<8>() {
            // Those before were equal: they may be compared again.
            Some(last) => {
                (unaligned(block, offset + common.len() - 8).swap_bytes(), u64::from_be_bytes(*last))
            }
            None => (leading_at(block, offset + at, rest.len()), leading(rest)),
        };
        if ours != theirs {
            return ours.cmp(&theirs);
        }
    }
    len.cmp(&bytes.len())
}

/// The 8 bytes from `offset` (any) on as a big-endian number; where there are only `len`, they stand before zeros.
#[inline(always)]
#[must_use]
pub fn leading_at<const N: usize>(block: &Block<N>, offset: usize, len: usize) -> u64 {
    let mask = if len < 8 { !(u64::MAX >> (8 * len)) } else { u64::MAX };
    unaligned(block, offset).swap_bytes() & mask
}
