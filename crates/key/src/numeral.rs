//! Numbers as text: the canonical form that decides whether a byte string is a number, the lenient
//! reading of M, and literals.
//!
//! Three readers, because they answer different questions:
//!
//! * [`parse_canonical`]: *is* this byte string a number? Exactly one text per value.
//! * [`parse_lenient`]: the value M's unary plus gives to any byte string; never a syntax error.
//! * [`parse_literal`]: the exact value of a number a person wrote (`007`, `1.50`, `1E3`).
//!
//! The writer is the inverse of the first. No heap is used.

use std::fmt;

use crate::decimal::{ArithmeticError, Decimal, MAX_DIGITS};
use crate::number::{Number, MAX_NUMBER_TEXT};

/// The longest canonical text: `-.`, 42 zeros, 18 digits.
const MAX_CANONICAL: usize = 62;
/// Digits beyond this many are counted but not kept; enough to tell what fits from what does not.
const KEPT_DIGITS: u32 = 30;

/// Why a literal has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralError {
    /// The byte at this offset cannot be part of a number, or the text ends there too early.
    Syntax(usize),
    /// The value is not a number Perilune can hold exactly.
    Range(ArithmeticError),
}

/// Digits read so far: the value is `coefficient * 10^(zeros - places)`.
#[derive(Default)]
struct Digits {
    coefficient: u128,
    significant: u32,
    zeros: u32,
    places: u32,
    dropped: bool,
}

impl Digits {
    fn push(&mut self, digit: u8, after_point: bool) {
        self.places += u32::from(after_point);
        if digit == 0 && self.significant == 0 {
            return;
        }
        if digit == 0 || self.significant + self.zeros >= KEPT_DIGITS {
            self.dropped |= digit != 0;
            self.zeros = self.zeros.saturating_add(1);
            return;
        }
        self.coefficient = self.coefficient * 10u128.pow(self.zeros + 1) + u128::from(digit);
        self.significant += self.zeros + 1;
        self.zeros = 0;
    }

    fn signed(&self, negative: bool) -> i128 {
        let magnitude = self.coefficient as i128;
        if negative {
            -magnitude
        } else {
            magnitude
        }
    }

    fn exponent(&self, written: i64) -> i32 {
        let exponent = i64::from(self.zeros) - i64::from(self.places) + written;
        exponent.clamp(-1_000_000_000, 1_000_000_000) as i32
    }
}

/// Whether `text` is the canonical text of a number.
///
/// Canonical: `0`, or an optional `-` and then digits not starting with 0, optionally followed by a
/// point and digits not ending in 0; or a point and digits not ending in 0; at most 18 significant
/// digits; magnitude from 1E-43 to below 1E47.
pub fn is_canonical(text: &[u8]) -> bool {
    parse_canonical(text).is_some()
}

/// Reads a canonical number; `None` if `text` is any other byte string.
#[inline]
pub fn parse_canonical(text: &[u8]) -> Option<Number> {
    // The first byte rejects nearly every subscript that is not a number.
    match text.first()? {
        b'0'..=b'9' | b'-' | b'.' => parse_canonical_numeral(text),
        _ => None,
    }
}

/// The number that at most 18 digits, and nothing else, are.
#[inline]
fn few_digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > MAX_DIGITS as usize {
        return None;
    }
    let mut value = 0i64;
    let all_digits = text.iter().all(|&byte| {
        let digit = byte.wrapping_sub(b'0');
        value = value * 10 + i64::from(digit & 15);
        digit <= 9
    });
    all_digits.then_some(value)
}

fn parse_canonical_numeral(text: &[u8]) -> Option<Number> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match body {
        [b'0'] if !negative => return Some(Number::Int(0)),
        [b'1'..=b'9' | b'.', ..] if text.len() <= MAX_CANONICAL => {}
        _ => return None,
    }
    if let Some(value) = few_digits(body) {
        return Some(Number::Int(if negative { -value } else { value }));
    }
    let mut digits = Digits::default();
    let mut point = false;
    for &byte in body {
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0', point),
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    let ends_badly = point && (digits.zeros > 0 || digits.places == 0);
    if ends_badly || digits.significant == 0 || digits.dropped || digits.significant > MAX_DIGITS {
        return None;
    }
    let decimal = Decimal::new(digits.signed(negative), digits.exponent(0)).ok()?;
    Some(Number::from(decimal))
}

