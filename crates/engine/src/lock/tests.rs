//! Locks between threads of one process, and against entries of processes that are only pretended.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use perilune_store::{Error, LockMode, LockOwner, LockRequest};
use LockMode::{Exclusive, Shared};

use super::entry::{self, Holder};
use super::{waiters_word, Locks};
use crate::access::Access;
use crate::image::layout::{Owner, ProcessState};
use crate::image::Image;
use crate::limits::{LOCK_BUCKETS, LOCK_COUNT_MAX};
use crate::session::{Counter, Seat};
use crate::tree::tests::scratch;
use crate::tree::{Neighbour, Seek, Which};

const LONG: Option<Duration> = Some(Duration::from_secs(30));
const NOW: Option<Duration> = Some(Duration::ZERO);

/// A name and where its ancestors end: a first component, then one byte for each further one.
fn name(parts: &[u8]) -> (Vec<u8>, Vec<u16>) {
    let bytes = [b"L\0", parts].concat();
    let ends = (2..bytes.len() as u16).collect();
    (bytes, ends)
}

struct Bench {
    image: Arc<Image>,
    locks: Locks,
}

impl Bench {
    fn new() -> Bench {
        let image = scratch(4_000);
        Bench { locks: Locks::new(image.clone()), image }
    }

    fn access(&self, id: u16) -> Access {
        Access::new(Seat::new(self.image.clone(), id))
    }

    fn lock(&self, access: &Access, owner: LockOwner, parts: &[u8], mode: LockMode) -> bool {
        self.lock_for(access, owner, parts, mode, NOW).unwrap()
    }

