//! The facet `Optimistic`: a function looks at a few keys and decides what to write, in one step. Tested is that
//! what it sees is true, that nobody writes in between, and that a write which depends on there being nothing below
//! a key is not made if there is.

use std::collections::BTreeMap;

use perilune_store::{
    transact, Decision, Error, Facets, Optimistic, Probe, ProbeResult, ProbeTarget, Probed, Session, Store,
    TransactionOptions, Transactions, UpdateBuffer,
};

use super::rendezvous::Rendezvous;
use super::{begin, has, session, value, Verdict};
use crate::number;

/// Decisions and writes in one step.
pub fn optimistic<S: Store>(make: &impl Fn() -> S) -> Verdict {
    if session(&make()).optimistic().is_none() {
        return Verdict::Missing;
    }
    what_is_seen_is_true(&make());
    nothing_is_written_that_is_not_wanted(&make());
    counts_are_those_of_what_is_counted(&make());
    who_looks_sees_one_state(&make());
    a_parent_is_not_written(&make());
    Verdict::Kept
}

fn probe(key: &[u8], target: ProbeTarget) -> Probe<'_> {
    Probe { key, target }
}

/// The record that a look from `key` finds.
fn wanted<'m>(
    map: &'m BTreeMap<Vec<u8>, Vec<u8>>,
    key: &[u8],
    target: ProbeTarget,
) -> Option<(&'m Vec<u8>, &'m Vec<u8>)> {
    match target {
        ProbeTarget::At => map.get_key_value(key),
        ProbeTarget::AtOrNext => map.range(key.to_vec()..).next(),
        ProbeTarget::Previous => map.range(..key.to_vec()).next_back(),
    }
}

/// Holds what a probe stands at against what it should; true if it could be told.
fn check(probed: &mut dyn Probed, at: usize, wanted: Option<(&Vec<u8>, &Vec<u8>)>, place: &str) -> bool {
    match (probed.found(at), wanted) {
        (ProbeResult::Record, Some((key, value))) => {
            assert_eq!(probed.key(at), &key[..], "{place}: the key");
            assert!(probed.is_at(at, key) && !probed.is_at(at, &[&key[..], b"x"].concat()), "{place}");
            for (start, behind) in (0..=key.len()).map(|len| key.split_at(len)) {
                assert_eq!(probed.key_behind(at, start), Some(behind), "{place}: behind {start:?}");
                assert_eq!(probed.key_behind(at, &[start, b"x"].concat()), None, "{place}: no key has an x");
            }
            assert!(probed.value(at).is_none_or(|found| found == value), "{place}: the value");
            true
        }
        (ProbeResult::Nothing, None) => {
            assert!(probed.key(at).is_empty() && probed.value(at).is_none(), "{place}: nothing has neither");
            assert_eq!(probed.key_behind(at, b"k"), None, "{place}: nothing begins so");
            true
        }
        (ProbeResult::Unknown, _) => false,
        (found, wanted) => panic!("{place}: saw {found:?}, there is {wanted:?}"),
    }
}

