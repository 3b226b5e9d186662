//! Exact decimal numbers of at most 18 significant digits.
//!
//! A [`Decimal`] is `coefficient * 10^exponent`. Invariants, kept by every constructor:
//!
//! * the coefficient has at most [`MAX_DIGITS`] digits and does not end in 0, so equal values have
//!   equal fields; zero is (0, 0);
//! * a magnitude other than zero is at least 1E-43 and less than 1E47, the range of M.
//!
//! Nothing here rounds. Arithmetic, and the union with `i64`, are in `number.rs`; text is in
//! `numeral.rs`.

use std::cmp::Ordering;
use std::fmt;

/// The number of significant digits a decimal holds at most.
pub const MAX_DIGITS: u32 = 18;
/// The power of ten of the first digit of the smallest magnitude, 1E-43.
pub const MIN_MAGNITUDE: i32 = -43;
/// The power of ten of the first digit of the largest magnitudes, those below 1E47.
pub const MAX_MAGNITUDE: i32 = 46;

/// The powers of ten that fit a `u64`: 10^0 to 10^19.
pub(crate) const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Why an arithmetic result, or a conversion to a number, does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticError {
    /// The magnitude of the result is 1E47 or more.
    Overflow,
    /// The result is not zero and its magnitude is below 1E-43.
    Underflow,
    /// The exact result needs more than 18 significant digits and is not an `i64`.
    Inexact,
    /// An operand is not a number: text that is not canonical, a boolean, NaN, an infinity.
    NotANumber,
    /// The stored bytes of an operand are not an encoded value.
    Malformed,
}

impl fmt::Display for ArithmeticError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overflow => {
                "a number of 1E47 or more in magnitude: use smaller ones, or for a subscript its text"
            }
            Self::Underflow => {
                "a number below 1E-43 in magnitude: use larger ones, or for a subscript its text"
            }
            Self::Inexact => {
                "the exact result needs more than 18 digits; round the operands first or store a double"
            }
            Self::NotANumber => "an operand is not a number; set a number before doing arithmetic",
            Self::Malformed => "the stored value is malformed; verify the database",
        })
    }
}

impl std::error::Error for ArithmeticError {}

/// A decimal number of at most 18 significant digits, exact, in one canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Decimal {
    coefficient: i64,
    exponent: i8,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { coefficient: 0, exponent: 0 };

    /// Makes the decimal `coefficient * 10^exponent`, dropping trailing zeros.
    ///
    /// # Errors
    /// `Inexact` if more than 18 digits are significant, `Overflow` or `Underflow` if the value is
    /// out of range.
    pub fn new(coefficient: i128, exponent: i32) -> Result<Decimal, ArithmeticError> {
        if coefficient == 0 {
            return Ok(Self::ZERO);
        }
        let (magnitude, exponent) = strip_zeros(coefficient.unsigned_abs(), exponent);
        let digits = digit_count(magnitude);
        let first = i64::from(exponent) + i64::from(digits) - 1;
        if first > i64::from(MAX_MAGNITUDE) {
            return Err(ArithmeticError::Overflow);
        }
        if first < i64::from(MIN_MAGNITUDE) {
            return Err(ArithmeticError::Underflow);
        }
        if digits > MAX_DIGITS {
            return Err(ArithmeticError::Inexact);
        }
        let magnitude = magnitude as i64;
        Ok(Decimal {
            coefficient: if coefficient < 0 { -magnitude } else { magnitude },
            exponent: exponent as i8,
        })
    }

    /// Makes the decimal of `coefficient * 10^exponent`, dropping digits after the 18th and
    /// values below 1E-43, as M does.
    ///
    /// # Errors
    /// `Overflow` if the magnitude is 1E47 or more.
    pub fn new_truncating(coefficient: i128, exponent: i32) -> Result<Decimal, ArithmeticError> {
        let excess = digit_count(coefficient.unsigned_abs()).saturating_sub(MAX_DIGITS);
        let kept = coefficient / 10i128.pow(excess);
        match Self::new(kept, exponent.saturating_add(excess as i32)) {
            Err(ArithmeticError::Underflow) => Ok(Self::ZERO),
            other => other,
        }
    }

    /// The signed digits, without trailing zeros.
    #[inline]
    pub fn coefficient(self) -> i64 {
        self.coefficient
    }

    /// The power of ten of the last digit, from -60 to 46.
    #[inline]
    pub fn exponent(self) -> i32 {
        i32::from(self.exponent)
    }

    /// The value as an integer, if it is one and fits.
    pub fn to_i64(self) -> Option<i64> {
        if self.exponent == 0 {
            return Some(self.coefficient);
        }
        if !(0..=18).contains(&self.exponent) {
            return None;
        }
        self.coefficient.checked_mul(POWERS[self.exponent as usize] as i64)
    }

    /// Compares exactly with an integer.
    pub fn cmp_i64(self, other: i64) -> Ordering {
        cmp_parts(self.coefficient, self.exponent(), other, 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp_parts(self.coefficient, self.exponent(), other.coefficient, other.exponent())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}E{}", self.coefficient, self.exponent)
    }
}