    fn lock_for(
        &self,
        access: &Access,
        owner: LockOwner,
        parts: &[u8],
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> perilune_store::Result<bool> {
        let (name, ancestors) = name(parts);
        let request = LockRequest { name: &name, ancestors: &ancestors, mode };
        self.locks.lock(access, owner, &[request], timeout, None)
    }

    fn unlock(&self, access: &Access, owner: LockOwner, parts: &[u8]) -> bool {
        self.locks.unlock(access, owner, &name(parts).0).unwrap()
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let access = self.access(8);
        let (mut key, mut from, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        while access
            .neighbour(
                Which::Volatile,
                Seek { from: &from, side: Neighbour::Next, bound: &[] },
                &mut key,
                None,
                &mut (),
            )
            .unwrap()
        {
            from.clone_from(&key);
            keys.push(key.clone());
        }
        keys
    }

    /// Nothing is held and nobody waits.
    fn assert_empty(&self) {
        assert_eq!(self.keys(), Vec::<Vec<u8>>::new());
        for bucket in 0..LOCK_BUCKETS {
            let waiters = waiters_word(&self.image, bucket).load(Relaxed) & super::WAITERS_COUNT;
            assert_eq!(waiters, 0, "bucket {bucket} counts waiters");
        }
    }

    /// Pretends that another process lives, or has died.
    fn pretend(&self, process: Owner, lives: bool) {
        let Owner { slot, incarnation } = process;
        let state =
            if lives { ProcessState::Live { incarnation } } else { ProcessState::Free { incarnation } };
        self.image.process_word(slot.into()).store(state.to_word(), SeqCst);
    }
}

#[test]
fn a_name_excludes_its_relatives_unless_both_are_shared() {
    let bench = Bench::new();
    let access = bench.access(1);
    let (a, b) = (bench.locks.new_owner(), bench.locks.new_owner());
    for (mine, theirs) in [(Exclusive, Exclusive), (Exclusive, Shared), (Shared, Exclusive), (Shared, Shared)]
    {
        assert!(bench.lock(&access, a, &[1, 2], mine));
        for (parts, related) in [
            (&[][..], true),
            (&[1], true),
            (&[1, 2], true),
            (&[1, 2, 0], true),
            (&[1, 2, 3, 4], true),
            (&[1, 3], false),
            (&[1, 1], false),
            (&[2], false),
            (&[2, 2], false),
        ] {
            let granted = bench.lock(&access, b, parts, theirs);
            assert_eq!(
                granted,
                !related || (mine, theirs) == (Shared, Shared),
                "{mine:?} {theirs:?} {parts:?}"
            );
            bench.locks.unlock_all(&access, b).unwrap();
        }
        bench.locks.unlock_all(&access, a).unwrap();
    }
    bench.assert_empty();
}

#[test]
fn a_lock_is_counted_up_to_its_limit_and_keeps_its_stronger_mode() {
    let bench = Bench::new();
    let access = bench.access(1);
    let (a, b) = (bench.locks.new_owner(), bench.locks.new_owner());
    assert!(!bench.unlock(&access, a, &[1]));
    for count in 1..=LOCK_COUNT_MAX {
        assert!(bench.lock(&access, a, &[1], if count == 2 { Exclusive } else { Shared }));
        assert_eq!(bench.locks.count(&access, a, &name(&[1]).0).unwrap(), count);
    }
    let more = bench.lock_for(&access, a, &[1], Shared, NOW);
    assert!(matches!(more, Err(Error::LimitReached { .. })), "{more:?}");
    for _ in 1..LOCK_COUNT_MAX {
        assert!(bench.unlock(&access, a, &[1]));
        assert!(!bench.lock(&access, b, &[1], Shared), "still exclusive");
    }
    assert!(bench.unlock(&access, a, &[1]));
    assert!(!bench.unlock(&access, a, &[1]));
    assert!(bench.lock(&access, b, &[1], Shared));
    bench.locks.unlock_all(&access, b).unwrap();
    bench.assert_empty();
}

#[test]
fn several_are_taken_together_or_not_at_all() {
    let bench = Bench::new();
    let access = bench.access(1);
    let (a, b) = (bench.locks.new_owner(), bench.locks.new_owner());
    let names = [name(&[1]), name(&[2]), name(&[2]), name(&[3])];
    let all: Vec<LockRequest<'_>> =
        names.iter().map(|(name, ancestors)| LockRequest { name, ancestors, mode: Exclusive }).collect();
    assert!(bench.lock(&access, b, &[3], Shared));
    assert!(!bench.locks.lock(&access, a, &all, NOW, None).unwrap());
    assert!(!bench.locks.lock(&access, a, &all, Some(Duration::from_millis(30)), None).unwrap());
    assert!(!bench.locks.lock(&access, a, &all, None, Some(Instant::now())).unwrap(), "the other limit");
    assert_eq!(bench.keys().len(), 1, "nothing is left of vain attempts");
    bench.locks.unlock_all(&access, b).unwrap();
    assert!(bench.locks.lock(&access, a, &all, NOW, None).unwrap());
    assert_eq!(bench.locks.count(&access, a, &names[1].0).unwrap(), 2, "asked for twice, counted twice");
    bench.locks.unlock_all(&access, a).unwrap();
    bench.assert_empty();
}

#[test]
fn what_a_dead_process_held_or_waited_for_is_absent() {
    let bench = Bench::new();
    let access = bench.access(1);
    let other = Owner { slot: 7, incarnation: 3 };
    let holder = Holder::new(other, LockOwner(1));
    let mine = bench.locks.new_owner();
    let (wanted, _) = name(&[1]);
    bench.pretend(other, true);
    let write = || {
        let lock = entry::lock_key(&wanted, holder);
        access
            .set(
                Which::Volatile,
                &lock,
                &entry::held_value(entry::Held { exclusive: true, count: 1, since: 0 }),
            )
            .unwrap();
        let queue = entry::queue_key(&wanted, 5, holder);
        access.set(Which::Volatile, &queue, &[1]).unwrap();
        access.set(Which::Volatile, &entry::waiter_key(holder, 5), &entry::wants_value(&[])).unwrap();
    };
    write();
    assert!(!bench.lock(&access, mine, &[], Exclusive), "held by the living");
    bench.pretend(other, false);
    assert!(bench.lock(&access, mine, &[], Exclusive));
    bench.unlock(&access, mine, &[]);
    // Another life of the same slot does not inherit.
    write();
    bench.pretend(Owner { incarnation: 4, ..other }, true);
    assert!(bench.lock(&access, mine, &[1, 2], Shared));
    bench.unlock(&access, mine, &[1, 2]);
    // One who sleeps notices.
    write();
    bench.pretend(other, true);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.lock_for(&bench.access(2), mine, &[1], Exclusive, LONG).unwrap());
        while bench.keys().len() < 5 {
            std::thread::yield_now();
        }
        let start = Instant::now();
        bench.pretend(other, false);
        assert!(waiting.join().unwrap());
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    });
    bench.locks.unlock_all(&access, mine).unwrap();
    let left = bench.keys();
    assert!(left.is_empty(), "the dead are swept by those who meet them: {left:?}");
    bench.assert_empty();
}

