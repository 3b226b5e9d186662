//! Values as text: exactly one type for each form, and back.
//!
//! | form | value |
//! |---|---|
//! | `"..."`, `$C(...)`, joined by `_` | string, as in `quoted.rs` |
//! | digits with a sign or point, also `E`: `5`, `-.25`, `1E20` | integer, or decimal if it is no `i64` |
//! | the same with `e`: `5e0`, `-2.5e-1`; `inf`, `-inf`, `nan` | double |
//! | `nan(7ff8000000000001)` | the double with these bits, not a number |
//! | `null`, `true`, `false`, `[]`, `{}` | these |
//!
//! The writer writes what the reader takes, and doubles by their shortest digits, so that every value
//! comes back with its type and, doubles too, its bits.

use std::fmt::{self, Write};

use crate::number::Number;
use crate::numeral::{parse_literal, LiteralError};
use crate::quoted::{read_quoted, write_quoted, Codes};
use crate::text::{syntax, ParseError, ParseProblem};
use crate::value::{Value, ValueRef};

/// The bits that `nan` alone stands for.
const NAN: u64 = 0x7ff8_0000_0000_0000;

/// Writes a value so that [`parse_value`] reads the same.
///
/// # Errors
/// Only those of `out`.
pub fn write_value<W: Write + ?Sized>(value: &ValueRef<'_>, out: &mut W) -> fmt::Result {
    match value {
        ValueRef::Double(double) if double.is_nan() && double.to_bits() == NAN => out.write_str("nan"),
        ValueRef::Double(double) if double.is_nan() => write!(out, "nan({:016x})", double.to_bits()),
        ValueRef::Double(double) if double.is_infinite() => write!(out, "{double}"),
        ValueRef::Double(double) => write!(out, "{double:e}"),
        ValueRef::String(bytes) => write_quoted(bytes, out),
        other => write!(out, "{other}"),
    }
}

/// Reads a whole text as a value.
///
/// # Errors
/// What is wrong and where.
pub fn parse_value(text: &[u8]) -> Result<Value, ParseError> {
    let mut bytes = Vec::new();
    let value = read_value(text, &mut bytes)?;
    Ok(value.to_owned_value())
}

/// Reads a whole text as a value; a string's bytes are put into `bytes`.
///
/// # Errors
/// As [`parse_value`].
pub fn read_value<'b>(text: &[u8], bytes: &'b mut Vec<u8>) -> Result<ValueRef<'b>, ParseError> {
    Ok(match text {
        [b'"' | b'$', ..] => {
            bytes.clear();
            let end = read_quoted(text, 0, Codes::Bytes, bytes).map_err(|(at, what)| syntax(at, what))?;
            if end < text.len() {
                return Err(syntax(end, "expected the end of the value, or _ and more of it"));
            }
            ValueRef::String(bytes)
        }
        b"null" => ValueRef::Null,
        b"true" => ValueRef::Bool(true),
        b"false" => ValueRef::Bool(false),
        b"[]" => ValueRef::EmptyList,
        b"{}" => ValueRef::EmptyMap,
        b"inf" => ValueRef::Double(f64::INFINITY),
        b"-inf" => ValueRef::Double(f64::NEG_INFINITY),
        b"nan" => ValueRef::Double(f64::from_bits(NAN)),
        [b'n', b'a', b'n', b'(', bits @ .., b')'] => ValueRef::Double(nan(bits)?),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] if text.contains(&b'e') => ValueRef::Double(double(text)?),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] => number(text)?.into(),
        _ => {
            let what = "expected a value: a number, \"text\", $C(...), null, true, false, [] or {}";
            return Err(syntax(0, what));
        }
    })
}

fn nan(bits: &[u8]) -> Result<f64, ParseError> {
    let digits =
        std::str::from_utf8(bits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .map(f64::from_bits)
        .filter(|double| double.is_nan())
        .ok_or_else(|| syntax(4, "expected the bits of a NaN in 16 hexadecimal digits"))
}

fn double(text: &[u8]) -> Result<f64, ParseError> {
    // NB: Rust also reads `inf` and `nan` after a sign; without these letters only numbers are left.
    let wrong = text.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e'));
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    match (wrong, parsed) {
        (None, Some(double)) => Ok(double),
        (wrong, _) => Err(syntax(wrong.unwrap_or(0), "expected a double, such as -2.5e-1")),
    }
}

fn number(text: &[u8]) -> Result<Number, ParseError> {
    parse_literal(text).map_err(|error| match error {
        LiteralError::Syntax(at) => syntax(at, "expected a digit, or the end of the number"),
        LiteralError::Range(error) => ParseError { at: 0, problem: ParseProblem::Number(error) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: &ValueRef<'_>) -> String {
        let mut text = String::new();
        write_value(value, &mut text).unwrap();
        text
    }

    #[test]
    fn each_type_has_its_form() {
        for text in [
            "null",
            "true",
            "false",
            "[]",
            "{}",
            "0",
            "-7",
            "9223372036854775807",
            "-.25",
            "100000000000000000000",
            "1e0",
            "-0e0",
            "2.5e-1",
            "5e-324",
            "1.7976931348623157e308",
            "inf",
            "-inf",
            "nan",
            "nan(fff8000000000000)",
            "\"\"",
            "\"5\"",
            "\"a\"\"b\"_$C(0,255)_\"c\"",
        ] {
            assert_eq!(printed(&parse_value(text.as_bytes()).unwrap().as_ref()), text);
        }
        for (text, same) in
            [("1E20", "100000000000000000000"), ("+2", "2"), ("1.0", "1"), ("1.50e1", "1.5e1")]
        {
            assert_eq!(printed(&parse_value(text.as_bytes()).unwrap().as_ref()), same);
        }
    }

    #[test]
    fn wrong_values_are_located() {
        for (text, at) in [
            ("", 0),
            ("x", 0),
            ("nullx", 0),
            ("\"a", 0),
            ("\"a\"b", 3),
            ("1x", 1),
            ("1..2", 2),
            ("1e", 0),
            ("1ex", 2),
            ("nan(1)", 4),
            ("nan(zz)", 4),
            ("12345678901234567890", 0),
            ("-inf ", 1),
        ] {
            assert_eq!(parse_value(text.as_bytes()).unwrap_err().at, at, "{text}");
        }
    }
}
