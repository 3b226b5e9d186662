//! The ordered map, one session alone: order, presence, neighbours, removal.

use perilune_store::{get_many, Bulk, Presence, Session, Store, TransactionOptions, Transactions};

use super::{keys, session, value};

/// The ordered map. Random commands against the model go deeper; this names what is expected.
pub fn map<S: Store>(make: &impl Fn() -> S) {
    values_come_back(&make());
    presence_tells_value_and_descendants(&make());
    order_is_that_of_unsigned_bytes(&make());
    neighbours_are_found(&make());
    neighbours_are_found_within_bounds(&make());
    pairs_are_set_one_after_another(&make());
    a_prefix_goes_with_all_below_it(&make());
    compare_and_set_compares(&make());
    many_keys_survive_growth_and_removal(&make());
    sessions_share_one_map(&make());
}

fn values_come_back<S: Store>(store: &S) {
    let mut s = session(store);
    assert_eq!(value(&mut s, b"a\0"), None, "nothing is in a new store");
    s.set(b"a\0", b"one").unwrap();
    s.set(b"a\0\0", b"").unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"one"[..]), "the value written");
    assert_eq!(value(&mut s, b"a\0\0").as_deref(), Some(&b""[..]), "an empty value is a value");
    s.set(b"a\0", b"a longer one").unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"a longer one"[..]), "the value overwritten");
    assert!(s.remove(b"a\0").unwrap(), "removing tells that there was a value");
    assert!(!s.remove(b"a\0").unwrap(), "removing again tells that there was none");
    assert_eq!(value(&mut s, b"a\0"), None, "a removed value is gone");
    assert!(value(&mut s, b"a\0\0").is_some(), "longer keys stay when a value is removed");
    for bytes in [0, 1, 64, 65, 1_000, 4_000, 5_000, 70_000] {
        let long: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        s.set(b"long\0", &long).unwrap();
        assert!(value(&mut s, b"long\0") == Some(long), "a value of {bytes} bytes comes back whole");
    }
    let many = get_many(&mut s, &[b"long\0", b"none\0", b"a\0\0"]).unwrap();
    let sizes: Vec<_> = many.iter().map(|value| value.as_ref().map(Vec::len)).collect();
    assert_eq!(sizes, [Some(70_000), None, Some(0)], "get_many answers in the order asked");
}

fn pairs_are_set_one_after_another<S: Store>(store: &S) {
    let mut s = session(store);
    let long = vec![b'v'; 70_000];
    let pairs: [(&[u8], &[u8]); 7] = [
        (b"b\0", b"1"),
        (b"c\0", &long),
        (b"d\0", b""),
        (b"a\0", b"4"),
        (b"b\0", b"5"),
        (b"b\0", b"6"),
        (b"c\0", b"7"),
    ];
    s.set_each(&pairs).unwrap();
    let found = get_many(&mut s, &[b"a\0", b"b\0", b"c\0", b"d\0"]).unwrap();
    let expected: [&[u8]; 4] = [b"4", b"6", b"7", b""];
    assert!(found.iter().map(Option::as_deref).eq(expected.map(Some)), "the last of a key stays: {found:?}");
    let too_long = vec![b'k'; store.limits().key_bytes + 1];
    let failed = s.set_each(&[(b"e\0", b"1"), (&too_long, b"2"), (b"f\0", b"3")]);
    assert!(matches!(failed, Err(perilune_store::Error::KeyTooLong { .. })), "{failed:?}");
    assert_eq!(value(&mut s, b"e\0").as_deref(), Some(&b"1"[..]), "what precedes a failure is set");
    assert_eq!(value(&mut s, b"f\0"), None, "what follows it is not");
    s.begin(&TransactionOptions::default()).unwrap();
    s.set_each(&[(b"a\0", b"8"), (b"g\0", b"9")]).unwrap();
    s.rollback().unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"4"[..]), "in a transaction it belongs to that");
}

