//! Records: the fields of a row of a table, one after the other in one value.
//!
//! A table of SQL keeps a row in one node: `^users(7)` = `record("Ada",36)`. One node for each column would take twice the room
//! and twice the time. A record has no names and no count: the table's catalog says which field is which, and a record that ends
//! early has nothing in the fields behind its end (they were added to the table later). Bytes: `docs/format/values.md`.
//!
//! Invariants
//! - A field has one encoding: integers and lengths take the fewest bytes, text below 224 bytes has the short form.
//! - A value that bears the tag of records may hold anything: who reads fields is told of malformed ones, and no other bytes are
//!   ever taken for them.

use crate::decimal::Decimal;
use crate::value::{ValueError, ValueRef};

const ABSENT: u8 = 0x1D;
const BLOB: u8 = 0x1E;
const LONG_TEXT: u8 = 0x1F;
/// A text of n bytes, 0 to 223, has the tag `SHORT_TEXT + n`.
const SHORT_TEXT: u8 = 0x20;
/// Bytes of the longest text with a short tag.
const SHORT_MAX: usize = (0xFF - SHORT_TEXT) as usize;

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// Nothing was ever stored: the column's default counts.
    Absent,
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A decimal that is not an `i64`.
    Decimal(Decimal),
    /// A double.
    Double(f64),
    /// Text.
    Text(&'a [u8]),
    /// Bytes that are no text.
    Blob(&'a [u8]),
}

impl Field<'_> {
    /// Appends the encoded field.
    #[inline]
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match *self {
            Field::Absent => out.push(ABSENT),
            Field::Null => out.push(0),
            Field::Bool(truth) => ValueRef::Bool(truth).encode_into(out),
            Field::Int(int) => ValueRef::Int(int).encode_into(out),
            Field::Double(double) => ValueRef::Double(double).encode_into(out),
            Field::Decimal(decimal) => {
                // Its payload reaches to the end, so its length stands between tag and payload.
                let start = out.len();
                ValueRef::Decimal(decimal).encode_into(out);
                out.insert(start + 1, (out.len() - start - 1) as u8);
            }
            Field::Text(text) if text.len() <= SHORT_MAX => {
                out.push(SHORT_TEXT + text.len() as u8);
                out.extend_from_slice(text);
            }
            Field::Text(text) => with_length(LONG_TEXT, text, out),
            Field::Blob(blob) => with_length(BLOB, blob, out),
        }
    }
}

fn with_length(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    let mut left = bytes.len();
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
    out.extend_from_slice(bytes);
}

/// The fields of a record, from first to last.
///
/// ```
/// use perilune_key::{Field, Record};
///
/// let mut row = Vec::new();
/// Field::Text(b"Ada").encode_into(&mut row);
/// Field::Int(36).encode_into(&mut row);
/// assert_eq!(Record::new(&row).field(1)?, Field::Int(36));
/// assert_eq!(Record::new(&row).field(2)?, Field::Absent);
/// # Ok::<(), perilune_key::ValueError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    rest: &'a [u8],
}

impl<'a> Record<'a> {
    /// Over the payload of a [`ValueRef::Record`].
    #[inline]
    #[must_use]
    pub fn new(fields: &'a [u8]) -> Record<'a> {
        Record { rest: fields }
    }

    /// Whether no field is left.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next field; [`Field::Absent`] behind the end.
    ///
    /// # Errors
    /// [`ValueError`] if the bytes are not what the encoder writes.
    #[inline]
    pub fn next_field(&mut self) -> Result<Field<'a>, ValueError> {
        if self.rest.is_empty() {
            return Ok(Field::Absent);
        }
        let length = length_of(self.rest)?;
        let (field, rest) = self.rest.split_at_checked(length).ok_or(ValueError)?;
        self.rest = rest;
        decode(field)
    }

    /// The field at `index`, counted from 0; [`Field::Absent`] behind the end.
    ///
    /// # Errors
    /// As [`Record::next_field`].
    #[inline]
    pub fn field(&self, index: usize) -> Result<Field<'a>, ValueError> {
        let mut record = *self;
        for _ in 0..index {
            if record.rest.is_empty() {
                return Ok(Field::Absent);
            }
            let length = length_of(record.rest)?;
            record.rest = record.rest.get(length..).ok_or(ValueError)?;
        }
        record.next_field()
    }
}

