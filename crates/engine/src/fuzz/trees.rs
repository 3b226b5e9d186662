//! Reading a tree whose pages are garbage: one attempt ends, in an answer or in `Restart`.
//!
//! All pages say TREE and are unlocked, so nothing stops a reader but what it reads; children lead
//! anywhere, also back up, and fences do not fit. Nobody writes, so every check of a word succeeds.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use perilune_shm::latch::{self, State};
use perilune_shm::words;
use perilune_store::{Entries, Error, Origin, Scan, Span};

use super::{any_page, good_inner, good_leaf, run, Random};
use crate::error::{Attempt, Stop};
use crate::image::layout::control;
use crate::image::Image;
use crate::limits::{HEIGHT_MAX, SEGMENT_RESERVED};
use crate::page::{
    empty_leaf, inner_count, inner_set_child, kind, leaf_insert, leaf_remove, new_root, split, NoSave, INNER,
};
use crate::tree::tests::scratch;
use crate::tree::{self, Fingers, Neighbour, Reader, Seek, Wanted, Which};

/// Pages of garbage, from the first page of data on.
const PAGES: usize = 24;

fn garbage(random: &mut Random, image: &Arc<Image>) {
    let first = SEGMENT_RESERVED as u32;
    let beyond = first as usize + PAGES + 2;
    for number in first..first + PAGES as u32 {
        let page = match random.below(4) {
            0 => good_leaf(random),
            1 => good_inner(random, beyond),
            _ => any_page(random, beyond),
        };
        words::copy(&page, image.page(number));
        let word = match random.below(30) {
            0 => latch::LatchWord::locked_by(7, State::Tree, 1),
            1 => latch::LatchWord::unlocked(State::Dead, 1),
            2 => latch::LatchWord::unlocked(State::Extent, 1),
            3 => latch::LatchWord::unlocked(State::Unproved, 1),
            _ => latch::LatchWord::unlocked(State::Tree, 1),
        };
        image.latch(number).store(word.raw(), Relaxed);
    }
    for which in [Which::Main, Which::Volatile] {
        let root = first as usize + random.below(PAGES);
        image.control(which.root_word()).store(root as u64, Relaxed);
    }
    image.control(control::NPAGES).store(beyond as u64, Relaxed);
}

/// Inner pages lead to garbage: in good ones the children are turned to pages that exist.
fn lead_inwards(random: &mut Random, image: &Arc<Image>) {
    let first = SEGMENT_RESERVED as u32;
    for number in first..first + PAGES as u32 {
        let page = image.page(number);
        if kind(page) != INNER {
            continue;
        }
        for index in 0..inner_count(page) + 1 {
            let child = first + random.below(PAGES) as u32;
            inner_set_child(page, &mut NoSave, index, child);
        }
    }
}

fn is_end<T>(attempt: &Attempt<T>) -> bool {
    let is_told = |error: &Error| matches!(error, Error::Corrupt { .. } | Error::Lost { .. });
    match attempt {
        Ok(_) | Err(Stop::Restart | Stop::Busy(_)) => true,
        Err(Stop::Fail(error)) => is_told(error),
        _ => false,
    }
}

/// One attempt of each reading function at one key. Answers how many came to an answer.
fn attempts(image: &Image, fingers: &Fingers, which: Which, from: &[u8]) -> u64 {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut answered = 0;
    let got = tree::get(Reader { image, fingers, which, me: 0 }, from, &mut value, &mut ());
    let had = tree::has_value(Reader { image, fingers, which, me: 0 }, from, &mut ());
    for attempt in [got, had] {
        assert!(is_end(&attempt), "{attempt:?}");
        answered += u64::from(attempt.is_ok());
    }
    let present = tree::presence(Reader { image, fingers, which, me: 0 }, from);
    assert!(is_end(&present), "{present:?}");
    for side in [Neighbour::Next, Neighbour::AtOrNext, Neighbour::Previous] {
        let mut seen = Vec::new();
        let attempt = tree::neighbour(
            Reader { image, fingers, which, me: 0 },
            Seek { from, side, bound: &[] },
            &mut key,
            Some(Wanted::whole(&mut value)),
            &mut seen,
        );
        assert!(is_end(&attempt), "{attempt:?}");
        assert!(seen.len() <= PAGES * HEIGHT_MAX, "an answer rests on {} leaves", seen.len());
        answered += u64::from(attempt.is_ok());
    }
    let far = [from, &[0x80]].concat();
    for backwards in [false, true] {
        for (most, high) in [(3, &far[..]), (u64::MAX, &far), (u64::MAX, &[0xff])] {
            let (span, mut seen) = (Span { low: from, high, backwards, most }, Vec::new());
            let attempt = tree::count(image, which, &span, 0, &mut key, &mut seen);
            assert!(is_end(&attempt), "{attempt:?}");
            answered += u64::from(attempt.is_ok());
        }
    }
    for backwards in [false, true] {
        answered += walk(image, fingers, which, (from, backwards));
    }
    let span = Span { low: from, high: &[0xff], backwards: false, most: u64::MAX };
    let mut groups = tree::Groups::new(which, &span, &|key| key.len() / 2);
    let attempt = loop {
        match groups.step(image) {
            Ok(true) => {}
            attempt => break attempt,
        }
    };
    assert!(is_end(&attempt), "{attempt:?}");
    answered + u64::from(attempt.is_ok())
}

