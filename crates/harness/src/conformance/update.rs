//! Changes of one value by a function of it: what the function sees, and that no other write comes between.

use perilune_store::{Decision, Error, Session, Store};

use super::rendezvous::Rendezvous;
use super::{session, value};
use crate::number;

/// Changes by a function.
pub fn update<S: Store>(make: &impl Fn() -> S) {
    the_function_decides(&make());
    long_values_show_their_beginning(&make());
    increments_are_not_lost(&make());
    compare_and_set_has_one_winner(&make());
}

fn the_function_decides<S: Store>(store: &S) {
    let mut s = session(store);
    let mut shown = Vec::new();
    s.update(b"a\0", &mut |old, buffer| {
        shown.push(old.map(<[u8]>::to_vec));
        buffer[..2].copy_from_slice(b"hi");
        Ok(Decision::Write(2))
    })
    .unwrap();
    assert_eq!(shown.pop(), Some(None), "an absent value is shown as None");
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"hi"[..]), "what the function put is written");
    s.update(b"a\0", &mut |old, buffer| {
        assert_eq!(old, Some(&b"hi"[..]), "the present value is shown");
        buffer[0] = b'x';
        Ok(Decision::Keep)
    })
    .unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"hi"[..]), "Keep leaves the value");
    let refused = s.update(b"a\0", &mut |_, _| Err(Error::Refused("no".to_string())));
    match refused {
        Err(Error::Refused(why)) => assert_eq!(why, "no", "the function's error comes unchanged"),
        other => panic!("a refusal has to be answered, got {other:?}"),
    }
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"hi"[..]), "a refusal leaves the value");
    s.update(b"a\0", &mut |_, _| Ok(Decision::Write(0))).unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b""[..]), "an empty value can be written");
    s.update(b"a\0", &mut |_, _| Ok(Decision::Remove)).unwrap();
    assert_eq!(value(&mut s, b"a\0"), None, "Remove removes");
    s.update(b"a\0", &mut |_, _| Ok(Decision::Remove)).unwrap();
    s.update(b"a\0", &mut |_, _| Ok(Decision::Keep)).unwrap();
    assert_eq!(value(&mut s, b"a\0"), None, "what is absent can be kept and removed");
}

fn long_values_show_their_beginning<S: Store>(store: &S) {
    let mut s = session(store);
    let shown_bytes = store.limits().update_bytes;
    for bytes in [shown_bytes - 1, shown_bytes, shown_bytes + 1, 3_000, 20_000] {
        let long: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        s.set(b"a\0", &long).unwrap();
        s.update(b"a\0", &mut |old, _| {
            assert_eq!(
                old,
                Some(&long[..bytes.min(shown_bytes)]),
                "of {bytes} bytes the first {shown_bytes}"
            );
            Ok(Decision::Keep)
        })
        .unwrap();
        assert!(value(&mut s, b"a\0") == Some(long), "a kept value of {bytes} bytes is whole");
    }
    s.update(b"a\0", &mut |_, _| Ok(Decision::Write(shown_bytes))).unwrap();
    assert_eq!(value(&mut s, b"a\0"), Some(vec![0; shown_bytes]), "a short value replaces a long one");
}

fn increments_are_not_lost<S: Store>(store: &S) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 1_000;
    let barrier = Rendezvous::new(THREADS as usize);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut s = session(store);
                barrier.wait();
                for _ in 0..ROUNDS {
                    s.update(b"n\0", &mut |old, buffer| {
                        let old = old.map_or(Ok(0), number::decode)?;
                        buffer[..8].copy_from_slice(&(old + 1).to_le_bytes());
                        Ok(Decision::Write(8))
                    })
                    .expect("an increment");
                }
            });
        }
    });
    let total = number::get(&mut session(store), b"n\0").unwrap();
    assert_eq!(total, THREADS * ROUNDS, "every increment of {THREADS} threads counts");
}

fn compare_and_set_has_one_winner<S: Store>(store: &S) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    let barrier = Rendezvous::new(THREADS as usize);
    let wins: u64 = std::thread::scope(|scope| {
        let contender = || {
            let mut s = session(store);
            let mut wins = 0;
            for round in 0..ROUNDS {
                barrier.wait();
                let key = [b"c\0", &round.to_be_bytes()[..]].concat();
                wins += u64::from(s.compare_and_set(&key, None, Some(b"mine")).expect("a try"));
            }
            wins
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(contender)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a contender ends")).sum()
    });
    assert_eq!(wins, ROUNDS, "of {THREADS} threads exactly one wins each of {ROUNDS} keys");
}
