//! Numbers in arguments, as Redis reads them.
//!
//! Example: `10` is an integer; `1e1`, ` 10` and `+10` are none. `inf` is a score, and no increment.
//!
//! Invariant: what is refused is refused with the words of Redis.

use std::borrow::Cow;

use perilune::{Number, ValueRef};
use perilune_resp::{format_double, parse_integer};

use crate::failure::{refuse, Result, NOT_FLOAT, NOT_INTEGER};

/// An integer of 64 bits.
pub(crate) fn integer(argument: &[u8]) -> Result<i64> {
    match parse_integer(argument) {
        Some(integer) => Ok(integer),
        None => refuse(NOT_INTEGER),
    }
}

/// A count from 0 on.
pub(crate) fn positive(argument: &[u8], refusal: &'static str) -> Result<usize> {
    match parse_integer(argument).and_then(|count| usize::try_from(count).ok()) {
        Some(count) => Ok(count),
        None => refuse(refusal),
    }
}

/// Elements that one command draws with repetition, at most: their reply is made in memory.
const DRAWN_AT_ONCE: i64 = 1 << 24;

/// How many elements to draw: so many different ones, or with a negative count so many of any.
pub(crate) fn drawn(argument: &[u8]) -> Result<i64> {
    match integer(argument)? {
        i64::MIN => refuse(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        count if count < -DRAWN_AT_ONCE => refuse(
            "ERR value is out of range: at most 16777216 elements are drawn at once, ask several times",
        ),
        count => Ok(count),
    }
}

/// A double, infinities too.
pub(crate) fn double(argument: &[u8]) -> Result<f64> {
    match double_of(argument) {
        Some(double) => Ok(double),
        None => refuse(NOT_FLOAT),
    }
}

/// The double that `text` is, if it is one.
pub(crate) fn double_of(text: &[u8]) -> Option<f64> {
    let double: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!double.is_nan()).then_some(double)
}

/// The integer that a value holds.
pub(crate) fn integer_of(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(integer) => Some(integer),
        ValueRef::String(text) => parse_integer(text),
        _ => None,
    }
}

/// The sum of two decimal numbers, as text: exact if both are integers or 18 digits hold it, else that of
/// doubles.
pub(crate) fn add_decimals(left: &[u8], right: &[u8]) -> Result<String> {
    let sum = double(left)? + double(right)?;
    if !sum.is_finite() {
        return refuse("ERR increment would produce NaN or Infinity");
    }
    let whole = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i128>().ok();
    if let Some(sum) = whole(left).zip(whole(right)).and_then(|(left, right)| left.checked_add(right)) {
        return Ok(sum.to_string());
    }
    let exact = || -> Option<Number> {
        let (left, right) =
            (perilune::key::parse_literal(left).ok()?, perilune::key::parse_literal(right).ok()?);
        left.checked_add(right).ok()
    };
    let Some(exact) = exact() else { return Ok(format_double(sum)) };
    let mut text = Vec::new();
    ValueRef::from(exact).write_text(&mut text);
    let text = String::from_utf8_lossy(&text);
    // Our numbers have no zero before the point.
    Ok(match (text.strip_prefix('.'), text.strip_prefix("-.")) {
        (Some(rest), _) => format!("0.{rest}"),
        (_, Some(rest)) => format!("-0.{rest}"),
        _ => text.into_owned(),
    })
}

/// Where `index`, from the end if negative, lies among `length` elements; it may lie outside.
pub(crate) fn from_end(index: i64, length: i64) -> i64 {
    if index < 0 {
        index.saturating_add(length)
    } else {
        index
    }
}

/// The range `start..end` of `length` elements that two indexes, the last one included, name.
pub(crate) fn span(start: i64, last: i64, length: i64) -> (i64, i64) {
    let start = from_end(start, length).max(0);
    let end = from_end(last, length).min(length - 1).saturating_add(1);
    if start >= end {
        (0, 0)
    } else {
        (start, end)
    }
}

/// An option's name, for comparisons without regard to case.
pub(crate) fn lower(word: &[u8]) -> Cow<'_, [u8]> {
    if word.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(word.to_ascii_lowercase())
    } else {
        Cow::Borrowed(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_added_exactly() {
        let sums: [(&[u8], &[u8], &str); 7] = [
            (b"10.5", b"0.1", "10.6"),
            (b"5.0e3", b"2.0e2", "5200"),
            (b"0", b"-0.25", "-0.25"),
            (b"0.1", b"0.2", "0.3"),
            (b"3", b"-3", "0"),
            (b"9223372036854775807", b"100", "9223372036854775907"),
            (b"1e300", b"1", "1.0000000000000001e+300"),
        ];
        for (left, right, sum) in sums {
            assert_eq!(add_decimals(left, right).ok().as_deref(), Some(sum));
        }
        assert!(add_decimals(b"1", b"inf").is_err() && add_decimals(b"x", b"1").is_err());
    }

    #[test]
    fn spans_are_cut_to_what_is_there() {
        assert_eq!(span(0, -1, 5), (0, 5));
        assert_eq!(span(-3, -2, 5), (2, 4));
        assert_eq!(span(-9, 9, 5), (0, 5));
        assert_eq!(span(3, 1, 5), (0, 0));
        assert_eq!(span(5, 9, 5), (0, 0));
        assert_eq!(span(0, -1, 0), (0, 0));
        assert_eq!(span(i64::MIN, i64::MAX, 3), (0, 3));
    }
}
