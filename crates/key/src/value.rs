//! Typed values and their encoding.
//!
//! An encoded value is a tag byte and a payload that reaches to the end: `5` is 11 05, the string `hi` is 07 68 69.
//! All tags: `docs/format/values.md`.
//!
//! Invariants
//! - Equal values of one type have equal bytes: numbers take the fewest bytes, and an integral decimal that fits an
//!   `i64` is stored as an integer. Doubles count as equal if their bits are.
//! - A string is stored as given, even if it is a canonical number.

use std::fmt;

use crate::append::append;
use crate::decimal::{ArithmeticError, Decimal};
use crate::number::Number;
use crate::numeral::parse_canonical;

const TAG_NULL: u8 = 0x00;
const TAG_FALSE: u8 = 0x01;
const TAG_TRUE: u8 = 0x02;
const TAG_EMPTY_LIST: u8 = 0x03;
const TAG_EMPTY_MAP: u8 = 0x04;
const TAG_DOUBLE: u8 = 0x05;
const TAG_DECIMAL: u8 = 0x06;
const TAG_STRING: u8 = 0x07;
const TAG_RECORD: u8 = 0x08;
/// An integer of n bytes, 0 to 8, has the tag `TAG_INT + n`.
const TAG_INT: u8 = 0x10;
const TAG_INT_LAST: u8 = 0x18;

/// A value that borrows its string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// Present, but without content.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A decimal that is not an `i64`.
    Decimal(Decimal),
    /// A double, any bits.
    Double(f64),
    /// A byte string.
    String(&'a [u8]),
    /// A list without elements (elements are child nodes).
    EmptyList,
    /// A map without entries (entries are child nodes).
    EmptyMap,
    /// A row's fields, encoded: see [`crate::Record`].
    Record(&'a [u8]),
}

/// A value that owns its string.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Present, but without content.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A decimal that is not an `i64`.
    Decimal(Decimal),
    /// A double, any bits.
    Double(f64),
    /// A byte string.
    String(Vec<u8>),
    /// A list without elements (elements are child nodes).
    EmptyList,
    /// A map without entries (entries are child nodes).
    EmptyMap,
    /// A row's fields, encoded: see [`crate::Record`].
    Record(Vec<u8>),
}

/// The bytes are not an encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueError;

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed value; verify the database")
    }
}

impl std::error::Error for ValueError {}

/// Encodes an integer; returns the length, at most 9. Bytes after it are unspecified.
#[inline]
pub fn encode_int_value(int: i64, out: &mut [u8; 16]) -> usize {
    let length = int_len(int);
    out[0] = TAG_INT + length as u8;
    out[1..9].copy_from_slice(&int.to_le_bytes());
    1 + length
}

/// How many bytes `int` takes in two's complement; 0 takes none.
#[inline]
fn int_len(int: i64) -> usize {
    if int == 0 {
        return 0;
    }
    // Folding negatives leaves the significant bits; one more is for the sign.
    let bits = 65 - (int ^ (int >> 63)).leading_zeros();
    bits.div_ceil(8) as usize
}

#[inline]
fn read_int(bytes: &[u8]) -> Result<i64, ValueError> {
    let length = bytes.len();
    if length == 0 {
        return Ok(0);
    }
    // Loads of constant size that overlap beat a copy of variable length.
    let high = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (_, _, [_, _, _, _, _, _, _, _, _, ..]) => return Err(ValueError),
        (Some(first), Some(last), _) => {
            let low = u64::from(u32::from_le_bytes(*first)) << (64 - 8 * length);
            u64::from(u32::from_le_bytes(*last)) << 32 | low
        }
        (_, _, [a, b, c]) => u64::from(*a) << 40 | u64::from(*b) << 48 | u64::from(*c) << 56,
        (_, _, [a, b]) => u64::from(*a) << 48 | u64::from(*b) << 56,
        (_, _, [a]) => u64::from(*a) << 56,
        _ => 0,
    };
    let int = (high as i64) >> (64 - 8 * length);
    if int_len(int) == length {
        Ok(int)
    } else {
        Err(ValueError)
    }
}

