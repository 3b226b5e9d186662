//! Pieces of values: a range that is read or written alone is what it would be in the whole value.

use std::ops::Range;

use perilune_store::{copy_pieces, put_piece, Bulk, Error, Session, Store, TransactionOptions, Transactions};

use super::{session, value};

/// Pieces of values, short and long, and reads that are kept short.
pub fn pieces<S: Store>(make: &impl Fn() -> S) {
    pieces_are_parts_of_the_whole(&make());
    pieces_are_read_in_transactions(&make());
    a_piece_that_changes_is_a_conflict(&make());
    previews_show_the_beginning(&make());
    pieces_are_written(&make());
    written_pieces_belong_to_their_level(&make());
}

/// The first bytes.
const FIRST: &[Range<usize>] = &[Range { start: 0, end: 9 }];

/// Bytes that tell where they stand.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}

fn piece(s: &mut impl Bulk, key: &[u8], pieces: &[Range<usize>]) -> Option<(usize, Vec<u8>)> {
    let mut out = b"stale".to_vec();
    let length = s.get_pieces(key, pieces, &mut out).unwrap_or_else(|error| panic!("pieces: {error}"));
    length.map(|length| (length, out))
}

fn check(s: &mut impl Bulk, key: &[u8], whole: &[u8]) {
    let len = whole.len();
    let one = |range: Range<usize>| vec![range];
    let ranges = [
        vec![],
        one(0..0),
        one(0..len),
        one(0..usize::MAX),
        one(len..len + 9),
        one(usize::MAX - 1..usize::MAX),
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
    assert_eq!(piece(&mut s, b"a\0", FIRST), None, "of nothing");
    for len in [0, 1, 7, 8, 9, 64, 1_024, 2_048, 2_049, 8_192, 8_193, 16_385, 70_000, 300_001] {
        s.set(b"a\0", &bytes(len)).unwrap();
        check(&mut s, b"a\0", &bytes(len));
    }
    assert_eq!(piece(&mut s, b"a\0\0", FIRST), None, "of a longer key");
}

fn pieces_are_read_in_transactions<S: Store>(store: &S) {
    let mut s = session(store);
    let (old, new) = (bytes(70_000), bytes(60_000));
    s.set(b"a\0", &old).unwrap();
    s.set(b"c\0", b"short").unwrap();
    s.begin(&TransactionOptions::default()).unwrap();
    check(&mut s, b"a\0", &old);
    assert_eq!(piece(&mut s, b"b\0", FIRST), None, "of nothing");
    s.set(b"a\0", &new).unwrap();
    s.set(b"b\0", &old).unwrap();
    check(&mut s, b"a\0", &new);
    check(&mut s, b"b\0", &old);
    s.begin(&TransactionOptions::default()).unwrap();
    s.remove(b"c\0").unwrap();
    assert_eq!(piece(&mut s, b"c\0", FIRST), None, "removed by an inner level");
    s.rollback().unwrap();
    check(&mut s, b"c\0", b"short");
    s.commit().unwrap();
    check(&mut s, b"b\0", &old);
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

fn previews_show_the_beginning<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"short").unwrap();
    s.set(b"b\0", &bytes(70_000)).unwrap();
    let update_bytes = store.limits().update_bytes;
    let preview = |s: &mut S::Session, from: &[u8]| {
        let (mut key, mut value) = (Vec::new(), b"stale".to_vec());
        s.preview_within(from, true, b"z", &mut key, &mut value).unwrap().then_some((key, value))
    };
    let look = |s: &mut S::Session| {
        assert_eq!(
            preview(s, b"a"),
            Some((b"a\0".to_vec(), b"short".to_vec())),
            "the whole of a short value"
        );
        let long = bytes(70_000)[..update_bytes].to_vec();
        assert_eq!(preview(s, b"b"), Some((b"b\0".to_vec(), long)), "the first bytes of a long one");
        assert_eq!(preview(s, b"c"), None);
    };
    look(&mut s);
    s.begin(&TransactionOptions::default()).unwrap();
    look(&mut s);
    // Twice: what was answered before may be remembered.
    look(&mut s);
    assert!(value(&mut s, b"b\0") == Some(bytes(70_000)), "behind a preview");
    s.set(b"c\0", &bytes(9_000)).unwrap();
    let own = preview(&mut s, b"c").unwrap().1;
    assert_eq!(own, bytes(9_000)[..update_bytes], "of what was written here");
    s.commit().unwrap();
}

