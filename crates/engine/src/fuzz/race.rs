//! One page, one writer under the latch, readers without: what they accept was published.
//!
//! The writer publishes states by number: state n is a pure function of n, so a reader that accepts a page
//! knows from one value which state it must be, whatever else it has read. Readers use every reading
//! function; whatever fails the check of the latch word is thrown away, however torn.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::latch::{self, State};
use perilune_shm::words;

use super::{run, Random};
use crate::page::{
    append_value, compacted, empty_leaf, find, hi_fence, leaf_count, leaf_insert, leaf_key, leaf_remove,
    leaf_replace, lo_fence, next_is, put_identity, NoSave, Page,
};

/// The key whose value is the number of the state.
const STATE: &[u8] = b"k/state";

const READERS: usize = 2;

/// Keys of state `n`: a window that slides, of lengths that move records about.
fn keys(state: u64) -> impl Iterator<Item = u64> {
    state..state + 40
}

fn key(number: u64) -> Vec<u8> {
    [b"k/key,".as_slice(), &number.to_be_bytes(), &vec![b'x'; number as usize % 11]].concat()
}

fn value(state: u64, number: u64) -> Vec<u8> {
    // One in five is rewritten with each state, with another length.
    let written = if number % 5 == state % 5 || number == state + 39 { state } else { 0 };
    let len = (number as usize * 7 + written as usize) % 60;
    [number.to_le_bytes().as_slice(), &vec![number as u8; len]].concat()
}

fn put(page: &Page, key: &[u8], value: &[u8]) {
    for _ in 0..2 {
        let found = find(page, key);
        let done = if found.equal {
            leaf_replace(page, &mut NoSave, found.index, 0, value)
        } else {
            leaf_insert(page, &mut NoSave, found.index, key, 0, value)
        };
        if done {
            return;
        }
        let drop = found.equal.then_some(found.index);
        words::copy(&compacted(page, drop).unwrap(), page);
    }
    panic!("the page is full");
}

fn remove(page: &Page, key: &[u8]) {
    let found = find(page, key);
    if found.equal {
        leaf_remove(page, &mut NoSave, found.index);
    }
}

/// Brings the page from the state before to `state`.
fn advance(page: &Page, state: u64) {
    if let Some(gone) = state.checked_sub(1) {
        remove(page, &key(gone));
    }
    for number in keys(state) {
        if state == 0 || number % 5 == state % 5 || number == state + 39 {
            put(page, &key(number), &value(state, number));
        }
    }
    put(page, STATE, &state.to_le_bytes());
}

/// Reads the page without the latch; the number of the state if the latch word lets it pass.
fn read(page: &Page, word: &AtomicU64, random: &mut Random, validates: bool) -> Option<u64> {
    let seen = latch::load(word);
    if seen.locked() {
        return None;
    }
    let (mut number, mut fences) = (Vec::new(), [Vec::new(), Vec::new()]);
    let found = find(page, STATE);
    append_value(page, found.index, &mut number);
    lo_fence(page, &mut fences[0]);
    hi_fence(page, &mut fences[1]);
    let slots = leaf_count(page);
    let index = random.below(42);
    let (mut some_key, mut some_value) = (Vec::new(), Vec::new());
    leaf_key(page, index, &mut some_key);
    append_value(page, index, &mut some_value);
    let again = find(page, &some_key);
    let next = next_is(page, index, &some_key, false);
    if validates && !latch::validate(word, seen) {
        return None;
    }
    assert!(found.equal, "the state's key is missing");
    let state = u64::from_le_bytes(number[..].try_into().unwrap());
    assert_eq!(state + 1, seen.version(), "a state of another version");
    assert_eq!((slots, &fences), (41, &[Vec::new(), Vec::new()]));
    if index < slots {
        assert!(again.equal && again.index == index);
        assert_eq!(next, Some(index + 1).filter(|next| *next < slots));
        if index < 40 {
            let expected = state + index as u64;
            assert_eq!(some_key, key(expected));
            assert_eq!(some_value[..8], expected.to_le_bytes());
        }
    }
    Some(state)
}

/// Lets a writer and readers at one page. Answers how many reads were accepted and how many states met.
fn race(seed: u64, states: u64, validates: bool) -> (u64, u64) {
    let page = empty_leaf(0);
    put_identity(&page, 9, 1);
    advance(&page, 0);
    let word = AtomicU64::new(latch::LatchWord::unlocked(State::Tree, 1).raw());
    let met = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (page, word) = (&page, &word);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ reader as u64);
                    let (mut accepted, mut met, mut last) = (0, 0, 0);
                    while latch::LatchWord::from_raw(word.load(Relaxed)).version() <= states {
                        if let Some(state) = read(page, word, &mut random, validates) {
                            assert!(state >= last, "a state came back");
                            accepted += 1;
                            met += u64::from(state != last);
                            last = state;
                        }
                    }
                    (accepted, met)
                })
            })
            .collect();
        let mut random = Random::new(seed);
        for state in 1..=states {
            // Gaps of all lengths: a reader needs about a microsecond for its look.
            (0..random.below(600)).for_each(|_| std::hint::spin_loop());
            let seen = latch::load(&word);
            assert!(latch::try_lock(&word, seen, 5));
            advance(&page, state);
            latch::release(&word, State::Tree, seen.version() + 1);
        }
        let ended = readers.into_iter().map(|reader| reader.join());
        ended.collect::<Vec<_>>()
    });
    met.into_iter().fold((0, 0), |sum, one| {
        let one = one.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (sum.0 + one.0, sum.1 + one.1)
    })
}

#[test]
fn accepted_reads_are_published_states() {
    let mut states = 0;
    run("race on one page", 5, |random| {
        let (accepted, met) = race(random.next(), 4_000, true);
        states += met;
        accepted
    });
    assert!(states > 1, "the readers met no change");
}

/// Without the check at the end some torn or stale page is taken for a state.
#[test]
fn readers_that_do_not_validate_are_found() {
    let torn = (0..200).any(|seed| std::panic::catch_unwind(|| race(seed, 4_000, false)).is_err());
    assert!(torn, "no reader without validation met a torn page");
}
