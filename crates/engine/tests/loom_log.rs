//! From the rings to the disk, on real atomics, under loom's interleavings and reorderings.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p perilune-engine --test loom_log --release`. The functions
//! here mirror the engine's line by line, with the same orderings (compare `loom_handshake.rs`): `Seat::publish`
//! and `Seat::set_tail` (`session/mod.rs`), `write_owned`, `lead` and `wait` (`log/flush.rs`), `select`
//! (`log/position.rs`), `try_take` (`duty.rs`). A ring holds one record; a batch is the set of its records. The
//! kernel's part is played by locks: the file, what of it is on disk, and the futex.
//!
//! Nothing is written before it is whole, what is acknowledged is on disk, nothing is written twice or left out,
//! and who sleeps is woken by nothing but the bell (the engine's also look every 20 ms): a lost wake is a deadlock,
//! which ends the test's process, so its canaries run in processes of their own. Each canary is the same
//! with one step left out or out of order, which loom must find.
#![cfg(loom)]

use std::panic::catch_unwind;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const FROZEN: u64 = 1;
/// Bytes of a record, and of a ring.
const RECORD: u64 = 8;
const WRITERS: usize = 2;

/// What a canary does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    No,
    /// The flush number is read, not raised.
    NoRaise,
    /// Heads are read, not frozen.
    NoFreeze,
    /// Waiters are told before the disk has answered.
    DurableFirst,
    /// The ring is used again without a look at its tail.
    NoLook,
    /// Who waits takes the bell's count after it has looked.
    LateBell,
    /// Who leads wakes the others before it has given the duty back.
    RingFirst,
}

struct Session {
    head: AtomicU64,
    tail: AtomicU64,
    /// The record's flush number, and twice its content.
    flush: AtomicU64,
    words: [AtomicU64; 2],
}

struct Shm {
    flush: AtomicU64,
    durable_flush: AtomicU64,
    sync_owner: AtomicU64,
    log_owner: AtomicU64,
    selector: AtomicU64,
    /// The end of the interval of the last batch, twice.
    position: [AtomicU64; 2],
    bell: AtomicU64,
    sessions: [Session; WRITERS],
    file: Mutex<Vec<u64>>,
    disk: Mutex<Vec<u64>>,
    sleepers: (Mutex<()>, Condvar),
}

fn zero() -> AtomicU64 {
    AtomicU64::new(0)
}

impl Shm {
    fn new() -> Arc<Shm> {
        let session = || Session { head: zero(), tail: zero(), flush: zero(), words: [zero(), zero()] };
        Arc::new(Shm {
            flush: AtomicU64::new(1),
            durable_flush: zero(),
            sync_owner: zero(),
            log_owner: zero(),
            selector: zero(),
            position: [zero(), zero()],
            bell: zero(),
            sessions: [session(), session()],
            file: Mutex::new(Vec::new()),
            disk: Mutex::new(Vec::new()),
            sleepers: (Mutex::new(()), Condvar::new()),
        })
    }

    /// Publishes a record of this content; its flush number.
    fn publish(&self, id: usize, content: u64) -> u64 {
        let session = &self.sessions[id];
        loop {
            let flush = self.flush.load(Acquire);
            let head = session.head.load(Relaxed) & !FROZEN;
            session.flush.store(flush, Relaxed);
            session.words.iter().for_each(|word| word.store(content, Relaxed));
            if session.head.compare_exchange(head, head + RECORD, AcqRel, Acquire).is_ok() {
                return flush;
            }
            session.head.fetch_and(!FROZEN, AcqRel);
        }
    }

    fn try_take(&self, duty: &AtomicU64, me: u64) -> bool {
        duty.load(Acquire) == 0 && duty.compare_exchange(0, me, AcqRel, Acquire).is_ok()
    }

    fn drop_duty(&self, duty: &AtomicU64, me: u64) {
        let _ = duty.compare_exchange(me, 0, AcqRel, Acquire);
    }

    /// One batch. The caller has the duty `log`.
    fn write_owned(&self, fault: Fault) -> u64 {
        let selected = self.selector.load(Acquire);
        let after = self.position[selected as usize & 1].load(Acquire);
        let until =
            if fault == Fault::NoRaise { self.flush.load(Acquire) } else { self.flush.fetch_add(1, AcqRel) };
        let heads: Vec<u64> = self
            .sessions
            .iter()
            .map(|session| match fault {
                Fault::NoFreeze => session.head.load(Acquire) & !FROZEN,
                _ => session.head.fetch_or(FROZEN, AcqRel) & !FROZEN,
            })
            .collect();
        let (mut batch, mut tails) = (Vec::new(), Vec::new());
        for (session, head) in self.sessions.iter().zip(heads) {
            let mut at = session.tail.load(Acquire);
            if at < head && session.flush.load(Relaxed) <= until {
                if session.flush.load(Relaxed) > after {
                    let [first, second] = [0, 1].map(|index: usize| session.words[index].load(Relaxed));
                    assert!(first == second && first != 0, "a record is torn: {first} {second}");
                    batch.push(first);
                }
                at = head;
            }
            tails.push(at);
        }
        if !batch.is_empty() {
            let mut file = self.file.lock().unwrap();
            assert!(batch.iter().all(|record| !file.contains(record)), "{batch:?} after {file:?}");
            file.extend(batch);
            drop(file);
            let next = self.selector.load(Relaxed) + 1;
            self.position[next as usize & 1].store(until, Release);
            self.selector.store(next, Release);
        }
        for (session, tail) in self.sessions.iter().zip(tails) {
            session.tail.store(tail, Release);
        }
        until
    }

