//! The limits a back end tells are the ones it keeps.

use perilune_store::{Error, Session, Store, TransactionOptions, Transactions};

use super::{assert_error, begin, keys, session, value};

/// Values longer than this are not tried: the machine has other things to do.
const TRIED_BYTES: usize = 64 << 20;

/// Limits of keys, values and levels.
pub fn limits<S: Store>(make: &impl Fn() -> S) {
    keys_up_to_the_limit(&make());
    values_up_to_the_limit(&make());
    levels_up_to_the_limit(&make());
}

fn keys_up_to_the_limit<S: Store>(store: &S) {
    let mut s = session(store);
    let limit = store.limits().key_bytes;
    let key = |bytes: usize, last: u8| {
        let mut key = vec![b'k'; bytes];
        key[1] = 0;
        key[bytes - 1] = last;
        key
    };
    // So many of the longest that every structure of the back end meets them.
    for last in (1..=60).rev() {
        s.set(&key(limit, last), &[last]).unwrap();
    }
    let all: Vec<_> = (1..=60).map(|last| key(limit, last)).collect();
    assert!(keys(&mut s).unwrap() == all, "keys of {limit} bytes come back in order");
    let after = [&all[59][..], &[0xFF]].concat();
    assert!(!s.next(&after, false, &mut Vec::new(), None).unwrap(), "next takes one 0xFF more than a key");
    assert!(s.previous(&after, &mut Vec::new(), None).unwrap(), "previous too");
    let long = key(limit + 1, 1);
    match s.set(&long, b"v") {
        Err(Error::KeyTooLong { bytes, limit: told }) => assert_eq!((bytes, told), (limit + 1, limit)),
        other => panic!("a key over the limit: expected KeyTooLong, got {other:?}"),
    }
    assert_error!(s.get(&long, &mut Vec::new()), Error::KeyTooLong { .. }, "get of a key over the limit");
    assert_error!(s.remove(&long), Error::KeyTooLong { .. }, "remove of a key over the limit");
    assert_error!(s.presence(&long), Error::KeyTooLong { .. }, "presence of a key over the limit");
    assert_error!(
        s.next(&key(limit + 2, 1), true, &mut Vec::new(), None),
        Error::KeyTooLong { .. },
        "next from two bytes over the limit"
    );
    assert_eq!(keys(&mut s).unwrap().len(), 60, "nothing was written");
}

fn values_up_to_the_limit<S: Store>(store: &S) {
    let mut s = session(store);
    let limit = store.limits().value_bytes;
    if limit > TRIED_BYTES {
        return;
    }
    let mut long: Vec<u8> = (0..limit).map(|at| (at % 251) as u8).collect();
    s.set(b"a\0", &long).unwrap();
    assert!(value(&mut s, b"a\0").as_ref() == Some(&long), "a value of {limit} bytes comes back whole");
    long.push(0);
    match s.set(b"a\0", &long) {
        Err(Error::ValueTooLong { bytes, limit: told }) => assert_eq!((bytes, told), (limit + 1, limit)),
        other => panic!("a value over the limit: expected ValueTooLong, got {other:?}"),
    }
    assert_error!(
        s.compare_and_set(b"b\0", None, Some(&long)),
        Error::ValueTooLong { .. },
        "compare_and_set to a value over the limit"
    );
    assert_eq!(value(&mut s, b"a\0").map(|value| value.len()), Some(limit), "the old value stays");
}

fn levels_up_to_the_limit<S: Store>(store: &S) {
    let mut s = session(store);
    let limit = store.limits().transaction_depth;
    for level in 0..limit {
        begin(&mut s);
        s.set(b"a\0", &level.to_le_bytes()).unwrap();
    }
    match s.begin(&TransactionOptions::default()) {
        Err(Error::LimitReached { limit: told, .. }) => assert_eq!(told, limit as u64, "the limit told"),
        other => panic!("a level over the limit: expected LimitReached, got {other:?}"),
    }
    assert_eq!(s.depth(), limit, "the refused level is not open");
    for _ in 0..limit {
        s.commit().unwrap();
    }
    let deepest = (limit - 1).to_le_bytes().to_vec();
    assert_eq!(value(&mut s, b"a\0"), Some(deepest), "the deepest level's write is committed");
}
