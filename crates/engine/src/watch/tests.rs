//! Watches between threads of one process on memory of their own.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_store::{Error, WatchId, WatchRequest, WatchScope};
use WatchScope::{Key, Prefix};

use super::{mask, number, shrink_filter, SessionWatches, Watches};
use crate::access::Access;
use crate::image::bell::{KeyHash, FILTER_BITS};
use crate::image::layout::control;
use crate::image::Image;
use crate::limits::WATCH_BUCKETS;
use crate::session::Seat;
use crate::tree::tests::scratch;
use crate::tree::Which;

const LONG: Option<Duration> = Some(Duration::from_secs(30));
const NOW: Option<Duration> = Some(Duration::ZERO);

struct Bench {
    image: Arc<Image>,
    watches: Arc<Watches>,
}

impl Bench {
    fn new() -> Bench {
        let image = scratch(4_000);
        Bench { watches: Arc::new(Watches::new(image.clone())), image }
    }

    fn access(&self, id: u16) -> Access {
        Access::new(Seat::new(self.image.clone(), id))
    }

    fn session(&self) -> SessionWatches {
        SessionWatches::new(self.watches.clone())
    }

    fn filter(&self) -> u64 {
        self.image.control(control::FILTER).load(Relaxed) & FILTER_BITS
    }
}

fn watch(session: &mut SessionWatches, access: &Access, key: &[u8], scope: WatchScope) -> WatchId {
    session.watch(access, &[WatchRequest { key, scope }]).unwrap()
}

fn set(access: &Access, key: &[u8]) {
    access.set(Which::Main, key, b"v").unwrap();
}

#[test]
fn a_write_wakes_its_key_and_its_prefixes_and_nothing_else() {
    let bench = Bench::new();
    let access = bench.access(1);
    let mut session = bench.session();
    let watched = [
        (&b"w\0\x01"[..], Key),
        (b"w\0\x01", Prefix),
        (b"w\0", Key),
        (b"w\0", Prefix),
        (b"w\0\x01\x02", Key),
        (b"v\0", Prefix),
    ];
    let ids = watched.map(|(key, scope)| watch(&mut session, &access, key, scope));
    for (key, touched) in [
        (&b"w\0\x01"[..], [true, true, false, true, false, false]),
        (b"w\0", [false, false, true, true, false, false]),
        (b"w\0\x01\x02", [false, true, false, true, true, false]),
        (b"w\0\x01\x02\x03", [false, true, false, true, false, false]),
        (b"x\0", [false; 6]),
        (b"v\0\x09", [false, false, false, false, false, true]),
    ] {
        set(&access, key);
        assert_eq!(ids.map(|id| session.wait(id, NOW).unwrap()), touched, "after a write of {key:?}");
        assert_eq!(ids.map(|id| session.wait(id, NOW).unwrap()), [false; 6], "told once");
    }
    access
        .atomically(Instant::now() + Duration::from_secs(9), |_, txn| {
            txn.remove_prefix(Which::Main, b"w");
            Ok(())
        })
        .unwrap();
    assert_eq!(ids[..5].iter().map(|id| session.wait(*id, NOW).unwrap()).collect::<Vec<_>>(), [true; 5]);
}

/// Counted by the numbers of all buckets, for a write that passes the filter raises only those that are watched.
#[test]
fn writers_beside_what_is_watched_pass_by() {
    let bench = Bench::new();
    let access = bench.access(1);
    let mut session = bench.session();
    watch(&mut session, &access, b"^redis\0\xf0config\0", Prefix);
    let bits = bench.filter();
    assert_eq!(bits.count_ones(), 1, "one place, one bit");
    let keys: Vec<Vec<u8>> = (0..200).map(|n| format!("^redis\0\x01key:{n}\0").into_bytes()).collect();
    // As if what they share lay in the bucket of something that is watched elsewhere.
    let shared = KeyHash::of(b"^redis\0").bucket();
    let (word, bit) = mask(&bench.image, shared);
    word.fetch_or(bit, Relaxed);
    keys.iter().for_each(|key| set(&access, key));
    let raised = number(&bench.image, shared);
    assert_eq!(raised, 0, "of 200 writers, though some meet the one bit of 48");
    word.fetch_and(!bit, Relaxed);
    let wakes = |session: &mut SessionWatches, id| {
        let woken = |key: &&Vec<u8>| {
            set(&access, key);
            session.wait(id, NOW).unwrap()
        };
        keys.iter().filter(woken).count()
    };
    // Whoever watches more than one such part is told of all of them.
    for (key, scope) in [(&b"^redis\0"[..], Prefix), (b"^redis\0\x01", Prefix), (b"^redis\0\x01key", Prefix)]
    {
        let id = watch(&mut session, &access, key, scope);
        assert_eq!(wakes(&mut session, id), keys.len(), "a watch of {key:?}");
        session.unwatch(id);
    }
    for key in &keys {
        let id = watch(&mut session, &access, key, Key);
        let deeper = [&key[..], b"\x05\0x"].concat();
        let below = watch(&mut session, &access, &deeper, Prefix);
        set(&access, key);
        assert!(session.wait(id, NOW).unwrap(), "{key:?} alone");
        set(&access, &[&deeper[..], b"y\0"].concat());
        assert!(session.wait(below, NOW).unwrap(), "below {key:?}");
        for removed in [&key[..], b"^redis\0\x01", b"^redis\0"] {
            let prefix = removed.to_vec();
            access
                .atomically(Instant::now() + Duration::from_secs(9), |_, txn| {
                    txn.remove_prefix(Which::Main, &prefix);
                    Ok(())
                })
                .unwrap();
            assert!(session.wait(id, NOW).unwrap(), "{key:?}, by a removal of {removed:?}");
            assert!(session.wait(below, NOW).unwrap(), "below {key:?}, by a removal of {removed:?}");
        }
        session.unwatch(id);
        session.unwatch(below);
    }
}

