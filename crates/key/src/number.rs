//! A number: an `i64`, or an exact decimal of at most 18 digits.
//!
//! Invariants: the constructors of this crate yield `Int` for every integral value that fits an
//! `i64`, so one value has one form; equality, order and hash go by value in any case.
//!
//! Arithmetic is exact or an error (`checked_*`), except in the `*_truncating` functions, which
//! drop digits after the 18th as M does and exist for the YottaDB compatibility layer. Binary
//! floating point takes part only through its shortest decimal digits.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::decimal::{cmp_parts, digit_count, ArithmeticError, Decimal, MAX_DIGITS};

/// The number of bytes the longest text of a number takes at most.
pub const MAX_NUMBER_TEXT: usize = 64;

/// Operands whose digits span more than this cannot be added in an `i128`; nor can their sum have
/// 19 digits or fewer.
const MAX_SPAN: i32 = 37;

/// An integer or an exact decimal.
#[derive(Clone, Copy)]
pub enum Number {
    /// Any `i64`, including those of 19 digits.
    Int(i64),
    /// A value that is not integral or does not fit an `i64`.
    Decimal(Decimal),
}

impl Number {
    /// Makes the number `coefficient * 10^exponent`.
    ///
    /// # Errors
    /// `Inexact`, `Overflow` or `Underflow` if it is neither an `i64` nor a decimal.
    pub fn new(coefficient: i128, exponent: i32) -> Result<Number, ArithmeticError> {
        if exponent == 0 {
            if let Ok(int) = i64::try_from(coefficient) {
                return Ok(Number::Int(int));
            }
        }
        match Decimal::new(coefficient, exponent) {
            Ok(decimal) => Ok(Number::from(decimal)),
            Err(error) => integral(coefficient, exponent).ok_or(error),
        }
    }

    /// The number as an integer, if it is one and fits.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Int(int) => Some(int),
            Number::Decimal(decimal) => decimal.to_i64(),
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.parts().0 == 0
    }

    /// Adds exactly.
    ///
    /// # Errors
    /// `Inexact`, `Overflow` or `Underflow` if the exact sum is not a number.
    #[inline]
    pub fn checked_add(self, other: Number) -> Result<Number, ArithmeticError> {
        if let (Number::Int(a), Number::Int(b)) = (self, other) {
            if let Some(sum) = a.checked_add(b) {
                return Ok(Number::Int(sum));
            }
        }
        match self.aligned_sum(other) {
            Some((sum, exponent)) => Number::new(sum, exponent),
            None => Err(ArithmeticError::Inexact),
        }
    }

    /// Subtracts exactly.
    ///
    /// # Errors
    /// As [`Number::checked_add`].
    #[inline]
    pub fn checked_sub(self, other: Number) -> Result<Number, ArithmeticError> {
        if let (Number::Int(a), Number::Int(b)) = (self, other) {
            return Number::new(i128::from(a) - i128::from(b), 0);
        }
        // NB: only i64::MIN has no negation, and it equals no decimal: go through the parts.
        let (b, exponent) = other.parts();
        match aligned_sum(self.parts(), (-b, exponent)) {
            Some((sum, exponent)) => Number::new(sum, exponent),
            None => Err(ArithmeticError::Inexact),
        }
    }

    /// Multiplies exactly.
    ///
    /// # Errors
    /// As [`Number::checked_add`].
    pub fn checked_mul(self, other: Number) -> Result<Number, ArithmeticError> {
        let (a, a_exponent) = self.parts();
        let (b, b_exponent) = other.parts();
        Number::new(a * b, a_exponent + b_exponent)
    }

    /// Negates exactly.
    ///
    /// # Errors
    /// `Inexact` for `i64::MIN`, whose negation has 19 digits and is no `i64`.
    pub fn checked_neg(self) -> Result<Number, ArithmeticError> {
        let (coefficient, exponent) = self.parts();
        Number::new(-coefficient, exponent)
    }

    /// Adds as M does: operands keep their first 18 digits, the smaller one is cut to the places
    /// of the larger, the sum keeps 18 digits, and a result below 1E-43 is 0.
    ///
    /// # Errors
    /// `Overflow` if the magnitude of the result is 1E47 or more.
    pub fn add_truncating(self, other: Number) -> Result<Number, ArithmeticError> {
        let (a, b) = (self.truncated(), other.truncated());
        if a.is_zero() {
            return Ok(b);
        }
        if b.is_zero() {
            return Ok(a);
        }
        let last_place = a.first_digit().max(b.first_digit()) - MAX_DIGITS as i32;
        let sum = a.cut_at(last_place) + b.cut_at(last_place);
        Decimal::new_truncating(sum, last_place).map(Number::from)
    }

    /// The number with only its first 18 digits kept, as M holds it.
    pub fn truncated(self) -> Number {
        let (coefficient, exponent) = self.parts();
        // An operand in range stays in range when digits are dropped.
        Decimal::new_truncating(coefficient, exponent).map_or(self, Number::from)
    }

    pub(crate) fn parts(self) -> (i128, i32) {
        match self {
            Number::Int(int) => (i128::from(int), 0),
            Number::Decimal(decimal) => (i128::from(decimal.coefficient()), decimal.exponent()),
        }
    }

    fn first_digit(self) -> i32 {
        let (coefficient, exponent) = self.parts();
        exponent + digit_count(coefficient.unsigned_abs()) as i32
    }

    /// The value in units of `10^place`, fractions of a unit dropped. At most 10^18 if the first
    /// digit is within 18 places.
    fn cut_at(self, place: i32) -> i128 {
        let (coefficient, exponent) = self.parts();
        match exponent - place {
            up @ 0..=18 => coefficient * 10i128.pow(up as u32),
            down @ -18..=-1 => coefficient / 10i128.pow(down.unsigned_abs()),
            _ => 0,
        }
    }

    fn aligned_sum(self, other: Number) -> Option<(i128, i32)> {
        aligned_sum(self.parts(), other.parts())
    }

    fn narrow_parts(self) -> (i64, i32) {
        match self {
            Number::Int(int) => (int, 0),
            Number::Decimal(decimal) => (decimal.coefficient(), decimal.exponent()),
        }
    }
}

