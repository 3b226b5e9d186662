//! Fixed test vectors: the order of M, the bytes of the format, boundaries, limits, ranges.

use perilune_key::{
    code_len, encode_bytes, encode_int, is_canonical, parse_key, prefix_ends, range, split_name, subscripts,
    validate, Decimal, KeyBuf, KeyError, Number, Subscript, SubscriptBuf, MAX_ENCODED, MAX_SUBSCRIPTS,
};

fn code(subscript: &Subscript<'_>) -> Vec<u8> {
    let mut key = KeyBuf::local("x").unwrap();
    key.push_subscript(subscript).unwrap();
    key.as_bytes()[2..].to_vec()
}

fn bytes_code(bytes: &[u8]) -> Vec<u8> {
    code(&Subscript::from_bytes(bytes))
}

/// The 38 subscripts whose order was observed on YottaDB, after the empty one.
fn observed_order() -> Vec<Vec<u8>> {
    let zeros = |count: usize| "0".repeat(count);
    let mut order: Vec<Vec<u8>> = vec![Vec::new()];
    for text in [
        format!("-1{}", zeros(46)),
        "-1".into(),
        "-.5".into(),
        "0".into(),
        format!(".{}1", zeros(42)),
        ".5".into(),
        "1".into(),
        "2".into(),
        "10".into(),
        "123456789012345678".into(),
        "999999999999999999".into(),
        "1234567890123456780".into(),
        format!("1{}", zeros(20)),
        format!("1{}", zeros(46)),
        "\0".into(),
        "\u{1}".into(),
        " ".into(),
        "+1".into(),
        "-0".into(),
        format!(".{}1", zeros(43)),
        "0.5".into(),
        "00".into(),
        "1.0".into(),
        format!("1{}", zeros(47)),
        "1234567890123456789".into(),
        "12345678901234567890".into(),
        "1E3".into(),
        "1e3".into(),
        "9999999999999999999".into(),
        "A".into(),
        "_".into(),
        "a".into(),
        "a\0b".into(),
        "a\u{1}".into(),
        "ab".into(),
        "~".into(),
        "é".into(),
    ] {
        order.push(text.into_bytes());
    }
    order.push(vec![0xFF]);
    order
}

#[test]
fn order_is_that_observed_on_yottadb() {
    let order = observed_order();
    assert_eq!(order.len(), 39);
    for pair in order.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        assert!(bytes_code(a) < bytes_code(b), "codes of {a:?} and {b:?}");
        assert!(Subscript::from_bytes(a) < Subscript::from_bytes(b));
    }
    for (index, text) in order.iter().enumerate() {
        assert_eq!(is_canonical(text), (1..=14).contains(&index), "{text:?}");
    }
}

#[test]
fn codes_have_the_documented_bytes() {
    let int = |int: i64| code(&SubscriptBuf::from(int));
    assert_eq!(int(0), [0x20]);
    assert_eq!(int(1), [0x22]);
    assert_eq!(int(95), [0xDE]);
    assert_eq!(int(96), [0xE0, 0xC0]);
    assert_eq!(int(127), [0xE0, 0xFE]);
    assert_eq!(int(128), [0xE1, 0x01, 0x00]);
    assert_eq!(int(1000), [0xE1, 0x07, 0xD0]);
    assert_eq!(int(-1), [0x1E]);
    assert_eq!(int(-8), [0x10]);
    assert_eq!(int(-9), [0x0F, 0xEE]);
    assert_eq!(int(-129), [0x0E, 0xFE, 0xFE]);
    assert_eq!(int(i64::MAX), [0xE7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]);
    assert_eq!(int(i64::MIN), [0x08, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes_code(b""), [0x02]);
    assert_eq!(bytes_code(b"ab"), [0xF0, b'a', b'b', 0x00]);
    assert_eq!(bytes_code(b"\0\x01\x02"), [0xF0, 0x01, 0x01, 0x01, 0x02, 0x02, 0x00]);
    assert_eq!(bytes_code(b".5"), [0x21, 100]);
    assert_eq!(bytes_code(b"1.25"), [0x23, 50]);
    assert_eq!(bytes_code(b"-.5"), [0x1F, 0xFF - 100]);
    assert_eq!(bytes_code(b"-1.125"), [0x1D, 0xFF - 25, 0xFF - 100]);
    assert_eq!(bytes_code(b"100000000000000000000"), [0xE8, 21, 20], "1E20 has 21 digits before the point");
    assert_eq!(bytes_code(b"-100000000000000000000"), [0x07, 0xEA, 0xEB]);
    assert_eq!(KeyBuf::global("ab").unwrap().as_bytes(), b"ab\0");
}

/// Integers around every power of two and of ten, sorted.
fn boundary_integers() -> Vec<i64> {
    let mut ints = vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX, 0];
    let powers = (0..63).map(|bit| 1i64 << bit).chain((1..19).map(|ten| 10i64.pow(ten)));
    for power in powers {
        for near in [power - 1, power, power + 1] {
            ints.extend([near, -near]);
        }
    }
    ints.extend(-300..300);
    ints.sort_unstable();
    ints.dedup();
    ints
}

