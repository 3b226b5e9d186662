//! The user's locks: modes, hierarchy, counts, waiting, fairness, deadlock, transactions.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use perilune_store::{Error, Facets, LockMode, LockOwner, LockRequest, Locks, Store, Transactions};

use super::rendezvous::Rendezvous;
use super::{assert_error, begin, has, session, Verdict, PATIENCE};

use LockMode::{Exclusive, Shared};

/// Locks.
pub fn locks<S: Store>(make: &impl Fn() -> S) -> Verdict {
    if session(&make()).locks().is_none() {
        return Verdict::Missing;
    }
    modes_exclude_as_told(&make());
    a_name_excludes_ancestors_and_descendants(&make());
    an_owner_counts_its_locks(&make());
    several_are_taken_together(&make());
    a_waiter_is_woken(&make());
    a_held_lock_admits_one_at_a_time(&make());
    a_circle_of_waiters_is_broken(&make(), 2);
    a_circle_of_waiters_is_broken(&make(), 3);
    an_upgrade_of_two_is_a_deadlock(&make());
    an_exclusive_request_is_not_starved(&make());
    a_rollback_releases_what_its_level_took(&make());
    Verdict::Kept
}

/// Owners of locks that are used by more than one session.
pub fn shared_owners<S: Store>(make: &impl Fn() -> S) -> Verdict {
    let store = make();
    let (mut s, mut t) = (session(&store), session(&store));
    if s.locks().is_none() {
        return Verdict::Missing;
    }
    let (owner, name) = (has(s.locks()).new_lock_owner(), Name::new(b""));
    if !store.limits().shared_owners {
        let asked = has(t.locks()).lock(owner, &[name.request(Exclusive)], Some(Duration::ZERO));
        assert!(matches!(asked, Err(Error::Invalid(_))), "another session's owner would be somebody else");
        return Verdict::Missing;
    }
    assert!(attempt(&mut s, owner, &name, Exclusive));
    assert!(attempt(&mut t, owner, &name, Exclusive), "one owner's locks do not exclude each other");
    assert_eq!(
        has(s.locks()).lock_count(owner, &name.bytes).unwrap(),
        2,
        "they are the owner's, not a session's"
    );
    has(t.locks()).unlock_all(owner).unwrap();
    assert_eq!(has(s.locks()).lock_count(owner, &name.bytes).unwrap(), 0, "any session releases them");
    Verdict::Kept
}

/// A name with its ancestors: a first component, then one byte for each further one.
struct Name {
    bytes: Vec<u8>,
    ancestors: Vec<u16>,
}

impl Name {
    fn new(parts: &[u8]) -> Self {
        let bytes = [b"L\0", parts].concat();
        Name { ancestors: (2..bytes.len() as u16).collect(), bytes }
    }

    fn request(&self, mode: LockMode) -> LockRequest<'_> {
        LockRequest { name: &self.bytes, ancestors: &self.ancestors, mode }
    }
}

/// One attempt without waiting.
fn attempt(s: &mut impl Facets, owner: LockOwner, name: &Name, mode: LockMode) -> bool {
    has(s.locks()).lock(owner, &[name.request(mode)], Some(Duration::ZERO)).expect("an attempt")
}

/// Waits long for a lock.
fn wait(s: &mut impl Facets, owner: LockOwner, name: &Name, mode: LockMode) {
    let granted =
        has(s.locks()).lock(owner, &[name.request(mode)], Some(PATIENCE)).expect("a wait for a lock");
    assert!(granted, "the lock on \"{}\" was not granted within {PATIENCE:?}", name.bytes.escape_ascii());
}

