//! Work under way is not damage, and damage is found all the same.
//!
//! A kill storm was told "page 131: session 1 holds its latch" after all its processes had been killed and waited
//! for. Page 131 is the root of the volatile tree, and session 1 the first that is free once all are repaired: the
//! verifying process's own warden had just claimed it, to take the locks of the dead out of that tree.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

use perilune_shm::latch;

use super::*;
use crate::image::layout::{Owner, ProcessState};
use crate::tree::tests::scratch;

const OTHER: Owner = Owner { slot: 1, incarnation: 7 };

fn volatile_root(image: &Image) -> u32 {
    image.control(Which::Volatile.root_word()).load(Acquire) as u32
}

/// Session 1 of `owner`, inside an operation, with a latch.
fn busy(image: &Arc<Image>, owner: Owner) -> Seat {
    let seat = Seat::new(image.clone(), 1);
    seat.owner_word().store(owner.to_word(), Release);
    seat.enter();
    let root = volatile_root(image);
    assert!(seat.try_latch(root, latch::load(image.latch(root))));
    seat
}

fn attach_other(image: &Image) {
    let live = ProcessState::Live { incarnation: OTHER.incarnation };
    image.process_word(OTHER.slot.into()).store(live.to_word(), Release);
}

fn told(result: Result<VerifyReport, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_our_own_warden_is_at_is_waited_for() {
    let image = scratch(1024);
    let warden = busy(&image, image.me);
    let mut pauses = 0;
    let report = settled(&image, &mut || {
        pauses += 1;
        warden.release(volatile_root(&image), 0);
        warden.forget_notes();
        warden.leave();
    });
    assert_eq!(report.unwrap().volatile_pages, 1);
    assert_eq!(pauses, 1);
}

#[test]
fn what_has_ended_since_it_was_met_is_looked_at_again() {
    let image = scratch(1024);
    let before = Work::of(&image);
    let warden = Seat::new(image.clone(), 1);
    assert!(Work::of(&image) == before);
    warden.enter();
    assert!(Work::of(&image).is_under_way);
    assert!(warden.publish(8));
    warden.leave();
    let after = Work::of(&image);
    assert!(!after.is_under_way && after != before, "a write that has begun and ended shows");
}

#[test]
fn who_was_killed_and_seems_to_live_is_waited_for_and_repaired() {
    let mut image = scratch(1024);
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    Arc::get_mut(&mut image).unwrap().liveness = Box::new(move |_| count.fetch_add(1, Relaxed) < 2);
    attach_other(&image);
    let dying = busy(&image, OTHER);
    let mut pauses = 0;
    settled(&image, &mut || pauses += 1).unwrap();
    assert_eq!((pauses, asked.load(Relaxed)), (2, 3));
    assert!(image.is_only_process());
    assert_eq!(dying.owner_word().load(Acquire), 0);
}

#[test]
fn who_lives_on_and_holds_a_latch_is_told() {
    let image = scratch(1024);
    attach_other(&image);
    let _stuck = busy(&image, OTHER);
    let mut pauses = 0;
    let result = settled(&image, &mut || pauses += 1);
    assert!(told(result).contains("session 1 holds its latch"));
    assert!(pauses >= LOOKS - 1, "{pauses}");
}

#[test]
fn damage_under_nobodys_hands_is_told_at_once() {
    let image = scratch(1024);
    let root = volatile_root(&image);
    let gone = Seat::new(image.clone(), 1);
    assert!(gone.try_latch(root, latch::load(image.latch(root))));
    let result = settled(&image, &mut || unreachable!("nobody is at work"));
    assert!(told(result).contains("session 1 holds its latch"));
}