/// Reads a number as M's unary plus does: leading signs, digits with at most one point, an
/// upper-case exponent; the rest is ignored; no digits means 0. Digits after the 18th are dropped,
/// a magnitude below 1E-43 is 0.
///
/// # Errors
/// `Overflow` if the magnitude is 1E47 or more.
pub fn parse_lenient(text: &[u8]) -> Result<Number, ArithmeticError> {
    let signs = text.iter().take_while(|byte| matches!(byte, b'+' | b'-'));
    let (count, negative) =
        signs.fold((0, false), |(count, negative), &byte| (count + 1, negative ^ (byte == b'-')));
    let mut digits = Digits::default();
    let mut point = false;
    let mut at = count;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0', point),
            b'.' if !point => point = true,
            _ => break,
        }
        at += 1;
    }
    if digits.significant == 0 {
        return Ok(Number::Int(0));
    }
    let written = match text.get(at) {
        Some(b'E') => read_exponent(&text[at + 1..]).map_or(0, |(exponent, _)| exponent),
        _ => 0,
    };
    Decimal::new_truncating(digits.signed(negative), digits.exponent(written)).map(Number::from)
}

/// Reads a number a person wrote, exactly: an optional sign, digits with at most one point, an
/// optional exponent after `E` or `e`; the whole text.
///
/// # Errors
/// `Syntax` with the offset of the first wrong byte; `Range` if the value is neither an `i64` nor a
/// decimal of 18 digits.
pub fn parse_literal(text: &[u8]) -> Result<Number, LiteralError> {
    let (negative, start) = match text.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    if let Some(value) = few_digits(&text[start..]) {
        return Ok(Number::Int(if negative { -value } else { value }));
    }
    let mut digits = Digits::default();
    let (mut point, mut any, mut at) = (false, false, start);
    let mut written = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                digits.push(byte - b'0', point);
                any = true;
            }
            b'.' if !point => point = true,
            b'e' | b'E' if any => {
                let (exponent, length) =
                    read_exponent(&text[at + 1..]).ok_or(LiteralError::Syntax(at + 1))?;
                written = exponent;
                at += 1 + length;
                break;
            }
            _ => return Err(LiteralError::Syntax(at)),
        }
        at += 1;
    }
    if !any || at < text.len() {
        return Err(LiteralError::Syntax(at));
    }
    if digits.dropped {
        return Err(LiteralError::Range(ArithmeticError::Inexact));
    }
    Number::new(digits.signed(negative), digits.exponent(written)).map_err(LiteralError::Range)
}

/// Reads `[+-]digits`; the value saturates. Returns it with the bytes used.
fn read_exponent(text: &[u8]) -> Option<(i64, usize)> {
    let (negative, start) = match text.first() {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit());
    let (count, value) = digits.fold((0, 0i64), |(count, value), &byte| {
        (count + 1, (value * 10 + i64::from(byte - b'0')).min(1 << 40))
    });
    (count > 0).then_some((if negative { -value } else { value }, start + count))
}