impl<'a> ValueRef<'a> {
    /// Decodes a value.
    ///
    /// # Errors
    /// [`ValueError`] if the bytes are not what the encoder writes.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<ValueRef<'a>, ValueError> {
        // NB: the most frequent kind comes first, and in place. As one arm of many its value would be built in memory: its tag
        // stored as a byte and at once loaded as a part of a word, for which the processor has to wait.
        match bytes {
            [tag @ TAG_INT..=TAG_INT_LAST, payload @ ..] if payload.len() == usize::from(tag - TAG_INT) => {
                read_int(payload).map(ValueRef::Int)
            }
            _ => ValueRef::decode_other(bytes),
        }
    }

    /// The integer that the bytes are the encoding of; `None` for anything else, which [`ValueRef::decode`] tells apart.
    #[inline]
    #[must_use]
    pub fn decode_int(bytes: &[u8]) -> Option<i64> {
        match bytes {
            [tag @ TAG_INT..=TAG_INT_LAST, payload @ ..] if payload.len() == usize::from(tag - TAG_INT) => {
                read_int(payload).ok()
            }
            _ => None,
        }
    }

    /// The string that the bytes are the encoding of; `None` for anything else, which [`ValueRef::decode`] tells apart.
    #[inline]
    #[must_use]
    pub fn decode_string(bytes: &'a [u8]) -> Option<&'a [u8]> {
        match bytes {
            [TAG_STRING, payload @ ..] => Some(payload),
            _ => None,
        }
    }

    /// Decodes what is no integer.
    fn decode_other(bytes: &'a [u8]) -> Result<ValueRef<'a>, ValueError> {
        let (&tag, payload) = bytes.split_first().ok_or(ValueError)?;
        match tag {
            TAG_STRING => Ok(ValueRef::String(payload)),
            TAG_RECORD => Ok(ValueRef::Record(payload)),
            TAG_DOUBLE => {
                let bytes = payload.try_into().map_err(|_| ValueError)?;
                Ok(ValueRef::Double(f64::from_le_bytes(bytes)))
            }
            TAG_DECIMAL => decode_decimal(payload),
            _ if !payload.is_empty() => Err(ValueError),
            TAG_NULL => Ok(ValueRef::Null),
            TAG_FALSE => Ok(ValueRef::Bool(false)),
            TAG_TRUE => Ok(ValueRef::Bool(true)),
            TAG_EMPTY_LIST => Ok(ValueRef::EmptyList),
            TAG_EMPTY_MAP => Ok(ValueRef::EmptyMap),
            _ => Err(ValueError),
        }
    }

    /// Appends the encoded value.
    #[inline(always)]
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        if let ValueRef::String(bytes) = self {
            out.push(TAG_STRING);
            append(out, bytes);
            return;
        }
        self.encode_other(out);
    }

    /// Appends anything but a string.
    #[inline]
    fn encode_other(&self, out: &mut Vec<u8>) {
        if let ValueRef::Record(fields) = self {
            out.push(TAG_RECORD);
            out.extend_from_slice(fields);
            return;
        }
        let mut code = [0; 16];
        let length = self.encode_fixed(&mut code);
        // A copy of constant size, cut, beats one of 1 to 10 bytes.
        let end = out.len() + length;
        out.extend_from_slice(&code);
        out.truncate(end);
    }

    /// Encodes anything but a string or a record; returns the length, at most 10.
    #[inline]
    fn encode_fixed(&self, out: &mut [u8; 16]) -> usize {
        let tag = match *self {
            ValueRef::Null => TAG_NULL,
            ValueRef::Bool(false) => TAG_FALSE,
            ValueRef::Bool(true) => TAG_TRUE,
            ValueRef::EmptyList => TAG_EMPTY_LIST,
            ValueRef::EmptyMap => TAG_EMPTY_MAP,
            ValueRef::String(_) => TAG_STRING,
            ValueRef::Record(_) => TAG_RECORD,
            ValueRef::Int(int) => return encode_int_value(int, out),
            ValueRef::Decimal(decimal) => return encode_number_value(decimal.into(), out),
            ValueRef::Double(double) => {
                out[0] = TAG_DOUBLE;
                out[1..9].copy_from_slice(&double.to_le_bytes());
                return 9;
            }
        };
        out[0] = tag;
        1
    }

    /// The value as an exact number: integers, decimals, doubles by their shortest digits, and
    /// strings that are canonical numbers.
    ///
    /// # Errors
    /// `NotANumber` for everything else; `Overflow` or `Underflow` for doubles out of range.
    pub fn as_number(&self) -> Result<Number, ArithmeticError> {
        match *self {
            ValueRef::Int(int) => Ok(Number::Int(int)),
            ValueRef::Decimal(decimal) => Ok(Number::from(decimal)),
            ValueRef::Double(double) => Number::from_f64(double),
            ValueRef::String(text) => parse_canonical(text).ok_or(ArithmeticError::NotANumber),
            _ => Err(ArithmeticError::NotANumber),
        }
    }

    /// The value as an integer, if it is a number and integral and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            ValueRef::Int(int) => Some(int),
            _ => self.as_number().ok()?.as_i64(),
        }
    }

    /// Appends the value as an M program sees it, without quotes: numbers in canonical form
    /// (doubles out of a number's range as Rust prints them), truth values as 1 and 0, null and the
    /// empty containers as nothing; a record in its text form.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match *self {
            ValueRef::String(bytes) => out.extend_from_slice(bytes),
            ValueRef::Bool(truth) => out.push(b'0' + u8::from(truth)),
            ValueRef::Null | ValueRef::EmptyList | ValueRef::EmptyMap => {}
            _ => match (self.as_number(), self) {
                (Ok(number), _) => out.extend_from_slice(number.to_string().as_bytes()),
                (Err(_), other) => out.extend_from_slice(other.to_string().as_bytes()),
            },
        }
    }

    /// Copies the string.
    pub fn to_owned_value(&self) -> Value {
        match *self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(truth) => Value::Bool(truth),
            ValueRef::Int(int) => Value::Int(int),
            ValueRef::Decimal(decimal) => Value::Decimal(decimal),
            ValueRef::Double(double) => Value::Double(double),
            ValueRef::String(bytes) => Value::String(bytes.to_vec()),
            ValueRef::EmptyList => Value::EmptyList,
            ValueRef::EmptyMap => Value::EmptyMap,
            ValueRef::Record(fields) => Value::Record(fields.to_vec()),
        }
    }
}