#[test]
fn ended_watches_leave_masks_and_filter() {
    let bench = Bench::new();
    let access = bench.access(1);
    let masks = || {
        let set = (0..WATCH_BUCKETS).filter(|bucket| {
            let (word, bit) = mask(&bench.image, *bucket);
            word.load(Relaxed) & bit != 0
        });
        set.count()
    };
    let mut session = bench.session();
    let mut other = bench.session();
    let twice = [watch(&mut session, &access, b"a\0", Key), watch(&mut session, &access, b"a\0", Key)];
    watch(&mut other, &access, b"b\0", Key);
    let both = bench.filter();
    // Each has a bucket, and three gates.
    assert_eq!((masks(), both.count_ones()), (8, 2));
    session.unwatch(twice[0]);
    shrink_filter(&bench.image);
    assert_eq!((masks(), bench.filter()), (8, both), "still watched once");
    set(&access, b"a\0");
    assert!(session.wait(twice[1], NOW).unwrap());
    session.unwatch(twice[1]);
    session.unwatch(twice[1]);
    shrink_filter(&bench.image);
    assert_eq!((masks(), bench.filter().count_ones()), (4, 1));
    assert!(matches!(session.wait(twice[1], NOW), Err(Error::Invalid(_))));
    assert!(matches!(session.descriptor(twice[1]), Err(Error::Invalid(_))));
    drop(other);
    shrink_filter(&bench.image);
    assert_eq!((masks(), bench.filter()), (0, 0));
    let id = watch(&mut session, &access, b"w", Prefix);
    set(&access, b"wonder\0");
    assert!(session.wait(id, NOW).unwrap(), "a prefix shorter than a first component");
    assert!(matches!(bench.session().wait(id, NOW), Err(Error::Invalid(_))), "another session's watch");
}

#[test]
fn two_threads_wake_each_other_while_the_filter_shrinks() {
    const ROUNDS: u64 = 2_000;
    let bench = Bench::new();
    let play = |id: u16, mine: &[u8], other: &[u8]| {
        let access = bench.access(id);
        let mut session = bench.session();
        let mut value = Vec::new();
        for round in 1..=ROUNDS {
            // Registered anew each time: nothing between registration and wait may be lost.
            let watch = watch(&mut session, &access, other, Key);
            if id == 1 {
                access.set(Which::Main, mine, &round.to_le_bytes()).unwrap();
            }
            while !access.get(Which::Main, other, &mut value, &mut ()).unwrap()
                || u64::from_le_bytes(value[..].try_into().unwrap()) < round
            {
                assert!(session.wait(watch, LONG).unwrap(), "round {round} of {id}: a write was not noticed");
            }
            if id == 2 {
                access.set(Which::Main, mine, &round.to_le_bytes()).unwrap();
            }
            session.unwatch(watch);
        }
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                shrink_filter(&bench.image);
                std::thread::yield_now();
            }
        });
        let players =
            [scope.spawn(|| play(1, b"ping\0", b"pong\0")), scope.spawn(|| play(2, b"pong\0", b"ping\0"))];
        let ends = players.map(|player| player.join().is_ok());
        stop.store(true, Relaxed);
        assert_eq!(ends, [true; 2]);
    });
}

/// Whether a descriptor made by us is readable, as the kernel shows it.
fn is_readable(descriptor: i32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("eventfd-count:")).unwrap();
    count.trim() != "0"
}

#[test]
fn a_descriptor_is_readable_after_a_touch_until_it_is_waited_for() {
    let bench = Bench::new();
    let access = bench.access(1);
    let mut session = bench.session();
    let id = watch(&mut session, &access, b"w\0", Key);
    set(&access, b"w\0");
    let descriptor = session.descriptor(id).unwrap();
    assert_eq!(session.descriptor(id).unwrap(), descriptor);
    assert!(is_readable(descriptor), "touched before the descriptor was made");
    for _ in 0..100 {
        assert!(session.wait(id, NOW).unwrap());
        assert!(!is_readable(descriptor), "cleared by the wait");
        assert!(!session.wait(id, NOW).unwrap());
        set(&access, b"w\0");
        let start = Instant::now();
        while !is_readable(descriptor) {
            assert!(start.elapsed() < Duration::from_secs(30), "the descriptor does not become readable");
            std::thread::yield_now();
        }
    }
    session.unwatch(id);
    assert!(session.descriptor(id).is_err());
    drop(session);
    drop(bench);
}
