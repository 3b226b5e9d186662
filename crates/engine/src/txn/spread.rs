//! A hasher for keys of tables that are numbers already: digests of keys, numbers of pages.
//!
//! Invariant: which numbers collide differs from process to process, so nobody can choose keys that make a table
//! slow.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// A table by numbers.
pub(super) type Numbered<T> = HashMap<u64, T, Spread>;

/// Of this process.
static SECRET: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let random = RandomState::new();
    [random.hash_one(1), random.hash_one(2) | 1]
});

/// Makes hashers.
#[derive(Clone, Copy)]
pub(super) struct Spread([u64; 2]);

impl Default for Spread {
    fn default() -> Spread {
        Spread(*SECRET)
    }
}

impl BuildHasher for Spread {
    type Hasher = Mixed;

    #[inline]
    fn build_hasher(&self) -> Mixed {
        Mixed { secret: self.0, hash: 0 }
    }
}

/// The hash of one number.
pub(super) struct Mixed {
    secret: [u64; 2],
    hash: u64,
}

impl Hasher for Mixed {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.hash ^ number ^ self.secret[0]) * u128::from(self.secret[1]);
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