impl Number {
    /// Writes the canonical text and returns its length in bytes. An `i64` of 19 digits is written
    /// in full although M has no such number.
    pub fn write_text(self, out: &mut [u8; MAX_NUMBER_TEXT]) -> usize {
        write_number(self, out)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; MAX_NUMBER_TEXT];
        let length = self.write_text(&mut text);
        f.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the canonical text of `number`; returns its length.
fn write_number(number: Number, out: &mut [u8; MAX_NUMBER_TEXT]) -> usize {
    let (coefficient, exponent) = match number {
        Number::Int(int) => (int, 0),
        Number::Decimal(decimal) => (decimal.coefficient(), decimal.exponent()),
    };
    let mut digits = [0; 20];
    let first = write_digits(coefficient.unsigned_abs(), &mut digits);
    let digits = &digits[first..];
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        out[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    if coefficient < 0 {
        put(b"-");
    }
    let places = (-exponent).max(0) as usize;
    const ZEROS: [u8; 48] = [b'0'; 48];
    if exponent >= 0 {
        put(digits);
        put(&ZEROS[..exponent as usize]);
    } else if places >= digits.len() {
        put(b".");
        put(&ZEROS[..places - digits.len()]);
        put(digits);
    } else {
        let (whole, fraction) = digits.split_at(digits.len() - places);
        put(whole);
        put(b".");
        put(fraction);
    }
    length
}

/// Writes the digits of `value` at the end of `out`; returns where they start. 0 has one digit.
pub(crate) fn write_digits(mut value: u64, out: &mut [u8; 20]) -> usize {
    let mut first = out.len();
    loop {
        first -= 1;
        out[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros(before: &str, count: usize, after: &str) -> String {
        format!("{before}{}{after}", "0".repeat(count))
    }

    #[test]
    fn canonical_texts_are_numbers_and_print_back() {
        let mut texts: Vec<String> = "0 1 -1 10 .5 -.5 1.5 -34.56 123456789012345678 \
             999999999999999999 1234567890123456780 .123456789012345678 -123456789.012345678 .01"
            .split_whitespace()
            .map(String::from)
            .collect();
        texts.push(zeros("1", 46, ""));
        texts.push(zeros("-999999999999999999", 29, ""));
        texts.push(zeros(".", 42, "1"));
        texts.push(zeros("-.", 42, "123456789012345678"));
        for text in &texts {
            let number = parse_canonical(text.as_bytes()).expect(text);
            assert_eq!(&number.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_strings() {
        let mut texts: Vec<String> = "+1 00 -0 1.0 0.5 .50 1. 1E3 1234567890123456789 01 - . -. .0 \
             -.0 9999999999999999999 1..2 1.2.3 1-2 0.0 100000000000000000000.5 0x1 .00 -00 1.00"
            .split_whitespace()
            .map(String::from)
            .collect();
        texts.push(String::new());
        texts.push(" 5".into());
        texts.push(zeros("1", 47, ""));
        texts.push(zeros(".", 43, "1"));
        texts.push(zeros(".", 44, "123456789012345678"));
        for text in &texts {
            assert!(!is_canonical(text.as_bytes()), "{text:?} taken as number");
        }
    }

    #[test]
    fn lenient_reading_is_that_of_unary_plus() {
        for (text, value) in [
            ("--5", "5"),
            ("+-+5", "-5"),
            ("abc", "0"),
            ("12abc", "12"),
            ("0x10", "0"),
            ("1e3x", "1"),
            ("1E2", "100"),
            ("1E", "1"),
            ("1E-", "1"),
            (" 5", "0"),
            ("", "0"),
            ("-", "0"),
            ("1.50", "1.5"),
            ("1.2.3", "1.2"),
            ("0.5", ".5"),
            ("007", "7"),
            ("9999999999999999999", "9999999999999999990"),
            ("1E-44", "0"),
            ("0E99", "0"),
            ("-1.234567890123456789", "-1.23456789012345678"),
        ] {
            let number = parse_lenient(text.as_bytes()).unwrap();
            assert_eq!(number.to_string(), value, "of {text:?}");
        }
        for text in ["1E47", "-1E47", "1E99999999999999999999"] {
            assert_eq!(parse_lenient(text.as_bytes()), Err(ArithmeticError::Overflow));
        }
    }

    #[test]
    fn literals_are_exact_or_an_error() {
        for (text, value) in [
            ("007", "7"),
            ("1.0", "1"),
            ("+5", "5"),
            ("-0", "0"),
            ("1e3", "1000"),
            ("1E-3", ".001"),
            (".5", ".5"),
            ("5.", "5"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775807000E-3", "9223372036854775807"),
        ] {
            assert_eq!(parse_literal(text.as_bytes()).unwrap().to_string(), value, "of {text}");
        }
        for (text, at) in [("", 0), ("-", 1), ("1x", 1), ("1e", 2), ("1e5x", 3), (".", 1), ("e5", 0)] {
            assert_eq!(parse_literal(text.as_bytes()), Err(LiteralError::Syntax(at)), "of {text}");
        }
        for (text, error) in [
            ("9223372036854775808", ArithmeticError::Inexact),
            ("1E47", ArithmeticError::Overflow),
            ("1E-44", ArithmeticError::Underflow),
            ("1.2345678901234567890123456789012345", ArithmeticError::Inexact),
        ] {
            assert_eq!(parse_literal(text.as_bytes()), Err(LiteralError::Range(error)), "of {text}");
        }
    }
}
