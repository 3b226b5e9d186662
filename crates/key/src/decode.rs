//! Reading encoded keys.
//!
//! Bytes are hostile: every function returns an error for what the encoder cannot have written and
//! never panics. [`code_len`] only finds where a code ends, for walking; decoding a subscript also
//! checks that its bytes are the only encoding of its value, so that equal keys are equal bytes.

use std::borrow::Cow;

use crate::decimal::{Decimal, POWERS};
use crate::encode::{
    ESCAPE, NEGATIVE_LENGTH, NEGATIVE_SMALL, NEGATIVE_SMALL_COUNT, POSITIVE_LENGTH, POSITIVE_SMALL,
    POSITIVE_SMALL_COUNT, STRING_END, TAG_EMPTY, TAG_NEGATIVE_BIG, TAG_POSITIVE_BIG, TAG_STRING,
};
use crate::error::KeyError;
use crate::name::{is_name, MAX_NAME};
use crate::number::Number;
use crate::numeral::is_canonical;
use crate::subscript::{Subscript, MAX_SUBSCRIPTS};

/// The most pairs a fraction has: 60 digits.
const MAX_PAIRS: usize = 30;

const TRUNCATED: &str = "it ends inside a subscript";
const NOT_MINIMAL: &str = "a number is not in its shortest form";

/// Splits an encoded key into its name and the codes of its subscripts.
///
/// # Errors
/// `Malformed` if there is no name followed by 0x00.
pub fn split_name(key: &[u8]) -> Result<(&[u8], &[u8]), KeyError> {
    let window = &key[..key.len().min(MAX_NAME + 1)];
    let end =
        window.iter().position(|&byte| byte == 0).ok_or(KeyError::malformed(0, "no end of the name"))?;
    if !is_name(&key[..end]) {
        return Err(KeyError::malformed(0, "the name is not valid"));
    }
    Ok((&key[..end], &key[end + 1..]))
}

/// The length of the first subscript code in `codes`, in bytes. Does not check that the code is
/// the shortest of its value.
///
/// # Errors
/// `Malformed` if `codes` is empty, starts with no tag or ends inside the code.
#[inline]
pub fn code_len(codes: &[u8]) -> Result<usize, KeyError> {
    // Integers, of which most keys are made.
    if let Some(length) = codes.first().and_then(|tag| unit_len(*tag)) {
        if codes.get(length).is_some_and(|last| last & 1 == 0) {
            return Ok(1 + length);
        }
    }
    code_len_of_any(codes)
}

fn code_len_of_any(codes: &[u8]) -> Result<usize, KeyError> {
    let &tag = codes.first().ok_or(KeyError::malformed(0, "no subscript"))?;
    let head = match tag {
        TAG_EMPTY => return Ok(1),
        TAG_STRING => {
            let end = codes.iter().position(|&byte| byte == STRING_END);
            return Ok(end.ok_or(KeyError::malformed(0, TRUNCATED))? + 1);
        }
        TAG_NEGATIVE_BIG => return Ok(2 + pairs_len(codes.get(2..).unwrap_or(&[]), 0xFF)?),
        TAG_POSITIVE_BIG => return Ok(2 + pairs_len(codes.get(2..).unwrap_or(&[]), 0)?),
        _ => 1 + unit_len(tag).ok_or(KeyError::malformed(0, "unknown tag"))?,
    };
    let last = codes.get(head - 1).ok_or(KeyError::malformed(0, TRUNCATED))?;
    if last & 1 == 0 {
        return Ok(head);
    }
    let flip = if tag < POSITIVE_SMALL { 0xFF } else { 0 };
    Ok(head + pairs_len(&codes[head..], flip)?)
}

/// How many unit bytes follow a tag of a number in unit form.
#[inline]
fn unit_len(tag: u8) -> Option<usize> {
    match tag {
        NEGATIVE_LENGTH..=POSITIVE_LENGTH => Some(0),
        0x08..NEGATIVE_LENGTH => Some(usize::from(NEGATIVE_LENGTH - tag)),
        0xE0..=0xE7 => Some(usize::from(tag - POSITIVE_LENGTH)),
        _ => None,
    }
}