#[test]
fn a_circle_is_broken_by_one_error() {
    for parties in 2..=4_u8 {
        for _ in 0..20 {
            let bench = Bench::new();
            let barrier = Barrier::new(parties.into());
            let deadlocks = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for party in 0..parties {
                    let (bench, barrier, deadlocks) = (&bench, &barrier, &deadlocks);
                    scope.spawn(move || {
                        let access = bench.access(u16::from(party) + 1);
                        let owner = bench.locks.new_owner();
                        assert!(bench.lock(&access, owner, &[party], Exclusive));
                        barrier.wait();
                        match bench.lock_for(&access, owner, &[(party + 1) % parties, 9], Shared, LONG) {
                            Ok(granted) => assert!(granted),
                            Err(Error::Deadlock) => _ = deadlocks.fetch_add(1, SeqCst),
                            Err(error) => panic!("{error}"),
                        }
                        bench.locks.unlock_all(&access, owner).unwrap();
                    });
                }
            });
            assert_eq!(deadlocks.into_inner(), 1, "{parties} parties");
            bench.assert_empty();
        }
    }
}

#[test]
fn a_waiter_stops_later_ones_but_not_those_it_waits_for() {
    let bench = Bench::new();
    let access = bench.access(1);
    let [a, b, c] = std::array::from_fn(|_| bench.locks.new_owner());
    assert!(bench.lock(&access, a, &[1], Shared));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let access = bench.access(2);
            assert!(bench.lock_for(&access, b, &[1], Exclusive, LONG).unwrap());
            assert!(bench.unlock(&access, b, &[1]));
        });
        while bench.lock(&access, c, &[1], Shared) {
            bench.unlock(&access, c, &[1]);
        }
        assert!(!bench.lock(&access, c, &[], Shared), "an ancestor too");
        assert!(!bench.lock(&access, c, &[1, 1], Shared), "and a descendant");
        assert!(bench.lock(&access, a, &[1], Shared), "re-entry passes");
        assert!(bench.lock(&access, a, &[1], Exclusive), "an upgrade passes");
        bench.locks.unlock_all(&access, a).unwrap();
        waiting.join().unwrap();
    });
    assert!(bench.lock(&access, c, &[1], Shared));
    bench.locks.unlock_all(&access, c).unwrap();
    bench.assert_empty();
}

/// A kill storm found waiters without any lock that were told of a deadlock. Here the order of the queue
/// alone makes a circle: `m` would wait for `r`, who came earlier; `r` for `q`, likewise; `q` for what `m`
/// holds. Nobody has to fail: `m` passes `r`.
#[test]
fn the_order_of_the_queue_is_no_deadlock() {
    let bench = Bench::new();
    let access = bench.access(1);
    let [k, m, q, r] = std::array::from_fn(|_| bench.locks.new_owner());
    assert!(bench.lock(&access, k, &[4], Exclusive));
    assert!(bench.lock(&access, m, &[3], Exclusive));
    std::thread::scope(|scope| {
        let bench = &bench;
        let waiter = |id: u16, owner: LockOwner, parts: &'static [u8], mode: LockMode| {
            let entries = bench.keys().len();
            let thread = scope.spawn(move || {
                let access = bench.access(id);
                let granted = bench.lock_for(&access, owner, parts, mode, LONG);
                bench.locks.unlock_all(&access, owner).unwrap();
                granted
            });
            while bench.keys().len() < entries + 2 && !thread.is_finished() {
                std::thread::yield_now();
            }
            thread
        };
        let waiting =
            [waiter(2, q, &[], Shared), waiter(3, r, &[4], Exclusive), waiter(4, m, &[4], Exclusive)];
        assert!(bench.unlock(&access, k, &[4]));
        for (name, thread) in ["q", "r", "m"].into_iter().zip(waiting) {
            assert!(matches!(thread.join().unwrap(), Ok(true)), "{name}");
        }
    });
    bench.assert_empty();
}