fn pieces_are_written<S: Store>(store: &S) {
    let (mut s, mut other) = (session(store), session(store));
    assert_eq!(s.set_piece(b"a\0", 5, b"x").unwrap(), None, "there is nothing to be written over");
    assert_eq!(value(&mut s, b"a\0"), None, "and nothing was written");
    for len in [0, 9, 1_024, 2_048, 2_049, 8_192, 70_000, 300_001] {
        let mut whole = bytes(len);
        s.set(b"a\0", &whole).unwrap();
        let mut put = |s: &mut S::Session, offset: usize, piece: &[u8]| {
            let expected = put_piece(&mut whole, offset, piece, usize::MAX).unwrap();
            assert_eq!(s.set_piece(b"a\0", offset, piece).unwrap(), Some(expected), "of {len} bytes");
            assert!(value(s, b"a\0").as_ref() == Some(&whole), "{} bytes at {offset} of {len}", piece.len());
        };
        for piece in [1, 8, 3_000, 100_000].map(bytes) {
            put(&mut s, 0, &piece);
            put(&mut other, len / 2, &piece);
            put(&mut s, len / 3 + 1, &piece);
            put(&mut s, len, &piece);
        }
        put(&mut s, 410_000, b"far behind the end");
        put(&mut s, 7, b"");
        check(&mut other, b"a\0", &whole);
        other.remove(b"a\0").unwrap();
    }
    let limit = store.limits().value_bytes;
    s.set(b"a\0", &bytes(70_000)).unwrap();
    let refused = s.set_piece(b"a\0", limit, b"x");
    assert!(matches!(refused, Err(Error::ValueTooLong { .. })), "{refused:?}");
    check(&mut s, b"a\0", &bytes(70_000));
}

fn written_pieces_belong_to_their_level<S: Store>(store: &S) {
    let (mut s, mut other) = (session(store), session(store));
    let old = bytes(70_000);
    let mut whole = old.clone();
    s.set(b"a\0", &old).unwrap();
    s.set(b"b\0", &old).unwrap();
    s.begin(&TransactionOptions::default()).unwrap();
    let put = |s: &mut S::Session, whole: &mut Vec<u8>, offset: usize, piece: &[u8]| {
        let expected = put_piece(whole, offset, piece, usize::MAX).unwrap();
        assert_eq!(s.set_piece(b"a\0", offset, piece).unwrap(), Some(expected));
        check(s, b"a\0", whole);
        assert!(value(s, b"a\0").as_ref() == Some(&*whole));
        let (mut key, mut found) = (Vec::new(), Vec::new());
        assert!(s.next(b"a", true, &mut key, Some(&mut found)).unwrap());
        assert!(found == *whole, "with its key, too");
        assert!(s.preview_within(b"a", true, b"z", &mut key, &mut found).unwrap());
        assert!(found == whole[..store.limits().update_bytes], "and at a preview");
    };
    put(&mut s, &mut whole, 3, b"outer");
    put(&mut s, &mut whole, 80_000, b"outer");
    assert!(value(&mut other, b"a\0") == Some(old.clone()), "nobody else sees it yet");
    let outer = whole.clone();
    s.begin(&TransactionOptions::default()).unwrap();
    put(&mut s, &mut whole, 5, b"inner");
    s.remove_prefix(b"a").unwrap();
    assert_eq!(s.set_piece(b"a\0", 0, b"x").unwrap(), None, "it is gone");
    s.rollback().unwrap();
    check(&mut s, b"a\0", &outer);
    whole = outer;
    s.begin(&TransactionOptions::default()).unwrap();
    put(&mut s, &mut whole, 60_000, b"inner");
    s.set_piece(b"b\0", 9, b"gone").unwrap();
    s.remove(b"b\0").unwrap();
    s.commit().unwrap();
    put(&mut s, &mut whole, 60_003, b"outer");
    s.commit().unwrap();
    check(&mut other, b"a\0", &whole);
    assert_eq!(value(&mut other, b"b\0"), None, "removed behind the piece");
    // A value that was set takes a piece where it is.
    s.begin(&TransactionOptions::default()).unwrap();
    s.set(b"a\0", &old).unwrap();
    whole = old;
    put(&mut s, &mut whole, 69_998, b"end");
    s.set(b"a\0", b"short").unwrap();
    s.commit().unwrap();
    assert_eq!(value(&mut other, b"a\0").as_deref(), Some(&b"short"[..]));
}