fn pairs_len(pairs: &[u8], flip: u8) -> Result<usize, KeyError> {
    pairs
        .iter()
        .take(MAX_PAIRS)
        .position(|byte| (byte ^ flip) & 1 == 0)
        .map(|index| index + 1)
        .ok_or(KeyError::malformed(0, "digits of a number do not end"))
}

/// Decodes the first subscript in `codes`; returns it with the length of its code in bytes.
///
/// # Errors
/// `Malformed` if the bytes are not the encoding of a subscript.
#[inline]
pub fn decode_subscript(codes: &[u8]) -> Result<(Subscript<'_>, usize), KeyError> {
    let &tag = codes.first().ok_or(KeyError::malformed(0, "no subscript"))?;
    match tag {
        TAG_EMPTY => Ok((Subscript::Bytes(Cow::Borrowed(&[])), 1)),
        TAG_STRING => decode_string(codes),
        TAG_NEGATIVE_BIG | TAG_POSITIVE_BIG => decode_big(codes),
        _ => decode_unit(tag, codes),
    }
}

fn decode_string(codes: &[u8]) -> Result<(Subscript<'_>, usize), KeyError> {
    let body = &codes[1..];
    let stop = body.iter().position(|&byte| byte <= ESCAPE).ok_or(KeyError::malformed(0, TRUNCATED))?;
    let (bytes, end) =
        if body[stop] == STRING_END { (Cow::Borrowed(&body[..stop]), stop) } else { unescape(body, stop)? };
    if bytes.is_empty() || is_canonical(&bytes) {
        return Err(KeyError::malformed(0, "a string that has a code of its own"));
    }
    Ok((Subscript::Bytes(bytes), end + 2))
}

/// Decodes a string whose first escape is at `start`; returns it with the place of its end byte.
fn unescape(body: &[u8], start: usize) -> Result<(Cow<'_, [u8]>, usize), KeyError> {
    let mut bytes = Vec::with_capacity(body.len());
    bytes.extend_from_slice(&body[..start]);
    let mut at = start;
    loop {
        match body.get(at) {
            Some(&STRING_END) => return Ok((Cow::Owned(bytes), at)),
            Some(&ESCAPE) => {
                match body.get(at + 1) {
                    Some(&escaped @ 1..=2) => bytes.push(escaped - 1),
                    _ => return Err(KeyError::malformed(at + 1, "unknown escape in a string")),
                }
                at += 2;
            }
            Some(&byte) => {
                bytes.push(byte);
                at += 1;
            }
            None => return Err(KeyError::malformed(0, TRUNCATED)),
        }
    }
}

/// The integer that `codes` is the code of, and nothing more; `None` for anything else, which
/// [`decode_subscript`] tells apart.
#[inline(always)]
#[must_use]
pub fn decode_int(codes: &[u8]) -> Option<i64> {
    let tag = *codes.first()?;
    let length = unit_len(tag)?;
    if codes.len() != 1 + length {
        return None;
    }
    let negative = tag < POSITIVE_SMALL;
    let unit = unit(tag, length, negative, &codes[1..]).ok()?;
    ((unit & 1 == 1) == negative).then(|| integer(unit, negative))
}

#[inline]
fn decode_unit(tag: u8, codes: &[u8]) -> Result<(Subscript<'static>, usize), KeyError> {
    let length = unit_len(tag).ok_or(KeyError::malformed(0, "unknown tag"))?;
    let stored = codes.get(1..1 + length).ok_or(KeyError::malformed(0, TRUNCATED))?;
    let negative = tag < POSITIVE_SMALL;
    let unit = unit(tag, length, negative, stored)?;
    // The last bit of a positive unit says "fraction"; that of a negative one says "none".
    if (unit & 1 == 1) != negative {
        return decode_fraction(negative, unit, codes, 1 + length);
    }
    Ok((Subscript::Number(Number::Int(integer(unit, negative))), 1 + length))
}

