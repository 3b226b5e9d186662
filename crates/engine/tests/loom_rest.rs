//! Going to rest, and being woken by the next write, on real atomics, under loom's interleavings and reorderings.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p perilune-engine --test loom_rest --release`. The functions here
//! mirror the engine's line by line, with the same orderings: `rest` and `end` (`idle.rs`), `ring`
//! (`image/wakeup.rs`), `Epoch::read` and `admits_slowly` (`session/epoch.rs`), `Seat::publish` (`session/mod.rs`),
//! `freeze` (`control.rs`), and what of `tend` (`log/flush.rs`) matters here. Who changes one changes the other. The
//! kernel's part, the futex, is played by a lock and a condition.
//!
//! A sleeper has no time limit here, so a write that is missed is a deadlock. Loom says so by ending the process: each
//! canary, the same with one step left out or out of order, runs in a process of its own, and must end like that.
#![cfg(loom)]

use std::process::Command;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const FROZEN: u64 = 1;
const RECORD: u64 = 8;
const IDLE: u64 = 8;
const IDLE_COUNT: u64 = 1 << 32;
/// Processes that flush.
const FLUSHERS: usize = 2;
/// Names the canary that a process is to run.
const CANARY: &str = "PERILUNE_LOOM_CANARY";

/// What a canary does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    No,
    /// The writer rings nobody.
    NoRing,
    /// Who goes to rest does not freeze the heads.
    NoFreeze,
    /// Who goes to rest looks for work before it raises the flag.
    LookFirst,
    /// Who goes to rest takes the bell's count after it has looked for work.
    LateBell,
    /// The flag is lowered although others may have gone to rest since the ringing.
    NoCount,
    /// The flag is lowered before the ringing, and whoever does it is killed in between.
    LowerFirst,
}

struct Shm {
    flags: AtomicU64,
    head: AtomicU64,
    tail: AtomicU64,
    bells: [AtomicU64; FLUSHERS],
    /// The duty of writing the log.
    duty: Mutex<()>,
    sleepers: (Mutex<()>, Condvar),
}

impl Shm {
    fn new() -> Arc<Shm> {
        let zero = || AtomicU64::new(0);
        let sleepers = (Mutex::new(()), Condvar::new());
        let (flags, head, tail, bells) = (zero(), zero(), zero(), [zero(), zero()]);
        Arc::new(Shm { flags, head, tail, bells, duty: Mutex::new(()), sleepers })
    }

    // --- `image/wakeup.rs`, and the futex without its time limit --------------------------------------------

    fn ring(&self) {
        for bell in &self.bells {
            bell.fetch_add(1, AcqRel);
            let (lock, sleepers) = &self.sleepers;
            drop(lock.lock().unwrap());
            sleepers.notify_all();
        }
    }

    fn sleep(&self, me: usize, rung: u64) {
        let (lock, sleepers) = &self.sleepers;
        let mut guard = lock.lock().unwrap();
        while self.bells[me].load(Acquire) == rung {
            guard = sleepers.wait(guard).unwrap();
        }
    }

    // --- `idle.rs` ------------------------------------------------------------------------------------------

    fn has_work(&self) -> bool {
        self.tail.load(Acquire) < self.head.load(Acquire) & !FROZEN
    }

    fn rest(&self, me: usize, fault: Fault) {
        let early = fault == Fault::LookFirst && self.has_work();
        let mut rung = self.bells[me].load(Acquire);
        let count = if fault == Fault::NoCount { 0 } else { IDLE_COUNT };
        let _ = self.flags.fetch_update(AcqRel, Acquire, |flags| Some((flags | IDLE).wrapping_add(count)));
        if fault != Fault::NoFreeze {
            self.head.fetch_or(FROZEN, AcqRel);
        }
        let has_work = if fault == Fault::LookFirst { early } else { self.has_work() };
        if fault == Fault::LateBell {
            rung = self.bells[me].load(Acquire);
        }
        if !has_work {
            self.sleep(me, rung);
        }
        if has_work || self.bells[me].load(Acquire) != rung {
            self.end(fault);
        }
    }

    fn end(&self, fault: Fault) {
        loop {
            let seen = self.flags.load(Acquire);
            if seen & IDLE == 0 {
                return;
            }
            if fault != Fault::LowerFirst {
                self.ring();
            }
            if self.flags.compare_exchange(seen, seen & !IDLE, AcqRel, Acquire).is_ok() {
                return;
            }
        }
    }

    // --- `session` --------------------------------------------------------------------------------------------

    fn publish(&self, fault: Fault) {
        loop {
            let flags = self.flags.load(Relaxed);
            if flags & IDLE != 0 && fault != Fault::NoRing {
                self.ring();
            }
            let head = self.head.load(Relaxed) & !FROZEN;
            if self.head.compare_exchange(head, head + RECORD, AcqRel, Acquire).is_ok() {
                return;
            }
            self.head.fetch_and(!FROZEN, AcqRel);
        }
    }

    // --- `log/flush.rs` -------------------------------------------------------------------------------------

    /// What the thread that flushes does until so many records are on disk.
    fn flush_until(&self, me: usize, records: u64, fault: Fault) {
        loop {
            if self.has_work() {
                self.end(fault);
                let duty = self.duty.lock().unwrap();
                let head = self.head.fetch_or(FROZEN, AcqRel) & !FROZEN;
                self.tail.store(head, Release);
                drop(duty);
            }
            if self.tail.load(Acquire) >= records * RECORD {
                return;
            }
            self.rest(me, fault);
        }
    }
}

fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// A process that flushes, and one that writes so many records.
fn one_rests(records: u64, preemptions: usize, fault: Fault) {
    explore(preemptions, move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || (0..records).for_each(|_| shm.publish(fault)))
        };
        shm.flush_until(0, records, fault);
        writer.join().unwrap();
    });
}

/// Two that flush, the second of which only ends the rest and is killed then, and one that writes after that: no
/// third may rest while writers need ring nobody.
fn one_rests_and_one_is_killed(fault: Fault) {
    explore(3, move || {
        let shm = Shm::new();
        shm.flags.store(IDLE, Release);
        let other = {
            let shm = shm.clone();
            thread::spawn(move || {
                shm.end(fault);
                shm.publish(fault);
            })
        };
        shm.flush_until(0, 1, fault);
        other.join().unwrap();
    });
}

/// Runs the model with a fault, in a process of its own.
fn run(fault: Fault) {
    match fault {
        Fault::NoCount | Fault::LowerFirst => one_rests_and_one_is_killed(fault),
        _ => one_rests(1, 3, fault),
    }
}

#[test]
fn canary_process() {
    let faults = [
        Fault::NoRing,
        Fault::NoFreeze,
        Fault::LookFirst,
        Fault::LateBell,
        Fault::NoCount,
        Fault::LowerFirst,
    ];
    let Ok(wanted) = std::env::var(CANARY) else {
        for fault in faults {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["canary_process", "--exact", "--nocapture"]).env(CANARY, format!("{fault:?}"));
            let output = child.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "loom does not see: {fault:?}");
            assert!(said.contains("deadlock"), "{fault:?}: {said}");
        }
        return;
    };
    faults.into_iter().filter(|fault| format!("{fault:?}") == wanted).for_each(run);
}

#[test]
fn no_write_is_missed_by_one_who_rests() {
    one_rests(1, 3, Fault::No);
    one_rests(2, 2, Fault::No);
}

#[test]
fn nobody_rests_while_writers_need_not_ring() {
    one_rests_and_one_is_killed(Fault::No);
}
