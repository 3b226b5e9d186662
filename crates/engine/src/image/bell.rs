//! Waking those who watch a key, after a commit has touched it.
//!
//! Problem: any process may watch any key or subtree, and mostly nobody watches anything. So every write has to
//! learn in a few nanoseconds that nobody watches its key.
//!
//! Idea: three tests, each asked only if the one before says "perhaps".
//! 1. The *filter*: 48 bits of a control word, a Bloom filter over the *stems* of watched keys. It is empty where
//!    nothing is watched. With four watches, one key in twelve meets a bit by chance.
//! 2. The *gates* of a stem: three of the 512 watch buckets, whose masks have every process that watches something
//!    by that stem. Who is in all three probably does.
//! 3. The buckets of the key and of each of its prefixes, by hash. Each has a number, which is raised, and a mask
//!    of processes. Those of them that are also behind the gates have their bells rung.
//!
//! A key has two stems: its first component, and its bytes up to and including its second zero byte, or all of it.
//! A watch is noted by its longer stem if every key that touches it shares that, else by the shorter one.
//!
//! Example: a watch of all below `^a("b")` is noted by the stem `a` 00 F0 `b` 00. The stems of `^a(1,2)` are `a` 00
//! and the whole key, so whoever writes that is not delayed.
//!
//! What if we are killed? Repair of a session inside an operation wakes every watch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use perilune_shm::{futex, words};

use super::layout::{
    control, PROCESSES_AT, PROCESS_BELL, PROCESS_BYTES, WATCH_BUCKETS_AT, WATCH_BUCKET_BYTES,
};
use super::Image;
use crate::limits::{PROCESSES, WATCH_BUCKETS};

/// Bits of the filter word that are the Bloom filter.
pub(crate) const FILTER_BITS: u64 = (1 << 48) - 1;

/// FNV-1a over a key's bytes, one by one, so that all prefixes are hashed in one pass.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn new() -> KeyHash {
        KeyHash(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    /// The hash of all bytes of `key`.
    pub(crate) fn of(key: &[u8]) -> KeyHash {
        let mut hash = KeyHash::new();
        key.iter().for_each(|byte| hash.add(*byte));
        hash
    }

    /// The hash by which the key itself is watched, apart from what lies below it. No key goes on with
    /// byte 255.
    pub(crate) fn whole(mut self) -> KeyHash {
        self.add(0xff);
        self
    }

    /// The watch bucket.
    pub(crate) fn bucket(self) -> usize {
        ((self.0 ^ self.0 >> 32) as usize) % WATCH_BUCKETS
    }
}

/// The bytes of a key up to and including its first zero byte.
pub(crate) fn first_component(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|byte| *byte == 0).map_or(key.len(), |zero| zero + 1);
    &key[..end]
}

/// In how many buckets' masks a stem is noted. With three, a process that watches nothing is seldom taken for one
/// that does.
const GATES: usize = 3;

/// A stem, or what stands for all stems, hashed.
#[derive(Clone, Copy)]
struct Stem(u64);

impl Stem {
    /// Stands for all of them, where a watch has none.
    const ANY: Stem = Stem(0);

    /// Eight bytes at a time: each write of a key passes here.
    #[inline]
    fn of(stem: &[u8]) -> Stem {
        let mut hash = stem.len() as u64;
        let (chunks, rest) = stem.as_chunks::<8>();
        for chunk in chunks {
            hash = mix(hash ^ u64::from_le_bytes(*chunk));
        }
        let number = match stem.last_chunk::<8>() {
            _ if rest.is_empty() => 0,
            // The last eight bytes end with the rest, and begin with bytes of the chunk before, which are masked.
            Some(last) => u64::from_be_bytes(*last) & (u64::MAX >> (64 - 8 * rest.len())),
            None => words::leading(rest) >> (64 - 8 * rest.len()),
        };
        Stem(mix(hash ^ number))
    }

    /// Its bit in the control line's filter.
    #[inline]
    fn filter_bit(self) -> u64 {
        1 << ((self.0 >> 8) % 48)
    }

    fn gates(self) -> [usize; GATES] {
        let mut hash = self.0;
        [(); GATES].map(|()| {
            hash = mix(hash ^ 0xff);
            (hash >> 16) as usize % WATCH_BUCKETS
        })
    }
}

#[inline]
fn mix(hash: u64) -> u64 {
    let wide = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (wide as u64) ^ (wide >> 64) as u64
}

/// The index of the first zero byte; eight are looked at a time, as each write of a key passes here.
#[inline(always)]
fn first_zero(bytes: &[u8]) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        if let Some(zero) = zero_in(u64::from_le_bytes(*chunk)) {
            return Some(8 * index + zero);
        }
    }
    match bytes.last_chunk::<8>() {
        // Some of the last eight are looked at again: none of those is zero.
        Some(last) => zero_in(u64::from_le_bytes(*last)).map(|zero| bytes.len() - 8 + zero),
        None => zero_in(words::leading(rest).swap_bytes() | u64::MAX << (8 * rest.len())),
    }
}

