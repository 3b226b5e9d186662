//! Watches: every commit after the registration is noticed, whenever the wait begins.

use std::time::Duration;

use perilune_store::{Error, Facets, Session, Store, Transactions, Watch, WatchId, WatchRequest, WatchScope};

use super::{assert_error, begin, has, session, Verdict, PATIENCE};
use crate::number;

/// Watches.
pub fn watches<S: Store>(make: &impl Fn() -> S) -> Verdict {
    if session(&make()).watches().is_none() {
        return Verdict::Missing;
    }
    every_kind_of_write_touches(&make());
    each_of_several_requests_counts(&make());
    nothing_is_lost_between_registration_and_wait(&make());
    a_waiting_thread_is_woken(&make());
    a_quiet_watch_times_out(&make());
    misuse_is_refused(&make());
    Verdict::Kept
}

fn watch(s: &mut impl Facets, key: &[u8], scope: WatchScope) -> WatchId {
    has(s.watches()).watch(&[WatchRequest { key, scope }]).expect("a watch")
}

/// Waits with zero until nothing more is reported: reports that touch nothing are allowed.
fn drain(s: &mut impl Facets, id: WatchId) {
    let quiet = (0..1_000).any(|_| !has(s.watches()).wait(id, Some(Duration::ZERO)).expect("a wait"));
    assert!(quiet, "a watch reports again and again though nobody writes");
}

fn every_kind_of_write_touches<S: Store>(store: &S) {
    type Step<S> = fn(&mut S);
    let writes: [(&str, Step<S::Session>); 7] = [
        ("set", |s| s.set(b"w\0\x01", b"1").unwrap()),
        ("set of the same value", |s| s.set(b"w\0\x01", b"1").unwrap()),
        ("update", |s| s.update(b"w\0\x01", &mut |_, _| Ok(perilune_store::Decision::Write(3))).unwrap()),
        ("compare_and_set", |s| assert!(s.compare_and_set(b"w\0\x01", Some(&[0; 3]), Some(b"2")).unwrap())),
        ("remove", |s| assert!(s.remove(b"w\0\x01").unwrap())),
        ("a transaction", |s| {
            begin(s);
            s.set(b"w\0\x01", b"3").unwrap();
            s.commit().unwrap();
        }),
        ("remove_prefix of the parent", |s| s.remove_prefix(b"w\0").unwrap()),
    ];
    let (mut s, mut writer) = (session(store), session(store));
    let places = [
        ("the key", watch(&mut s, b"w\0\x01", WatchScope::Key)),
        ("the prefix", watch(&mut s, b"w\0", WatchScope::Prefix)),
        ("the key as a prefix", watch(&mut s, b"w\0\x01", WatchScope::Prefix)),
    ];
    for (name, write) in writes {
        for (_, id) in places {
            drain(&mut s, id);
        }
        write(&mut writer);
        for (place, id) in places {
            assert!(
                has(s.watches()).wait(id, Some(PATIENCE)).unwrap(),
                "{name} does not wake a watch of {place}"
            );
        }
    }
}

fn each_of_several_requests_counts<S: Store>(store: &S) {
    let mut s = session(store);
    let requests = [
        WatchRequest { key: b"a\0\x01", scope: WatchScope::Key },
        WatchRequest { key: b"b\0", scope: WatchScope::Prefix },
    ];
    let id = has(s.watches()).watch(&requests).unwrap();
    for key in [&b"a\0\x01"[..], b"b\0", b"b\0\x01\x02"] {
        drain(&mut s, id);
        s.set(key, b"v").unwrap();
        assert!(
            has(s.watches()).wait(id, Some(PATIENCE)).unwrap(),
            "a write at {key:?} wakes, also by the own session"
        );
    }
}

fn nothing_is_lost_between_registration_and_wait<S: Store>(store: &S) {
    let (mut s, mut writer) = (session(store), session(store));
    for round in 0..100 {
        let id = watch(&mut s, b"w\0", WatchScope::Key);
        number::set(&mut writer, b"w\0", round).unwrap();
        assert!(
            has(s.watches()).wait(id, Some(PATIENCE)).unwrap(),
            "round {round}: a write before the wait is noticed"
        );
        has(s.watches()).unwatch(id);
    }
}

/// Two threads answer each other; a lost wake-up stops the game.
fn a_waiting_thread_is_woken<S: Store>(store: &S) {
    const ROUNDS: u64 = 500;
    let play = |mine: &[u8], other: &[u8], first: bool| {
        let mut s = session(store);
        let id = watch(&mut s, other, WatchScope::Key);
        for round in 1..=ROUNDS {
            if first {
                number::set(&mut s, mine, round).unwrap();
            }
            while number::get(&mut s, other).unwrap() < round {
                let woken = has(s.watches()).wait(id, Some(PATIENCE)).unwrap();
                assert!(woken, "round {round}: the other side's write of {other:?} was not noticed");
            }
            if !first {
                number::set(&mut s, mine, round).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(b"ping\0", b"pong\0", true));
        scope.spawn(|| play(b"pong\0", b"ping\0", false));
    });
}

fn a_quiet_watch_times_out<S: Store>(store: &S) {
    let mut s = session(store);
    let id = watch(&mut s, b"w\0", WatchScope::Key);
    drain(&mut s, id);
    let quiet = (0..1_000).any(|_| !has(s.watches()).wait(id, Some(Duration::from_millis(1))).unwrap());
    assert!(quiet, "without writes a wait ends by its time limit");
}

fn misuse_is_refused<S: Store>(store: &S) {
    let mut s = session(store);
    let id = watch(&mut s, b"w\0", WatchScope::Key);
    begin(&mut s);
    let inside = has(s.watches()).wait(id, Some(Duration::ZERO));
    assert_error!(inside, Error::TransactionState(_), "a wait inside a transaction");
    s.rollback().unwrap();
    has(s.watches()).unwatch(id);
    assert_error!(
        has(s.watches()).wait(id, Some(Duration::ZERO)),
        Error::Invalid(_),
        "a wait for an ended watch"
    );
    assert_error!(
        has(s.watches()).watch_descriptor(id),
        Error::Invalid(_),
        "the descriptor of an ended watch"
    );
}
