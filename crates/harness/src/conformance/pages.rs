//! Ranges read by pages: all of a range, once, in order, in either direction, and no more than was asked for.

use perilune_store::{Error, Page, Session, Span, Store, Transactions};

use super::{assert_error, begin, session};

/// Pages of ranges.
pub fn pages<S: Store>(make: &impl Fn() -> S) {
    pages_are_the_range(&make());
    pages_are_part_of_what_a_transaction_reads(&make());
}

/// Everything of a range, page by page, with at most so many entries a page.
fn all(
    s: &mut impl Session,
    range: [&[u8]; 2],
    backwards: bool,
    with_values: bool,
    most: u64,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let [mut low, mut high] = range.map(<[u8]>::to_vec);
    let (mut all, mut page) = (Vec::new(), Page::default());
    loop {
        page.push(b"stale", b"");
        s.page(&Span { low: &low, high: &high, backwards, most }, with_values, &mut page).unwrap();
        assert!(page.len() as u64 <= most, "no more than asked for");
        assert!(page.is_last() || !page.is_empty(), "there is more, and none of it came");
        all.extend(page.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        let Some((last, _)) = all.last().filter(|_| !page.is_last()) else { return all };
        if backwards {
            high.clone_from(last);
        } else {
            low = [&last[..], &[0]].concat();
        }
    }
}

fn pages_are_the_range<S: Store>(store: &S) {
    let mut s = session(store);
    let mut expected = Vec::new();
    for number in 0..700_u16 {
        let key = [&b"x\0"[..], &number.to_be_bytes()].concat();
        let value = vec![number as u8; if number % 90 == 0 { 5_000 } else { usize::from(number % 40) }];
        s.set(&key, &value).unwrap();
        expected.push((key, value));
    }
    s.set(b"w\0", b"before").unwrap();
    s.set(b"y\0", b"behind").unwrap();
    let range = [&b"x\0"[..], b"x\x01"];
    for most in [1, 7, 100, u64::MAX] {
        assert!(all(&mut s, range, false, true, most) == expected, "forwards by {most}");
        let mut backwards = all(&mut s, range, true, true, most);
        backwards.reverse();
        assert!(backwards == expected, "backwards by {most}");
    }
    for (key, value) in all(&mut s, range, false, false, u64::MAX) {
        assert!(value.is_empty(), "no value of \"{}\" was asked for", key.escape_ascii());
    }
    let within = [&expected[3].0[..], &expected[9].0];
    assert!(all(&mut s, within, false, true, u64::MAX) == expected[3..9], "the end does not count");
    for nothing in [[&b"x\x01"[..], b"x\x02"], [b"x\x01", b"x\0"], [b"x\0", b"x\0"], [b"x\0", b""]] {
        assert!(all(&mut s, nothing, false, true, u64::MAX).is_empty(), "an empty range {nothing:?}");
    }
}

fn pages_are_part_of_what_a_transaction_reads<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(store));
    (0..9_u8).for_each(|number| a.set(&[b'x', 0, number], b"1").unwrap());
    begin(&mut a);
    a.set(b"x\0\x03", b"own").unwrap();
    a.set(b"x\0\x03\x01", b"new").unwrap();
    assert!(a.remove(b"x\0\x05").unwrap());
    let range = [&b"x\0\x02"[..], b"x\0\x07"];
    let found = all(&mut a, range, false, true, u64::MAX);
    let expected: [(&[u8], &[u8]); 5] = [
        (b"x\0\x02", b"1"),
        (b"x\0\x03", b"own"),
        (b"x\0\x03\x01", b"new"),
        (b"x\0\x04", b"1"),
        (b"x\0\x06", b"1"),
    ];
    assert!(
        found.iter().map(|(key, value)| (&key[..], &value[..])).eq(expected),
        "own writes are seen: {found:?}"
    );
    b.set(b"x\0\x06\x01", b"phantom").unwrap();
    assert_error!(a.commit(), Error::Conflict, "a commit after a key more in a page");
}