/// The index of the first zero byte of a little-endian number.
#[inline(always)]
fn zero_in(word: u64) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    // Of the bits that this sets in bytes, the lowest is that of the first zero byte.
    let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

/// Where the shorter stem of a key ends: behind its first zero byte, or 0.
#[inline]
fn first_end(key: &[u8]) -> usize {
    first_zero(key).map_or(0, |zero| zero + 1)
}

/// Where the longer one ends: behind the second zero byte, or the last byte.
#[inline(always)]
fn second_end(key: &[u8], first: usize) -> usize {
    match first {
        0 => key.len(),
        first => first_zero(&key[first..]).map_or(key.len(), |zero| first + zero + 1),
    }
}

/// Where the stems of a key end.
#[inline]
fn stem_ends(key: &[u8]) -> (usize, usize) {
    let first = first_end(key);
    (first, second_end(key, first))
}

/// Whether a key begins with these bytes, mostly told without a call.
#[inline]
fn begins_with(key: &[u8], start: &[u8]) -> bool {
    let len = start.len();
    let Some(same) = key.get(..len) else { return false };
    match (same.last_chunk::<8>(), start.last_chunk::<8>(), same.first_chunk::<4>(), start.first_chunk::<4>())
    {
        (Some(one), Some(other), ..) => one == other && (len == 8 || same == start),
        (_, _, Some(one), Some(other)) => one == other && same.last_chunk::<4>() == start.last_chunk::<4>(),
        _ => same == start,
    }
}

/// What a watch is noted by, beside its bucket, so that writers look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Bits of the filter.
    pub(crate) filter: u64,
    /// Buckets that have its process in their masks.
    pub(crate) gates: [usize; GATES],
}

impl Notes {
    /// The notes of a watch of `key` alone or, if it is a prefix, of all that begins with it.
    pub(crate) fn of(key: &[u8], is_prefix: bool) -> Notes {
        let (first, second) = stem_ends(key);
        let noted = |stem: Stem| Notes { filter: stem.filter_bit(), gates: stem.gates() };
        match key.iter().filter(|byte| **byte == 0).take(2).count() {
            _ if !is_prefix => noted(Stem::of(&key[..second])),
            2 => noted(Stem::of(&key[..second])),
            1 => noted(Stem::of(&key[..first])),
            // Less than a first component: any may begin with it.
            _ => Notes { filter: FILTER_BITS, gates: Stem::ANY.gates() },
        }
    }
}

/// The processes that watch something by one of these stems, and few others.
fn behind_gates(image: &Image, stems: &[Stem]) -> Option<[u64; PROCESSES / 64]> {
    let (mut processes, mut any) = ([0; PROCESSES / 64], 0);
    for stem in stems {
        let gates = stem.gates();
        for (index, bits) in processes.iter_mut().enumerate() {
            let noted = |bits: u64, gate: &usize| match bits {
                0 => 0,
                bits => bits & mask_word(image, *gate, index).load(Acquire),
            };
            *bits |= gates.iter().fold(u64::MAX, noted);
            any |= *bits;
        }
    }
    (any != 0).then_some(processes)
}

/// A word of the mask of a bucket.
fn mask_word(image: &Image, bucket: usize, index: usize) -> &AtomicU64 {
    image.shm.word(WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES + 8 + index * 8)
}

/// Raises the buckets of `key` and its prefixes and rings their processes; with `below` all buckets, since the
/// removal of a subtree may touch any watch.
pub(crate) fn ring(image: &Image, key: &[u8], below: bool) {
    let filter = image.control(control::FILTER).load(Acquire) & FILTER_BITS;
    let (first, second) = stem_ends(key);
    if below && key[first..second].last() != Some(&0) {
        // Keys below this one may have longer stems than it has.
        if filter != 0 {
            ring_all(image);
        }
        return;
    }
    let stems = [Stem::of(&key[..first]), Stem::of(&key[..second])];
    if may_note(filter, stems) {
        ring_noted(image, key, below, stems, filter == FILTER_BITS);
    }
}

