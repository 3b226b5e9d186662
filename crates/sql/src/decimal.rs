//! Decimals: what a column of the type DECIMAL takes, and sums, differences, products and quotients without rounding.
//!
//! SQLite has integers and doubles, and no decimals. A double keeps each decimal of 15 digits: it is written back as the one that
//! it was read from, and two of them compare as their doubles do. So a decimal with a fraction is a double here, a whole one an
//! integer, and everything that compares, sorts and indexes numbers is right as it is. What doubles get wrong is arithmetic: that is
//! done here, on integers and powers of ten (`docs/design/0051-decimals.md`).
//!
//! ```text
//! 0.1 + 0.2 = 0.3     1 / 10^1 + 2 / 10^1 = 3 / 10^1
//! ```
//!
//! Invariants
//! - An answer is the exact one, or an error; only a quotient is rounded, and what is calculated with other doubles.
//! - A double that is no decimal of 15 digits is calculated with as SQLite does.

use crate::error::{Error, Result, SqlState};
use crate::value::{number, Value, ValueRef};

/// Digits of a decimal with a fraction, which a double keeps.
pub(crate) const DIGITS: u32 = 15;
/// Digits of a whole one.
pub(crate) const WHOLE_DIGITS: u32 = 18;
/// Places behind the point that are calculated with; what has more is a double.
const PLACES: u32 = 40;

/// What a column of decimals takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// How many digits at most.
    pub(crate) precision: u32,
    /// How many of them behind the point; none: any.
    pub(crate) scale: Option<u32>,
}

impl Digits {
    /// By a declared type: `DECIMAL`, `DECIMAL(10)`, `DECIMAL(10, 2)`, `NUMERIC(10, 2)`. A NUMERIC without digits is SQLite's.
    pub(crate) fn of(declared: &str) -> Option<Digits> {
        let text: String = declared.to_ascii_lowercase().split_whitespace().collect();
        let (name, digits) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, digits)) => (name, Some(digits)),
            None => (&text[..], None),
        };
        let Some(digits) = digits else {
            let any = Digits { precision: WHOLE_DIGITS, scale: None };
            return ["decimal", "dec"].contains(&name).then_some(any);
        };
        if !["decimal", "dec", "numeric"].contains(&name) {
            return None;
        }
        let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
        let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
        Some(Digits { precision, scale: Some(scale) })
    }

    /// Whether there are columns of so many digits.
    pub(crate) fn is_kept(self) -> bool {
        (1..=WHOLE_DIGITS).contains(&self.precision) && self.scale.is_none_or(|scale| scale <= self.precision)
    }

    /// Fails for a value that a column of these digits does not take as it is.
    pub(crate) fn check(self, value: &Value, column: &str) -> Result<()> {
        let decimal = match value {
            Value::Null => return Ok(()),
            Value::Integer(_) | Value::Real(_) => Decimal::of(value.as_ref()),
            Value::Text(text) if number(text).is_some() => None,
            Value::Text(_) | Value::Blob(_) => {
                let what = format!("{column} is {self}, and takes numbers alone");
                return Err(Error::new(SqlState::TYPE, what));
            }
        };
        let fits = |decimal: &Decimal| {
            let whole = decimal.digits().saturating_sub(decimal.places);
            decimal.is_kept()
                && decimal.places <= self.scale.unwrap_or(DIGITS)
                && whole <= self.precision - self.scale.unwrap_or(0)
        };
        if decimal.is_some_and(|decimal| fits(&decimal)) {
            return Ok(());
        }
        let told = match value {
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => real.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Value::Null | Value::Blob(_) => String::new(),
        };
        let what = format!(
            "{told} does not fit into {column}, which is {self}: of {DIGITS} digits at most where there is a fraction; \
             round(value, places) says what is lost"
        );
        Err(Error::new(SqlState::RANGE, what))
    }
}

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.scale {
            Some(scale) => write!(f, "DECIMAL({},{scale})", self.precision),
            None => f.write_str("DECIMAL"),
        }
    }
}

/// A value as a column of decimals stores it; what is none stays what it is, for the check to find.
pub(crate) fn stored(value: Value) -> Value {
    let decimal = match &value {
        Value::Text(text) => Decimal::of_text(text),
        Value::Real(_) => Decimal::of(value.as_ref()),
        _ => None,
    };
    let kept = decimal.filter(Decimal::is_kept).and_then(|decimal| decimal.to_value().ok());
    match kept {
        Some(Value::Real(real)) => crate::value::integral(real),
        Some(kept) => kept,
        None => value,
    }
}

/// `mantissa / 10^places`, without zeros at the end of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: i128,
    places: u32,
}

impl Decimal {
    /// Zero.
    pub(crate) const ZERO: Decimal = Decimal { mantissa: 0, places: 0 };