/// `b` waits for two names at once, of which `a` holds one: `a` finds `b` ahead of it in the queue of the
/// other. Waiting for each other they would hang; `a` passes.
#[test]
fn whoever_holds_what_an_earlier_waiter_wants_passes_it() {
    let bench = Bench::new();
    let access = bench.access(1);
    let [a, b] = std::array::from_fn(|_| bench.locks.new_owner());
    assert!(bench.lock(&access, a, &[1], Exclusive));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let (one, two) = (name(&[1]), name(&[2]));
            let wants =
                [&one, &two].map(|(name, ancestors)| LockRequest { name, ancestors, mode: Exclusive });
            let access = bench.access(2);
            assert!(bench.locks.lock(&access, b, &wants, LONG, None).unwrap());
            bench.locks.unlock_all(&access, b).unwrap();
        });
        while bench.keys().len() < 4 {
            std::thread::yield_now();
        }
        assert!(bench.lock_for(&access, a, &[2], Exclusive, LONG).unwrap());
        bench.locks.unlock_all(&access, a).unwrap();
        waiting.join().unwrap();
    });
    bench.assert_empty();
}

/// A test of two processes asked for a lock as soon as another's wait was counted, came before it in the queue,
/// and waited for ever while the other was told of the deadlock: waits were counted before they had begun.
#[test]
fn a_wait_is_counted_when_its_place_in_the_queue_is_written() {
    let bench = Bench::new();
    let access = bench.access(1);
    let [a, b] = std::array::from_fn(|_| bench.locks.new_owner());
    let watched = Seat::new(bench.image.clone(), 2);
    for round in 1..=50 {
        assert!(bench.lock(&access, a, &[1], Exclusive));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let access = bench.access(2);
                assert!(bench.lock_for(&access, b, &[1], Exclusive, LONG).unwrap());
                assert!(bench.unlock(&access, b, &[1]));
            });
            while watched.counters()[Counter::LockWaits as usize] < round {
                std::hint::spin_loop();
            }
            assert_eq!(bench.keys().len(), 3, "the lock, the place and what is wanted");
            assert!(bench.unlock(&access, a, &[1]));
        });
    }
    bench.assert_empty();
}

/// Six threads, each with a session and an owner, do `round` again and again. It draws numbers below a bound.
fn crowd(
    bench: &Bench,
    seed: u64,
    rounds: usize,
    round: impl Fn(&Access, LockOwner, &mut dyn FnMut(u64) -> u64) + Sync,
) {
    std::thread::scope(|scope| {
        for id in 1..=6_u16 {
            let round = &round;
            scope.spawn(move || {
                let access = bench.access(id);
                let owner = bench.locks.new_owner();
                let mut random = seed + u64::from(id);
                let mut below = |bound: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random % bound
                };
                for _ in 0..rounds {
                    round(&access, owner, &mut below);
                }
            });
        }
    });
}

/// Whatever circles holders, waiters and the order of queues make: nobody waits for ever. Everybody waits
/// without a limit (but that of the test) while he holds other locks, of one name, of its ancestors and of
/// several names at once.
#[test]
fn no_circle_through_holders_or_queues_hangs() {
    const SEED: u64 = 0x5eed_c1c1e;
    let bench = Bench::new();
    let (granted, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0));
    crowd(&bench, SEED, 150, |access, owner, below| {
        for _ in 0..3 {
            let names: Vec<_> = (0..=below(2))
                .map(|_| name(&(0..below(3)).map(|_| below(3) as u8).collect::<Vec<_>>()))
                .collect();
            let mut mode = || if below(3) == 0 { Shared } else { Exclusive };
            let wants: Vec<_> =
                names.iter().map(|(name, ancestors)| LockRequest { name, ancestors, mode: mode() }).collect();
            match bench.locks.lock(access, owner, &wants, LONG, None) {
                Ok(true) => {
                    granted.fetch_add(1, Relaxed);
                    // So that the others come to want what this one holds.
                    std::thread::yield_now();
                }
                Ok(false) => panic!("seed {SEED}: a waiter hangs: {wants:?}"),
                Err(Error::Deadlock) => {
                    deadlocks.fetch_add(1, Relaxed);
                    break;
                }
                Err(error) => panic!("seed {SEED}: {error}"),
            }
        }
        bench.locks.unlock_all(access, owner).unwrap();
    });
    let (granted, deadlocks) = (granted.into_inner(), deadlocks.into_inner());
    assert!(granted > 300 && deadlocks > 10, "seed {SEED}: {granted} granted, {deadlocks} deadlocks");
    bench.assert_empty();
}