    /// Writes and syncs. The caller has the duty `sync`.
    fn lead(&self, me: u64, fault: Fault) {
        while !self.try_take(&self.log_owner, me) {
            thread::yield_now();
        }
        let flush = self.write_owned(fault);
        self.drop_duty(&self.log_owner, me);
        if fault == Fault::DurableFirst {
            self.durable_flush.store(flush, Release);
        }
        let file = self.file.lock().unwrap().clone();
        *self.disk.lock().unwrap() = file;
        self.durable_flush.store(flush, Release);
    }

    fn ring(&self) {
        self.bell.fetch_add(1, AcqRel);
        let (lock, sleepers) = &self.sleepers;
        drop(lock.lock().unwrap());
        sleepers.notify_all();
    }

    /// The futex, without its time limit.
    fn sleep(&self, rung: u64) {
        let (lock, sleepers) = &self.sleepers;
        let mut guard = lock.lock().unwrap();
        while self.bell.load(Acquire) == rung {
            guard = sleepers.wait(guard).unwrap();
        }
    }

    fn wait(&self, flush: u64, me: u64, fault: Fault) {
        loop {
            let mut rung = self.bell.load(Acquire);
            if self.durable_flush.load(Acquire) >= flush {
                return;
            }
            if !self.try_take(&self.sync_owner, me) {
                if fault == Fault::LateBell {
                    rung = self.bell.load(Acquire);
                }
                self.sleep(rung);
                continue;
            }
            if self.durable_flush.load(Acquire) < flush {
                self.lead(me, fault);
            }
            // NB: in this order: who is woken, and finds the duty taken, sleeps again.
            if fault == Fault::RingFirst {
                self.ring();
            }
            self.drop_duty(&self.sync_owner, me);
            if fault != Fault::RingFirst {
                self.ring();
            }
        }
    }

    /// Commits, waits until that is durable, and looks at the disk.
    fn commit(&self, id: usize, content: u64, fault: Fault) {
        let flush = self.publish(id, content);
        self.wait(flush, id as u64 + 1, fault);
        let disk = self.disk.lock().unwrap();
        assert!(disk.contains(&content), "{content} is acknowledged, and {disk:?} on disk");
    }

    /// As [`Shm::commit`], without waiting for the disk, twice; the ring must have room for the second.
    fn set_twice(&self, id: usize, fault: Fault) {
        let content = 10 * (id as u64 + 1);
        self.publish(id, content);
        let has_room =
            || self.sessions[id].tail.load(Acquire) == self.sessions[id].head.load(Relaxed) & !FROZEN;
        if fault == Fault::NoLook || has_room() {
            self.publish(id, content + 1);
        }
    }
}

fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Two writers at fsync.
fn group(fault: Fault) {
    explore(3, move || {
        let shm = Shm::new();
        let other = {
            let shm = shm.clone();
            thread::spawn(move || shm.commit(1, 20, fault))
        };
        shm.commit(0, 10, fault);
        other.join().unwrap();
        let disk = shm.disk.lock().unwrap();
        assert_eq!(disk.len(), 2, "{disk:?}");
    });
}

/// A writer that does not wait and uses its ring again, and somebody who flushes, and flushes once more.
fn reuse(fault: Fault) {
    explore(5, move || {
        let shm = Shm::new();
        let writer = {
            let shm = shm.clone();
            thread::spawn(move || shm.set_twice(1, fault))
        };
        shm.lead(1, fault);
        writer.join().unwrap();
        shm.lead(1, fault);
        let disk = shm.disk.lock().unwrap();
        let published = shm.sessions[1].head.load(Acquire) & !FROZEN;
        assert_eq!(disk.len() as u64 * RECORD, published, "{disk:?}");
    });
}

fn must_be_found(what: &str, run: impl FnOnce() + std::panic::UnwindSafe) {
    assert!(catch_unwind(run).is_err(), "loom does not see: {what}");
}

#[test]
fn what_is_acknowledged_is_on_disk_and_sleepers_are_woken() {
    group(Fault::No);
}

#[test]
fn a_ring_is_used_again_only_once_it_has_been_copied() {
    reuse(Fault::No);
}

#[test]
fn a_ring_that_is_used_again_too_early_is_found() {
    must_be_found("a tail that nobody looks at", || reuse(Fault::NoLook));
}

/// Names the canary that a process is to run.
const CANARY: &str = "PERILUNE_LOOM_CANARY";

#[test]
fn lost_wakes_are_found() {
    let faults = [Fault::LateBell, Fault::RingFirst];
    if let Ok(wanted) = std::env::var(CANARY) {
        return faults.into_iter().filter(|fault| format!("{fault:?}") == wanted).for_each(group);
    }
    for fault in faults {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["lost_wakes_are_found", "--exact", "--nocapture"]).env(CANARY, format!("{fault:?}"));
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "loom does not see: {fault:?}");
        assert!(said.contains("deadlock"), "{fault:?}: {said}");
    }
}

#[test]
fn a_number_that_is_not_raised_is_found() {
    must_be_found("a flush number that is only read", || group(Fault::NoRaise));
}

#[test]
fn heads_that_are_not_frozen_are_found() {
    must_be_found("heads that are only read", || group(Fault::NoFreeze));
}

#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    must_be_found("waiters told before the sync", || group(Fault::DurableFirst));
}
