//! What the clients of a server take: all together, and by powers of two, so that
//! the largest are found without an order of all.
//!
//! Invariants
//! - Each connection is counted as its [`Weight`] says, and by one loop.
//! - Nothing is counted while there is no limit.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Classes of sizes: below 32 KiB, 64 KiB, ..., and the rest.
const CLASSES: usize = 20;
const FIRST_BITS: u32 = 15;

/// What a connection counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    bytes: usize,
    /// Of its size; none if it may not be cut off.
    class: Option<usize>,
}

impl Weight {
    /// What so many bytes count as; whether the connection may be cut off.
    pub fn new(bytes: usize, may_go: bool) -> Weight {
        let class =
            ((usize::BITS - bytes.leading_zeros()).saturating_sub(FIRST_BITS) as usize).min(CLASSES - 1);
        Weight { bytes, class: may_go.then_some(class) }
    }

    /// Whether it is of the class of sizes `class`.
    pub fn is_of(self, class: usize) -> bool {
        self.class == Some(class)
    }
}

/// The sums, in lines of the cache of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Weights {
    total: AtomicU64,
    /// Connections that may go, by class.
    counts: [AtomicUsize; CLASSES],
}

impl Weights {
    /// Counts `new` in place of `old`.
    pub fn change(&self, old: Option<Weight>, new: Option<Weight>) {
        let (less, more) = (old.map_or(0, |old| old.bytes as u64), new.map_or(0, |new| new.bytes as u64));
        self.total.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
        if let Some(class) = new.and_then(|new| new.class) {
            self.counts[class].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(class) = old.and_then(|old| old.class) {
            self.counts[class].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The class of the largest that may go, if any may.
    pub fn largest(&self) -> Option<usize> {
        self.counts.iter().rposition(|count| count.load(Ordering::Relaxed) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_known() {
        let (weights, small, large) =
            (Weights::default(), Weight::new(1_000, true), Weight::new(3 << 20, true));
        let kept = Weight::new(1 << 30, false);
        assert_eq!(weights.largest(), None);
        for weight in [small, large, kept] {
            weights.change(None, Some(weight));
        }
        assert_eq!(weights.total(), 1_000 + (3 << 20) + (1 << 30));
        assert!(large.is_of(weights.largest().unwrap()) && !small.is_of(weights.largest().unwrap()));
        weights.change(Some(large), Some(Weight::new(40_000, true)));
        assert!(Weight::new(60_000, true).is_of(weights.largest().unwrap()));
        weights.change(Some(Weight::new(40_000, true)), None);
        assert!(small.is_of(weights.largest().unwrap()));
        assert_eq!(weights.total(), 1_000 + (1 << 30));
        assert!(Weight::new(usize::MAX, true).is_of(CLASSES - 1) && Weight::new(0, true).is_of(0));
    }
}