#[test]
fn one_who_gives_up_frees_those_behind() {
    let bench = Bench::new();
    let access = bench.access(1);
    let [a, b, c] = std::array::from_fn(|_| bench.locks.new_owner());
    assert!(bench.lock(&access, a, &[1], Shared));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let timeout = Some(Duration::from_millis(200));
            bench.lock_for(&bench.access(2), b, &[1], Exclusive, timeout).unwrap()
        });
        while bench.keys().len() < 3 {
            std::thread::yield_now();
        }
        assert!(bench.lock_for(&access, c, &[1], Shared, LONG).unwrap());
        assert!(!first.join().unwrap());
    });
    bench.locks.unlock_all(&access, a).unwrap();
    bench.locks.unlock_all(&access, c).unwrap();
    bench.assert_empty();
}

/// What a test knows to be held: by name, the owners and whether exclusively.
type Known = Mutex<BTreeMap<Vec<u8>, Vec<(u64, bool)>>>;

fn note(known: &Known, parts: &[u8], owner: u64, exclusive: bool, seed: u64) {
    let mut known = known.lock().unwrap();
    for (other, holders) in known.iter() {
        if other.starts_with(parts) || parts.starts_with(other) {
            let clash = holders.iter().any(|(holder, theirs)| *holder != owner && (exclusive || *theirs));
            assert!(
                !clash,
                "seed {seed}: {owner} holds {parts:?} ({exclusive}) beside {other:?} {holders:?}"
            );
        }
    }
    known.entry(parts.to_vec()).or_default().push((owner, exclusive));
}

#[test]
fn random_locks_never_overlap() {
    const SEED: u64 = 0x5eed_1234;
    let bench = Bench::new();
    let known = Known::default();
    let granted = AtomicU64::new(0);
    crowd(&bench, SEED, 400, |access, owner, below| {
        for _ in 0..=below(2) {
            let parts: Vec<u8> = (0..=below(2)).map(|_| below(3) as u8).collect();
            let mode = if below(2) == 0 { Exclusive } else { Shared };
            let timeout = Some(Duration::from_millis(below(3) * 10));
            match bench.lock_for(access, owner, &parts, mode, timeout) {
                Ok(false) | Err(Error::Deadlock) => {}
                Ok(true) => {
                    granted.fetch_add(1, Relaxed);
                    note(&known, &parts, owner.0, mode == Exclusive, SEED);
                }
                Err(error) => panic!("seed {SEED}: {error}"),
            }
        }
        known.lock().unwrap().values_mut().for_each(|held| held.retain(|(o, _)| *o != owner.0));
        bench.locks.unlock_all(access, owner).unwrap();
    });
    assert!(granted.into_inner() > 600);
    bench.assert_empty();
    crate::verify::verify(&bench.image).unwrap();
}

/// With many waiters transactions meet the queue and what waiters want on different leaves, while both
/// change: a read set that took a leaf for unchanged once saw a place in the queue without its waiter.
#[test]
fn a_hot_lock_is_handed_on_among_many() {
    const ROUNDS: u64 = 1_000;
    let bench = Bench::new();
    let counter = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for id in 1..=7 {
            let (bench, counter) = (&bench, &counter);
            scope.spawn(move || {
                let access = bench.access(id);
                let owner = bench.locks.new_owner();
                for _ in 0..ROUNDS {
                    assert!(bench.lock_for(&access, owner, &[1], Exclusive, LONG).unwrap());
                    // A load and a store apart: only the lock makes them one.
                    let count = counter.load(Relaxed);
                    std::hint::spin_loop();
                    counter.store(count + 1, Relaxed);
                    assert!(bench.unlock(&access, owner, &[1]));
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), 7 * ROUNDS);
    bench.assert_empty();
}