fn presence_tells_value_and_descendants<S: Store>(store: &S) {
    let mut s = session(store);
    let assert_presence = |s: &mut S::Session, key: &[u8], value: bool, descendants: bool| {
        assert_eq!(s.presence(key).unwrap(), Presence { value, descendants }, "presence of {key:?}");
    };
    assert_presence(&mut s, b"a\0", false, false);
    s.set(b"a\0\x01\x02", b"v").unwrap();
    s.set(b"b\0", b"v").unwrap();
    assert_presence(&mut s, b"a\0", false, true);
    assert_presence(&mut s, b"a\0\x01", false, true);
    assert_presence(&mut s, b"a\0\x01\x02", true, false);
    assert_presence(&mut s, b"a\0\x01\x01", false, false);
    assert_presence(&mut s, b"b\0", true, false);
    s.set(b"a\0", b"v").unwrap();
    assert_presence(&mut s, b"a\0", true, true);
    s.remove(b"a\0\x01\x02").unwrap();
    assert_presence(&mut s, b"a\0", true, false);
    assert_presence(&mut s, b"a\0\x01", false, false);
}

fn order_is_that_of_unsigned_bytes<S: Store>(store: &S) {
    let mut s = session(store);
    let sorted: [&[u8]; 9] = [
        b"a\0",
        b"a\0\0",
        b"a\0\0\xFF",
        b"a\0\x01",
        b"a\0\x7F",
        b"a\0\x80",
        b"a\0\xFF",
        b"a\0\xFF\0",
        b"b\0",
    ];
    for at in [4, 0, 8, 2, 6, 1, 7, 3, 5] {
        s.set(sorted[at], &[at as u8]).unwrap();
    }
    assert_eq!(keys(&mut s).unwrap(), sorted, "forward");
    let (mut backward, mut from, mut key, mut value) = (Vec::new(), vec![0xFF], Vec::new(), Vec::new());
    while s.previous(&from, &mut key, Some(&mut value)).unwrap() {
        assert_eq!(value, [8 - backward.len() as u8], "the value with previous key {key:?}");
        backward.push(key.clone());
        std::mem::swap(&mut from, &mut key);
    }
    backward.reverse();
    assert_eq!(backward, sorted, "backward");
}

fn neighbours_are_found<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0\x01", b"1").unwrap();
    s.set(b"a\0\x01\x05", b"15").unwrap();
    s.set(b"a\0\x02", b"2").unwrap();
    let (mut key, mut value) = (Vec::new(), b"kept".to_vec());
    assert!(s.next(b"a\0\x01", true, &mut key, None).unwrap());
    assert_eq!(key, b"a\0\x01", "an inclusive next finds the key itself");
    assert!(s.next(b"a\0\x01", false, &mut key, Some(&mut value)).unwrap());
    assert_eq!((&key[..], &value[..]), (&b"a\0\x01\x05"[..], &b"15"[..]), "an exclusive one does not");
    assert!(s.next(b"a\0\x01\xFF", false, &mut key, Some(&mut value)).unwrap());
    assert_eq!(
        (&key[..], &value[..]),
        (&b"a\0\x02"[..], &b"2"[..]),
        "next after key + 0xFF skips what is below"
    );
    assert!(!s.next(b"a\0\x02", false, &mut key, None).unwrap(), "nothing is after the last key");
    assert!(s.previous(b"a\0\x02", &mut key, Some(&mut value)).unwrap());
    assert_eq!((&key[..], &value[..]), (&b"a\0\x01\x05"[..], &b"15"[..]), "previous goes into what is below");
    assert!(
        !s.previous(b"a\0\x01", &mut key, None).unwrap(),
        "previous is never inclusive; nothing is before"
    );
}

fn neighbours_are_found_within_bounds<S: Store>(store: &S) {
    let mut s = session(store);
    let name = |index: usize| format!("k{index:04}").into_bytes();
    // So many that they fill several leaves.
    let all = 0..600;
    for index in all.clone() {
        s.set(&name(index * 2), &[7; 100]).unwrap();
    }
    // Who can tell without reading is not far from it.
    let about = s.estimate(b"k", b"l").unwrap();
    assert!(about.is_none_or(|about| (300..=1_200).contains(&about)), "600 are about {about:?}");
    let mut found = Vec::new();
    for index in all.clone().step_by(7) {
        let (at, next) = (name(index * 2), name(index * 2 + 2));
        assert!(!s.next_within(&at, false, &next, &mut found, None).unwrap(), "the end is excluded");
        assert!(!s.next_within(&at, true, &at, &mut found, None).unwrap(), "an empty range");
        assert!(!s.next_within(&next, true, &at, &mut found, None).unwrap(), "a range that ends before it");
        assert!(s.next_within(&at, true, &next, &mut found, None).unwrap() && found == at);
        let odd = name(index * 2 + 1);
        assert!(s.previous_within(&odd, &at, &mut found, None).unwrap() && found == at, "the begin counts");
        assert!(!s.previous_within(&next, &odd, &mut found, None).unwrap(), "nothing between the two");
        if index + 1 < all.end {
            let past = name(index * 2 + 3);
            assert!(s.next_within(&at, false, &past, &mut found, None).unwrap() && found == next);
        }
    }
}

