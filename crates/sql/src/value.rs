//! Values of SQL, owned, and the conversions that a column's affinity makes of them.
//!
//! The conversions are SQLite's, since its planner compares by them: what a column stores, and what an index is asked for, must be
//! what SQLite would have stored and asked for.
//!
//! Invariant: converting twice changes nothing.

use std::cmp::Ordering;

pub use perilune_sqlite::ValueRef;

/// A value that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Value {
    /// Borrows the value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(*integer),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text),
            Value::Blob(blob) => ValueRef::Blob(blob),
        }
    }

    /// Copies a value.
    #[must_use]
    pub fn of(value: ValueRef<'_>) -> Value {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(integer) => Value::Integer(integer),
            ValueRef::Real(real) => Value::Real(real),
            ValueRef::Text(text) => Value::Text(text.to_vec()),
            ValueRef::Blob(blob) => Value::Blob(blob.to_vec()),
        }
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Value {
        Value::Integer(integer)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Value {
        Value::Real(real)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.as_bytes().to_vec())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text.into_bytes())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value::Blob(bytes.to_vec())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// What a column makes of the values that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    Integer,
    Real,
    Numeric,
    Text,
    /// Nothing is converted.
    Blob,
}

impl Affinity {
    /// By the words of a declared type, as SQLite has it.
    pub(crate) fn of(declared: &str) -> Affinity {
        let upper = declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| upper.contains(word));
        if has(&["INT"]) {
            Affinity::Integer
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            Affinity::Text
        } else if upper.is_empty() || has(&["BLOB"]) {
            Affinity::Blob
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            Affinity::Real
        } else {
            Affinity::Numeric
        }
    }

    /// Whether it makes numbers of texts.
    pub(crate) fn is_numeric(self) -> bool {
        matches!(self, Affinity::Integer | Affinity::Real | Affinity::Numeric)
    }

    /// The value as a column of this affinity stores it.
    pub(crate) fn apply(self, value: Value) -> Value {
        match (self, value) {
            (Affinity::Integer | Affinity::Numeric, Value::Real(real)) => integral(real),
            (Affinity::Real, Value::Integer(integer)) => Value::Real(integer as f64),
            (Affinity::Integer | Affinity::Numeric | Affinity::Real, Value::Text(text)) => {
                match number(&text) {
                    None => Value::Text(text),
                    Some(Value::Real(real)) if self != Affinity::Real => integral(real),
                    Some(Value::Integer(integer)) if self == Affinity::Real => Value::Real(integer as f64),
                    Some(number) => number,
                }
            }
            (Affinity::Text, Value::Integer(integer)) => Value::Text(integer.to_string().into_bytes()),
            (Affinity::Text, Value::Real(real)) => Value::Text(real_text(real).into_bytes()),
            (_, value) => value,
        }
    }
}

/// A double as an integer, if it is one.
pub(crate) fn integral(real: f64) -> Value {
    // NB: as SQLite, which leaves the outermost integers out, where doubles lie apart.
    let integer = real as i64;
    if integer as f64 == real && integer > i64::MIN && integer < i64::MAX {
        Value::Integer(integer)
    } else {
        Value::Real(real)
    }
}

/// The number that a whole text is, blanks around it aside.
pub(crate) fn number(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?.trim_matches(|c: char| c.is_ascii_whitespace());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    text.parse::<f64>().ok().map(Value::Real)
}

/// A double as SQLite writes it: 15 digits, always with a point.
#[must_use]
pub fn real_text(real: f64) -> String {
    if real.is_infinite() {
        return if real > 0.0 { "Inf".into() } else { "-Inf".into() };
    }
    let text = format!("{real:.14e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let with_zero = |fraction: &str| if fraction.is_empty() { "0".to_owned() } else { fraction.to_owned() };
    if !(-4..15).contains(&exponent) {
        let (first, fraction) = digits.split_at(1);
        let sign_of = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{}e{sign_of}{:02}", with_zero(fraction), exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len()));
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{sign}{whole}.{}", with_zero(fraction))
}

/// The order of texts as subscripts of nodes: the empty one, numbers by value, the rest by bytes. It is the collation `NODE`.
pub(crate) fn node_order(text: &[u8], other: &[u8]) -> Ordering {
    use perilune::Subscript;
    match (Subscript::from_bytes(text), Subscript::from_bytes(other)) {
        _ if text.is_empty() || other.is_empty() => text.len().min(1).cmp(&other.len().min(1)),
        (Subscript::Number(a), Subscript::Number(b)) => a.cmp(&b),
        (Subscript::Number(_), Subscript::Bytes(_)) => Ordering::Less,
        (Subscript::Bytes(_), Subscript::Number(_)) => Ordering::Greater,
        (Subscript::Bytes(a), Subscript::Bytes(b)) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinities_convert_as_sqlite_does() {
        let text = |text: &str| Value::from(text);
        for (affinity, given, stored) in [
            (Affinity::Integer, text(" 12 "), Value::Integer(12)),
            (Affinity::Integer, text("1.0"), Value::Integer(1)),
            (Affinity::Integer, text("1.5"), Value::Real(1.5)),
            (Affinity::Integer, text("1x"), text("1x")),
            (Affinity::Integer, text("e"), text("e")),
            (Affinity::Integer, Value::Real(9.3e18), Value::Real(9.3e18)),
            (Affinity::Real, text("3"), Value::Real(3.0)),
            (Affinity::Real, Value::Integer(3), Value::Real(3.0)),
            (Affinity::Text, Value::Integer(3), text("3")),
            (Affinity::Text, Value::Real(0.1), text("0.1")),
            (Affinity::Text, Value::Real(1e20), text("1.0e+20")),
            (Affinity::Text, Value::Real(123456.0), text("123456.0")),
            (Affinity::Text, Value::Real(-1.25e-7), text("-1.25e-07")),
            (Affinity::Blob, text("3"), text("3")),
        ] {
            let once = affinity.apply(given);
            assert_eq!(once, stored);
            assert_eq!(affinity.apply(once), stored);
        }
        assert_eq!(Affinity::of("VARCHAR(40)"), Affinity::Text);
        assert_eq!(Affinity::of("FLOAT"), Affinity::Real);
        assert_eq!(Affinity::of("BOOLEAN"), Affinity::Numeric);
    }

    #[test]
    fn texts_of_nodes_have_numbers_first() {
        let mut texts = ["b", "10", "9", "", "-1", "a", "09", "1.5"];
        texts.sort_by(|a, b| node_order(a.as_bytes(), b.as_bytes()));
        assert_eq!(texts, ["", "-1", "1.5", "9", "10", "09", "a", "b"]);
    }
}
