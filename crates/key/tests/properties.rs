//! Random tests: order, round trips, prefixes, hostile bytes, arithmetic against big integers.
//! A failure prints the minimal case, and its seed (`cc ...`) while adding it to `SEEDS`.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use perilune_key::{
    code_len, decode_int, decode_subscript, encode_bytes, increment, key_text, parse_canonical, parse_key,
    parse_lenient, parse_quoted, prefix_ends, range, subscripts, validate, write_key, write_quoted,
    ArithmeticError, Decimal, KeyBuf, Number, Space, Subscript, SubscriptBuf, Value, ValueRef,
};

/// Seeds of past failures, run first; relative to the crate.
const SEEDS: &str = "tests/properties.seeds";

fn any_int() -> impl Strategy<Value = i64> {
    prop_oneof![
        -300i64..300,
        any::<i64>(),
        (0u32..63, -2i64..3).prop_map(|(bit, near)| (1i64 << bit) + near),
        (0u32..63, -2i64..3).prop_map(|(bit, near)| near - (1i64 << bit)),
        (any::<i64>(), 0u32..63).prop_map(|(int, shift)| int >> shift),
    ]
}

fn any_decimal() -> impl Strategy<Value = Decimal> {
    let coefficient =
        prop_oneof![-1000i64..1000, -999_999_999_999_999_999i64..=999_999_999_999_999_999, any_int(),];
    let exponent = prop_oneof![-3i32..3, -20i32..20, -60i32..47];
    (coefficient, exponent).prop_filter_map("out of range", |(coefficient, exponent)| {
        Decimal::new(i128::from(coefficient), exponent).ok()
    })
}

/// A decimal next to a small integer: the fraction decides.
fn near_int() -> impl Strategy<Value = Number> {
    (-300i64..300, any_decimal())
        .prop_filter_map("not exact", |(int, small)| Number::Int(int).checked_add(Number::from(small)).ok())
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![any_int().prop_map(Number::Int), any_decimal().prop_map(Number::from), near_int(),]
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let edge = prop_oneof![Just(0u8), Just(1), Just(2), Just(b'a'), Just(254), Just(255)];
    prop_oneof![
        Just(Vec::new()),
        vec(edge, 0..6),
        vec(any::<u8>(), 0..40),
        "[-+.0-9E]{0,22}".prop_map(String::into_bytes),
        "\\PC{0,8}".prop_map(String::into_bytes),
    ]
}

fn any_subscript() -> impl Strategy<Value = SubscriptBuf> {
    prop_oneof![
        any_number().prop_map(SubscriptBuf::from),
        any_bytes().prop_map(|bytes| Subscript::from_bytes(&bytes).into_owned()),
    ]
}

fn any_path() -> impl Strategy<Value = Vec<SubscriptBuf>> {
    vec(any_subscript(), 0..5)
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_string()), "[A-Za-z%_][A-Za-z0-9_.%]{0,5}"]
}

fn build(name: &str, path: &[SubscriptBuf]) -> KeyBuf {
    let mut key = KeyBuf::global(name).unwrap();
    for subscript in path {
        key.push_subscript(subscript).unwrap();
    }
    key
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any_int().prop_map(Value::Int),
        any_number().prop_map(Value::from),
        any::<f64>().prop_map(Value::Double),
        any_bytes().prop_map(Value::String),
        Just(Value::EmptyList),
        Just(Value::EmptyMap),
        Just(Value::Record(b"\x23Ada\x11\x24\x00".to_vec())),
    ]
}

