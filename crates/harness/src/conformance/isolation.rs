//! Transactions of many sessions: serializable, and no body sees halves of two states.
//!
//! The golden scripts show each anomaly in one fixed order; here threads race for it.

use perilune_store::{
    transact, Bulk, Error, Session, Span, Store, TransactionOptions, Transactions, TRIES_BEFORE_EXCLUSIVE,
};

use super::rendezvous::Rendezvous;
use super::{assert_error, begin, keys, session, value, Verdict};
use crate::appends::{self, Attempt, Lists};
use crate::bank::{self, Bank};
use crate::number;

const THREADS: u64 = 4;

/// Transactions of many sessions.
pub fn isolation<S: Store>(make: &impl Fn() -> S) {
    nothing_is_seen_before_the_commit(&make());
    a_stale_read_is_a_conflict(&make());
    a_conflict_is_final(&make());
    reads_elsewhere_are_no_conflict(&make());
    an_error_on_a_stale_read_runs_again(&make());
    transfers_keep_the_sum(&make());
    histories_are_serializable(&make());
    write_skew_does_not_happen(&make());
    phantoms_do_not_happen(&make());
    a_phantom_within_a_bound_is_a_conflict(&make());
    a_count_that_no_longer_holds_is_a_conflict(&make());
    what_never_runs_alone_fails_after_its_tries(&make());
}

/// A transaction that others disturb again and again.
pub fn exclusive_mode<S: Store>(make: &impl Fn() -> S) -> Verdict {
    let store = make();
    if !store.limits().exclusive_mode {
        asking_in_vain_is_refused(&store);
        return Verdict::Missing;
    }
    a_starved_transaction_gets_through(&make());
    Verdict::Kept
}

/// Whoever asks to run alone where nobody can is told so, instead of being disturbed all the same.
fn asking_in_vain_is_refused<S: Store>(store: &S) {
    let mut s = session(store);
    let alone = TransactionOptions { exclusive: true, ..TransactionOptions::default() };
    assert!(matches!(s.begin(&alone), Err(Error::Invalid(_))), "it cannot have what it asks for");
    assert_eq!(s.depth(), 0);
    s.begin(&TransactionOptions { read_only: true, ..alone }).expect("what only reads disturbs nobody");
    s.rollback().unwrap();
}

/// What is never to keep others waiting fails when it has been tried a few times, and the next one begins anew.
fn what_never_runs_alone_fails_after_its_tries<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    let options = TransactionOptions { never_exclusive: true, ..TransactionOptions::default() };
    for _ in 0..2 {
        let mut runs = 0_u8;
        let lost = transact(&mut a, &options, |a| {
            runs += 1;
            let _ = value(a, b"x\0");
            b.set(b"x\0", &[runs])?;
            a.set(b"y\0", b"mine")
        });
        assert_error!(lost, Error::Conflict, "a transaction that is disturbed at each try");
        assert_eq!((u32::from(runs), a.depth()), (TRIES_BEFORE_EXCLUSIVE, 0));
        assert_eq!(value(&mut b, b"y\0"), None, "nothing was written");
    }
    transact(&mut a, &options, |a| a.set(b"y\0", b"mine")).expect("nobody is in its way");
    let both = TransactionOptions { exclusive: true, ..options };
    assert!(matches!(a.begin(&both), Err(Error::Invalid(_))), "nobody can have both");
    assert_eq!(a.depth(), 0);
}

fn nothing_is_seen_before_the_commit<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    begin(&mut a);
    a.set(b"x\0", b"1").unwrap();
    assert_eq!(value(&mut b, b"x\0"), None, "an open transaction's write is its own");
    a.commit().unwrap();
    assert_eq!(value(&mut b, b"x\0").as_deref(), Some(&b"1"[..]), "committed, it is everybody's");
}

/// Every kind of read, and a change by another session that makes its answer another one.
fn a_stale_read_is_a_conflict<S: Store>(store: &S) {
    type Step<S> = fn(&mut S);
    let reads: [(&str, Step<S::Session>); 9] = [
        ("get", |s| assert!(value(s, b"x\0\x05").is_some())),
        ("presence", |s| assert!(s.presence(b"x\0\x05").unwrap().value)),
        ("presence of the parent", |s| assert!(s.presence(b"x\0").unwrap().descendants)),
        ("next", |s| assert!(s.next(b"x\0", false, &mut Vec::new(), None).unwrap())),
        ("previous", |s| assert!(s.previous(b"x\0\xFF", &mut Vec::new(), None).unwrap())),
        ("next within", |s| {
            assert!(s.next_within(b"x\0", false, b"x\0\x06", &mut Vec::new(), None).unwrap());
        }),
        ("previous within", |s| {
            assert!(s.previous_within(b"x\0\xFF", b"x\0\x05", &mut Vec::new(), None).unwrap());
        }),
        ("remove", |s| assert!(s.remove(b"x\0\x05").unwrap())),
        ("compare_and_set", |s| assert!(s.compare_and_set(b"x\0\x05", Some(b"1"), Some(b"2")).unwrap())),
    ];
    for (name, read) in reads {
        let (mut a, mut b) = (session(store), session(store));
        b.set(b"x\0\x05", b"1").unwrap();
        begin(&mut a);
        read(&mut a);
        a.set(b"y\0", name.as_bytes()).unwrap();
        assert!(b.remove(b"x\0\x05").unwrap());
        assert_error!(a.commit(), Error::Conflict, "a commit after a read that no longer holds");
        assert_eq!(a.depth(), 0, "{name}: the transaction is gone");
        assert_eq!(value(&mut b, b"y\0"), None, "{name}: nothing was written");
    }
}