fn modes_exclude_as_told<S: Store>(store: &S) {
    let (mut s, mut t) = (session(store), session(store));
    let (a, b) = (has(s.locks()).new_lock_owner(), has(t.locks()).new_lock_owner());
    assert_ne!(a, b, "every owner is a new one");
    let name = Name::new(b"");
    for (held, wanted, granted) in [
        (Shared, Shared, true),
        (Shared, Exclusive, false),
        (Exclusive, Shared, false),
        (Exclusive, Exclusive, false),
    ] {
        assert!(attempt(&mut s, a, &name, held), "a free lock is granted");
        assert_eq!(attempt(&mut t, b, &name, wanted), granted, "{held:?} held, {wanted:?} wanted");
        assert!(attempt(&mut s, a, &name, wanted), "one owner's locks do not exclude each other");
        has(s.locks()).unlock_all(a).unwrap();
        has(t.locks()).unlock_all(b).unwrap();
    }
    assert!(attempt(&mut t, b, &name, Exclusive), "all are released");
    assert!(!has(s.locks()).unlock(a, &name.bytes).unwrap(), "what is another's cannot be unlocked");
    assert_eq!(has(t.locks()).lock_count(b, &name.bytes).unwrap(), 1, "it is still held");
}

fn a_name_excludes_ancestors_and_descendants<S: Store>(store: &S) {
    let mut s = session(store);
    let (a, b) = (has(s.locks()).new_lock_owner(), has(s.locks()).new_lock_owner());
    assert!(attempt(&mut s, a, &Name::new(&[1, 2]), Exclusive));
    for (parts, granted) in [
        (&[][..], false),
        (&[1], false),
        (&[1, 2], false),
        (&[1, 2, 3], false),
        (&[1, 2, 3, 4], false),
        (&[1, 3], true),
        (&[2], true),
        (&[2, 2], true),
    ] {
        let got = attempt(&mut s, b, &Name::new(parts), Exclusive);
        assert_eq!(got, granted, "L(1,2) held exclusively, L{parts:?} wanted");
        has(s.locks()).unlock_all(b).unwrap();
    }
    has(s.locks()).unlock_all(a).unwrap();
    assert!(attempt(&mut s, a, &Name::new(&[1, 2]), Shared));
    assert!(attempt(&mut s, b, &Name::new(&[1]), Shared), "a shared ancestor beside a shared lock");
    assert!(attempt(&mut s, b, &Name::new(&[1, 2, 3]), Shared), "and a shared descendant");
    assert!(!attempt(&mut s, b, &Name::new(&[]), Exclusive), "but no exclusive ancestor");
}

fn an_owner_counts_its_locks<S: Store>(store: &S) {
    let (mut s, mut t) = (session(store), session(store));
    let (a, b) = (has(s.locks()).new_lock_owner(), has(t.locks()).new_lock_owner());
    let name = Name::new(&[7]);
    for count in 1..=3 {
        assert!(attempt(&mut s, a, &name, Exclusive));
        assert_eq!(has(s.locks()).lock_count(a, &name.bytes).unwrap(), count, "the lock is counted up");
    }
    for count in (0..3).rev() {
        assert!(!attempt(&mut t, b, &name, Exclusive), "a counted lock is held");
        assert!(
            has(s.locks()).unlock(a, &name.bytes).unwrap(),
            "it can be unlocked as often as it was locked"
        );
        assert_eq!(has(s.locks()).lock_count(a, &name.bytes).unwrap(), count, "the lock is counted down");
    }
    assert!(!has(s.locks()).unlock(a, &name.bytes).unwrap(), "but not more often");
    assert!(attempt(&mut t, b, &name, Exclusive), "at zero it is released");
}