    fn new(mantissa: i128, places: u32) -> Decimal {
        let mut decimal = Decimal { mantissa, places };
        while decimal.places > 0 && decimal.mantissa % 10 == 0 {
            decimal.mantissa /= 10;
            decimal.places -= 1;
        }
        decimal
    }

    /// The decimal that a number is; none: a double that keeps none, or no number.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Decimal> {
        match value {
            ValueRef::Integer(integer) => Some(Decimal::new(integer.into(), 0)),
            ValueRef::Real(real) => {
                let text = format!("{real:.14e}");
                (text.parse::<f64>() == Ok(real)).then(|| Decimal::of_text(text.as_bytes())).flatten()
            }
            _ => None,
        }
    }

    /// The decimal that a text is, exactly.
    fn of_text(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?.trim_matches(|c: char| c.is_ascii_whitespace());
        number(text.as_bytes())?;
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok().or_else(|| {
            // A sign alone, or nothing, before the point: `.0` and `-.0`.
            matches!(whole, "" | "+" | "-").then_some(0)
        })?;
        let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if places < 0 {
            let factor = 10_i128.checked_pow(places.unsigned_abs())?;
            return Some(Decimal::new(mantissa.checked_mul(factor)?, 0));
        }
        let decimal = Decimal::new(mantissa, places.unsigned_abs());
        (decimal.places <= PLACES).then_some(decimal)
    }

    fn digits(&self) -> u32 {
        self.mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
    }

    /// Whether SQLite has a number that is it.
    fn is_kept(&self) -> bool {
        self.digits() <= DIGITS || self.places == 0 && i64::try_from(self.mantissa).is_ok()
    }

    fn scaled(self, places: u32) -> Option<i128> {
        self.mantissa.checked_mul(10_i128.checked_pow(places - self.places)?)
    }

    /// Both as integers, over the same power of ten.
    fn aligned(self, other: Decimal) -> Option<(i128, i128, u32)> {
        let places = self.places.max(other.places);
        Some((self.scaled(places)?, other.scaled(places)?, places))
    }

    /// The sum.
    pub(crate) fn plus(self, other: Decimal) -> Option<Decimal> {
        let (a, b, places) = self.aligned(other)?;
        Some(Decimal::new(a.checked_add(b)?, places))
    }

    pub(crate) fn minus(self, other: Decimal) -> Option<Decimal> {
        self.plus(Decimal { mantissa: other.mantissa.checked_neg()?, ..other })
    }

    fn times(self, other: Decimal) -> Option<Decimal> {
        Some(Decimal::new(self.mantissa.checked_mul(other.mantissa)?, self.places + other.places))
    }

    /// The double that is nearest to the quotient.
    pub(crate) fn over(self, other: Decimal) -> f64 {
        let exact = self.aligned(other).and_then(|(a, b, _)| {
            let common = common(a.unsigned_abs(), b.unsigned_abs());
            let (a, b) = (a / i128::try_from(common).ok()?, b / i128::try_from(common).ok()?);
            // NB: beyond that a double is not the integer.
            (a.unsigned_abs() < 1 << 53 && b.unsigned_abs() < 1 << 53).then(|| a as f64 / b as f64)
        });
        exact.unwrap_or_else(|| self.to_real() / other.to_real())
    }

    /// Rounded to so many places, a half away from zero.
    pub(crate) fn rounded(self, places: u32) -> Decimal {
        if self.places <= places {
            return self;
        }
        let Some(unit) = 10_i128.checked_pow(self.places - places) else { return Decimal::ZERO };
        let (whole, rest) = (self.mantissa / unit, self.mantissa % unit);
        let up = i128::from(rest.unsigned_abs() >= unit.unsigned_abs() / 2) * rest.signum();
        Decimal::new(whole + up, places)
    }

    /// The nearest double.
    pub(crate) fn to_real(self) -> f64 {
        format!("{}e-{}", self.mantissa, self.places).parse().unwrap_or(f64::NAN)
    }

    /// The integer that it is.
    ///
    /// # Errors
    /// `RANGE` if it is none of SQLite's.
    pub(crate) fn to_whole(self) -> Result<Value> {
        let integer = i64::try_from(self.mantissa).ok().filter(|_| self.places == 0);
        integer.map(Value::Integer).ok_or_else(|| Error::new(SqlState::RANGE, "integer overflow"))
    }

    /// As SQLite has it: a double, or an integer if it has more digits than that keeps.
    ///
    /// # Errors
    /// `RANGE` if it has neither.
    pub(crate) fn to_value(self) -> Result<Value> {
        if self.digits() <= DIGITS {
            return Ok(Value::Real(self.to_real()));
        }
        let integer = i64::try_from(self.mantissa).ok().filter(|_| self.places == 0);
        integer.map(Value::Integer).ok_or_else(too_long)
    }
}

