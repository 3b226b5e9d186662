//! Cursors of the SCAN family: numbers for places, and the places that this server remembers.
//!
//! A scan goes through names in the order of the tree; its place is the name that it has looked at last. The client is given
//! a number for it, which many keep as a double (node-redis, a loop in Lua), and nothing may be written for it: a scan only
//! reads. So the number is a digest of the place, and the server that has given it remembers the place.
//!
//! One that does not remember (it was restarted, or is another of the database) begins again: what was there all the time
//! may be answered twice, and is answered. The number's lowest bits say how often that has happened to this scan; each
//! time its steps become eight times as long, so that it ends even where nobody ever remembers anything.
//!
//! Invariants
//! - A number stands for one place, whoever has given it. Of a server that remembers 40,000 places, a number that it has
//!   not given is taken for one of them in one of 200 million cases.
//! - What is there from the first call to the last is answered: a scan goes on behind a place that it has been at, or begins
//!   at the first name.
//! - Each scan ends, if names do not come faster than it goes: after seven beginnings it answers all that is left at once.
//! - Numbers are below 10^14: a double holds them, and `%.14g` prints them whole.
//! - Memory is bounded. Places that clients are yet to come back to are kept apart from those that are done with, which only
//!   a client needs that has lost a reply: so one that goes fast does not push out one that goes slowly.
//!
//! Deliberately absent: which key or database a place is of. Wherever it is used, it is a name to go on behind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::limits::{CURSORS_USED_BYTES, CURSORS_WAITING_BYTES};

/// Bits of a number that say how often its scan has begun again.
const AGAIN_BITS: u32 = 3;
/// A scan that has begun again so often goes to the end. No number says so.
const AGAIN_MOST: u64 = (1 << AGAIN_BITS) - 1;
/// Bits of a number that are of the digest.
const DIGEST_BITS: u32 = 43;
/// By so many bits its steps grow when a scan begins again.
const GROWTH_BITS: u32 = 3;
/// Bytes that a place takes besides its name.
const PLACE_BYTES: usize = 64;

const _: () = assert!(1_u64 << (DIGEST_BITS + AGAIN_BITS) < 100_000_000_000_000);

/// What this server remembers.
#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<Memory>);

/// A scan as a call finds it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The subscript that it goes on behind; none: it begins.
    pub(crate) behind: Option<Vec<u8>>,
    /// How often it has begun again.
    again: u64,
}

impl Scan {
    /// How many names it looks at in this call, where the client has asked for `count`.
    pub(crate) fn step(&self, count: usize) -> usize {
        match self.again {
            0 => count,
            AGAIN_MOST => usize::MAX,
            again => count.saturating_mul(1 << (GROWTH_BITS as u64 * again)),
        }
    }
}

impl Cursors {
    /// The scan that `number` stands for; 0 begins one.
    pub(crate) fn resume(&self, number: u64) -> Scan {
        if number == 0 {
            return Scan { behind: None, again: 0 };
        }
        let (digest, again) = (number >> AGAIN_BITS, number & AGAIN_MOST);
        // What was never given, by whatever version, is as good as what was forgotten.
        let again = if again == AGAIN_MOST || digest >> DIGEST_BITS != 0 { 0 } else { again };
        match self.locked().recall(digest) {
            Some(place) => Scan { behind: Some(place), again },
            None => Scan { behind: None, again: again + 1 },
        }
    }

