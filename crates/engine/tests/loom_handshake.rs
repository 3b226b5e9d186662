//! The publication handshake on real atomics, under loom's interleavings and reorderings.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p perilune-engine --test loom_handshake --release`.
//! Regions are std atomics in every build, so the engine's own code cannot run under loom: the functions
//! here mirror it line by line, with the same orderings; who changes one changes the other:
//! `Seat::publish`, `Seat::write_record`, `Seat::set_phase`, `Seat::set_applied` (`session/mod.rs`,
//! `session/record.rs`), `Epoch::read` (`session/epoch.rs`), `freeze`, `wait_applied`, `cut` and the lease
//! (`control.rs`), `raise` (`open/sessions.rs`).
//!
//! A waiter looks once instead of spinning: a look that fails ends its run, all that succeed are checked.
//! What a leader has seen is compared with what the writer did after both have ended. Each test has a
//! canary, the same with one ordering or step left out, that loom must find.
#![cfg(loom)]

use std::panic::catch_unwind;

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const FROZEN: u64 = 1;
const CHANGING: u64 = 1;
const NONE: u64 = 0;
/// Bytes of a record; positions are multiples of 8.
const RECORD: u64 = 8;

/// What a canary leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    No,
    /// `publish` takes the FROZEN bit along.
    IgnoreFrozen,
    /// A failed `publish` acquires nothing.
    RelaxedFailure,
    /// A successful `publish` releases nothing.
    RelaxedPublish,
    /// The leader does not freeze.
    NoFreeze,
    /// The leader does not wait.
    NoWait,
    /// The leader reads the sessions' mark by a plain load.
    PlainMark,
    /// The leader freezes before it stores its word.
    FreezeFirst,
}

struct Shm {
    flush: AtomicU64,
    generation: AtomicU64,
    lease: AtomicU64,
    sessions_high: AtomicU64,
    head: AtomicU64,
    applied: AtomicU64,
    step: AtomicU64,
    ring: [AtomicU64; 2],
    page: AtomicU64,
}

impl Shm {
    fn new() -> Arc<Shm> {
        Arc::new(Shm {
            flush: AtomicU64::new(1),
            generation: AtomicU64::new(1),
            lease: AtomicU64::new(0),
            sessions_high: AtomicU64::new(1),
            head: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            step: AtomicU64::new(0),
            ring: [AtomicU64::new(0), AtomicU64::new(0)],
            page: AtomicU64::new(0),
        })
    }

    // --- `session/mod.rs`, `session/epoch.rs` ----------------------------------------------------

    fn read_epoch(&self) -> Epoch {
        let flush = self.flush.load(Acquire);
        let generation = self.generation.load(Acquire);
        let lease = self.lease.load(Acquire);
        Epoch { flush, generation, lease }
    }

    fn publish(&self, len: u64, fault: Fault) -> bool {
        let mut head = self.head.load(Relaxed) & !FROZEN;
        if fault == Fault::IgnoreFrozen {
            head = self.head.load(Relaxed);
        }
        let (success, failure) = orderings(fault);
        if self.head.compare_exchange(head, head + len, success, failure).is_ok() {
            return true;
        }
        self.head.fetch_and(!FROZEN, if fault == Fault::RelaxedFailure { Relaxed } else { AcqRel });
        false
    }

    fn set_phase(&self, phase: u64) {
        let step = self.step.load(Relaxed);
        self.step.store((step >> 2) + 1 << 2 | phase, Release);
    }

    fn set_applied(&self) {
        let head = self.head.load(Relaxed) & !FROZEN;
        self.applied.store(head, Release);
    }

    // --- `control.rs` ----------------------------------------------------------------------------

    fn freeze(&self, fault: Fault) -> (u64, u64) {
        let head = if fault == Fault::NoFreeze {
            self.head.load(Acquire)
        } else {
            self.head.fetch_or(FROZEN, AcqRel) & !FROZEN
        };
        (head, self.step.load(Acquire))
    }

    /// One look of `wait_applied`.
    fn is_applied(&self, (head, step): (u64, u64), fault: Fault) -> bool {
        let waits = self.applied.load(Acquire) < head || step & 3 != NONE && self.step.load(Acquire) == step;
        !waits || fault == Fault::NoWait
    }
}

fn orderings(fault: Fault) -> (Ordering, Ordering) {
    match fault {
        Fault::RelaxedFailure => (AcqRel, Relaxed),
        Fault::RelaxedPublish => (Relaxed, Relaxed),
        _ => (AcqRel, Acquire),
    }
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    flush: u64,
    generation: u64,
    lease: u64,
}

