//! Pieces of values: what is told of a part is what the whole has there.

use std::ops::Range;

use perilune_store::{copy_pieces, Error, Session, Store, TransactionOptions};

use super::{session, value};

/// Pieces of values, short and long, and reads that are kept short.
pub fn pieces<S: Store>(make: &impl Fn() -> S) {
    pieces_are_parts_of_the_whole(&make());
    pieces_are_read_in_transactions(&make());
    a_piece_that_changes_is_a_conflict(&make());
    glances_show_the_beginning(&make());
    long_reads_are_refused_to_who_asks_for_that(&make());
}

/// Bytes that tell where they stand.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}

fn piece(s: &mut impl Session, key: &[u8], pieces: &[Range<usize>]) -> Option<(usize, Vec<u8>)> {
    let mut out = b"stale".to_vec();
    let length = s.get_pieces(key, pieces, &mut out).unwrap_or_else(|error| panic!("pieces: {error}"));
    length.map(|length| (length, out))
}

fn check(s: &mut impl Session, key: &[u8], whole: &[u8]) {
    let len = whole.len();
    let ranges = [
        vec![],
        vec![0..0],
        vec![0..len],
        vec![0..usize::MAX],
        vec![len..len + 9],
        vec![usize::MAX - 1..usize::MAX],
        vec![0..1, len / 2..len / 2 + 11, len.saturating_sub(5)..len + 5],
        vec![len / 3..len, 0..3, 1..1],
        (1..9).map(|ninth| len * ninth / 9..len * ninth / 9 + 3).collect(),
    ];
    for ranges in ranges {
        let mut expected = Vec::new();
        copy_pieces(whole, &ranges, &mut expected);
        assert!(piece(s, key, &ranges) == Some((len, expected)), "{ranges:?} of {len} bytes");
    }
}

fn pieces_are_parts_of_the_whole<S: Store>(store: &S) {
    let mut s = session(store);
    assert_eq!(piece(&mut s, b"a\0", &[0..9]), None, "of nothing");
    for len in [0, 1, 7, 8, 9, 64, 1_024, 2_048, 2_049, 8_192, 8_193, 16_385, 70_000, 300_001] {
        s.set(b"a\0", &bytes(len)).unwrap();
        check(&mut s, b"a\0", &bytes(len));
    }
    assert_eq!(piece(&mut s, b"a\0\0", &[0..9]), None, "of a longer key");
}

fn pieces_are_read_in_transactions<S: Store>(store: &S) {
    let mut s = session(store);
    let (old, new) = (bytes(70_000), bytes(60_000));
    s.set(b"a\0", &old).unwrap();
    s.set(b"c\0", b"short").unwrap();
    s.begin(&TransactionOptions::default()).unwrap();
    check(&mut s, b"a\0", &old);
    assert_eq!(piece(&mut s, b"b\0", &[0..9]), None, "of nothing");
    s.set(b"a\0", &new).unwrap();
    s.set(b"b\0", &old).unwrap();
    check(&mut s, b"a\0", &new);
    check(&mut s, b"b\0", &old);
    s.begin(&TransactionOptions::default()).unwrap();
    s.remove(b"c\0").unwrap();
    assert_eq!(piece(&mut s, b"c\0", &[0..9]), None, "removed by an inner level");
    s.rollback().unwrap();
    check(&mut s, b"c\0", b"short");
    s.commit().unwrap();
    check(&mut s, b"b\0", &old);
    if s.begin_brief().unwrap() {
        check(&mut s, b"a\0", &new);
        check(&mut s, b"c\0", b"short");
        assert_eq!(piece(&mut s, b"d\0", &[0..9]), None, "of nothing");
        s.set(b"c\0", b"shorter").unwrap();
        check(&mut s, b"c\0", b"shorter");
        assert!(s.end_brief(true).unwrap(), "nobody was in the way");
        check(&mut s, b"c\0", b"shorter");
    }
}

