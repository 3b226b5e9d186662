//! Numbers from and to binary doubles, through their shortest decimal digits.
//!
//! A double takes part in arithmetic as the number with the fewest digits that reads back as it: `0.1` is one
//! tenth, not the binary fraction beside it. No heap is used.

use std::fmt;
use std::fmt::Write as _;

use crate::decimal::{ArithmeticError, Decimal};
use crate::number::{Number, MAX_NUMBER_TEXT};
use crate::numeral;

impl Number {
    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        if let Number::Int(int) = self {
            return int as f64;
        }
        let mut text = [0; MAX_NUMBER_TEXT];
        let length = self.write_text(&mut text);
        let text = std::str::from_utf8(&text[..length]).unwrap_or("");
        text.parse().unwrap_or(f64::NAN)
    }

    /// The number with the fewest digits that reads back as `double`; integral doubles below 2^53
    /// are exact.
    ///
    /// # Errors
    /// `NotANumber` for NaN and the infinities, `Overflow` or `Underflow` out of range.
    pub fn from_f64(double: f64) -> Result<Number, ArithmeticError> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if !double.is_finite() {
            return Err(ArithmeticError::NotANumber);
        }
        if double.abs() < EXACT && double.trunc() == double {
            return Ok(Number::Int(double as i64));
        }
        let mut text = FixedText::default();
        write!(text, "{double:e}").map_err(|_| ArithmeticError::Malformed)?;
        numeral::parse_literal(text.as_bytes()).map_err(|error| match error {
            numeral::LiteralError::Range(range) => range,
            numeral::LiteralError::Syntax(_) => ArithmeticError::Malformed,
        })
    }
}

/// Text of one double in scientific notation, without heap.
#[derive(Default)]
struct FixedText {
    bytes: [u8; 32],
    length: usize,
}

impl FixedText {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Write for FixedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl From<Decimal> for f64 {
    fn from(decimal: Decimal) -> f64 {
        Number::Decimal(decimal).to_f64()
    }
}