/// A neighbour that was not there within a bound, and then is, is a phantom.
fn a_phantom_within_a_bound_is_a_conflict<S: Store>(store: &S) {
    for backwards in [false, true] {
        let (mut a, mut b) = (session(store), session(store));
        b.set(b"x\0\x01", b"1").unwrap();
        b.set(b"x\0\x09", b"1").unwrap();
        begin(&mut a);
        let found = if backwards {
            a.previous_within(b"x\0\x09", b"x\0\x02", &mut Vec::new(), None)
        } else {
            a.next_within(b"x\0\x01", false, b"x\0\x09", &mut Vec::new(), None)
        };
        assert!(!found.unwrap(), "nothing is there yet");
        a.set(b"y\0", b"1").unwrap();
        b.set(b"x\0\x05", b"1").unwrap();
        assert_error!(a.commit(), Error::Conflict, "a commit after a phantom");
        assert!(b.remove(b"x\0\x05").unwrap());
    }
}

/// What comes or goes among what was counted is a conflict; what is changed there, or comes elsewhere, is none.
fn a_count_that_no_longer_holds_is_a_conflict<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    for number in 0..2_000_u16 {
        b.set(&[&b"x\0"[..], &number.to_be_bytes(), b"x"].concat(), b"1").unwrap();
    }
    b.set(b"y\0", b"1").unwrap();
    let (low, high) = (b"x\0\x01", b"x\0\x05");
    let (within, before, behind) = (b"x\0\x02\x07", b"x\0\0\xf0y", b"x\0\x05\x10y");
    for (backwards, most) in [(false, u64::MAX), (true, u64::MAX), (false, 900), (true, 900)] {
        let span = Span { low, high, backwards, most };
        let count = |s: &mut S::Session| s.count(&span, &mut Vec::new()).unwrap();
        begin(&mut a);
        assert_eq!(count(&mut a), most.min(4 * 256));
        a.set(b"y\0", b"2").unwrap();
        b.set(before, b"1").unwrap();
        b.set(behind, b"1").unwrap();
        b.set(b"x\0\x02\x07x", b"2").unwrap();
        a.commit().expect("writes beside what was counted are no conflict");
        begin(&mut a);
        count(&mut a);
        a.set(b"y\0", b"3").unwrap();
        b.set(within, b"1").unwrap();
        assert_error!(a.commit(), Error::Conflict, "a commit after a key more");
        begin(&mut a);
        count(&mut a);
        a.set(b"y\0", b"3").unwrap();
        assert!(b.remove(within).unwrap());
        assert_error!(a.commit(), Error::Conflict, "a commit after a key less");
        assert!(b.remove(before).unwrap() && b.remove(behind).unwrap());
    }
}

fn a_conflict_is_final<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    b.set(b"x\0", b"1").unwrap();
    begin(&mut a);
    assert!(value(&mut a, b"x\0").is_some());
    a.set(b"y\0", b"1").unwrap();
    b.set(b"x\0", b"2").unwrap();
    assert_error!(a.validate(), Error::Conflict, "validate after a read that no longer holds");
    assert_error!(a.commit(), Error::Conflict, "a commit after a conflict");
    assert_eq!(value(&mut b, b"y\0"), None, "nothing was written");
}

fn reads_elsewhere_are_no_conflict<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    b.set(b"x\0", b"1").unwrap();
    begin(&mut a);
    assert!(value(&mut a, b"x\0").is_some());
    b.set(b"y\0", b"1").unwrap();
    a.set(b"z\0", b"1").unwrap();
    a.validate().expect("what was read still holds");
    a.commit().expect("a write elsewhere is no conflict");
    // Blind writes rest on nothing, so the later commit wins.
    begin(&mut a);
    a.set(b"x\0", b"a").unwrap();
    b.set(b"x\0", b"b").unwrap();
    a.commit().expect("a blind write meets no conflict");
    assert_eq!(value(&mut b, b"x\0").as_deref(), Some(&b"a"[..]), "the later commit wins");
}

/// An error of the body counts only if what the body saw was one state.
fn an_error_on_a_stale_read_runs_again<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    let mut runs = 0;
    let result = transact(&mut a, &TransactionOptions::default(), |a| {
        runs += 1;
        if number::get(a, b"x\0")? == 0 {
            number::set(&mut b, b"x\0", 1)?;
            return Err(Error::Refused("x is 0".to_string()));
        }
        Ok("x is 1")
    });
    assert_eq!((result.unwrap(), runs), ("x is 1", 2), "the first run's error rests on a stale read");
}