/// The exact sum of two `coefficient * 10^exponent`, unless their digits span too far.
fn aligned_sum((a, a_exponent): (i128, i32), (b, b_exponent): (i128, i32)) -> Option<(i128, i32)> {
    if a == 0 {
        return Some((b, b_exponent));
    }
    if b == 0 {
        return Some((a, a_exponent));
    }
    let exponent = a_exponent.min(b_exponent);
    let top = (a_exponent + digit_count(a.unsigned_abs()) as i32)
        .max(b_exponent + digit_count(b.unsigned_abs()) as i32);
    if top - exponent > MAX_SPAN {
        return None;
    }
    let scale = |value: i128, from: i32| value * 10i128.pow((from - exponent) as u32);
    Some((scale(a, a_exponent) + scale(b, b_exponent), exponent))
}

/// The value as an `i64` of 19 digits, which no decimal holds.
fn integral(coefficient: i128, exponent: i32) -> Option<Number> {
    let value = if (0..=18).contains(&exponent) {
        coefficient.checked_mul(10i128.pow(exponent as u32))?
    } else if (-38..0).contains(&exponent) {
        let divisor = 10i128.pow(exponent.unsigned_abs());
        if coefficient % divisor != 0 {
            return None;
        }
        coefficient / divisor
    } else {
        return None;
    };
    i64::try_from(value).ok().map(Number::Int)
}

impl From<i64> for Number {
    #[inline]
    fn from(int: i64) -> Number {
        Number::Int(int)
    }
}

impl From<Decimal> for Number {
    fn from(decimal: Decimal) -> Number {
        match decimal.to_i64() {
            Some(int) => Number::Int(int),
            None => Number::Decimal(decimal),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Number::Int(a), Number::Int(b)) = (self, other) {
            return a.cmp(b);
        }
        let (a, a_exponent) = self.narrow_parts();
        let (b, b_exponent) = other.narrow_parts();
        cmp_parts(a, a_exponent, b, b_exponent)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (self.as_i64(), self) {
            (Some(int), _) => int.hash(state),
            (None, Number::Decimal(decimal)) => decimal.hash(state),
            (None, Number::Int(int)) => int.hash(state),
        }
    }
}