/// Some readings of many entries, each from where the one before has ended.
fn walk(image: &Image, fingers: &Fingers, which: Which, (from, backwards): (&[u8], bool)) -> u64 {
    let (mut from, mut after, mut answered) = (from.to_vec(), Origin::default(), 0);
    let bound: &[u8] = if backwards { &[1] } else { &[0xff] };
    for most in [1, 3, usize::MAX] {
        let (mut entries, mut seen) = (Entries::default(), Vec::new());
        let scan = Scan { from: &from, inclusive: most == 1, bound, backwards, values: true, most, after };
        let attempt = tree::entries(Reader { image, fingers, which, me: 0 }, &scan, &mut entries, &mut seen);
        assert!(is_end(&attempt), "{attempt:?}");
        assert!(seen.len() <= PAGES * HEIGHT_MAX, "an answer rests on {} leaves", seen.len());
        let Ok(tree::Read::Some(leaf, next)) = attempt else { break };
        after = Origin { place: leaf.number.into(), version: leaf.word.raw(), next, ..after };
        entries.last_key().clone_into(&mut from);
        answered += 1;
    }
    answered
}

#[test]
fn attempts_on_garbage_end() {
    let image = scratch(400);
    run("trees of garbage", 400, |random| {
        garbage(random, &image);
        if random.below(4) > 0 {
            lead_inwards(random, &image);
        }
        let fingers = Fingers::default();
        let mut answered = 0;
        for _ in 0..20 {
            let from = random.key();
            answered += attempts(&image, &fingers, Which::Main, &from);
            answered += attempts(&image, &fingers, Which::Volatile, &from);
        }
        answered
    });
}

/// The story: an empty leaf whose upper fence is `m`, and a root that leads every key to it. The search for
/// what follows the fence came back to the same leaf, for ever, each check of its word succeeding.
#[test]
fn a_leaf_that_follows_itself_does_not_hold_up_its_reader() {
    let image = scratch(400);
    let (leaf, root) = (SEGMENT_RESERVED as u32, SEGMENT_RESERVED as u32 + 1);
    let whole = empty_leaf(0);
    assert!(leaf_insert(&whole, &mut NoSave, 0, b"m", 0, b""));
    let left = split(&whole, b"n", 1, None).map(|halves| halves.left).unwrap();
    leaf_remove(&left, &mut NoSave, 0);
    words::copy(&left, image.page(leaf));
    words::copy(&new_root(1, 0, b"m", leaf, leaf), image.page(root));
    image.latch(root).store(latch::LatchWord::unlocked(State::Tree, 1).raw(), Relaxed);
    image.control(control::ROOT).store(root.into(), Relaxed);
    let span = Span { low: b"a", high: b"z", backwards: false, most: u64::MAX };
    let attempt = tree::count(&image, Which::Main, &span, 0, &mut Vec::new(), &mut ());
    assert!(matches!(attempt, Err(Stop::Restart)), "{attempt:?}");
    let mut groups = tree::Groups::new(Which::Main, &span, &|_| 0);
    let attempt = (0..3).try_for_each(|_| groups.step(&image).map(drop));
    assert!(matches!(attempt, Err(Stop::Restart)), "{attempt:?}");
    for side in [Neighbour::Next, Neighbour::AtOrNext] {
        let (fingers, mut key) = (Fingers::default(), Vec::new());
        let attempt = tree::neighbour(
            Reader { image: &image, fingers: &fingers, which: Which::Main, me: 0 },
            Seek { from: b"a", side, bound: &[] },
            &mut key,
            None,
            &mut (),
        );
        assert!(matches!(attempt, Err(Stop::Restart)), "{attempt:?}");
    }
}