fn what_is_seen_is_true<S: Store>(store: &S) {
    let mut s = session(store);
    let mut map = BTreeMap::new();
    for number in 0..900_u32 {
        let key = format!("k{:04}\0", number * 7 % 900 * 2).into_bytes();
        let bytes = if number % 50 == 0 { 4_000 } else { (number % 90) as usize };
        map.insert(key.clone(), vec![number as u8; bytes]);
        s.set(&key, &map[&key]).unwrap();
    }
    let (mut told, mut asked, mut written) = (0, 0, 0);
    for number in 0..1_800 {
        let key = format!("k{number:04}\0").into_bytes();
        let targets = [ProbeTarget::At, ProbeTarget::AtOrNext, ProbeTarget::Previous];
        let probes = targets.map(|target| probe(&key, target));
        let looked = has(s.optimistic()).look_probed(&probes, &mut |probed| {
            for (at, target) in targets.into_iter().enumerate() {
                asked += 1;
                let found = wanted(&map, &key, target);
                told +=
                    u32::from(check(probed, at, found, &format!("{target:?} from {number}, only to look")));
            }
            Ok(number % 2 == 0)
        });
        assert!(!looked.unwrap() || number % 2 == 0, "what the function answers counts");
        let new = vec![1; (number % 60) as usize];
        let done = has(s.optimistic()).change_probed(&probes, &mut |probed| {
            for (at, target) in targets.into_iter().enumerate() {
                asked += 1;
                let found = wanted(&map, &key, target);
                told += u32::from(check(probed, at, found, &format!("{target:?} from {number}")));
            }
            let record = probed.found(1) == ProbeResult::Record;
            let here = wanted(&map, &key, ProbeTarget::AtOrNext).map(|(key, _)| key.clone());
            if record && probed.step(1) != ProbeResult::Unknown {
                let behind = here.and_then(|here| map.range(here..).nth(1));
                check(probed, 1, behind, &format!("a step behind {number}"));
            }
            match number % 3 {
                0 => probed.remove(0, &key),
                1 => probed.set(0, &key, &new),
                _ => {}
            }
            Ok(true)
        });
        if done.unwrap() {
            written += 1;
            match number % 3 {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert(key.clone(), new)),
                _ => {}
            }
        }
        assert_eq!(value(&mut s, &key), map.get(&key).cloned(), "after change {number}");
    }
    assert!(told > asked / 10 * 9 && written > 1_000, "{told} of {asked}, {written}");
}

fn nothing_is_written_that_is_not_wanted<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"1").unwrap();
    let at = [probe(b"a\0", ProbeTarget::At)];
    let refused = has(s.optimistic()).change_probed(&at, &mut |probed| {
        probed.set(0, b"a\0", b"2");
        Ok(false)
    });
    assert!(!refused.unwrap(), "what is not wanted is not done");
    match has(s.optimistic()).change_probed(&at, &mut |probed| {
        probed.set(0, b"a\0", b"2");
        Err(Error::Refused("no".to_string()))
    }) {
        Ok(false) => {}
        Err(Error::Refused(why)) => assert_eq!(why, "no", "the function's error comes unchanged"),
        other => panic!("a refusal has to be answered, got {other:?}"),
    }
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "and leaves the value");
    s.begin(&TransactionOptions::default()).unwrap();
    let inside = has(s.optimistic()).change_probed(&at, &mut |_| panic!("in a transaction nobody is asked"));
    assert!(!inside.unwrap(), "a transaction has its own way");
    s.commit().unwrap();
}

/// What several threads add and take away is counted by each change of it, in the same operation.
fn counts_are_those_of_what_is_counted<S: Store>(store: &S) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 600;
    number::set(&mut session(store), b"set\0", 0).unwrap();
    let barrier = Rendezvous::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut s = session(store);
                barrier.wait();
                for round in 0..ROUNDS {
                    // NB: they meet at the same members.
                    let member = (round * 31 + thread) % 97;
                    toggle(&mut s, member);
                }
            });
        }
    });
    let mut s = session(store);
    let (mut members, mut from, mut found) = (0, b"set\0".to_vec(), Vec::new());
    while s.next_within(&from, false, b"set\x01", &mut found, None).unwrap() {
        members += 1;
        std::mem::swap(&mut from, &mut found);
    }
    assert_eq!(number::get(&mut s, b"set\0").unwrap(), members, "what {THREADS} threads have left");
}

/// Adds a member that is not there, takes away one that is, and keeps the count: by one change, or a transaction.
fn toggle(s: &mut (impl Session + Facets), member: u64) {
    let key = [b"set\0member", &member.to_be_bytes()[..]].concat();
    let probes = [probe(b"set\0", ProbeTarget::AtOrNext), probe(&key, ProbeTarget::At)];
    let done = has(s.optimistic()).change_probed(&probes, &mut |probed| {
        assert!(probed.is_at(0, b"set\0"), "the count is there all the time");
        let count = number::decode(probed.value(0).unwrap_or_default())?;
        match probed.found(1) {
            ProbeResult::Record => {
                probed.set(0, b"set\0", &(count - 1).to_le_bytes());
                probed.remove(1, &key);
            }
            ProbeResult::Nothing => {
                probed.set(0, b"set\0", &(count + 1).to_le_bytes());
                probed.set(1, &key, &[7; 40]);
            }
            ProbeResult::Unknown => return Ok(false),
        }
        Ok(true)
    });
    if done.expect("a change") {
        return;
    }
    let toggled = transact(s, &TransactionOptions::default(), |s| {
        let count = number::get(s, b"set\0")?;
        if s.remove(&key)? {
            return number::set(s, b"set\0", count - 1);
        }
        s.set(&key, &[7; 40])?;
        number::set(s, b"set\0", count + 1)
    });
    toggled.expect("a transaction");
}

