//! Numbers and values of the workloads: cheap to make, and cheap to check.
//!
//! Invariants
//! - A value is a function of its number and of the stamp of the round that wrote it; its low 48 bits,
//!   the *essence*, depend on the number alone. A reader can check a sum without knowing who wrote last.
//! - Stamps are at least 1, so that all values have about the same size in any encoding.

const ESSENCE_BITS: u32 = 48;
/// Rounds a database may see.
pub(crate) const STAMP_MAX: u64 = (1 << 14) - 1;

/// What of a value depends on its number alone.
#[inline]
pub(crate) fn essence(value: i64) -> u64 {
    value as u64 & ((1 << ESSENCE_BITS) - 1)
}

/// The essence of the value of `number`.
#[inline]
pub(crate) fn essence_of(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - ESSENCE_BITS)
}

/// The value of `number` that the round with `stamp` writes.
#[inline]
pub(crate) fn value(number: u64, stamp: u64) -> i64 {
    ((stamp.clamp(1, STAMP_MAX) << ESSENCE_BITS) | essence_of(number)) as i64
}

/// The numbers below `count` in an order without order, each once.
pub(crate) fn scattered(count: u64) -> impl Iterator<Item = u64> {
    // A prime that divides no size of a tree.
    const STRIDE: u64 = 7_368_787;
    (0..count).map(move |index| index * STRIDE % count)
}

/// A small generator of random numbers (xorshift64*, Vigna 2016): about 1 ns each.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator whose sequence depends on `seed` alone.
    pub(crate) fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, which is not 0.
    #[inline]
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_number_whatever_its_stamp() {
        for number in [0, 1, 77_031, 9_999_999] {
            for stamp in [0, 1, 2, STAMP_MAX, STAMP_MAX + 5] {
                assert!(value(number, stamp) >= 1 << ESSENCE_BITS);
                assert_eq!(essence(value(number, stamp)), essence_of(number));
            }
            assert_ne!(value(number, 1), value(number, 2));
        }
        assert_ne!(essence_of(1), essence_of(2));
    }

    #[test]
    fn scattered_numbers_are_all_there_once() {
        let mut numbers: Vec<u64> = scattered(1_000).collect();
        assert!(numbers.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 10);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1_000));
    }

    #[test]
    fn random_numbers_fill_their_range() {
        let (mut a, mut b, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        let mut seen = [0u32; 10];
        let mut differs = false;
        for _ in 0..10_000 {
            let number = a.below(10);
            assert_eq!(number, b.below(10));
            differs |= number != other.below(10);
            seen[number as usize] += 1;
        }
        assert!(differs && seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
    }
}