/// The unit after `tag` whose `length` bytes are `stored`.
#[inline]
fn unit(tag: u8, length: usize, negative: bool, stored: &[u8]) -> Result<u64, KeyError> {
    if length == 0 {
        return Ok(u64::from(if negative { NEGATIVE_SMALL - tag } else { tag - POSITIVE_SMALL }));
    }
    // Loads of constant size that overlap beat a copy of variable length.
    let raw = match (stored.first_chunk::<4>(), stored.last_chunk::<4>(), stored) {
        (Some(first), Some(last), _) => {
            let low = u64::from(u32::from_be_bytes(*last));
            u64::from(u32::from_be_bytes(*first)) << (8 * (length - 4)) | low
        }
        (_, _, [a, b, c]) => u64::from(*a) << 16 | u64::from(*b) << 8 | u64::from(*c),
        _ => stored.iter().fold(0, |unit, byte| unit << 8 | u64::from(*byte)),
    };
    let mask = u64::MAX >> (64 - 8 * length);
    let (unit, small) =
        if negative { (!raw & mask, NEGATIVE_SMALL_COUNT) } else { (raw, POSITIVE_SMALL_COUNT) };
    if unit < small || (length > 1 && unit >> (8 * (length - 1)) == 0) {
        return Err(KeyError::malformed(0, NOT_MINIMAL));
    }
    Ok(unit)
}

#[inline]
fn integer(unit: u64, negative: bool) -> i64 {
    if negative {
        // unit = 2m - 1, so !unit is -2m in 65 bits: shift it back with the sign.
        (!unit >> 1) as i64 | i64::MIN
    } else {
        (unit >> 1) as i64
    }
}

fn decode_fraction(
    negative: bool,
    unit: u64,
    codes: &[u8],
    head: usize,
) -> Result<(Subscript<'static>, usize), KeyError> {
    let (digits, count) = decode_pairs(&codes[head..], negative, u128::from(unit >> 1))?;
    let number = decimal(negative, digits.coefficient, -(digits.places as i32))?;
    Ok((Subscript::Number(number), head + count))
}

fn decode_big(codes: &[u8]) -> Result<(Subscript<'static>, usize), KeyError> {
    let negative = codes[0] == TAG_NEGATIVE_BIG;
    let &stored = codes.get(1).ok_or(KeyError::malformed(0, TRUNCATED))?;
    let whole_digits = i32::from(if negative { !stored } else { stored });
    let (digits, count) = decode_pairs(&codes[2..], negative, 0)?;
    let leading = POWERS
        .get((digits.places as usize).wrapping_sub(1))
        .is_some_and(|&power| digits.coefficient >= u128::from(power));
    if !leading {
        return Err(KeyError::malformed(0, "a large number starts with digit 0"));
    }
    let number = decimal(negative, digits.coefficient, whole_digits - digits.places as i32)?;
    if whole_digits < digits.places as i32 || number.as_i64().is_some() {
        return Err(KeyError::malformed(0, NOT_MINIMAL));
    }
    Ok((Subscript::Number(number), 2 + count))
}

struct PairDigits {
    coefficient: u128,
    places: u32,
}

/// Reads pairs after the digits of `whole`; a padding 0 at the end is not counted.
fn decode_pairs(pairs: &[u8], negative: bool, whole: u128) -> Result<(PairDigits, usize), KeyError> {
    let flip = if negative { 0xFF } else { 0 };
    let count = pairs_len(pairs, flip)?;
    let mut digits = PairDigits { coefficient: whole, places: 0 };
    for (index, byte) in pairs[..count].iter().enumerate() {
        let pair = (byte ^ flip) >> 1;
        let last = index + 1 == count;
        // Two digits above 18 are left in, for the constructor to refuse; more could overflow.
        if pair > 99 || (last && pair == 0) || digits.coefficient >= u128::from(POWERS[19]) * 10 {
            return Err(KeyError::malformed(0, "wrong digits in a number"));
        }
        let (scale, value) = if last && pair % 10 == 0 { (1, pair / 10) } else { (2, pair) };
        digits.coefficient = digits.coefficient * u128::from(POWERS[scale]) + u128::from(value);
        digits.places += scale as u32;
    }
    Ok((digits, count))
}