#[test]
fn integers_and_their_neighbours_sort_by_value() {
    let mut numbers = Vec::new();
    for int in boundary_integers() {
        for (coefficient, exponent) in [(-5, -1), (-1, -40), (1, -43), (5, -1)] {
            // The sum is a number only if its digits fit; the rest of the ladder is still there.
            let near =
                Number::new(coefficient, exponent).and_then(|small| Number::Int(int).checked_add(small));
            numbers.extend(near);
        }
        numbers.push(Number::Int(int));
    }
    for text in ["9E46", "-9E46", "9.3E18", "-9.3E18", "1E20", "-1E20"] {
        numbers.push(perilune_key::parse_literal(text.as_bytes()).unwrap());
    }
    numbers.push(Decimal::new(999_999_999_999_999_999, 29).unwrap().into());
    numbers.sort_unstable();
    numbers.dedup();
    for pair in numbers.windows(2) {
        let [a, b] = [pair[0], pair[1]].map(|number| code(&number.into()));
        assert!(a < b, "{:?} {a:x?} and {:?} {b:x?}", pair[0], pair[1]);
        assert!(!b.starts_with(&a));
        assert_eq!(code_len(&a), Ok(a.len()));
    }
    for number in numbers {
        let bytes = code(&number.into());
        let (read, length) = perilune_key::decode_subscript(&bytes).unwrap();
        assert_eq!((read.as_number(), length), (Some(number), bytes.len()));
        assert_eq!(read.as_i64(), number.as_i64());
    }
}

#[test]
fn a_string_of_19_digits_is_not_the_integer() {
    let string = Subscript::from_bytes(b"1234567890123456789");
    let int = SubscriptBuf::from(1_234_567_890_123_456_789);
    assert!(int < string);
    assert!(code(&int) < code(&string));
    assert_eq!(string.as_i64(), None);
}

#[test]
fn equal_values_are_equal_bytes_however_pushed() {
    for (text, number) in [
        ("120", Number::Decimal(Decimal::new(12, 1).unwrap())),
        ("1.5", Number::from_f64(1.5).unwrap()),
        ("-7", Number::Int(-7)),
        (".1", Number::from_f64(0.1).unwrap()),
    ] {
        assert_eq!(bytes_code(text.as_bytes()), code(&number.into()), "{text}");
        let owned = Subscript::Bytes(text.as_bytes().to_vec().into());
        assert_eq!(code(&owned), code(&number.into()));
        assert_eq!(owned, Subscript::Number(number));
        let mut raw = [0; 64];
        let length = encode_bytes(text.as_bytes(), &mut raw).unwrap();
        assert_eq!(raw[..length], code(&number.into()));
    }
    assert_eq!(encode_bytes(b"abc", &mut [0; 4]), None);
    let mut raw = [0; 16];
    assert_eq!(encode_int(5, &mut raw), 1);
}

#[test]
fn limits_are_errors_and_leave_the_key_as_it_was() {
    let mut key = KeyBuf::global("g").unwrap();
    let longest = vec![b'x'; MAX_ENCODED - 4];
    key.push_bytes(&longest).unwrap();
    assert_eq!(key.as_bytes().len(), MAX_ENCODED);
    let before = key.clone();
    let too_long = Err(KeyError::KeyTooLong { limit: MAX_ENCODED });
    assert_eq!(key.push_int(1), too_long);
    assert_eq!(key.push_bytes(b""), too_long);
    assert_eq!((&key, key.depth()), (&before, 1));
    assert!(key.pop());
    assert_eq!(key.as_bytes(), b"g\0");
    assert!(!key.pop());

    for count in 0..MAX_SUBSCRIPTS {
        key.push_int(count as i64).unwrap();
    }
    assert_eq!(key.push_int(0), Err(KeyError::TooManySubscripts));
    assert_eq!(validate(key.as_bytes()), Ok(MAX_SUBSCRIPTS));
    let mut deeper = key.as_bytes().to_vec();
    deeper.push(0x20);
    assert_eq!(validate(&deeper), Err(KeyError::TooManySubscripts));

    let mut local = KeyBuf::local("l").unwrap();
    local.push_bytes(&vec![0; 1 << 20]).unwrap();
    assert_eq!(local.as_bytes().len(), 2 + 2 + (2 << 20));
    assert_eq!(local.push_bytes(&vec![b'x'; (1 << 20) + 1]), Err(KeyError::SubscriptTooLong));
    assert_eq!(KeyBuf::global("^a"), Err(KeyError::InvalidName));
    assert_eq!(KeyBuf::with_limit("abc", 3), Err(KeyError::KeyTooLong { limit: 3 }));
    let mut tight = KeyBuf::with_limit("abc", 5).unwrap();
    assert!(tight.push_int(1000).is_err());
    tight.push_int(1).unwrap();
}

