//! Leaves that others change, split or hold between the moment they are met and the one they are latched.

use std::sync::Arc;

use super::latched::Latched;
use crate::access::Access;
use crate::error::Stop;
use crate::image::Image;
use crate::page::{self, find};
use crate::session::record::{Kind, Op};
use crate::session::Seat;
use crate::tree::tests::scratch;
use crate::tree::{Descents, Which};

type Held<'a> = Latched<'a, 8>;

fn access(image: &Arc<Image>, session: u16) -> Access {
    Access::new(Seat::new(image.clone(), session))
}

fn key(number: usize) -> Vec<u8> {
    format!("k{number:05}").into_bytes()
}

/// A tree of some leaves, `k00000`, `k00010` and so on.
fn grown(access: &Access) {
    for number in 0..1_000 {
        access.set(Which::Main, &key(number * 10), &[7; 100]).unwrap();
    }
}

fn value(access: &Access, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    access.get(Which::Main, key, &mut value, &mut ()).unwrap().then_some(value)
}

fn ops(keys: &[Vec<u8>]) -> Vec<Op<'_>> {
    let op = |key| Op { kind: Kind::Set, volatile: false, big: false, key, value: b"new" };
    keys.iter().map(Vec::as_slice).map(op).collect()
}

/// Meets the leaves of all operations, and their places.
fn meet(access: &Access, held: &mut Held<'_>, ops: &[Op<'_>]) {
    let image = &access.seat.image;
    let from = Descents::new(image, &access.fingers).unwrap();
    for (at, op) in ops.iter().enumerate() {
        let leaf = from.leaf_of(op.key).unwrap();
        held.meet(at, leaf);
        held.put(at, find(image.page(leaf.number), op.key));
    }
}

/// Of two leaves, one changes under a key of each kind: those that are there, and those that are not.
#[test]
fn in_a_leaf_that_has_changed_places_are_found_anew() {
    let image = scratch(4_000);
    let (one, other) = (access(&image, 1), access(&image, 2));
    grown(&one);
    let keys = [1_000, 1_010, 1_012, 7_000, 7_005].map(key);
    let ops = ops(&keys);
    let operation = one.operation();
    let mut held = Held::new(&one.seat);
    meet(&one, &mut held, &ops);
    let before: Vec<_> = (0..ops.len()).map(|at| held.place_of(at)).collect();
    assert!(other.set(Which::Main, &key(1_005), b"beside").is_ok());
    held.latch_met(&ops).unwrap();
    for (at, op) in ops.iter().enumerate() {
        let place = held.place_of(at);
        assert_eq!(place, find(image.page(held.leaf_of(at)), op.key), "{at}");
        let is_moved = at == 1 || at == 2;
        assert_eq!(place.index, before[at].index + usize::from(is_moved), "{at}");
        assert_eq!(place.equal, before[at].equal, "{at}");
    }
    assert_eq!(held.short_of_room(&ops), None);
    let (len, epoch) = (one.seat.write_ops(&ops), held.epoch().unwrap());
    assert_eq!(held.publish(&ops, len, epoch).unwrap(), None);
    drop(operation);
    for key in &keys {
        assert_eq!(value(&other, key).as_deref(), Some(&b"new"[..]));
    }
    assert_eq!(value(&one, &key(1_005)).as_deref(), Some(&b"beside"[..]));
    assert_eq!(one.seat.held(), (Vec::new(), false));
}

#[test]
fn a_leaf_that_has_given_a_key_away_is_to_be_met_again() {
    let image = scratch(4_000);
    let (one, other) = (access(&image, 1), access(&image, 2));
    grown(&one);
    let leaf_of =
        |number| Descents::new(&image, &other.fingers).unwrap().leaf_of(&key(number)).unwrap().number;
    let first = (100..900).find(|number| leaf_of(number * 10) == leaf_of(number * 10 + 200)).unwrap() * 10;
    let keys = [first, first + 200].map(key);
    let ops = ops(&keys);
    let operation = one.operation();
    let mut held = Held::new(&one.seat);
    meet(&one, &mut held, &ops);
    for number in 0.. {
        if leaf_of(first) != leaf_of(first + 200) {
            break;
        }
        other.set(Which::Main, &key(first + 1 + number % 9 + number / 9 * 10), &[8; 100]).unwrap();
    }
    assert!(matches!(held.latch_met(&ops), Err(Stop::Restart)));
    held.release_unchanged();
    drop(operation);
    let pairs: Vec<(&[u8], &[u8])> = ops.iter().map(|op| (op.key, op.value)).collect();
    assert!(one.set_all_unless_parents(&pairs).unwrap());
    assert_eq!(value(&other, &keys[1]).as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_leaf_that_somebody_holds_is_waited_for_briefly() {
    let image = scratch(4_000);
    let (one, other) = (access(&image, 1), Seat::new(image.clone(), 2));
    grown(&one);
    let keys = [1_000, 7_000].map(key);
    let ops = ops(&keys);
    let operation = one.operation();
    let mut held = Held::new(&one.seat);
    let last = Descents::new(&image, &one.fingers).unwrap().leaf_of(&keys[1]).unwrap();
    meet(&one, &mut held, &ops);
    assert!(other.try_latch(last.number, last.word));
    assert!(matches!(held.latch_met(&ops), Err(Stop::Busy(number)) if number == last.number));
    assert!(held.has(held.leaf_of(0)) && !held.has(last.number));
    // He has changed nothing: it goes on where it was.
    other.release_unchanged(last.number);
    held.latch_met(&ops).unwrap();
    assert!(held.has(last.number));
    held.release_unchanged();
    drop(operation);
    assert!(other.try_latch(last.number, last.word), "as it was");
    other.release_unchanged(last.number);
}

#[test]
fn leaves_of_an_earlier_generation_are_to_be_copied() {
    use std::sync::atomic::Ordering::Release;
    let image = scratch(4_000);
    let one = access(&image, 1);
    grown(&one);
    let generation = image.control(crate::image::layout::control::GEN);
    generation.store(2, Release);
    // One of the two leaves is of this generation.
    one.set(Which::Main, &key(7_000), &[7; 100]).unwrap();
    let keys = [1_000, 7_000].map(key);
    let ops = ops(&keys);
    for (range, is_good) in [(0..2, false), (0..1, false), (1..2, true)] {
        let operation = one.operation();
        let mut held = Held::new(&one.seat);
        meet(&one, &mut held, &ops[range.clone()]);
        held.latch_met(&ops[range]).unwrap();
        assert_eq!(held.epoch().is_ok(), is_good);
        assert!(is_good || matches!(held.epoch(), Err(Stop::Copy)));
        held.release_unchanged();
        drop(operation);
    }
}

#[test]
fn a_record_grows_by_what_it_needs_beyond_what_it_takes() {
    let image = scratch(4_000);
    let one = access(&image, 1);
    grown(&one);
    let leaf = Descents::new(&image, &one.fingers).unwrap().leaf_of(&key(5_000)).unwrap();
    let page = image.page(leaf.number);
    let mut record = Vec::new();
    for index in 0..page::leaf_count(page) {
        page::leaf_key(page, index, &mut record);
        for len in 0..200 {
            let beyond = page::need(page, &record, len).saturating_sub(page::taken(page, index));
            assert_eq!(page::growth(page, index, len), beyond, "{index} {len}");
        }
    }
}