/// Counts the decimal digits of `magnitude`; zero has none.
#[inline]
pub(crate) fn digit_count(magnitude: u128) -> u32 {
    match u64::try_from(magnitude) {
        Ok(small) => small.checked_ilog10().map_or(0, |log| log + 1),
        Err(_) => magnitude.ilog10() + 1,
    }
}

fn strip_zeros(mut magnitude: u128, mut exponent: i32) -> (u128, i32) {
    while u64::try_from(magnitude).is_err() && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        exponent = exponent.saturating_add(1);
    }
    let Ok(mut small) = u64::try_from(magnitude) else {
        return (magnitude, exponent);
    };
    while small != 0 && small % 10 == 0 {
        small /= 10;
        exponent = exponent.saturating_add(1);
    }
    (u128::from(small), exponent)
}

/// Compares `a * 10^a_exponent` with `b * 10^b_exponent`.
pub(crate) fn cmp_parts(a: i64, a_exponent: i32, b: i64, b_exponent: i32) -> Ordering {
    let signs = a.signum().cmp(&b.signum());
    if signs.is_ne() || a == 0 {
        return signs;
    }
    let order = leading(a, a_exponent).cmp(&leading(b, b_exponent));
    if a < 0 {
        order.reverse()
    } else {
        order
    }
}

/// The position of the first digit and the digits aligned to 19 places: order by value.
fn leading(coefficient: i64, exponent: i32) -> (i32, u64) {
    let magnitude = coefficient.unsigned_abs();
    let digits = digit_count(u128::from(magnitude));
    (exponent + digits as i32, magnitude * POWERS[19 - digits as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn construction_is_canonical_and_bounded() {
        assert_eq!(Decimal::new(1500, -3), Decimal::new(15, -1));
        assert_eq!(Decimal::new(0, 99), Ok(Decimal::ZERO));
        assert_eq!(Decimal::new(1, 47), Err(ArithmeticError::Overflow));
        assert_eq!(Decimal::new(1, -44), Err(ArithmeticError::Underflow));
        assert_eq!(Decimal::new(1_234_567_890_123_456_789, 0), Err(ArithmeticError::Inexact));
        assert_eq!(Decimal::new(i128::MAX, i32::MAX), Err(ArithmeticError::Overflow));
        let smallest = Decimal::new(123_456_789_012_345_678, -60).unwrap();
        assert_eq!(smallest.exponent(), -60);
    }

    #[test]
    fn truncation_drops_digits_toward_zero() {
        let cut = Decimal::new_truncating(-1_234_567_890_123_456_789, 0).unwrap();
        assert_eq!((cut.coefficient(), cut.exponent()), (-123_456_789_012_345_678, 1));
        assert_eq!(Decimal::new_truncating(9, -44), Ok(Decimal::ZERO));
    }

    #[test]
    fn comparison_with_integers_is_exact_at_the_ends() {
        let above = Decimal::new(922_337_203_685_477_581, 1).unwrap();
        assert_eq!(above.cmp_i64(i64::MAX), Ordering::Greater);
        let below = Decimal::new(-922_337_203_685_477_581, 1).unwrap();
        assert_eq!(below.cmp_i64(i64::MIN), Ordering::Less);
        assert_eq!(Decimal::new(5, -1).unwrap().cmp_i64(0), Ordering::Greater);
        assert_eq!(Decimal::new(-5, -1).unwrap().cmp_i64(0), Ordering::Less);
        assert_eq!(Decimal::new(12, 1).unwrap().cmp_i64(120), Ordering::Equal);
    }
}