fn a_prefix_goes_with_all_below_it<S: Store>(store: &S) {
    let mut s = session(store);
    let all: [&[u8]; 7] =
        [b"a\0", b"a\0\x01", b"a\0\x01\0", b"a\0\x01\xFF\xFF", b"a\0\x02", b"b\0", b"b\0\x01"];
    for key in all {
        s.set(key, b"v").unwrap();
    }
    s.remove_prefix(b"a\0\x01").unwrap();
    assert_eq!(keys(&mut s).unwrap(), [all[0], all[4], all[5], all[6]], "itself and all below are gone");
    s.remove_prefix(b"a\0\x01").unwrap();
    s.remove_prefix(b"c\0").unwrap();
    assert_eq!(keys(&mut s).unwrap().len(), 4, "removing what is not there changes nothing");
    s.remove_prefix(b"a\0").unwrap();
    s.remove_prefix(b"b\0").unwrap();
    assert!(keys(&mut s).unwrap().is_empty(), "everything is removed");
}

fn compare_and_set_compares<S: Store>(store: &S) {
    let mut s = session(store);
    let mut cas = |expected: Option<&[u8]>, new: Option<&[u8]>| {
        let done = s.compare_and_set(b"a\0", expected, new).unwrap();
        (done, value(&mut s, b"a\0"))
    };
    assert_eq!(cas(Some(b""), Some(b"x")), (false, None), "absent is not empty");
    assert_eq!(cas(None, Some(b"1")), (true, Some(b"1".to_vec())), "absent as expected");
    assert_eq!(cas(None, Some(b"2")), (false, Some(b"1".to_vec())), "not absent");
    assert_eq!(cas(Some(b"12"), Some(b"2")), (false, Some(b"1".to_vec())), "a longer value is another");
    assert_eq!(cas(Some(b"1"), Some(b"2")), (true, Some(b"2".to_vec())), "as expected");
    assert_eq!(cas(Some(b"2"), None), (true, None), "as expected, removed");
}

/// Enough keys for every back end to reorganise itself many times, in both directions.
fn many_keys_survive_growth_and_removal<S: Store>(store: &S) {
    const COUNT: u32 = 20_000;
    let key = |number: u32| [b"grow\0", &number.to_be_bytes()[..]].concat();
    // 7919 is prime to COUNT: every number comes once, in a scattered order.
    let scattered = || (0..COUNT).map(|index| (index * 7_919) % COUNT);
    let mut s = session(store);
    for number in scattered() {
        s.set(&key(number), &vec![number as u8; number as usize % 90]).unwrap();
    }
    let all: Vec<_> = (0..COUNT).map(key).collect();
    assert!(keys(&mut s).unwrap() == all, "{COUNT} keys set in a scattered order come back in order");
    for number in scattered().filter(|number| number % 3 != 0) {
        assert!(s.remove(&key(number)).unwrap(), "key {number} was there");
    }
    let third: Vec<_> = (0..COUNT).step_by(3).map(key).collect();
    assert!(keys(&mut s).unwrap() == third, "every third key is left");
    for number in (0..COUNT).step_by(3) {
        let expected = vec![number as u8; number as usize % 90];
        assert_eq!(value(&mut s, &key(number)), Some(expected), "the value of key {number}");
    }
}

fn sessions_share_one_map<S: Store>(store: &S) {
    let (mut a, mut b) = (session(store), session(&store.clone()));
    a.set(b"a\0", b"1").unwrap();
    assert_eq!(value(&mut b, b"a\0").as_deref(), Some(&b"1"[..]), "another session sees a finished write");
    b.remove(b"a\0").unwrap();
    assert_eq!(value(&mut a, b"a\0"), None, "and the first one its removal");
}
