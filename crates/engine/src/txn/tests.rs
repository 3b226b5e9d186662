//! Commits and repair while somebody changes an inner page above the leaves they hold; what is noted of reads.
//!
//! A kill storm found commits that panicked, and repairs that failed: applying a removal looks for its
//! leaves once more, and they had taken it for granted that nothing on the way is latched.

use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use perilune_shm::latch;
use perilune_store::Error;

use super::Transaction;
use crate::access::Access;
use crate::image::layout::control;
use crate::image::Image;
use crate::repair;
use crate::session::record::{Kind, Op};
use crate::session::Seat;
use crate::tree::tests::scratch;
use crate::tree::{descend, Neighbour, Seek, Wanted, Which};

const KEY: &[u8] = b"k00500";
/// How long a wait that should last is watched.
const WATCHED: Duration = Duration::from_millis(30);

/// A tree of two levels.
fn grown() -> Arc<Image> {
    let image = scratch(4_000);
    let access = Access::new(Seat::new(image.clone(), 1));
    for number in 0..1_000 {
        access.set(Which::Main, format!("k{number:05}").as_bytes(), &[7; 100]).unwrap();
    }
    image
}

/// Latches the root for somebody else.
fn latch_root(image: &Arc<Image>) -> (Seat, u32) {
    let seat = Seat::new(image.clone(), 2);
    let root = image.control(control::ROOT).load(Acquire) as u32;
    assert!(seat.try_latch(root, latch::load(image.latch(root))));
    (seat, root)
}

fn is_there(image: &Arc<Image>) -> bool {
    let access = Access::new(Seat::new(image.clone(), 3));
    access.get(Which::Main, KEY, &mut Vec::new(), &mut ()).unwrap()
}

#[test]
fn a_removal_is_applied_under_an_inner_page_that_somebody_changes() {
    let image = grown();
    let latched = Barrier::new(2);
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| {
            let access = Access::new(Seat::new(image.clone(), 1));
            // From now on the leaf is found without its parent.
            assert!(access.get(Which::Main, KEY, &mut Vec::new(), &mut ()).unwrap());
            latched.wait();
            latched.wait();
            access.atomically(Instant::now() + Duration::from_secs(30), |_, txn| {
                txn.remove_prefix(Which::Main, KEY);
                Ok(())
            })
        });
        latched.wait();
        let (seat, root) = latch_root(&image);
        latched.wait();
        let remover = Seat::new(image.clone(), 1);
        while remover.head() == remover.applied() && !removing.is_finished() {
            std::thread::yield_now();
        }
        let published = Instant::now();
        while published.elapsed() < WATCHED && !removing.is_finished() {
            std::thread::yield_now();
        }
        seat.release_unchanged(root);
        seat.forget_latch();
        removing.join().unwrap().unwrap();
    });
    assert!(!is_there(&image));
}

#[test]
fn a_removal_of_the_dead_is_applied_under_an_inner_page_that_somebody_changes() {
    let image = grown();
    let dead = Seat::new(image.clone(), 1);
    dead.enter();
    let leaf = descend(&image, Which::Main, KEY, 0).unwrap();
    assert!(dead.try_latch(leaf.number, leaf.word));
    dead.set_seq(leaf.word.version());
    let op = Op { kind: Kind::RemovePrefix, volatile: false, big: false, key: KEY, value: b"" };
    let len = dead.write_record(image.generation(), 1, &[op], &[]);
    assert!(dead.publish(len));
    let (seat, root) = latch_root(&image);
    std::thread::scope(|scope| {
        let repairing = scope.spawn(|| repair::session(&Seat::new(image.clone(), 1)));
        let begun = Instant::now();
        while begun.elapsed() < WATCHED && !repairing.is_finished() {
            std::thread::yield_now();
        }
        seat.release_unchanged(root);
        seat.forget_latch();
        repairing.join().unwrap().unwrap();
    });
    assert!(!is_there(&image));
}

#[test]
fn what_is_asked_again_and_again_is_noted_once() {
    let image = grown();
    let access = Access::new(Seat::new(image.clone(), 1));
    let mut txn = Transaction::new();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut ask = |txn: &mut Transaction, key: &mut Vec<u8>| {
        let bound = b"l0000\xff";
        access
            .txn_neighbour(
                txn,
                Which::Main,
                Seek { from: b"l0000", side: Neighbour::AtOrNext, bound },
                key,
                Some(Wanted::whole(&mut value)),
            )
            .unwrap()
    };
    for number in 0..1_000 {
        assert!(!ask(&mut txn, &mut key));
        let other = format!("k{:05}", number % 100);
        assert!(access.txn_get(&mut txn, Which::Main, other.as_bytes(), &mut Vec::new()).unwrap());
    }
    assert_eq!(txn.reads.query_count(), 101);
    // What it has set there itself is no question to the tree.
    txn.set(Which::Main, b"l0000", b"own");
    assert!(ask(&mut txn, &mut key));
    assert_eq!((&key[..], &value[..]), (&b"l0000"[..], &b"own"[..]));
    assert_eq!(txn.reads.query_count(), 101);
    // Another's write to what was read is a conflict as before.
    let other = Access::new(Seat::new(image.clone(), 2));
    other.set(Which::Main, b"l00001", b"theirs").unwrap();
    assert!(matches!(access.commit(&mut txn, None), Err(Error::Conflict)));
}
