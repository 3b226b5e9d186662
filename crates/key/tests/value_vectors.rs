//! Fixed test vectors of the value codec: the bytes of docs/format/values.md and what is refused.

use perilune_key::{parse_literal, ArithmeticError, Value, ValueRef};

fn number(text: &str) -> Value {
    Value::from(parse_literal(text.as_bytes()).unwrap())
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

#[test]
fn values_have_the_documented_bytes_and_texts() {
    for (value, bytes, display, text) in [
        (Value::Null, &[0x00][..], "null", ""),
        (Value::Bool(false), &[0x01], "false", "0"),
        (Value::Bool(true), &[0x02], "true", "1"),
        (Value::EmptyList, &[0x03], "[]", ""),
        (Value::EmptyMap, &[0x04], "{}", ""),
        (
            Value::Record(b"\x23Ada\x11\x24\x00".to_vec()),
            b"\x08\x23Ada\x11\x24\x00",
            "record(\"Ada\",36,null)",
            "record(\"Ada\",36,null)",
        ),
        (Value::Int(0), &[0x10], "0", "0"),
        (Value::Int(42), &[0x11, 42], "42", "42"),
        (Value::Int(-1), &[0x11, 0xFF], "-1", "-1"),
        (Value::Int(-128), &[0x11, 0x80], "-128", "-128"),
        (Value::Int(128), &[0x12, 0x80, 0], "128", "128"),
        (Value::Int(1000), &[0x12, 0xE8, 0x03], "1000", "1000"),
        (
            Value::Int(i64::MIN),
            &[0x18, 0, 0, 0, 0, 0, 0, 0, 0x80],
            "-9223372036854775808",
            "-9223372036854775808",
        ),
        (number(".5"), &[0x06, 0xFF, 5], ".5", ".5"),
        (number("1E20"), &[0x06, 20, 1], "100000000000000000000", "100000000000000000000"),
        (Value::Double(1.0), &[0x05, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F], "1.0", "1"),
        (string("ab"), &[0x07, b'a', b'b'], "\"ab\"", "ab"),
        (string(""), &[0x07], "\"\"", ""),
    ] {
        let mut encoded = Vec::new();
        value.encode_into(&mut encoded);
        assert_eq!(encoded, bytes, "{value:?}");
        assert_eq!(Value::decode(bytes).unwrap(), value);
        assert_eq!(value.to_string(), display);
        let mut written = Vec::new();
        value.as_ref().write_text(&mut written);
        assert_eq!(written, text.as_bytes());
    }
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [
        &[][..],
        &[0x00, 0],                                                    // payload where none belongs
        &[0x02, 1],                                                    // the same
        &[0x05, 0],                                                    // short double
        &[0x06],                                                       // no exponent
        &[0x06, 0],                                                    // 0 is an integer
        &[0x06, 1, 5],                                                 // 50 is an integer
        &[0x06, 0xFF, 10],                                             // 1 is an integer
        &[0x06, 0xFE, 10],                                             // .1 with a trailing zero
        &[0x06, 60, 1],                                                // 1E60
        &[0x06, 0x80, 1],                                              // 1E-128
        &[0x06, 0xFF, 1, 0],                                           // coefficient not minimal
        &[0x06, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9],                      // coefficient of 9 bytes
        &[0x06, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], // 19 digits
        &[0x09],                                                       // reserved
        &[0x10, 0],                                                    // length and tag differ
        &[0x11],                                                       // the same
        &[0x11, 0],                                                    // 0 takes no bytes
        &[0x12, 5, 0],                                                 // 5 takes one
        &[0x12, 0xFF, 0xFF],                                           // -1 takes one
        &[0x19, 1, 2, 3, 4, 5, 6, 7, 8, 9],                            // reserved
        &[0xFF],                                                       // reserved
    ] {
        assert!(ValueRef::decode(bytes).is_err(), "{bytes:x?}");
    }
}

#[test]
fn values_are_numbers_only_if_exact() {
    assert_eq!(string("12").as_i64(), Some(12));
    assert_eq!(Value::Double(12.0).as_i64(), Some(12));
    assert_eq!(Value::Double(12.5).as_i64(), None);
    assert_eq!(string("12.0").as_i64(), None);
    for value in [Value::Null, Value::Bool(true), Value::EmptyMap, string("x")] {
        assert_eq!(value.as_number(), Err(ArithmeticError::NotANumber));
    }
    assert_eq!(Value::Double(1e300).as_number(), Err(ArithmeticError::Overflow));
    let mut text = Vec::new();
    Value::Double(1e300).as_ref().write_text(&mut text);
    assert_eq!(text, b"1e300");
}