fn decimal(negative: bool, magnitude: u128, exponent: i32) -> Result<Number, KeyError> {
    let magnitude = magnitude as i128;
    let coefficient = if negative { -magnitude } else { magnitude };
    Decimal::new(coefficient, exponent)
        .map(Number::from)
        .map_err(|_| KeyError::malformed(0, "a number out of range"))
}

/// Decodes the subscripts of an encoded key one after another; made by [`subscripts`].
#[derive(Clone, Debug)]
pub struct Subscripts<'a> {
    key: &'a [u8],
    at: usize,
    count: usize,
}

/// Iterates over the subscripts of an encoded key. After an error the iterator ends.
///
/// # Errors
/// As [`split_name`]; items as [`decode_subscript`], and `TooManySubscripts`.
pub fn subscripts(key: &[u8]) -> Result<Subscripts<'_>, KeyError> {
    let (name, _) = split_name(key)?;
    Ok(Subscripts { key, at: name.len() + 1, count: 0 })
}

impl<'a> Iterator for Subscripts<'a> {
    type Item = Result<Subscript<'a>, KeyError>;

    fn next(&mut self) -> Option<Self::Item> {
        let codes = &self.key[self.at..];
        if codes.is_empty() {
            return None;
        }
        self.count += 1;
        let step = if self.count > MAX_SUBSCRIPTS {
            Err(KeyError::TooManySubscripts)
        } else {
            decode_subscript(codes).map_err(|error| error.shifted(self.at))
        };
        Some(match step {
            Ok((subscript, length)) => {
                self.at += length;
                Ok(subscript)
            }
            Err(error) => {
                self.at = self.key.len();
                Err(error)
            }
        })
    }
}

/// Yields where each ancestor of a key ends; made by [`prefix_ends`].
#[derive(Clone, Debug)]
pub struct PrefixEnds<'a> {
    key: &'a [u8],
    next: Option<usize>,
}

/// Iterates over the ends of the name, of the name with one subscript, and so on, in bytes; the
/// last one is the length of the key itself. `key[..end]` is the encoded ancestor.
///
/// # Errors
/// As [`split_name`]; items as [`code_len`]. After an error the iterator ends.
pub fn prefix_ends(key: &[u8]) -> Result<PrefixEnds<'_>, KeyError> {
    let (name, _) = split_name(key)?;
    Ok(PrefixEnds { key, next: Some(name.len() + 1) })
}

impl Iterator for PrefixEnds<'_> {
    type Item = Result<usize, KeyError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.next.take()?;
        if end < self.key.len() {
            match code_len(&self.key[end..]) {
                Ok(length) => self.next = Some(end + length),
                Err(error) => return Some(Err(error.shifted(end))),
            }
        }
        Some(Ok(end))
    }
}

/// Where the parent of `key` ends (`None` for a name alone), and how many subscripts the key has. What
/// characters the name is made of is not checked.
///
/// # Errors
/// `Malformed` if there is no name followed by 0x00; else as [`code_len`].
#[inline]
pub fn parent_end(key: &[u8]) -> Result<(Option<usize>, usize), KeyError> {
    let name = key.iter().take(MAX_NAME + 1).position(|&byte| byte == 0);
    let mut end = name.ok_or(KeyError::malformed(0, "no end of the name"))? + 1;
    let (mut parent, mut depth) = (None, 0);
    while end < key.len() {
        parent = Some(end);
        depth += 1;
        end += code_len(&key[end..]).map_err(|error| error.shifted(end))?;
    }
    Ok((parent, depth))
}

/// Checks that `key` is an encoded key and counts its subscripts.
///
/// # Errors
/// The first error found.
pub fn validate(key: &[u8]) -> Result<usize, KeyError> {
    let mut count = 0;
    for subscript in subscripts(key)? {
        subscript?;
        count += 1;
    }
    Ok(count)
}