fn a_piece_that_changes_is_a_conflict<S: Store>(store: &S) {
    let (mut s, mut other) = (session(store), session(store));
    let mut long = bytes(70_000);
    s.set(b"a\0", &long).unwrap();
    let mut run = |read: Range<usize>, written: usize, long: &mut Vec<u8>| {
        s.begin(&TransactionOptions::default()).unwrap();
        piece(&mut s, b"a\0", std::slice::from_ref(&read));
        long[written] ^= 1;
        other.set(b"a\0", long).unwrap();
        let outcome = s.set(b"b\0", b"v").and_then(|()| s.commit());
        while s.depth() > 0 {
            s.rollback().unwrap();
        }
        s.give_up();
        outcome
    };
    let outcome = run(60_000..60_010, 60_005, &mut long);
    assert!(matches!(outcome, Err(Error::Conflict)), "what was read has changed: {outcome:?}");
    // What was not read may be told from what was, or not.
    let outcome = run(60_000..60_010, 5, &mut long);
    assert!(matches!(outcome, Ok(()) | Err(Error::Conflict)), "{outcome:?}");
    assert!(value(&mut session(store), b"a\0") == Some(long), "the other's writes are there");
}

fn glances_show_the_beginning<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"short").unwrap();
    s.set(b"b\0", &bytes(70_000)).unwrap();
    let update_bytes = store.limits().update_bytes;
    let glance = |s: &mut S::Session, from: &[u8]| {
        let (mut key, mut value) = (Vec::new(), b"stale".to_vec());
        s.glance_within(from, true, b"z", &mut key, &mut value).unwrap().then_some((key, value))
    };
    let look = |s: &mut S::Session| {
        assert_eq!(glance(s, b"a"), Some((b"a\0".to_vec(), b"short".to_vec())), "the whole of a short value");
        let long = bytes(70_000)[..update_bytes].to_vec();
        assert_eq!(glance(s, b"b"), Some((b"b\0".to_vec(), long)), "the first bytes of a long one");
        assert_eq!(glance(s, b"c"), None);
    };
    look(&mut s);
    s.begin(&TransactionOptions::default()).unwrap();
    look(&mut s);
    // Twice: what was answered before may be remembered.
    look(&mut s);
    assert!(value(&mut s, b"b\0") == Some(bytes(70_000)), "behind a glance");
    s.set(b"c\0", &bytes(9_000)).unwrap();
    let own = glance(&mut s, b"c").unwrap().1;
    assert_eq!(own, bytes(9_000)[..update_bytes], "of what was written here");
    s.commit().unwrap();
}

/// Who may not be kept for long is told how much it would be; other reads go on. Not every store does that.
fn long_reads_are_refused_to_who_asks_for_that<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"short").unwrap();
    s.set(b"b\0", &bytes(70_000)).unwrap();
    s.limit_reads(10_000);
    if !s.is_beyond(10_001) {
        return;
    }
    let (mut key, mut out) = (Vec::new(), Vec::new());
    for brief in [false, true] {
        if brief && !s.begin_brief().unwrap() {
            continue;
        }
        let refused = s.get(b"b\0", &mut out);
        assert!(matches!(refused, Err(Error::LongRead { bytes: 70_000 })), "{refused:?}");
        let refused = s.next(b"a\0", false, &mut key, Some(&mut out));
        assert!(matches!(refused, Err(Error::LongRead { bytes: 70_000 })), "{refused:?}");
        let refused = s.get_pieces(b"b\0", &[0..6_000, 9_000..13_001], &mut out);
        assert!(matches!(refused, Err(Error::LongRead { bytes: 10_001 })), "{refused:?}");
        assert!(piece(&mut s, b"b\0", &[0..6_000, 69_000..90_000]).is_some(), "7,000 bytes are few enough");
        assert!(s.next(b"a\0", false, &mut key, None).unwrap(), "without its value it is found");
        assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"short"[..]));
        if brief {
            assert!(s.end_brief(true).unwrap(), "a refusal does not end it");
        }
    }
    s.limit_reads(0);
    assert!(value(&mut s, b"b\0") == Some(bytes(70_000)), "without a limit");
}