/// The greatest number that divides both; 1 if there is none.
fn common(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// What is told of an answer that is not kept.
pub(crate) fn too_long() -> Error {
    let what = format!(
        "the exact answer has more than {DIGITS} digits and a fraction: round() what it is made of, or calculate with \
         doubles, by CAST(... AS REAL)"
    );
    Error::new(SqlState::RANGE, what)
}

/// What is calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Plus,
    Minus,
    Times,
    Over,
}

/// The number that an operand is, as SQLite's operators take it: of a text, what it begins with.
pub(crate) fn operand(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let text = &text[blank..];
            let of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            let end = text.iter().position(|byte| !of_number(byte)).unwrap_or(text.len()).min(64);
            let first = (0..=end).rev().find_map(|end| number(&text[..end]));
            first.unwrap_or(Value::Integer(0))
        }
        value => Value::of(value),
    }
}

/// Calculates with two numbers.
///
/// # Errors
/// `RANGE`, if the answer is a decimal that has too many digits.
pub(crate) fn calculate(operation: Operation, a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value> {
    let (a, b) = (operand(a), operand(b));
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let real = |value: &Value| match value {
        Value::Integer(integer) => *integer as f64,
        Value::Real(real) => *real,
        _ => 0.0,
    };
    if operation == Operation::Over && real(&b) == 0.0 {
        return Ok(Value::Null);
    }
    if let (Some(x), Some(y)) = (Decimal::of(a.as_ref()), Decimal::of(b.as_ref())) {
        let exact = match operation {
            Operation::Plus => x.plus(y),
            Operation::Minus => x.minus(y),
            Operation::Times => x.times(y),
            Operation::Over => return Ok(real_or_null(x.over(y))),
        };
        let exact = exact.ok_or_else(too_long)?;
        return match (&a, &b, i64::try_from(exact.mantissa)) {
            (Value::Integer(_), Value::Integer(_), Ok(integer)) => Ok(Value::Integer(integer)),
            _ => exact.to_value(),
        };
    }
    Ok(real_or_null(match operation {
        Operation::Plus => real(&a) + real(&b),
        Operation::Minus => real(&a) - real(&b),
        Operation::Times => real(&a) * real(&b),
        Operation::Over => real(&a) / real(&b),
    }))
}

/// SQLite has no NaN.
fn real_or_null(real: f64) -> Value {
    if real.is_nan() {
        Value::Null
    } else {
        Value::Real(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Decimal {
        Decimal::of_text(text.as_bytes()).expect("a decimal")
    }

    #[test]
    fn texts_are_decimals_exactly() {
        for (text, mantissa, places) in [
            ("0.10", 1, 1),
            ("-12.50", -125, 1),
            ("100", 100, 0),
            (" 1.5e3 ", 1500, 0),
            ("1e-3", 1, 3),
            (".5", 5, 1),
            ("-0.05", -5, 2),
            ("0.0", 0, 0),
            ("-.0", 0, 0),
            ("123456789012345678.9", 1_234_567_890_123_456_789, 1),
        ] {
            assert_eq!(of(text), Decimal { mantissa, places }, "{text}");
        }
        for text in ["", "x", "1x", "1e99", "0x10", "1e-99", "."] {
            assert_eq!(Decimal::of_text(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Decimal::of(ValueRef::Real(0.1 + 0.2)), None);
        assert_eq!(Decimal::of(ValueRef::Real(f64::INFINITY)), None);
    }

    #[test]
    fn a_type_says_how_many_digits() {
        let digits = |precision, scale| Some(Digits { precision, scale });
        assert_eq!(Digits::of("DECIMAL ( 10 , 2 )"), digits(10, Some(2)));
        assert_eq!(Digits::of("numeric(8,0)"), digits(8, Some(0)));
        assert_eq!(Digits::of("DEC(5)"), digits(5, Some(0)));
        assert_eq!(Digits::of("DECIMAL"), digits(18, None));
        assert_eq!((Digits::of("NUMERIC"), Digits::of("INT"), Digits::of("DECIMAL(x)")), (None, None, None));
        assert!(!Digits::of("DECIMAL(38,10)").expect("digits").is_kept());
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (text, places, rounded) in
            [("1.005", 2, "1.01"), ("-2.5", 0, "-3"), ("2.4999", 2, "2.5"), ("0.04", 1, "0"), ("7", 3, "7")]
        {
            assert_eq!(of(text).rounded(places), of(rounded), "{text}");
        }
    }

    #[test]
    fn quotients_are_the_nearest_doubles() {
        assert_eq!(of("0.3").over(of("0.1")), 3.0);
        assert_eq!(of("10").over(of("4")), 2.5);
        assert_eq!(of("1").over(of("3")), 1.0 / 3.0);
    }
}
