//! Adding a number to an encoded value: exactly ([`increment`]), or as M's `$INCREMENT` does
//! ([`increment_truncating`]).
//!
//! A counter is changed by many at once. The engine lets the addition be done while it holds the latch of the
//! value's page, on the bytes that lie there, so that no transaction is needed.
//!
//! Example: 11 29 is the integer 41; 1 added to it makes 11 2A. An absent value counts as 0.
//!
//! Invariant: both functions are pure, use no heap and never panic, since others wait for the latch. The caller
//! stores `out[..length]`.

use crate::decimal::ArithmeticError;
use crate::number::Number;
use crate::numeral::parse_lenient;
use crate::value::{encode_number_value, ValueRef};

/// Adds `by` to an encoded value exactly and encodes the sum, always as an integer or decimal;
/// returns its length. An absent value and null count as 0, a double as the decimal of its
/// shortest digits, a string that is a canonical number as that number.
///
/// # Errors
/// `NotANumber` for any other value; `Malformed` if `current` is no encoded value; `Inexact`,
/// `Overflow` or `Underflow` if the exact sum is not a number. `out` is then unspecified.
#[inline]
pub fn increment(current: Option<&[u8]>, by: &Number, out: &mut [u8; 64]) -> Result<usize, ArithmeticError> {
    let number = match decode(current)? {
        ValueRef::Null => Number::Int(0),
        value => value.as_number()?,
    };
    Ok(write(number.checked_add(*by)?, out))
}

/// Adds `by` to an encoded value as M's `$INCREMENT` does: text counts as its leading number,
/// everything else that is no number as 0 (true as 1), and digits after the 18th are dropped.
///
/// # Errors
/// `Overflow` at 1E47; `Malformed` if `current` is no encoded value. `out` is then unspecified.
pub fn increment_truncating(
    current: Option<&[u8]>,
    by: &Number,
    out: &mut [u8; 64],
) -> Result<usize, ArithmeticError> {
    let number = match decode(current)? {
        ValueRef::String(text) => parse_lenient(text)?,
        ValueRef::Bool(truth) => Number::Int(i64::from(truth)),
        value => match value.as_number() {
            Ok(number) => number,
            Err(ArithmeticError::Overflow) => return Err(ArithmeticError::Overflow),
            Err(_) => Number::Int(0),
        },
    };
    Ok(write(number.add_truncating(*by)?, out))
}

#[inline]
fn decode(current: Option<&[u8]>) -> Result<ValueRef<'_>, ArithmeticError> {
    match current {
        None => Ok(ValueRef::Null),
        Some(bytes) => ValueRef::decode(bytes).map_err(|_| ArithmeticError::Malformed),
    }
}

#[inline]
fn write(number: Number, out: &mut [u8; 64]) -> usize {
    let mut code = [0; 16];
    let length = encode_number_value(number, &mut code);
    out[..16].copy_from_slice(&code);
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    type Adder = fn(Option<&[u8]>, &Number, &mut [u8; 64]) -> Result<usize, ArithmeticError>;

    fn run(add: Adder, current: &Value, by: &str) -> Result<String, ArithmeticError> {
        let mut bytes = Vec::new();
        current.encode_into(&mut bytes);
        let by = parse_lenient(by.as_bytes())?;
        let mut out = [0; 64];
        let length = add(Some(&bytes), &by, &mut out)?;
        Ok(Value::decode(&out[..length]).unwrap().to_string())
    }

    fn string(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn exact_increment_takes_numbers_of_all_types() {
        let sum = |current, by| run(increment, &current, by);
        assert_eq!(sum(Value::Null, "5").unwrap(), "5");
        assert_eq!(sum(Value::Int(41), "1").unwrap(), "42");
        assert_eq!(sum(Value::Double(0.1), ".2").unwrap(), ".3");
        assert_eq!(sum(string("1.5"), "-1.5").unwrap(), "0");
        for value in [string("x"), string(""), string("1.50"), Value::Bool(true)] {
            assert_eq!(sum(value, "1"), Err(ArithmeticError::NotANumber));
        }
        assert_eq!(sum(Value::Double(f64::NAN), "1"), Err(ArithmeticError::NotANumber));
        assert_eq!(sum(Value::Int(i64::MAX), "1"), Err(ArithmeticError::Inexact));
        assert_eq!(sum(string("123456789012345678"), ".5"), Err(ArithmeticError::Inexact));
        assert_eq!(increment(Some(&[0xEE]), &Number::Int(1), &mut [0; 64]), Err(ArithmeticError::Malformed));
        let mut out = [0; 64];
        let length = increment(None, &Number::Int(7), &mut out).unwrap();
        assert_eq!(out[..length], [0x11, 7]);
    }

    #[test]
    fn truncating_increment_is_that_of_m() {
        for (current, by, result) in [
            ("9999999999999999999", "1", "9999999999999999990"),
            ("123456789012345678", ".5", "123456789012345678"),
            ("12abc", "1", "13"),
            ("abc", "1", "1"),
            ("", "1", "1"),
            (".1", ".2", ".3"),
            ("1E-43", "-1.5E-43", "0"),
        ] {
            let sum = run(increment_truncating, &string(current), by);
            assert_eq!(sum.unwrap(), result, "{current} + {by}");
        }
        assert_eq!(run(increment_truncating, &string("9E46"), "9E46"), Err(ArithmeticError::Overflow));
    }
}