    /// The number for going on with `scan` behind the subscript `place`.
    pub(crate) fn give(&self, scan: &Scan, place: &[u8]) -> u64 {
        self.locked().keep(place) << AGAIN_BITS | scan.again.min(AGAIN_MOST - 1)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Memory> {
        // What a panic leaves is a place too many or too few.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places by their digests.
#[derive(Debug, Default)]
struct Memory {
    /// That clients are to come back to.
    waiting: Shelf,
    /// That they have come back to.
    used: Shelf,
}

impl Memory {
    fn recall(&mut self, digest: u64) -> Option<Vec<u8>> {
        if let Some(mut place) = self.waiting.take(digest) {
            let name = place.name.to_vec();
            place.scans -= 1;
            if place.scans > 0 {
                self.waiting.put(digest, place, CURSORS_WAITING_BYTES);
            } else {
                self.used.put(digest, place, CURSORS_USED_BYTES);
            }
            return Some(name);
        }
        self.used.get(digest).map(|place| place.name.to_vec())
    }

    /// Remembers a place, and answers its digest, or the next one if that is another's.
    fn keep(&mut self, name: &[u8]) -> u64 {
        let mut digest = digest_of(name);
        loop {
            let known = self.waiting.get(digest).or_else(|| self.used.get(digest));
            if known.is_none_or(|place| *place.name == *name) {
                break;
            }
            digest = (digest + 1).max(1) & ((1 << DIGEST_BITS) - 1);
        }
        let waiting = self.waiting.take(digest);
        let known = waiting.or_else(|| self.used.take(digest).map(|place| Place { scans: 0, ..place }));
        let mut place = known.unwrap_or_else(|| Place { name: name.into(), scans: 0 });
        place.scans = place.scans.saturating_add(1);
        self.waiting.put(digest, place, CURSORS_WAITING_BYTES);
        digest
    }
}

/// Some bits of a digest of `name`; not 0.
fn digest_of(name: &[u8]) -> u64 {
    let digest = Sha256::digest(name);
    let word = digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (word >> (u64::BITS - DIGEST_BITS)).max(1)
}

#[derive(Debug)]
struct Place {
    name: Box<[u8]>,
    /// How many scans are to come back to it; one at least while it waits.
    scans: u32,
}

/// Places in two halves: when the younger one is full, it becomes the older one, and that is forgotten.
#[derive(Debug, Default)]
struct Shelf {
    young: HashMap<u64, Place>,
    old: HashMap<u64, Place>,
    /// Those of the younger half.
    bytes: usize,
}

impl Shelf {
    fn get(&self, digest: u64) -> Option<&Place> {
        self.young.get(&digest).or_else(|| self.old.get(&digest))
    }

    fn take(&mut self, digest: u64) -> Option<Place> {
        match self.young.remove(&digest) {
            Some(place) => {
                self.bytes -= place.name.len() + PLACE_BYTES;
                Some(place)
            }
            None => self.old.remove(&digest),
        }
    }

    fn put(&mut self, digest: u64, place: Place, most: usize) {
        let bytes = place.name.len() + PLACE_BYTES;
        if self.bytes + bytes > most {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(digest, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes through `names` in steps of 10, `keeps` saying before each call whether the server still knows what it gave.
    fn scan(names: &[String], mut keeps: impl FnMut(usize) -> bool) -> (Vec<bool>, usize) {
        let (mut cursors, mut number, mut calls) = (Cursors::default(), 0, 0);
        let mut seen = vec![false; names.len()];
        loop {
            if !keeps(calls) {
                cursors = Cursors::default();
            }
            calls += 1;
            let scan = cursors.resume(number);
            let first = match &scan.behind {
                None => 0,
                Some(place) => names.partition_point(|name| name.as_bytes() <= &place[..]),
            };
            let end = names.len().min(first.saturating_add(scan.step(10)));
            seen[first..end].fill(true);
            if end == names.len() {
                return (seen, calls);
            }
            number = cursors.give(&scan, names[end - 1].as_bytes());
            assert!(number > 0 && number < 100_000_000_000_000, "{number}");
            assert_eq!(format!("{}", number as f64).parse(), Ok(number), "a double holds it");
        }
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("user:{number:09}")).collect()
    }

    #[test]
    fn a_scan_ends_and_misses_nothing_whatever_is_forgotten() {
        let names = names(100_000);
        let (seen, calls) = scan(&names, |_| true);
        assert_eq!((seen.contains(&false), calls), (false, 10_000));
        let (seen, calls) = scan(&names, |_| false);
        assert!(!seen.contains(&false) && calls <= 8, "forgotten each time: {calls} calls");
        let (seen, calls) = scan(&names, |calls| calls != 5_000);
        assert!(!seen.contains(&false) && calls < 6_300, "forgotten once: {calls} calls");
    }

    /// A slow client is remembered while others go through as many names as they like.
    #[test]
    fn who_goes_fast_does_not_push_out_who_goes_slowly() {
        let cursors = Cursors::default();
        let begun = cursors.resume(0);
        let slow = cursors.give(&begun, b"slow");
        let abandoned = CURSORS_WAITING_BYTES / 2 / (PLACE_BYTES + 20);
        for number in 0..200_000 {
            let name = format!("{number:020}");
            let quick = cursors.give(&begun, name.as_bytes());
            if number % (200_000 / abandoned) != 0 {
                assert_eq!(cursors.resume(quick).behind.as_deref(), Some(name.as_bytes()));
            }
        }
        for _ in 0..3 {
            assert_eq!(cursors.resume(slow), Scan { behind: Some(b"slow".to_vec()), again: 0 });
        }
        let memory = cursors.locked();
        for (shelf, most) in [(&memory.waiting, CURSORS_WAITING_BYTES), (&memory.used, CURSORS_USED_BYTES)] {
            let places = shelf.young.len() + shelf.old.len();
            assert!(places * (PLACE_BYTES + 4) <= 2 * most, "{places} places");
        }
    }

    #[test]
    fn two_scans_at_one_place_share_it_and_numbers_of_nobody_begin_again() {
        let cursors = Cursors::default();
        let begun = cursors.resume(0);
        assert_eq!(begun, Scan { behind: None, again: 0 });
        let number = cursors.give(&begun, b"x");
        assert_eq!(cursors.give(&begun, b"x"), number);
        assert_eq!(number, Cursors::default().give(&begun, b"x"), "every server gives the same");
        for _ in 0..3 {
            assert_eq!(cursors.resume(number).behind.as_deref(), Some(&b"x"[..]));
        }
        for nobody in [8, 1_000, number + 8, 114_890_000_000_000_007, 7, u64::MAX] {
            assert_eq!(cursors.resume(nobody), Scan { behind: None, again: 1 }, "{nobody}");
        }
        // What is given to a scan that has begun again says so.
        let again = cursors.resume(1_000);
        assert_eq!((again.step(10), again.step(usize::MAX)), (80, usize::MAX));
        let number = cursors.give(&again, b"x");
        assert_eq!(cursors.resume(number), Scan { behind: Some(b"x".to_vec()), again: 1 });
    }

    #[test]
    fn places_with_one_digest_are_apart() {
        let mut memory = Memory::default();
        let digest = digest_of(b"x");
        memory.used.put(digest, Place { name: (*b"other").into(), scans: 0 }, 1_000);
        let other = memory.keep(b"x");
        assert_ne!(other, digest);
        assert_eq!(memory.recall(other).as_deref(), Some(&b"x"[..]));
        assert_eq!(memory.recall(digest).as_deref(), Some(&b"other"[..]));
    }
}