fn decode_decimal(payload: &[u8]) -> Result<ValueRef<'static>, ValueError> {
    let (&exponent, coefficient) = payload.split_first().ok_or(ValueError)?;
    let coefficient = read_int(coefficient)?;
    let exponent = i32::from(exponent as i8);
    let decimal = Decimal::new(i128::from(coefficient), exponent).map_err(|_| ValueError)?;
    let as_stored = decimal.coefficient() == coefficient && decimal.exponent() == exponent;
    if !as_stored || decimal.to_i64().is_some() {
        return Err(ValueError);
    }
    Ok(ValueRef::Decimal(decimal))
}

/// Encodes a number as a value; returns the length, at most 10. Bytes after it are unspecified.
#[inline]
pub(crate) fn encode_number_value(number: Number, out: &mut [u8; 16]) -> usize {
    match (number.as_i64(), number) {
        (Some(int), _) | (None, Number::Int(int)) => encode_int_value(int, out),
        (None, Number::Decimal(decimal)) => {
            let length = int_len(decimal.coefficient());
            out[0] = TAG_DECIMAL;
            out[1] = decimal.exponent() as u8;
            out[2..10].copy_from_slice(&decimal.coefficient().to_le_bytes());
            2 + length
        }
    }
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(truth) => ValueRef::Bool(*truth),
            Value::Int(int) => ValueRef::Int(*int),
            Value::Decimal(decimal) => ValueRef::Decimal(*decimal),
            Value::Double(double) => ValueRef::Double(*double),
            Value::String(bytes) => ValueRef::String(bytes),
            Value::EmptyList => ValueRef::EmptyList,
            Value::EmptyMap => ValueRef::EmptyMap,
            Value::Record(fields) => ValueRef::Record(fields),
        }
    }

    /// Decodes a value and copies its string.
    ///
    /// # Errors
    /// As [`ValueRef::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Value, ValueError> {
        ValueRef::decode(bytes).map(|value| value.to_owned_value())
    }

    /// Appends the encoded value.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.as_ref().encode_into(out);
    }

    /// As [`ValueRef::as_number`].
    ///
    /// # Errors
    /// As [`ValueRef::as_number`].
    pub fn as_number(&self) -> Result<Number, ArithmeticError> {
        self.as_ref().as_number()
    }

    /// As [`ValueRef::as_i64`].
    pub fn as_i64(&self) -> Option<i64> {
        self.as_ref().as_i64()
    }
}

impl From<Number> for ValueRef<'_> {
    fn from(number: Number) -> Self {
        match (number.as_i64(), number) {
            (Some(int), _) | (None, Number::Int(int)) => ValueRef::Int(int),
            (None, Number::Decimal(decimal)) => ValueRef::Decimal(decimal),
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        ValueRef::from(number).to_owned_value()
    }
}
