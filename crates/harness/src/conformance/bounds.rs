//! The facet `Bounds`: a session that was given lower limits refuses longer reads and larger transactions, and says
//! how large they are.

use perilune_store::{Bounds, Bulk, Error, Facets, Optimistic, Session, Store, Transactions};

use super::{assert_error, begin, has, session, value, Verdict};

/// Bounds of a session.
pub fn bounds<S: Store>(make: &impl Fn() -> S) -> Verdict {
    if session(&make()).bounds().is_none() {
        return Verdict::Missing;
    }
    long_reads_are_refused_to_who_asks_for_that(&make());
    large_transactions_are_refused_to_who_asks_for_that(&make());
    Verdict::Kept
}

/// Bytes that tell where they stand.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}

/// Who may not be kept for long is told how much it would be; other reads go on.
fn long_reads_are_refused_to_who_asks_for_that<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"short").unwrap();
    s.set(b"b\0", &bytes(70_000)).unwrap();
    has(s.bounds()).limit_reads(10_000);
    assert!(has(s.bounds()).is_beyond(10_001) && !has(s.bounds()).is_beyond(9_999), "the limit is told");
    let (mut key, mut out) = (Vec::new(), Vec::new());
    for in_attempt in [false, true] {
        if in_attempt && !s.optimistic().is_some_and(|s| s.begin_attempt().expect("an attempt begins or not"))
        {
            continue;
        }
        let refused = s.get(b"b\0", &mut out);
        assert!(matches!(refused, Err(Error::LongRead { bytes: 70_000 })), "{refused:?}");
        let refused = s.next(b"a\0", false, &mut key, Some(&mut out));
        assert!(matches!(refused, Err(Error::LongRead { bytes: 70_000 })), "{refused:?}");
        let refused = s.get_pieces(b"b\0", &[0..6_000, 9_000..13_001], &mut out);
        assert!(matches!(refused, Err(Error::LongRead { bytes: 10_001 })), "{refused:?}");
        let few_enough = s.get_pieces(b"b\0", &[0..6_000, 69_000..90_000], &mut out).unwrap();
        assert_eq!((few_enough, out.len()), (Some(70_000), 7_000), "7,000 bytes are not too many");
        assert!(s.next(b"a\0", false, &mut key, None).unwrap(), "without its value it is found");
        assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"short"[..]));
        if in_attempt {
            assert!(has(s.optimistic()).end_attempt(true).unwrap(), "a refusal does not end it");
        }
    }
    has(s.bounds()).limit_reads(0);
    assert!(value(&mut s, b"b\0") == Some(bytes(70_000)), "without a limit");
}

/// The write that would be too much is refused, and the transaction goes on without it.
fn large_transactions_are_refused_to_who_asks_for_that<S: Store>(store: &S) {
    let mut s = session(store);
    has(s.bounds()).limit_pending(20_000);
    begin(&mut s);
    s.set(b"a\0", &bytes(9_000)).unwrap();
    let pending = has(s.bounds()).pending_bytes();
    assert!((9_000..20_000).contains(&pending), "{pending} bytes of 9,000");
    assert_error!(s.set(b"b\0", &bytes(19_000)), Error::LimitReached { .. }, "a write over the limit");
    s.commit().unwrap();
    assert_eq!((value(&mut s, b"a\0"), value(&mut s, b"b\0")), (Some(bytes(9_000)), None));
    assert_eq!(has(s.bounds()).pending_bytes(), 0, "nothing is pending without a transaction");
    has(s.bounds()).limit_pending(usize::MAX);
    s.set(b"b\0", &bytes(19_000)).unwrap();
}
