//! Interleavings and reorderings of one latched write against optimistic readers.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p perilune-shm --test loom_latch --release`. The
//! claim: a pair of words that `validate` accepts was never torn. Each fence is then left out in
//! turn, and loom must find the torn pair: the reader's in a copy of `validate` below, the
//! writer's by `--cfg canary` in the latch itself.
#![cfg(loom)]

use std::panic::catch_unwind;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;
use perilune_shm::latch::{load, release, try_lock, validate, LatchWord, State};

struct Page {
    latch: AtomicU64,
    words: [AtomicU64; 2],
}

type Validate = fn(&AtomicU64, LatchWord) -> bool;

fn write(page: &Page, value: u64) {
    let seen = load(&page.latch);
    if seen.locked() || !try_lock(&page.latch, seen, 5) {
        return;
    }
    for word in &page.words {
        word.store(value, Ordering::Relaxed);
    }
    release(&page.latch, State::Tree, seen.version() + 1);
}

fn read(page: &Page, validate: Validate) {
    let seen = load(&page.latch);
    if seen.locked() {
        return;
    }
    let found = [page.words[0].load(Ordering::Relaxed), page.words[1].load(Ordering::Relaxed)];
    if validate(&page.latch, seen) {
        assert_eq!(found, [seen.version(); 2], "a torn or stale pair was accepted");
    }
}

/// One writer and `readers`; words hold the version they were written under.
///
/// `preemptions` limits how often loom takes the processor from a thread that could go on; without
/// a limit two readers take many minutes. Which value a load returns is never limited.
fn explore(readers: usize, preemptions: Option<usize>, validate: Validate) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let page = Arc::new(Page {
            latch: AtomicU64::new(LatchWord::unlocked(State::Tree, 0).raw()),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        });
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                let page = page.clone();
                thread::spawn(move || read(&page, validate))
            })
            .collect();
        write(&page, 1);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[cfg(not(canary))]
fn validate_without_fence(word: &AtomicU64, seen: LatchWord) -> bool {
    word.load(Ordering::Relaxed) == seen.raw()
}

#[cfg(not(canary))]
#[test]
fn accepted_pairs_are_never_torn() {
    explore(1, None, validate);
}

#[cfg(not(canary))]
#[test]
fn two_readers_do_not_disturb_each_other() {
    explore(2, Some(3), validate);
}

/// Two writers: the second continues from the first, or fails; never both at one version.
#[cfg(not(canary))]
#[test]
fn latch_excludes_writers() {
    loom::model(|| {
        let page = Arc::new(Page {
            latch: AtomicU64::new(LatchWord::unlocked(State::Tree, 0).raw()),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        });
        let bump = |page: &Page, owner| {
            let seen = load(&page.latch);
            if seen.locked() || !try_lock(&page.latch, seen, owner) {
                return 0;
            }
            for word in &page.words {
                // Plain load and store: only exclusion makes this an increment.
                let value = word.load(Ordering::Relaxed);
                word.store(value + 1, Ordering::Relaxed);
            }
            release(&page.latch, State::Tree, seen.version() + 1);
            1
        };
        let other = {
            let page = page.clone();
            thread::spawn(move || bump(&page, 1))
        };
        let done = bump(&page, 2) + other.join().unwrap();
        let seen = load(&page.latch);
        assert!(done >= 1 && !seen.locked());
        assert_eq!(seen.version(), done);
        assert_eq!(page.words[0].load(Ordering::Relaxed), done);
        assert_eq!(page.words[1].load(Ordering::Relaxed), done);
    });
}

#[cfg(not(canary))]
#[test]
fn reader_without_fence_is_found() {
    let outcome = catch_unwind(|| explore(1, None, validate_without_fence));
    assert!(outcome.is_err(), "loom does not see a missing acquire fence");
}

#[cfg(canary)]
#[test]
fn writer_without_fence_is_found() {
    let outcome = catch_unwind(|| explore(1, None, validate));
    assert!(outcome.is_err(), "loom does not see a missing release fence");
}