#[test]
fn keys_grow_and_shrink_across_the_inline_boundary() {
    for length in 100..160 {
        let mut key = KeyBuf::global("g").unwrap();
        key.push_bytes(&vec![b'x'; length]).unwrap();
        let mark = key.mark();
        let parent = key.as_bytes().to_vec();
        for int in [1, 1000, i64::MIN] {
            key.push_int(int).unwrap();
        }
        let end = key.with_subtree_end(<[u8]>::to_vec);
        assert_eq!(end, [key.as_bytes(), &[0xFF]].concat());
        assert_eq!(subscripts(key.as_bytes()).unwrap().count(), 4);
        key.truncate(mark);
        assert_eq!(key.as_bytes(), parent);
        assert_eq!(key.with_subtree_end(<[u8]>::to_vec).len(), parent.len() + 1);
        key.push_int(7).unwrap();
        assert_eq!(key.depth(), 2);
        assert_eq!(KeyBuf::from_encoded(key.as_bytes(), 1900).unwrap(), key);
        assert!(key.truncate_depth(0) && !key.truncate_depth(1));
        assert_eq!(key.name(), b"g");
        assert_eq!(key.set_name(b"1"), Err(KeyError::InvalidName));
        assert_eq!(key.as_bytes(), b"g\0");
        key.push_int(1).unwrap();
        key.set_name(b"other").unwrap();
        assert_eq!((key.as_bytes(), key.depth()), (&b"other\0"[..], 0));
    }
}

#[test]
fn ranges_are_subtrees_and_siblings() {
    let encoded = |text: &str| parse_key(text).unwrap().key.as_bytes().to_vec();
    let parent = encoded("^a(1)");
    let key = encoded("^a(1,\"x\",2)");
    let child = range::child_of(&parent, &key).unwrap().unwrap();
    assert_eq!(child, encoded("^a(1,\"x\")"));
    assert_eq!(range::child_of(&parent, &parent), Ok(None));
    assert_eq!(range::child_of(&parent, &encoded("^a(10,1)")), Ok(None));
    assert_eq!(range::child_of(&parent, &encoded("^a(1.5,1)")), Ok(None));
    assert_eq!(range::name_of(&key).unwrap(), b"a\0");
    let mut end = Vec::new();
    range::after_child(child, &mut end);
    assert!(key < end && end < encoded("^a(1,\"x\"_$C(0))"));
    range::after_empty_child(&parent, &mut end);
    assert!(encoded("^a(1,\"\",\"~\")") < end && end < encoded("^a(1,-1E46)"));
    range::subtree_end(b"a\0", &mut end);
    assert!(encoded("^a(\"\u{10FFFF}\")") < end && end < encoded("^a0"));

    let ends: Vec<usize> = prefix_ends(&key).unwrap().map(Result::unwrap).collect();
    assert_eq!(ends, [2, 3, 6, 7]);
    assert_eq!(split_name(&key).unwrap(), (&b"a"[..], &key[2..]));
}

#[test]
fn other_encodings_of_a_value_are_refused() {
    for codes in [
        &[0x00][..],
        &[0x01],
        &[0x03],
        &[0xFF],
        &[0xE0, 0x00],                   // 0 in two bytes
        &[0xE0, 0xBE],                   // 95 in two bytes
        &[0xE1, 0x00, 0xFE],             // 127 in three bytes
        &[0x0F, 0xF0],                   // -8 in two bytes
        &[0x0E, 0xFF, 0x00],             // leading byte of no use
        &[0x21, 0x00],                   // .00
        &[0x21, 101, 0x00],              // .5000
        &[0x21, 200],                    // pair 100
        &[0x21, 101],                    // digits do not end
        &[0xE8, 19, 20],                 // 1E18 is an integer
        &[0xE8, 48, 20],                 // 1E47
        &[0xE8, 21, 2],                  // leading 0
        &[0xE8],                         // no digits
        &[0xF0, 0x00],                   // empty string
        &[0xF0, b'5', 0x00],             // a number as string
        &[0xF0, b'a', 0x01, 0x03, 0x00], // escape
        &[0xF0, b'a', 0x01, 0x00],       // escape
        &[0xF0, b'a'],                   // no end
        &[0xE7, 1],                      // too short
    ] {
        let key = [b"a\0", codes].concat();
        assert!(validate(&key).is_err(), "{codes:x?}");
        assert!(KeyBuf::from_encoded(&key, 1900).is_err());
    }
    for key in [&b""[..], b"a", b"\0", b"1\0", b"a-\0"] {
        assert!(validate(key).is_err(), "{key:?}");
    }
    let error = validate(b"a\0\x20\xFF").unwrap_err();
    assert!(matches!(error, KeyError::Malformed { at: 3, .. }));
}

#[test]
fn ten_tenths_are_one() {
    let tenth = Number::from_f64(0.1).unwrap();
    let sum = (0..10).try_fold(Number::Int(0), |sum, _| sum.checked_add(tenth));
    assert_eq!(sum.unwrap().as_i64(), Some(1));
}