/// Bumps what watches each of some keys. Those that lie side by side mostly share a stem, which is asked for once, and are
/// mostly watched by nobody together.
pub(crate) fn ring_each<'k>(image: &Image, keys: impl Iterator<Item = &'k [u8]>) {
    let filter = image.control(control::FILTER).load(Acquire) & FILTER_BITS;
    let (mut component, mut short): (&[u8], Stem) = (&[], Stem::of(&[]));
    // Nobody watches what begins with these bytes.
    let mut quiet: &[u8] = &[];
    let mut before: &[u8] = &[];
    for key in keys {
        if !quiet.is_empty() && quiet.len() < key.len() && begins_with(key, quiet) {
            continue;
        }
        // NB: two keys with equal first words have equal components only if these are no longer than a word.
        let alike = component.len() <= 8
            && key.first_chunk::<8>().is_some_and(|word| before.first_chunk() == Some(word))
            || begins_with(key, component);
        if component.is_empty() || !alike {
            component = &key[..first_end(key)];
            short = Stem::of(component);
        }
        before = key;
        let second = second_end(key, component.len());
        let stems = [short, Stem::of(&key[..second])];
        let rings = may_note(filter, stems) && ring_noted(image, key, false, stems, filter == FILTER_BITS);
        // NB: only where the longer stem ends with its zero byte do all keys that begin with it share it.
        let is_whole = key[component.len()..second].last() == Some(&0);
        quiet = if is_whole && !rings { &key[..second] } else { &[] };
    }
}

/// Whether the filter knows one of the stems.
#[inline(always)]
fn may_note(filter: u64, stems: [Stem; 2]) -> bool {
    filter & (stems[0].filter_bit() | stems[1].filter_bit()) != 0
}

/// Rings for a key one of whose stems the filter knows. `has_any`: there may be watches without stems. False: nobody
/// watches by them.
#[cold]
fn ring_noted(image: &Image, key: &[u8], below: bool, [first, second]: [Stem; 2], has_any: bool) -> bool {
    let all = [first, second, Stem::ANY];
    let Some(behind) = behind_gates(image, if has_any { &all } else { &all[..2] }) else { return false };
    if below {
        ring_all(image);
        return true;
    }
    let mut hash = KeyHash::new();
    let mut processes = [0; PROCESSES / 64];
    for byte in key {
        hash.add(*byte);
        bump(image, hash.bucket(), &mut processes);
    }
    bump(image, hash.whole().bucket(), &mut processes);
    processes.iter_mut().zip(behind).for_each(|(bits, behind)| *bits &= behind);
    ring_bells(image, &processes);
    true
}

/// Wakes every watch.
pub(crate) fn ring_all(image: &Image) {
    let mut processes = [0; PROCESSES / 64];
    for bucket in 0..WATCH_BUCKETS {
        bump(image, bucket, &mut processes);
    }
    ring_bells(image, &processes);
}

/// Bumps a bucket that somebody watches, and collects who.
fn bump(image: &Image, bucket: usize, processes: &mut [u64; PROCESSES / 64]) {
    let at = WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES;
    let mut watched = false;
    for (index, bits) in processes.iter_mut().enumerate() {
        let mask = mask_word(image, bucket, index).load(Acquire);
        watched |= mask != 0;
        *bits |= mask;
    }
    if watched {
        image.shm.word(at).fetch_add(1, AcqRel);
    }
}

fn ring_bells(image: &Image, processes: &[u64; PROCESSES / 64]) {
    for (index, bits) in processes.iter().enumerate() {
        let mut bits = *bits;
        while bits != 0 {
            ring_bell(image, index * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// Rings the bell of one process.
pub(crate) fn ring_bell(image: &Image, slot: usize) {
    let bell = image.shm.word32(PROCESSES_AT + slot * PROCESS_BYTES + PROCESS_BELL);
    bell.fetch_add(1, AcqRel);
    futex::wake(bell, u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_at_a_time_tell_what_single_ones_tell() {
        for length in 0..40_usize {
            let plain: Vec<u8> = (1..=length as u8).map(|byte| byte.wrapping_mul(0x4f) | 1).collect();
            assert_eq!(first_zero(&plain), None, "{plain:?}");
            for (one, other) in (0..length).flat_map(|one| (0..length).map(move |other| (one, other))) {
                let mut bytes = plain.clone();
                (bytes[one], bytes[other]) = (0, 0);
                let (low, high) = (one.min(other), one.max(other));
                assert_eq!(first_zero(&bytes), Some(low), "{bytes:?}");
                let second = if low == high { length } else { high + 1 };
                assert_eq!(stem_ends(&bytes), (low + 1, second), "{bytes:?}");
                let longer = [&bytes[..], &[7]].concat();
                for start in [&plain[..one], &bytes[..one], &bytes[..], &longer] {
                    assert_eq!(begins_with(&bytes, start), bytes.starts_with(start), "{bytes:?} {start:?}");
                }
            }
        }
    }

    #[test]
    fn a_stem_is_hashed_as_all_processes_of_a_database_hash_it() {
        for length in 0..40_u8 {
            let stem: Vec<u8> = (1..=length).map(|byte| byte.wrapping_mul(0x4f)).collect();
            let mut hash = stem.len() as u64;
            for chunk in stem.chunks_exact(8) {
                hash = mix(hash ^ chunk.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
            }
            let rest = stem.chunks_exact(8).remainder();
            hash = mix(hash ^ rest.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
            assert_eq!(Stem::of(&stem).0, hash, "{stem:?}");
        }
    }
}
