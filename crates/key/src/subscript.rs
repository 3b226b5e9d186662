//! One subscript: a number or a byte string, and their order.
//!
//! A canonical numeric string *is* the number: `from_bytes(b"5")` and `from(5)` are equal. The
//! order is that of M: the empty string, numbers by value, other strings by unsigned bytes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::number::Number;
use crate::numeral::parse_canonical;

/// The most subscripts of a key.
pub const MAX_SUBSCRIPTS: usize = 255;

/// A subscript of a key, borrowed from the key where possible.
///
/// `Bytes` never holds a canonical number if made by the functions of this crate; the key encoder
/// turns such bytes into the number whoever made them.
#[derive(Clone)]
pub enum Subscript<'a> {
    /// An integer or decimal.
    Number(Number),
    /// Any other byte string, also the empty one.
    Bytes(Cow<'a, [u8]>),
}

/// A subscript that owns its bytes.
pub type SubscriptBuf = Subscript<'static>;

impl<'a> Subscript<'a> {
    /// Takes a byte string as subscript: a number if it is canonical, a string otherwise.
    pub fn from_bytes(bytes: &'a [u8]) -> Subscript<'a> {
        match parse_canonical(bytes) {
            Some(number) => Subscript::Number(number),
            None => Subscript::Bytes(Cow::Borrowed(bytes)),
        }
    }

    /// Copies borrowed bytes.
    pub fn into_owned(self) -> SubscriptBuf {
        match self {
            Subscript::Number(number) => Subscript::Number(number),
            Subscript::Bytes(bytes) => Subscript::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }

    /// Whether this is the empty string, which sorts before everything.
    pub fn is_empty(&self) -> bool {
        matches!(self, Subscript::Bytes(bytes) if bytes.is_empty())
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Subscript::Number(number) => Some(*number),
            Subscript::Bytes(_) => None,
        }
    }

    /// The integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The text of the subscript as an M program sees it: a number's canonical text, or the bytes.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        match self {
            Subscript::Number(number) => Cow::Owned(number.to_string().into_bytes()),
            Subscript::Bytes(bytes) => Cow::Borrowed(bytes),
        }
    }

    fn normalised(&self) -> Subscript<'_> {
        match self {
            Subscript::Number(number) => Subscript::Number(*number),
            Subscript::Bytes(bytes) => Subscript::from_bytes(bytes),
        }
    }
}

impl From<i64> for SubscriptBuf {
    fn from(int: i64) -> SubscriptBuf {
        Subscript::Number(Number::Int(int))
    }
}

impl From<Number> for SubscriptBuf {
    fn from(number: Number) -> SubscriptBuf {
        Subscript::Number(number)
    }
}

impl<'a> From<&'a str> for Subscript<'a> {
    fn from(text: &'a str) -> Subscript<'a> {
        Subscript::from_bytes(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Subscript<'a> {
    fn from(bytes: &'a [u8]) -> Subscript<'a> {
        Subscript::from_bytes(bytes)
    }
}

impl Ord for Subscript<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.normalised(), other.normalised()) {
            (Subscript::Number(a), Subscript::Number(b)) => a.cmp(&b),
            (Subscript::Bytes(a), Subscript::Bytes(b)) => a.cmp(&b),
            (Subscript::Bytes(a), Subscript::Number(_)) if a.is_empty() => Ordering::Less,
            (Subscript::Number(_), Subscript::Bytes(b)) if b.is_empty() => Ordering::Greater,
            (Subscript::Number(_), Subscript::Bytes(_)) => Ordering::Less,
            (Subscript::Bytes(_), Subscript::Number(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Subscript<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Subscript<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Subscript<'_> {}

impl Hash for Subscript<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.normalised() {
            Subscript::Number(number) => number.hash(state),
            Subscript::Bytes(bytes) => bytes.hash(state),
        }
    }
}

impl fmt::Display for Subscript<'_> {
    /// Writes the subscript as in the text form of a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subscript::Number(number) => fmt::Display::fmt(number, f),
            Subscript::Bytes(bytes) => crate::quoted::write_quoted(bytes, f),
        }
    }
}

impl fmt::Debug for Subscript<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
