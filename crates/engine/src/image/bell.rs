//! Waking those who watch a key, after a commit has touched it.
//!
//! A watch is registered in the bucket of its key's hash: a mask of processes, and in the control
//! line's filter, a 48-bit Bloom filter over the *stems* of keys beside a count of changes. A writer
//! tests the filter, which is empty where nothing is watched. On a hit it bumps the bucket of the key
//! and of each of its prefixes, and the bells of the processes in their masks.
//!
//! A key has two stems: its first component, and its bytes up to and including its second zero byte, or all of
//! it. What is watched is noted by its longer stem if every key that touches it shares that, else by the shorter
//! one: so whoever writes `^a(1,...)` is not delayed by who watches `^a("b")`.
//!
//! What if we are killed? Repair of a session inside an operation rings everything.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use perilune_shm::futex;

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

    /// The bit in the control line's filter.
    pub(crate) fn filter_bit(self) -> u64 {
        1 << ((self.0 ^ self.0 >> 29) % 48)
    }
}

/// The bytes of a key up to and including its first zero byte.
pub(crate) fn first_component(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|byte| *byte == 0).map_or(key.len(), |zero| zero + 1);
    &key[..end]
}

/// The filter bits of the stems of `key`, shorter one first; of the shorter one none if it has no zero byte.
fn stem_bits(key: &[u8]) -> [u64; 2] {
    let (mut hash, mut first) = (KeyHash::new(), 0);
    for byte in key {
        hash.add(*byte);
        if *byte == 0 {
            if first != 0 {
                break;
            }
            first = hash.filter_bit();
        }
    }
    [first, hash.filter_bit()]
}

/// The filter bits that make writers look for a watch of `key` alone, or of all that begins with it.
pub(crate) fn watch_bits(key: &[u8], is_prefix: bool) -> u64 {
    let [first, second] = stem_bits(key);
    match key.iter().filter(|byte| **byte == 0).take(2).count() {
        _ if !is_prefix => second,
        2 => second,
        1 => first,
        // Less than a first component: any may begin with it.
        _ => FILTER_BITS,
    }
}

/// The filter bits of the watches that a change of `key` may touch; with `below`, of all that begins with it.
fn touched_bits(key: &[u8], below: bool) -> u64 {
    let [first, second] = stem_bits(key);
    if below && key.iter().filter(|byte| **byte == 0).take(2).count() < 2 {
        // What is watched below it has stems of its own.
        return FILTER_BITS;
    }
    first | second
}

/// Bumps what watches `key`; with `below`, everything (a removal of a subtree may touch any of it).
#[cold]
pub(crate) fn ring(image: &Image, key: &[u8], below: bool) {
    let filter = image.control(control::FILTER).load(Acquire);
    if filter & touched_bits(key, below) == 0 {
        return;
    }
    if below {
        ring_all(image);
        return;
    }
    let mut hash = KeyHash::new();
    let mut processes = [0; PROCESSES / 64];
    for byte in key {
        hash.add(*byte);
        bump(image, hash.bucket(), &mut processes);
    }
    bump(image, hash.whole().bucket(), &mut processes);
    ring_bells(image, &processes);
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
        let mask = image.shm.word(at + 8 + index * 8).load(Acquire);
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