/// What the writer did: one entry for each publication.
#[derive(Clone, Copy, Debug)]
struct Published {
    position: u64,
    value: u64,
    epoch: Epoch,
}

/// `sets` single-page writes in a row (`tree::write`): read E, write the record, publish, change the page,
/// set applied. One that meets a foreign lease gives up.
fn write(shm: &Shm, sets: u64, fault: Fault) -> Vec<Published> {
    let mut done = Vec::new();
    for value in 1..=sets {
        let mut epoch = shm.read_epoch();
        let position = shm.head.load(Relaxed) & !FROZEN;
        loop {
            if epoch.lease != 0 {
                return done;
            }
            shm.ring[value as usize - 1].store(epoch.flush << 8 | value, Relaxed);
            if shm.publish(RECORD, fault) {
                break;
            }
            epoch = shm.read_epoch();
        }
        done.push(Published { position, value, epoch });
        shm.set_phase(CHANGING);
        shm.page.store(value, Relaxed);
        shm.set_phase(NONE);
        shm.set_applied();
    }
    done
}

/// A structure change (`tree::structure`): the step begins before E is read; nothing moves the head.
fn restructure(shm: &Shm, fault: Fault) -> Vec<Published> {
    loop {
        shm.set_phase(CHANGING);
        let epoch = shm.read_epoch();
        if epoch.lease != 0 {
            shm.set_phase(NONE);
            return Vec::new();
        }
        if shm.publish(0, fault) {
            shm.page.store(1, Relaxed);
            shm.set_phase(NONE);
            return vec![Published { position: 0, value: 1, epoch }];
        }
        shm.set_phase(NONE);
    }
}

/// Explores all interleavings with at most `preemptions` preemptions (None: with any number).
fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(model);
}

fn must_be_found(name: &str, run: impl Fn() + std::panic::UnwindSafe) {
    assert!(catch_unwind(run).is_err(), "loom does not see: {name}");
}

// --- flush -----------------------------------------------------------------------------------------

/// A flush copies what lies below the head it froze: whole records, all of those with its old number.
fn flush(sets: u64, fault: Fault) {
    explore(Some(3), move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || write(&shm, sets, fault))
        };
        let (old, head);
        if fault == Fault::FreezeFirst {
            head = shm.freeze(fault).0;
            old = shm.flush.fetch_add(1, AcqRel);
        } else {
            old = shm.flush.fetch_add(1, AcqRel);
            head = shm.freeze(fault).0;
        }
        let copied: Vec<u64> =
            (0..head / RECORD).map(|index| shm.ring[index as usize].load(Relaxed)).collect();
        for published in writer.join().unwrap() {
            let index = (published.position / RECORD) as usize;
            match copied.get(index) {
                Some(record) => {
                    assert_eq!(*record, published.epoch.flush << 8 | published.value, "half a record");
                }
                None => assert!(published.epoch.flush > old, "a record of flush {old} was left out"),
            }
        }
    });
}

#[test]
fn a_flush_copies_every_record_of_its_number() {
    flush(2, Fault::No);
}

#[test]
fn faults_of_a_flush_are_found() {
    must_be_found("publication over a frozen head", || flush(1, Fault::IgnoreFrozen));
    must_be_found("failed publication that acquires nothing", || flush(1, Fault::RelaxedFailure));
    must_be_found("publication that releases nothing", || flush(1, Fault::RelaxedPublish));
    must_be_found("head read without freezing", || flush(1, Fault::NoFreeze));
    must_be_found("freezing before the word is stored", || flush(1, Fault::FreezeFirst));
}

/// Who reads the head without freezing it, as repair and a late flusher do, finds whole records below.
fn ring(success: Ordering) {
    explore(None, move || {
        let shm = Shm::new();
        let reader = {
            let shm = shm.clone();
            thread::spawn(move || {
                let head = shm.head.load(Acquire) & !FROZEN;
                (0..head / RECORD).map(|index| shm.ring[index as usize].load(Relaxed)).collect::<Vec<_>>()
            })
        };
        for value in 1..=2 {
            let head = shm.head.load(Relaxed) & !FROZEN;
            shm.ring[value as usize - 1].store(value, Relaxed);
            assert!(shm.head.compare_exchange(head, head + RECORD, success, Acquire).is_ok());
        }
        let read = reader.join().unwrap();
        assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>(), "half a record below the head");
    });
}

#[test]
fn records_below_an_acquired_head_are_whole() {
    ring(AcqRel);
}

#[test]
fn a_head_that_releases_nothing_is_found() {
    must_be_found("head moved without release", || ring(Relaxed));
}

// --- generation ------------------------------------------------------------------------------------