fn several_are_taken_together<S: Store>(store: &S) {
    let mut s = session(store);
    let (a, b) = (has(s.locks()).new_lock_owner(), has(s.locks()).new_lock_owner());
    let names = [Name::new(&[1]), Name::new(&[2]), Name::new(&[3])];
    assert!(attempt(&mut s, b, &names[2], Shared));
    let all = [names[0].request(Exclusive), names[1].request(Exclusive), names[2].request(Exclusive)];
    assert!(!has(s.locks()).lock(a, &all, Some(Duration::ZERO)).unwrap(), "one of three is not to be had");
    assert_eq!(has(s.locks()).lock_count(a, &names[0].bytes).unwrap(), 0, "then none is taken");
    assert!(!has(s.locks()).lock(a, &all, Some(Duration::from_millis(20))).unwrap(), "nor after a wait");
    assert!(attempt(&mut s, b, &names[0], Exclusive), "a wait that ended blocks nobody");
    has(s.locks()).unlock_all(b).unwrap();
    assert!(
        has(s.locks()).lock(a, &all, Some(Duration::ZERO)).unwrap(),
        "three free ones are taken together"
    );
    assert_eq!(has(s.locks()).lock_count(a, &names[1].bytes).unwrap(), 1, "each once");
}

fn a_waiter_is_woken<S: Store>(store: &S) {
    let mut s = session(store);
    let a = has(s.locks()).new_lock_owner();
    let name = Name::new(&[1]);
    for round in 0..200 {
        wait(&mut s, a, &name, Exclusive);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let name = &name;
            scope.spawn(move || {
                let mut t = session(store);
                let b = has(t.locks()).new_lock_owner();
                tell.send(()).expect("the main thread listens");
                wait(&mut t, b, name, if round % 2 == 0 { Exclusive } else { Shared });
                has(t.locks()).unlock_all(b).unwrap();
            });
            told.recv().expect("the waiter has begun");
            assert!(has(s.locks()).unlock(a, &name.bytes).unwrap());
        });
    }
}

fn a_held_lock_admits_one_at_a_time<S: Store>(store: &S) {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 100;
    let name = Name::new(&[1]);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut s = session(store);
                let owner = has(s.locks()).new_lock_owner();
                for _ in 0..ROUNDS {
                    wait(&mut s, owner, &name, Exclusive);
                    // A read and a write apart: only the lock makes them one.
                    let count = crate::number::get(&mut s, b"n\0").unwrap();
                    std::thread::yield_now();
                    crate::number::set(&mut s, b"n\0", count + 1).unwrap();
                    has(s.locks()).unlock(owner, &name.bytes).unwrap();
                }
            });
        }
    });
    let count = crate::number::get(&mut session(store), b"n\0").unwrap();
    assert_eq!(count, THREADS as u64 * ROUNDS, "the exclusive lock kept {THREADS} threads apart");
}

