//! Hostile bytes for everything that reads pages and for every decoder.
//!
//! A reader meets torn pages, and `check` meets damaged ones: no answer is wrong there, but a panic, an
//! endless loop or an endless answer is. Pages are random, or good ones with fields, slots and bytes
//! changed, since those get deepest.
//!
//! `make fuzz SECONDS=n` runs each target n seconds, `cargo test` a fixed number of rounds. Each round has
//! its own seed; a panic prints it, and `PERILUNE_FUZZ_SEED=seed` begins with that round.

mod damage;
mod decoders;
mod pages;
mod race;
mod trees;

use std::time::{Duration, Instant};

use perilune_shm::words;

use crate::limits::{INLINE_MAX, PAGE, PAGE_HEAD, USER_KEY_MAX};
use crate::page::{
    empty_leaf, find, find_child, inner_count, inner_insert, inner_room, key_into, leaf_count, leaf_insert,
    leaf_remove, leaf_replace, new_root, put_identity, split, InnerSlots, NoSave, Page,
};

/// The number that generated pages say they have.
const NUMBER: u32 = 9;

/// Bounded time: far more than any round needs on a busy machine.
const ROUND_LONGEST: Duration = Duration::from_secs(20);

/// A generator that one seed determines (splitmix64).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    fn key(&mut self) -> Vec<u8> {
        let len = match self.below(12) {
            0 => self.below(USER_KEY_MAX) + 1,
            1..=4 => self.below(20) + 1,
            _ => self.below(5) + 1,
        };
        (0..len).map(|_| b"kab\0\xfe"[self.below(5)]).collect()
    }
}

/// Prints the seed of the round that panics.
struct Seed<'a>(&'a str, u64);

#[cfg(test)]
impl Drop for Seed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("fuzz {}: failed with PERILUNE_FUZZ_SEED={}", self.0, self.1);
        }
    }
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs a target: `rounds` rounds, or the seconds that the environment gives. Rounds answer how often
/// something was accepted; a target of which nothing ever is reaches nothing.
#[cfg(test)]
fn run(name: &str, rounds: u64, mut round: impl FnMut(&mut Random) -> u64) {
    // The tiny engine is tested beside the whole one, and without optimization.
    let rounds = if cfg!(feature = "tiny") { rounds / 4 } else { rounds };
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = number_in("PERILUNE_FUZZ_SEED").unwrap_or(clock.map_or(1, |time| time.as_micros() as u64));
    let seconds = number_in("PERILUNE_FUZZ_SECONDS");
    let start = Instant::now();
    let (mut done, mut accepted) = (0, 0);
    let mut longest = Duration::ZERO;
    let goes_on = |done| match seconds {
        Some(seconds) => start.elapsed() < Duration::from_secs(seconds),
        None => done < rounds,
    };
    println!("fuzz {name}: first seed {first}");
    while goes_on(done) {
        let seed = first.wrapping_add(done);
        let _printed = Seed(name, seed);
        let begun = Instant::now();
        accepted += round(&mut Random::new(seed));
        longest = longest.max(begun.elapsed());
        assert!(longest < ROUND_LONGEST, "a round took {longest:?}");
        done += 1;
    }
    println!("fuzz {name}: {done} rounds, {accepted} accepted, longest {longest:?}, first seed {first}");
    assert!(accepted > 0, "fuzz {name} reaches nothing");
}

/// A good leaf, with fences now and then.
fn good_leaf(random: &mut Random) -> Box<Page> {
    let mut leaf = empty_leaf(0);
    let mut last = Vec::new();
    // What most keys of some leaves begin with, so that their halves have stems.
    let start = if random.below(3) == 0 { &b"most begin so,"[..] } else { &[] };
    for _ in 0..random.below(160) {
        let mut key = random.key();
        if random.below(8) > 0 {
            key = [start, &key].concat();
            key.truncate(USER_KEY_MAX);
        }
        let longest = if random.below(20) == 0 { INLINE_MAX } else { 24 };
        let value = vec![random.next() as u8; random.below(longest + 1)];
        let found = find(&leaf, &key);
        let flags = u16::from(random.below(30) == 0);
        match (found.equal, random.below(4)) {
            (true, 0) => leaf_remove(&leaf, &mut NoSave, found.index),
            (true, _) => drop(leaf_replace(&leaf, &mut NoSave, found.index, flags, &value)),
            _ => drop(leaf_insert(&leaf, &mut NoSave, found.index, &key, flags, &value)),
        }
        last = key;
    }
    for _ in 0..random.below(3) {
        if leaf_count(&leaf) < 2 {
            break;
        }
        if let Some(halves) = split(&leaf, &last, random.below(leaf_count(&leaf) + 1), None) {
            leaf = if random.below(2) == 0 { halves.left } else { halves.right };
        }
    }
    put_identity(&leaf, NUMBER, 1);
    leaf
}

/// A good inner page whose children are below `children`.
fn good_inner(random: &mut Random, children: usize) -> Box<Page> {
    let page = new_root(1, 0, b"k", random.below(children) as u32, random.below(children) as u32);
    for _ in 0..random.below(120) {
        let key = random.key();
        let (index, _) = find_child(&page, &key);
        let mut there = Vec::new();
        key_into::<InnerSlots>(&page, index, &mut there);
        if inner_room(&page, &key) && !(index < inner_count(&page) && there == key) {
            inner_insert(&page, &mut NoSave, index, &key, random.below(children) as u32);
        }
    }
    put_identity(&page, NUMBER, 1);
    page
}

/// Changes a few fields of the head, slots, or any bytes.
fn mutate(random: &mut Random, page: &Page) {
    for _ in 0..random.below(6) {
        let odd = [0, 1, 3, 0x7fff, 0x8000, 0xffff, PAGE as u64, random.next()][random.below(8)];
        match random.below(4) {
            0 => words::put_u16(page, random.below(14) * 2, odd as u16),
            1 => words::put_u16(page, PAGE_HEAD + random.below(256) * 2, odd as u16),
            2 => words::put_u8(page, random.below(PAGE), random.next() as u8),
            _ => words::write(page, random.below(PAGE - 32), &random.bytes(32)),
        }
    }
}

/// Any page: random words, a mutated good one, one torn between two good ones, a good one.
fn any_page(random: &mut Random, children: usize) -> Box<Page> {
    if random.below(5) == 0 {
        let page = words::zeroed_box();
        words::write(&page, 0, &random.bytes(PAGE));
        // Kind and level that are let in.
        words::put_u16(&page, 0, 1 + random.below(2) as u16 * 0x0101);
        return page;
    }
    let good = |random: &mut Random| match random.below(2) {
        0 => good_leaf(random),
        _ => good_inner(random, children),
    };
    let page = good(random);
    match random.below(3) {
        0 => {
            let other = good(random);
            let mut half = vec![0; random.below(PAGE)];
            words::read(&other, 0, &mut half);
            words::write(&page, 0, &half);
        }
        1 => mutate(random, &page),
        _ => {}
    }
    page
}