/// A cut that has waited sees on the page whatever was or will ever be done under the old generation.
fn cut(work: fn(&Shm, Fault) -> Vec<Published>, preemptions: usize, fault: Fault) {
    explore(Some(preemptions), move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || work(&shm, fault))
        };
        let old = shm.generation.load(Acquire);
        shm.generation.store(old + 1, SeqCst);
        shm.flush.fetch_add(1, AcqRel);
        let frozen = shm.freeze(fault);
        let page = shm.is_applied(frozen, fault).then(|| shm.page.load(Relaxed));
        let published = writer.join().unwrap();
        if let Some(page) = page {
            let last = published.iter().filter(|one| one.epoch.generation <= old).map(|one| one.value).max();
            assert!(page >= last.unwrap_or(0), "page {page} in the snapshot, {last:?} was set");
        }
        assert!(
            !published.iter().any(|one| one.epoch.generation <= old && one.epoch.flush > 1),
            "an old generation with a new flush number"
        );
    });
}

#[test]
fn a_cut_has_all_sets_of_the_old_generation() {
    cut(|shm, fault| write(shm, 2, fault), 3, Fault::No);
}

#[test]
fn a_cut_has_all_structure_changes_of_the_old_generation() {
    cut(restructure, 3, Fault::No);
}

#[test]
fn faults_of_a_cut_are_found() {
    for fault in [Fault::IgnoreFrozen, Fault::RelaxedFailure, Fault::NoFreeze, Fault::NoWait] {
        must_be_found("fault of a cut met by a set", move || {
            cut(|shm, fault| write(shm, 1, fault), 3, fault);
        });
        must_be_found("fault of a cut met by a structure change", move || cut(restructure, 3, fault));
    }
}

// --- lease -----------------------------------------------------------------------------------------

/// Who has stored the lease, frozen and waited is alone: nobody publishes beyond the cut, and the page
/// is as the last publication left it.
fn lease(work: fn(&Shm, Fault) -> Vec<Published>, fault: Fault) {
    explore(Some(3), move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || work(&shm, fault))
        };
        assert!(shm.lease.compare_exchange(0, 2, AcqRel, Acquire).is_ok());
        let frozen = shm.freeze(fault);
        let page = shm.is_applied(frozen, fault).then(|| shm.page.load(Relaxed));
        // The lease is never given back here, so the writer's last publication is the last before it.
        let published = writer.join().unwrap();
        let last = published.iter().map(|one| one.value).max().unwrap_or(0);
        let beyond = published.iter().filter(|one| one.position + RECORD > frozen.0).count();
        assert!(beyond == 0 || frozen.0 == 0 && shm.head.load(Relaxed) & !FROZEN == 0, "published under it");
        assert!(page.is_none_or(|page| page == last), "page {page:?} under the lease, {last} was set");
    });
}

#[test]
fn a_lease_excludes_sets() {
    lease(|shm, fault| write(shm, 2, fault), Fault::No);
}

#[test]
fn a_lease_excludes_structure_changes() {
    lease(restructure, Fault::No);
}

#[test]
fn faults_of_a_lease_are_found() {
    for fault in [Fault::IgnoreFrozen, Fault::RelaxedFailure, Fault::NoFreeze, Fault::NoWait] {
        must_be_found("fault of a lease met by a set", move || {
            lease(|shm, fault| write(shm, 1, fault), fault);
        });
        must_be_found("fault of a lease met by a structure change", move || lease(restructure, fault));
    }
}

// --- new sessions ----------------------------------------------------------------------------------

/// A session that is made while somebody freezes: it is frozen, or it reads the new word.
fn newcomer(fault: Fault) {
    explore(None, move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || {
                assert!(shm.sessions_high.compare_exchange(1, 2, AcqRel, Acquire).is_ok());
                write(&shm, 1, fault)
            })
        };
        let old = shm.flush.fetch_add(1, AcqRel);
        let high = if fault == Fault::PlainMark {
            shm.sessions_high.load(Acquire)
        } else {
            shm.sessions_high.fetch_or(0, AcqRel)
        };
        let head = if high < 2 { 0 } else { shm.freeze(fault).0 };
        for published in writer.join().unwrap() {
            assert!(
                published.position < head || published.epoch.flush > old,
                "a new session's record of flush {old} was left out"
            );
        }
    });
}

#[test]
fn new_sessions_are_frozen_or_see_the_word() {
    newcomer(Fault::No);
}

#[test]
fn a_mark_read_by_a_plain_load_is_found() {
    must_be_found("sessions' mark read by a plain load", || newcomer(Fault::PlainMark));
}
