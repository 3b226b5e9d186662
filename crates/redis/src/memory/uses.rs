//! When keys were used last, and how often: in the memory of each server, for its own clients.
//!
//! A table of words, each for all keys of one hash: the second of the last use and a counter that grows with
//! the logarithm of uses and shrinks with time, as Redis's does. So a use costs a hash and a store, and no read
//! becomes a write of the tree. Keys that share a word count as used when either is; what only other servers'
//! clients use seems idle here. The kernel deals connections out to servers by chance, so each sees a sample of
//! what all clients do.
//!
//! The table exists from when a policy first needs it, and is kept up only while one does.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::time::Instant;

use crate::random;

/// Words of the table: 8 MiB.
const WORDS: usize = 1 << 21;
/// What the counter of a key is that is new.
pub(crate) const BEGIN: u8 = 5;
/// What the seconds begin with, so that a key may be said to have been idle since before this server began: 30 days.
const BEFORE: u32 = 30 * 86_400;
/// Bits of the counter below the seconds.
const COUNTER: u32 = 8;

/// The uses of keys.
#[derive(Debug)]
pub(crate) struct Uses {
    words: OnceLock<Box<[AtomicU32]>>,
    hash: RandomState,
    begun: Instant,
}

/// What is known of a key's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Seconds since it was used.
    pub(crate) idle: u32,
    /// The logarithm of how often, more or less.
    pub(crate) counter: u8,
}

/// `lfu-log-factor` and `lfu-decay-time`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) factor: i64,
    pub(crate) decay: i64,
}

impl Uses {
    pub(crate) fn new() -> Uses {
        Uses { words: OnceLock::new(), hash: RandomState::new(), begun: Instant::now() }
    }

    /// Seconds since [`BEFORE`] this began, never 0.
    fn now(&self) -> u32 {
        let most = (1 << (32 - COUNTER)) - 1;
        u32::try_from(self.begun.elapsed().as_secs() + u64::from(BEFORE)).unwrap_or(most).min(most)
    }

    fn word(&self, database: i64, key: &[u8]) -> &AtomicU32 {
        let words = self.words.get_or_init(|| (0..WORDS).map(|_| AtomicU32::new(0)).collect());
        &words[self.hash.hash_one((database, key)) as usize % WORDS]
    }

    /// A key is used.
    pub(crate) fn note(&self, database: i64, key: &[u8], rates: Rates) {
        let (word, now) = (self.word(database, key), self.now());
        let counter = match word.load(Ordering::Relaxed) {
            0 => BEGIN,
            known => grown(faded(known, now, rates), rates),
        };
        // Two threads at once: one use is lost.
        word.store(now << COUNTER | u32::from(counter), Ordering::Relaxed);
    }

    /// A key is here that was used like this where it comes from.
    pub(crate) fn set(&self, database: i64, key: &[u8], given: Use) {
        let second = self.now().saturating_sub(given.idle).max(1);
        self.word(database, key).store(second << COUNTER | u32::from(given.counter), Ordering::Relaxed);
    }

    /// What is known of a key: one that has never been used here is as old as this server.
    pub(crate) fn of(&self, database: i64, key: &[u8], rates: Rates) -> Use {
        let now = self.now();
        let known = match self.word(database, key).load(Ordering::Relaxed) {
            0 => BEFORE << COUNTER | u32::from(BEGIN),
            known => known,
        };
        Use { idle: now.saturating_sub(known >> COUNTER), counter: faded(known, now, rates) }
    }
}

/// The counter of a word, one less for each `lfu-decay-time` minutes without use.
fn faded(known: u32, now: u32, rates: Rates) -> u8 {
    let counter = known as u8;
    if rates.decay <= 0 {
        return counter;
    }
    let minutes = i64::from(now.saturating_sub(known >> COUNTER)) / 60;
    counter.saturating_sub(u8::try_from(minutes / rates.decay).unwrap_or(u8::MAX))
}

/// The counter after one use more: the higher, the less likely it grows.
fn grown(counter: u8, rates: Rates) -> u8 {
    let over = u64::from(counter.saturating_sub(BEGIN));
    let chance = over.saturating_mul(rates.factor.max(0) as u64).saturating_add(1);
    if random::below(chance) == 0 {
        counter.saturating_add(1)
    } else {
        counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { factor: 10, decay: 1 };

    #[test]
    fn counters_grow_slowly_and_fade() {
        let (mut counter, mut uses) = (BEGIN, 0);
        while counter < 50 {
            counter = grown(counter, RATES);
            uses += 1;
        }
        // About 10 * (1 + 2 + ... + 45) = 10,350.
        assert!((5_000..20_000).contains(&uses), "{uses} uses");
        let known = 1_000 << COUNTER | 50;
        assert_eq!(faded(known, 1_000 + 59, RATES), 50);
        assert_eq!(faded(known, 1_000 + 10 * 60, RATES), 40);
        assert_eq!(faded(known, 1_000 + 10 * 60, Rates { decay: 0, ..RATES }), 50);
        assert_eq!(faded(known, 1_000_000, RATES), 0);
        assert_eq!(grown(u8::MAX, Rates { factor: 0, decay: 0 }), u8::MAX);
    }

    #[test]
    fn what_is_used_is_known_by_database_and_name() {
        let uses = Uses::new();
        assert_eq!(uses.of(0, b"k", RATES).counter, BEGIN);
        for _ in 0..100 {
            uses.note(0, b"k", RATES);
        }
        let (one, other) = (uses.of(0, b"k", RATES), uses.of(1, b"k", RATES));
        assert!(one.counter > BEGIN && one.idle <= 1, "{one:?}");
        assert_eq!(other.counter, BEGIN);
        uses.set(0, b"k", Use { idle: 10_000, counter: 200 });
        let set = uses.of(0, b"k", Rates { decay: 0, ..RATES });
        assert!((10_000..10_010).contains(&set.idle) && set.counter == 200, "{set:?}");
    }
}
