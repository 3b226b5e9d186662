//! Chance for RANDOMKEY, SPOP and their kin.
//!
//! Invariant: each of several choices is as likely as any other.
//!
//! Deliberately absent: secrecy. Whoever sees enough of it can tell what comes.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish() | 1);
}

/// A number from 0 to below `end`, which is not 0.
pub(crate) fn below(end: u64) -> u64 {
    let bits = STATE.with(|state| {
        // xorshift64*
        let mut bits = state.get();
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        state.set(bits);
        bits.wrapping_mul(0x2545_F491_4F6C_DD1D)
    });
    // The upper half of the product: without the bias of a remainder worth naming.
    ((u128::from(bits) * u128::from(end)) >> 64) as u64
}

/// Indexes of `length` elements: `count` different ones in any order, or all; with a negative count so
/// many of any, repeated or not.
pub(crate) fn choose(length: usize, count: i64) -> Vec<usize> {
    if length == 0 || count == 0 {
        return Vec::new();
    }
    if count < 0 {
        return (0..count.unsigned_abs()).map(|_| below(length as u64) as usize).collect();
    }
    let mut indexes: Vec<usize> = (0..length).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(length);
    if count < length {
        for at in 0..count {
            let other = at + below((length - at) as u64) as usize;
            indexes.swap(at, other);
        }
        indexes.truncate(count);
    }
    indexes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_different_ones_unless_told_otherwise() {
        for (length, count) in [(10, 3), (10, 10), (10, 99), (1, 1), (0, 5)] {
            let mut chosen = choose(length, count);
            assert_eq!(chosen.len(), length.min(count as usize));
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), length.min(count as usize));
        }
        assert_eq!(choose(3, -7).len(), 7);
        assert!((0..1_000).all(|_| below(7) < 7));
        assert!((0..7).all(|wanted| (0..1_000).any(|_| below(7) == wanted)));
    }
}
