//! Values as text: exactly one type for each form, and back.
//!
//! | form | value |
//! |---|---|
//! | `"..."`, `$C(...)`, joined by `_` | string, as in `quoted.rs` |
//! | digits with a sign or point, also `E`: `5`, `-.25`, `1E20` | integer, or decimal if it is no `i64` |
//! | the same with `e`: `5e0`, `-2.5e-1`; `inf`, `-inf`, `nan` | double |
//! | `nan(7ff8000000000001)` | the double with these bits, not a number |
//! | `null`, `true`, `false`, `[]`, `{}` | these |
//! | `record("Ada",36,b"..",-)` | a record: fields as above, `b"..."` a blob, `-` an absent one |
//!
//! The writer writes what the reader takes, and doubles by their shortest digits, so that every value
//! comes back with its type and, doubles too, its bits.

use std::fmt::{self, Write};

use crate::number::Number;
use crate::numeral::{parse_literal, LiteralError};
use crate::quoted::{read_quoted, write_quoted, Codes};
use crate::record::{Field, Record};
use crate::text::{syntax, ParseError, ParseProblem};
use crate::value::{Value, ValueError, ValueRef};

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
        [b'r', b'e', b'c', b'o', b'r', b'd', b'(', ..] => {
            bytes.clear();
            read_record(text, bytes)?;
            ValueRef::Record(bytes)
        }
        [b'n', b'a', b'n', b'(', bits @ .., b')'] => ValueRef::Double(nan(bits)?),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] if text.contains(&b'e') => ValueRef::Double(double(text)?),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] => number(text)?.into(),
        _ => {
            let what =
                "expected a value: a number, \"text\", $C(...), null, true, false, [], {} or record(...)";
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

/// Writes a record so that [`read_record`] reads the same; a malformed field as `?`, which that refuses.
fn write_record<W: Write + ?Sized>(fields: &[u8], out: &mut W) -> fmt::Result {
    let mut record = Record::new(fields);
    out.write_str("record(")?;
    let mut is_first = true;
    while !record.is_empty() {
        if !std::mem::take(&mut is_first) {
            out.write_char(',')?;
        }
        match record.next_field() {
            Err(ValueError) => {
                out.write_char('?')?;
                break;
            }
            Ok(Field::Absent) => out.write_char('-')?,
            Ok(Field::Blob(blob)) => {
                out.write_char('b')?;
                write_quoted(blob, out)?;
            }
            Ok(Field::Text(text)) => write_quoted(text, out)?,
            Ok(Field::Null) => write_value(&ValueRef::Null, out)?,
            Ok(Field::Bool(truth)) => write_value(&ValueRef::Bool(truth), out)?,
            Ok(Field::Int(int)) => write_value(&ValueRef::Int(int), out)?,
            Ok(Field::Decimal(decimal)) => write_value(&ValueRef::Decimal(decimal), out)?,
            Ok(Field::Double(double)) => write_value(&ValueRef::Double(double), out)?,
        }
    }
    out.write_char(')')
}

/// Reads a whole text, which begins with `record(`, as a record's fields.
///
/// # Errors
/// What is wrong and where.
fn read_record(text: &[u8], out: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut at = "record(".len();
    if text[at..] == *b")" {
        return Ok(());
    }
    loop {
        at = read_field(text, at, out)?;
        match text.get(at) {
            Some(b',') => at += 1,
            Some(b')') if at + 1 == text.len() => return Ok(()),
            Some(b')') => return Err(syntax(at + 1, "expected the end of the value")),
            _ => return Err(syntax(at, "expected , or ) behind a field")),
        }
    }
}

/// Reads the field at `at`; answers where it ends.
fn read_field(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, ParseError> {
    let mut bytes = Vec::new();
    match &text[at..] {
        [b'b', ..] => {
            let end =
                read_quoted(text, at + 1, Codes::Bytes, &mut bytes).map_err(|(at, what)| syntax(at, what))?;
            Field::Blob(&bytes).encode_into(out);
            Ok(end)
        }
        [b'"' | b'$', ..] => {
            let end =
                read_quoted(text, at, Codes::Bytes, &mut bytes).map_err(|(at, what)| syntax(at, what))?;
            Field::Text(&bytes).encode_into(out);
            Ok(end)
        }
        [b'-', b',' | b')', ..] => {
            Field::Absent.encode_into(out);
            Ok(at + 1)
        }
        rest => {
            // A NaN's bits stand in parentheses.
            let is_nan = rest.starts_with(b"nan(");
            let length = rest.iter().position(|byte| matches!(byte, b',' | b')')).unwrap_or(rest.len());
            let end = at + length + usize::from(is_nan && length < rest.len());
            let value = read_value(&text[at..end], &mut bytes)
                .map_err(|error| ParseError { at: error.at + at, problem: error.problem })?;
            let field = match value {
                ValueRef::Null => Field::Null,
                ValueRef::Bool(truth) => Field::Bool(truth),
                ValueRef::Int(int) => Field::Int(int),
                ValueRef::Decimal(decimal) => Field::Decimal(decimal),
                ValueRef::Double(double) => Field::Double(double),
                _ => {
                    return Err(syntax(
                        at,
                        "expected a field: a number, text, b\"...\", null, true, false or -",
                    ))
                }
            };
            field.encode_into(out);
            Ok(end)
        }
    }
}

impl fmt::Display for ValueRef<'_> {
    /// Writes the value for people, distinguishing types: strings quoted, doubles with a point or
    /// exponent, `null`, `true`, `[]`, `{}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ValueRef::Null => f.write_str("null"),
            ValueRef::Bool(truth) => write!(f, "{truth}"),
            ValueRef::Int(int) => write!(f, "{int}"),
            ValueRef::Decimal(decimal) => write!(f, "{}", Number::Decimal(decimal)),
            ValueRef::Double(double) => write!(f, "{double:?}"),
            ValueRef::String(bytes) => write_quoted(bytes, f),
            ValueRef::EmptyList => f.write_str("[]"),
            ValueRef::EmptyMap => f.write_str("{}"),
            ValueRef::Record(fields) => write_record(fields, f),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
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
            "record()",
            "record(\"Ada\",36,-.5,2.5e-1,nan,null,true,b\"x\"\",)\",-,b$C(0),\"a\"_$C(10)_\",b\")",
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
            ("record(", 7),
            ("record(1", 8),
            ("record(1,)", 9),
            ("record([])", 7),
            ("record(1) ", 9),
        ] {
            assert_eq!(parse_value(text.as_bytes()).unwrap_err().at, at, "{text}");
        }
    }
}