/// Each of `parties` holds its own lock and wants the next one's.
fn a_circle_of_waiters_is_broken<S: Store>(store: &S, parties: u8) {
    for round in 0..20 {
        let barrier = Rendezvous::new(usize::from(parties));
        let deadlocks: usize = std::thread::scope(|scope| {
            let party = |number: u8| {
                let barrier = &barrier;
                move || {
                    let mut s = session(store);
                    let owner = has(s.locks()).new_lock_owner();
                    wait(&mut s, owner, &Name::new(&[number]), Exclusive);
                    barrier.wait();
                    let next = Name::new(&[(number + 1) % parties]);
                    let result = has(s.locks()).lock(owner, &[next.request(Exclusive)], Some(PATIENCE));
                    has(s.locks()).unlock_all(owner).unwrap();
                    match result {
                        Ok(true) => 0,
                        Err(Error::Deadlock) => 1,
                        other => panic!("party {number} of {parties}: granted or Deadlock, not {other:?}"),
                    }
                }
            };
            let threads: Vec<_> = (0..parties).map(|number| scope.spawn(party(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a party ends")).sum()
        });
        assert_eq!(deadlocks, 1, "round {round}: exactly one of {parties} closes the circle");
    }
}

fn an_upgrade_of_two_is_a_deadlock<S: Store>(store: &S) {
    let name = Name::new(&[1]);
    let barrier = Rendezvous::new(2);
    let deadlocks: usize = std::thread::scope(|scope| {
        let party = || {
            let mut s = session(store);
            let owner = has(s.locks()).new_lock_owner();
            wait(&mut s, owner, &name, Shared);
            barrier.wait();
            let result = has(s.locks()).lock(owner, &[name.request(Exclusive)], Some(PATIENCE));
            has(s.locks()).unlock_all(owner).unwrap();
            match result {
                Ok(true) => 0,
                Err(Error::Deadlock) => 1,
                other => panic!("an upgrade: granted or Deadlock, not {other:?}"),
            }
        };
        let threads = [scope.spawn(party), scope.spawn(party)];
        threads.into_iter().map(|thread| thread.join().expect("a party ends")).sum()
    });
    assert_eq!(deadlocks, 1, "of two that hold shared and want exclusive exactly one gets the error");
}

/// While shared holders come without a gap, an exclusive request must stop the stream by itself.
fn an_exclusive_request_is_not_starved<S: Store>(store: &S) {
    let name = Name::new(&[1]);
    let mut s = session(store);
    let owners = [has(s.locks()).new_lock_owner(), has(s.locks()).new_lock_owner()];
    wait(&mut s, owners[0], &name, Shared);
    std::thread::scope(|scope| {
        let name = &name;
        let exclusive = scope.spawn(move || {
            let mut t = session(store);
            let owner = has(t.locks()).new_lock_owner();
            wait(&mut t, owner, name, Exclusive);
            has(t.locks()).unlock_all(owner).unwrap();
        });
        // The lock is always held by one of two; only a waiting exclusive request can refuse the other.
        let start = Instant::now();
        let mut turn = 1;
        while attempt(&mut s, owners[turn % 2], name, Shared) {
            turn += 1;
            has(s.locks()).unlock(owners[turn % 2], &name.bytes).unwrap();
            assert!(start.elapsed() < PATIENCE, "shared requests pass the waiting exclusive one for ever");
        }
        let holder = owners[(turn + 1) % 2];
        assert!(attempt(&mut s, holder, name, Shared), "the holder itself may enter again");
        has(s.locks()).unlock_all(holder).unwrap();
        exclusive.join().expect("the exclusive request is granted");
    });
    assert!(attempt(&mut s, owners[0], &name, Shared), "after it shared ones are granted again");
}

fn a_rollback_releases_what_its_level_took<S: Store>(store: &S) {
    let mut s = session(store);
    let owner = has(s.locks()).new_lock_owner();
    let names = [Name::new(&[0]), Name::new(&[1]), Name::new(&[2]), Name::new(&[3])];
    let counts = |s: &mut S::Session| -> Vec<u32> {
        names.iter().map(|name| has(s.locks()).lock_count(owner, &name.bytes).unwrap()).collect()
    };
    assert!(attempt(&mut s, owner, &names[0], Exclusive));
    begin(&mut s);
    assert!(attempt(&mut s, owner, &names[0], Exclusive));
    assert!(attempt(&mut s, owner, &names[1], Exclusive));
    begin(&mut s);
    assert!(attempt(&mut s, owner, &names[2], Exclusive));
    s.commit().unwrap();
    begin(&mut s);
    assert!(attempt(&mut s, owner, &names[3], Exclusive));
    s.rollback().unwrap();
    assert_eq!(counts(&mut s), [2, 1, 1, 0], "a rolled-back level releases its own locks only");
    s.rollback().unwrap();
    assert_eq!(counts(&mut s), [1, 0, 0, 0], "the outermost those of its committed levels too");
    begin(&mut s);
    assert!(attempt(&mut s, owner, &names[1], Exclusive));
    s.commit().unwrap();
    assert_eq!(counts(&mut s), [1, 1, 0, 0], "locks survive the commit");
    // Another owner waits in vain, and the refused attempt leaves nothing behind.
    let other = has(s.locks()).new_lock_owner();
    begin(&mut s);
    assert!(!attempt(&mut s, other, &names[1], Exclusive));
    s.rollback().unwrap();
    has(s.locks()).unlock_all(owner).unwrap();
    assert_eq!(counts(&mut s), [0, 0, 0, 0], "unlock_all releases all");
    assert_error!(s.rollback(), Error::TransactionState(_), "no transaction is open");
}