/// Two writers keep two numbers equal, and a third that only looks sees them so.
fn who_looks_sees_one_state<S: Store>(store: &S) {
    const ROUNDS: u64 = 2_000;
    let keys = [&b"left\0"[..], b"right\0"];
    let probes = keys.map(|key| probe(key, ProbeTarget::At));
    let mut s = session(store);
    // So that they lie far from each other.
    (0..800_u32).for_each(|at| s.set(&[b"m", &at.to_be_bytes()[..]].concat(), &[1; 40]).unwrap());
    keys.iter().for_each(|key| number::set(&mut s, key, 0).unwrap());
    let barrier = Rendezvous::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut s = session(store);
                barrier.wait();
                for _ in 0..ROUNDS {
                    let add = transact(&mut s, &TransactionOptions::default(), |s| {
                        let sum = number::get(s, keys[0])? + 1;
                        keys.iter().try_for_each(|key| number::set(s, key, sum))
                    });
                    add.expect("a transaction");
                }
            });
        }
        barrier.wait();
        let mut seen = 0;
        while seen < 2 * ROUNDS {
            let mut sums = [0; 2];
            let looked = has(s.optimistic()).look_probed(&probes, &mut |probed| {
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = number::decode(probed.value(at).unwrap_or(&[0; 8]))?;
                }
                Ok(true)
            });
            if looked.expect("a look") {
                assert_eq!(sums[0], sums[1], "both are of one state");
                assert!(sums[0] >= seen, "and that is none before the last one");
                seen = sums[0];
            } else {
                seen = number::get(&mut s, keys[0]).expect("a number");
            }
        }
    });
}

/// What has a value or nothing below it is written, what has only keys below it is not; and several are written together.
fn a_parent_is_not_written<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"p\0\x05", b"below").unwrap();
    let end = b"p\x01";
    assert!(
        !has(s.optimistic()).set_unless_parent(b"p\0", end, b"1").unwrap(),
        "it has no value and a key below"
    );
    has(s.optimistic())
        .update_unless_parent(b"p\0", &mut |_, _| panic!("nobody is asked about a parent"))
        .unwrap();
    let pairs: [(&[u8], &[u8]); 2] = [(b"a\0", b"1"), (b"p\0", b"1")];
    assert!(!has(s.optimistic()).set_all_unless_parents(&pairs).unwrap(), "one of them is a parent");
    assert_eq!((value(&mut s, b"p\0"), value(&mut s, b"a\0")), (None, None), "nothing was written");
    s.set(b"p\0", b"own").unwrap();
    assert!(has(s.optimistic()).set_unless_parent(b"p\0", end, b"2").unwrap(), "it has a value");
    assert!(has(s.optimistic()).set_unless_parent(b"q\0", b"q\x01", b"3").unwrap(), "nothing lies below");
    assert!(
        has(s.optimistic()).set_all_unless_parents(&pairs).unwrap(),
        "neither is a parent without a value"
    );
    assert_eq!(value(&mut s, b"p\0").as_deref(), Some(&b"1"[..]), "both were written");
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "both were written");
    let put = &mut |_: Option<&[u8]>, buffer: &mut UpdateBuffer| {
        buffer[0] = b'!';
        Ok(Decision::Write(1))
    };
    has(s.optimistic()).update_unless_parent(b"q\0", put).unwrap();
    assert_eq!(value(&mut s, b"q\0").as_deref(), Some(&b"!"[..]), "what has a value is updated");
    begin(&mut s);
    assert!(
        !has(s.optimistic()).set_unless_parent(b"q\0", b"q\x01", b"4").unwrap(),
        "a transaction has its own way"
    );
    s.commit().unwrap();
}