/// How many bytes the first field takes, its tag included; they may be more than there are.
#[inline]
fn length_of(bytes: &[u8]) -> Result<usize, ValueError> {
    match *bytes {
        [tag @ SHORT_TEXT..=0xFF, ..] => Ok(1 + usize::from(tag - SHORT_TEXT)),
        [tag @ 0x10..=0x18, ..] => Ok(1 + usize::from(tag - 0x10)),
        [0..=2 | ABSENT, ..] => Ok(1),
        [5, ..] => Ok(9),
        [6, length, ..] => Ok(2 + usize::from(length)),
        [BLOB | LONG_TEXT, ..] => {
            let (start, length) = read_length(bytes)?;
            start.checked_add(length).ok_or(ValueError)
        }
        _ => Err(ValueError),
    }
}

/// Where the bytes of a blob or long text begin, and how many they are.
fn read_length(bytes: &[u8]) -> Result<(usize, usize), ValueError> {
    let mut length = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(1).take(5) {
        length |= usize::from(byte & 0x7F) << (7 * (at - 1));
        if byte & 0x80 == 0 {
            return if *byte == 0 && at > 1 { Err(ValueError) } else { Ok((at + 1, length)) };
        }
    }
    Err(ValueError)
}

/// Decodes a field that takes all of `bytes`.
#[inline]
fn decode(bytes: &[u8]) -> Result<Field<'_>, ValueError> {
    match bytes {
        [SHORT_TEXT..=0xFF, text @ ..] => Ok(Field::Text(text)),
        [ABSENT] => Ok(Field::Absent),
        [6, _, payload @ ..] => {
            let mut value = [6; 16];
            let value = value.get_mut(..=payload.len()).ok_or(ValueError)?;
            value[1..].copy_from_slice(payload);
            match ValueRef::decode(value)? {
                ValueRef::Decimal(decimal) => Ok(Field::Decimal(decimal)),
                _ => Err(ValueError),
            }
        }
        [tag @ (BLOB | LONG_TEXT), ..] => {
            let (start, length) = read_length(bytes)?;
            match *tag {
                BLOB => Ok(Field::Blob(&bytes[start..])),
                _ if length <= SHORT_MAX => Err(ValueError),
                _ => Ok(Field::Text(&bytes[start..])),
            }
        }
        _ => match ValueRef::decode(bytes)? {
            ValueRef::Null => Ok(Field::Null),
            ValueRef::Bool(truth) => Ok(Field::Bool(truth)),
            ValueRef::Int(int) => Ok(Field::Int(int)),
            ValueRef::Double(double) => Ok(Field::Double(double)),
            _ => Err(ValueError),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_nothing_else_is_taken_for_one() {
        let long = vec![b'x'; 300];
        let decimal = Decimal::new(-125, -2).expect("a decimal");
        let fields = [
            Field::Null,
            Field::Bool(true),
            Field::Int(0),
            Field::Int(i64::MIN),
            Field::Double(-0.5),
            Field::Decimal(decimal),
            Field::Text(b""),
            Field::Text(&long[..SHORT_MAX]),
            Field::Text(&long),
            Field::Blob(b""),
            Field::Blob(&long),
            Field::Absent,
        ];
        let mut bytes = Vec::new();
        fields.iter().for_each(|field| field.encode_into(&mut bytes));
        let record = Record::new(&bytes);
        for (index, field) in fields.iter().enumerate() {
            assert_eq!(record.field(index), Ok(*field));
        }
        assert_eq!(record.field(fields.len()), Ok(Field::Absent));
        assert_eq!(record.field(1000), Ok(Field::Absent));
        for cut in 0..bytes.len() {
            let mut record = Record::new(&bytes[..cut]);
            let whole = std::iter::from_fn(|| (!record.is_empty()).then(|| record.next_field()));
            let whole: Vec<_> = whole.take(fields.len()).collect();
            assert!(whole.iter().flatten().zip(&fields).all(|(read, field)| read == field), "{cut}");
        }
        let long_form = [&[LONG_TEXT, 1][..], b"a"].concat();
        let padded = [&[BLOB, 0x81, 0][..], b"a"].concat();
        for wrong in [&[0x03][..], &[0x12, 1, 0], &[0x19], &[6, 2, 0, 5], &long_form, &padded] {
            assert_eq!(Record::new(wrong).field(0), Err(ValueError), "{wrong:?}");
        }
    }
}