fn transfers_keep_the_sum<S: Store>(store: &S) {
    const ROUNDS: u64 = 500;
    let bank = Bank::new(b"bank\0", 8, 100);
    bank.open(&mut session(store)).unwrap();
    let barrier = Rendezvous::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bank, barrier) = (&bank, &barrier);
            scope.spawn(move || {
                let mut s = session(store);
                let mut random = bank::Random::new(thread);
                barrier.wait();
                for round in 0..ROUNDS {
                    if round % 4 == thread % 4 {
                        // NB: the check is inside the body: not even a doomed run may see another sum.
                        bank.check(&mut s).expect("the sum inside a body").unwrap();
                    } else {
                        bank.transfer(&mut s, &mut random).expect("a transfer");
                    }
                }
            });
        }
    });
    bank.check(&mut session(store)).unwrap().unwrap();
}

/// Appends to few lists by all threads; the lists then tell the order, which must have no circle.
fn histories_are_serializable<S: Store>(store: &S) {
    const ROUNDS: u64 = 150;
    let lists = Lists::new(b"list\0", 5);
    let mut attempts = Vec::new();
    std::thread::scope(|scope| {
        let worker = |thread: u64| {
            let lists = &lists;
            move || {
                let mut s = session(store);
                let mut random = bank::Random::new(thread);
                let attempt = |round| {
                    let (id, chosen) = (thread * ROUNDS + round, lists.choose(&mut random));
                    let seen = lists.append(&mut s, id, &chosen).expect("an append");
                    Attempt { id, lists: chosen, seen: Some(seen) }
                };
                (0..ROUNDS).map(attempt).collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(worker(thread))).collect();
        for worker in workers {
            attempts.extend(worker.join().expect("a worker ends"));
        }
    });
    let all = lists.read_all(&mut session(store)).unwrap();
    appends::check(&all, &attempts).unwrap_or_else(|why| panic!("the history is not serializable: {why}"));
}

/// Each thread removes its own mark if another is left: never may all be gone.
fn write_skew_does_not_happen<S: Store>(store: &S) {
    const ROUNDS: u64 = 200;
    let barrier = Rendezvous::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut s = session(store);
                let (mine, other) =
                    ([b"on\0", &[thread][..]].concat(), [b"on\0", &[1 - thread][..]].concat());
                for round in 0..ROUNDS {
                    s.set(&mine, b"1").unwrap();
                    barrier.wait();
                    transact(&mut s, &TransactionOptions::default(), |s| {
                        if s.presence(&other)?.value {
                            s.remove(&mine)?;
                        }
                        Ok(())
                    })
                    .expect("a transaction");
                    barrier.wait();
                    assert_eq!(keys(&mut s).unwrap().len(), 1, "round {round}: exactly one mark is left");
                    barrier.wait();
                }
            });
        }
    });
}

/// Each thread inserts one after the last: the last is found by `previous`, or by walking `next`.
fn phantoms_do_not_happen<S: Store>(store: &S) {
    const ROUNDS: u64 = 100;
    let barrier = Rendezvous::new(THREADS as usize);
    let entry = |number: u64| [b"list\0", &number.to_be_bytes()[..]].concat();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut s = session(store);
                barrier.wait();
                for round in 0..ROUNDS {
                    transact(&mut s, &TransactionOptions::default(), |s| {
                        let count = if (round + thread) % 2 == 0 {
                            keys(s)?.len() as u64
                        } else {
                            let mut last = Vec::new();
                            let found = s.previous(b"list\0\xFF", &mut last, None)?;
                            let tail = last.last_chunk().copied().map_or(0, u64::from_be_bytes);
                            if found {
                                tail + 1
                            } else {
                                0
                            }
                        };
                        number::set(s, &entry(count), thread)
                    })
                    .expect("an insertion");
                }
            });
        }
    });
    let all: Vec<_> = (0..THREADS * ROUNDS).map(entry).collect();
    assert!(
        keys(&mut session(store)).unwrap() == all,
        "each of {} insertions got a place of its own",
        all.len()
    );
}

/// A long transaction among many short ones that change what it reads ends by exclusive mode.
fn a_starved_transaction_gets_through<S: Store>(store: &S) {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let done = &done;
            scope.spawn(move || {
                let mut s = session(store);
                let mut count = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    count += 1;
                    number::set(&mut s, &[b'x', 0, thread * 90], count).expect("a short write");
                }
            });
        }
        let mut s = session(store);
        let result = transact(&mut s, &TransactionOptions::default(), |s| {
            for round in 0..20 {
                for place in 0..100 {
                    number::get(s, &[b'x', 0, place])?;
                }
                number::set(s, b"y\0", round)?;
            }
            Ok(())
        });
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        result.expect("a long transaction gets through among short writes");
    });
}