/// A reference for arithmetic: every number as a count of 1E-20, which an i128 holds to 1.7E18.
fn scaled(number: Number) -> Option<i128> {
    let text = number.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or((1, &*text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.len() > 20 || whole.len() > 17 {
        return None;
    }
    let padded = format!("{whole}{fraction:0<20}");
    padded.parse::<i128>().ok().map(|magnitude| sign * magnitude)
}

/// Whether a count of 1E-20 is an i64 or has at most 18 digits, and is thus a number.
fn fits(count: i128) -> bool {
    let unit = 10i128.pow(20);
    if count % unit == 0 && i64::try_from(count / unit).is_ok() {
        return true;
    }
    let text = count.unsigned_abs().to_string();
    text.trim_end_matches('0').len() <= 18
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        max_local_rejects: 10_000_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(SEEDS))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn encodings_sort_as_subscripts(a in any_subscript(), b in any_subscript()) {
        let (x, y) = (build("a", std::slice::from_ref(&a)), build("a", std::slice::from_ref(&b)));
        prop_assert_eq!(x.as_bytes().cmp(y.as_bytes()), a.cmp(&b));
        if a != b {
            prop_assert!(!x.as_bytes().starts_with(y.as_bytes()));
            prop_assert!(!y.as_bytes().starts_with(x.as_bytes()));
        }
        prop_assert!(x.as_bytes()[2] < 0xFF);
    }

    #[test]
    fn encodings_sort_as_keys(
        m in any_name(), a in any_path(), n in any_name(), b in any_path(), shared in any_path(),
    ) {
        let a: Vec<_> = shared.iter().cloned().chain(a).collect();
        let b: Vec<_> = shared.iter().cloned().chain(b).collect();
        let (x, y) = (build(&m, &a), build(&n, &b));
        let expected = m.as_bytes().cmp(n.as_bytes()).then_with(|| a.cmp(&b));
        prop_assert_eq!(x.as_bytes().cmp(y.as_bytes()), expected);
    }

    #[test]
    fn subtree_is_the_prefix_range(root in any_path(), below in any_path(), other in any_path()) {
        let mut key = build("a", &root);
        let end = key.with_subtree_end(<[u8]>::to_vec);
        let path: Vec<_> = root.iter().cloned().chain(below).collect();
        for path in [path, other] {
            let node = build("a", &path);
            let bytes = node.as_bytes();
            let is_below = path.len() >= root.len() && path[..root.len()] == root[..];
            prop_assert_eq!(range::in_subtree(key.as_bytes(), bytes), is_below);
            prop_assert_eq!(key.as_bytes() <= bytes && bytes < &end[..], is_below);
            if is_below && path.len() > root.len() {
                let child = range::child_of(key.as_bytes(), bytes).unwrap().unwrap();
                let expected = build("a", &path[..=root.len()]);
                prop_assert_eq!(child, expected.as_bytes());
            }
        }
    }

    #[test]
    fn keys_round_trip(name in any_name(), path in any_path()) {
        let mut key = build(&name, &path);
        let read: Vec<_> = subscripts(key.as_bytes()).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&read, &path);
        for (subscript, original) in read.iter().zip(&path) {
            prop_assert_eq!(subscript.as_i64(), original.as_i64());
            prop_assert_eq!(subscript.to_text(), original.to_text());
        }
        let ends: Vec<_> = prefix_ends(key.as_bytes()).unwrap().map(Result::unwrap).collect();
        for (depth, end) in ends.iter().enumerate() {
            let ancestor = build(&name, &path[..depth]);
            prop_assert_eq!(ancestor.as_bytes(), &key.as_bytes()[..*end]);
        }
        prop_assert_eq!(validate(key.as_bytes()), Ok(path.len()));
        for space in [Space::Global, Space::Local] {
            let text = key_text(space, key.as_bytes()).unwrap();
            let parsed = parse_key(&text).unwrap();
            prop_assert_eq!((parsed.space, &parsed.key), (space, &key));
            prop_assert_eq!(parsed.to_string(), text);
        }
        for depth in (0..path.len()).rev() {
            prop_assert!(key.pop());
            prop_assert_eq!(&key, &build(&name, &path[..depth]));
        }
    }

    #[test]
    fn values_round_trip(value in any_value()) {
        let mut bytes = Vec::new();
        value.encode_into(&mut bytes);
        let read = ValueRef::decode(&bytes).unwrap();
        let mut again = Vec::new();
        read.encode_into(&mut again);
        prop_assert_eq!(&again, &bytes);
        match (&value, &read) {
            (Value::Double(a), ValueRef::Double(b)) => prop_assert_eq!(a.to_bits(), b.to_bits()),
            _ => prop_assert_eq!(value.as_ref(), read),
        }
        let bytes_max = match &value {
            Value::String(string) => 1 + string.len(),
            Value::Int(-128..=127) => 2,
            _ => 10,
        };
        prop_assert!(bytes.len() <= bytes_max);
    }

    #[test]
    fn quoted_text_round_trips(bytes in any_bytes()) {
        let mut text = String::new();
        write_quoted(&bytes, &mut text).unwrap();
        prop_assert_eq!(parse_quoted(text.as_bytes()), Ok(bytes));
        prop_assert!(!text.chars().any(char::is_control));
    }

    #[test]
    fn canonical_text_is_unique(number in any_number(), bytes in any_bytes()) {
        let text = number.to_string();
        match parse_canonical(text.as_bytes()) {
            Some(read) => prop_assert_eq!(read, number),
            // Only an i64 of 19 digits has no canonical text.
            None => prop_assert!(number.as_i64().is_some() && text.len() >= 19),
        }
        if let Some(read) = parse_canonical(&bytes) {
            prop_assert_eq!(read.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn doubles_have_their_shortest_digits(double in any::<f64>(), int in any_int()) {
        match Number::from_f64(double) {
            Ok(number) => prop_assert_eq!(number.to_f64(), double),
            Err(error) => prop_assert!(error != ArithmeticError::Malformed
                && !(1e-43..1e46).contains(&double.abs())),
        }
        let near = int as f64 / 1000.0;
        prop_assert_eq!(Number::from_f64(near).unwrap().to_f64(), near);
    }

    #[test]
    fn sums_are_exact(a in any_number(), b in any_number()) {
        prop_assert_eq!(a.checked_add(b), b.checked_add(a));
        if let (Some(x), Some(y)) = (scaled(a), scaled(b)) {
            for (result, expected) in
                [(a.checked_add(b), x + y), (a.checked_sub(b), x - y)]
            {
                match result {
                    Ok(sum) => prop_assert_eq!(scaled(sum).unwrap_or(expected), expected),
                    Err(error) => prop_assert_eq!(error, ArithmeticError::Inexact),
                }
                prop_assert_eq!(result.is_ok(), fits(expected), "{} {}", a, b);
            }
        }
        if let Ok(sum) = a.checked_add(b) {
            prop_assert_eq!(sum.checked_sub(b), Ok(a));
        }
    }

    #[test]
    fn truncated_sums_are_within_one_unit_of_the_last_place(a in any_number(), b in any_number()) {
        let (a, b) = (a.truncated(), b.truncated());
        let sum = a.add_truncating(b);
        if let Ok(exact) = a.checked_add(b) {
            let larger = a.to_f64().abs().max(b.to_f64().abs());
            let error = (sum.unwrap().to_f64() - exact.to_f64()).abs();
            prop_assert!(error <= larger * 1e-15, "{} {}", a, b);
        }
        if let (Number::Int(x), Number::Int(y)) = (a, b) {
            if x.abs() < 10i64.pow(16) && y.abs() < 10i64.pow(16) {
                prop_assert_eq!(sum, Ok(Number::Int(x + y)));
            }
        }
    }

    #[test]
    fn products_are_exact(a in -10i64.pow(15)..10i64.pow(15), b in -10i64.pow(15)..10i64.pow(15),
                          p in -20i32..10, q in -20i32..10) {
        let x = Number::new(i128::from(a), p).unwrap();
        let y = Number::new(i128::from(b), q).unwrap();
        let product = i128::from(a) * i128::from(b);
        match x.checked_mul(y) {
            Ok(result) => prop_assert_eq!(Ok(result), Number::new(product, p + q)),
            Err(error) => {
                let digits = product.unsigned_abs().to_string();
                let significant = digits.trim_end_matches('0').len();
                prop_assert!(significant > 18 || error != ArithmeticError::Inexact);
            }
        }
    }

    #[test]
    fn numbers_sort_as_big_integers(a in any_number(), b in any_number()) {
        if let (Some(x), Some(y)) = (scaled(a), scaled(b)) {
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        }
        prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a.to_string() == b.to_string());
    }

    #[test]
    fn increments_are_sums(a in any_number(), by in any_number()) {
        let mut bytes = Vec::new();
        Value::from(a).encode_into(&mut bytes);
        let mut out = [0; 64];
        let result = increment(Some(&bytes), &by, &mut out)
            .map(|length| ValueRef::decode(&out[..length]).unwrap().as_number().unwrap());
        prop_assert_eq!(result, a.checked_add(by));
    }

    #[test]
    fn hostile_bytes_are_errors_or_exact(mut bytes in vec(any::<u8>(), 0..60), tag in any::<u8>()) {
        if let Some(first) = bytes.first_mut() {
            *first = tag;
        }
        let _ = code_len(&bytes);
        if let Ok((subscript, length)) = decode_subscript(&bytes) {
            prop_assert_eq!(code_len(&bytes), Ok(length));
            let integer = match &subscript {
                Subscript::Number(Number::Int(int)) => Some(*int),
                _ => None,
            };
            prop_assert_eq!(decode_int(&bytes[..length]), integer);
            let key = build("a", &[subscript.into_owned()]);
            prop_assert_eq!(&key.as_bytes()[2..], &bytes[..length]);
        }
        if let Ok(value) = ValueRef::decode(&bytes) {
            let mut again = Vec::new();
            value.encode_into(&mut again);
            prop_assert_eq!(&again, &bytes);
            let _ = value.to_string();
            value.write_text(&mut again);
        }
        let _ = parse_lenient(&bytes);
        let _ = parse_quoted(&bytes);
        let _ = parse_key(&bytes);
        let _ = increment(Some(&bytes), &Number::Int(1), &mut [0; 64]);
        let key = [b"a\0", &bytes[..]].concat();
        let _ = prefix_ends(&key).unwrap().count();
        let mut text = String::new();
        write_key(&key, &mut text).unwrap();
    }

    #[test]
    fn damaged_keys_never_panic(path in any_path(), at in any::<usize>(), byte in any::<u8>()) {
        let mut key = build("ab", &path).as_bytes().to_vec();
        let at = at % key.len();
        key[at] = byte;
        if let Ok(depth) = validate(&key) {
            let ends = prefix_ends(&key).unwrap().map(Result::unwrap).count();
            prop_assert_eq!(ends, depth + 1);
        }
        key.truncate(at);
        let _ = validate(&key);
    }

    #[test]
    fn damaged_text_never_panics(text in "\\^?[a-z]\\([-+.0-9eE\",$CZH_() ]{0,20}\\)?") {
        if let Ok(parsed) = parse_key(&text) {
            prop_assert_eq!(parse_key(parsed.to_string()), Ok(parsed));
        }
    }
}

/// Short strings are written by other code than long ones, and than those of [`perilune_key::encode_bytes`].
#[test]
fn short_strings_have_the_code_of_all_strings() {
    for length in 0..40 {
        for at in 0..length.max(1) {
            for byte in [0, 1, 2, b'0', 0x7F, 0x80, 0x81, 0xFF] {
                let mut bytes = vec![b'a'; length];
                bytes.iter_mut().skip(at).take(1).for_each(|there| *there = byte);
                for name in ["n".to_owned(), "n".repeat(31), "n".repeat(31) + &"m".repeat(30)] {
                    let mut key = KeyBuf::with_limit(&name, 1_000).unwrap();
                    for depth in 1..4 {
                        let start = key.as_bytes().len();
                        key.push_bytes(&bytes).unwrap();
                        let mut code = [0; 100];
                        let end = encode_bytes(&bytes, &mut code).unwrap();
                        assert_eq!(&key.as_bytes()[start..], &code[..end], "{bytes:?} after {start} bytes");
                        assert_eq!(key.depth(), depth);
                    }
                    let limit = name.len() + 1 + length;
                    let mut short = KeyBuf::with_limit(&name, limit).unwrap();
                    let code = encode_bytes(&bytes, &mut [0; 100]).unwrap();
                    assert_eq!(short.push_bytes(&bytes).is_err(), code > length);
                    assert_eq!(short.as_bytes().len(), limit - length + if code > length { 0 } else { code });
                }
            }
        }
    }
}
