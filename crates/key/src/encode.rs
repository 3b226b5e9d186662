//! Writing subscript codes: byte strings that sort, under memcmp, as the subscripts do.
//!
//! An encoded key is the name, a 0x00, and one code per subscript. Every code starts with a tag:
//!
//! | tag | subscript | then |
//! |---|---|---|
//! | 02 | empty string | nothing |
//! | 07 | number below -2^63 | !digits, !pairs |
//! | 08..0F | negative, unit of 8..1 bytes (tag = 10 - length) | !unit big-endian, fraction if odd |
//! | 10..1F | negative, unit 15..0 (tag = 1F - unit) | fraction if odd |
//! | 20..DF | zero or positive, unit 0..191 (tag = 20 + unit) | fraction if odd |
//! | E0..E7 | positive, unit of 1..8 bytes (tag = DF + length) | unit big-endian, fraction if odd |
//! | E8 | number of 2^63 or more | digits, pairs |
//! | F0 | string | bytes with 00 as 01 01 and 01 as 01 02; then 00 |
//!
//! All other tags are reserved; FF is never one, so that a prefix followed by FF is above the whole
//! subtree of that prefix.
//!
//! Example: `^person(7,"name")` is `person` 00, then 2E (the unit of 7 is 14), then F0 6E 61 6D 65 00. Half (`.5`) has
//! the unit 1, because a fraction follows, and the fraction 64, which is 2 * 50: 21 64.
//!
//! * **Unit.** With m the integral part of |x| and f = 1 if a fraction follows, else 0: the unit of
//!   x >= 0 is 2m + f; that of x < 0 is 2m + f - 1. It fits 64 bits because numbers of 10^17 and more
//!   have no fraction. The stored form of a negative number is complemented, which makes it the
//!   two's complement `2 * x` of an integer: in both signs "odd" (the last bit of the tag or of the
//!   last unit byte is set) means that a fraction follows. So an integer is never the prefix of
//!   a decimal, and an integer is encoded by one shift, one bit count and one store.
//! * **Pairs.** Digits two by two, the last padded with 0: the byte is 2 * pair + 1 if more follow,
//!   2 * pair if it is the last, complemented in a negative number. The last pair is not 00.
//!   A fraction is pairs; *digits* above is the count of digits before the point (19..47).
//! * A unit takes the fewest bytes and units with a one-byte tag have no other form: equal numbers
//!   have equal bytes. Canonical numeric strings are encoded as numbers.

use crate::decimal::{Decimal, POWERS};
use crate::number::Number;
use crate::numeral::{parse_canonical, write_digits};

pub(crate) const TAG_EMPTY: u8 = 0x02;
pub(crate) const TAG_NEGATIVE_BIG: u8 = 0x07;
/// A negative unit of n bytes has the tag `NEGATIVE_LENGTH - n`.
pub(crate) const NEGATIVE_LENGTH: u8 = 0x10;
/// A small negative unit u has the tag `NEGATIVE_SMALL - u`.
pub(crate) const NEGATIVE_SMALL: u8 = 0x1F;
/// A small positive unit u has the tag `POSITIVE_SMALL + u`.
pub(crate) const POSITIVE_SMALL: u8 = 0x20;
/// A positive unit of n bytes has the tag `POSITIVE_LENGTH + n`.
pub(crate) const POSITIVE_LENGTH: u8 = 0xDF;
pub(crate) const TAG_POSITIVE_BIG: u8 = 0xE8;
pub(crate) const TAG_STRING: u8 = 0xF0;
pub(crate) const STRING_END: u8 = 0x00;
pub(crate) const ESCAPE: u8 = 0x01;
/// Negative units below this have a one-byte tag.
pub(crate) const NEGATIVE_SMALL_COUNT: u64 = 16;
/// Positive units below this have a one-byte tag.
pub(crate) const POSITIVE_SMALL_COUNT: u64 = 192;

/// The longest code of a number in bytes (tag, 8 unit bytes or none, 30 pairs at most).
pub const MAX_NUMBER_CODE: usize = 40;

const _: () = assert!(POSITIVE_SMALL as u64 + POSITIVE_SMALL_COUNT - 1 == POSITIVE_LENGTH as u64);
const _: () = assert!(NEGATIVE_SMALL as u64 - (NEGATIVE_SMALL_COUNT - 1) == NEGATIVE_LENGTH as u64);

/// Encodes an integer; returns the length of the code, at most 9. Bytes after it are unspecified.
#[inline]
pub fn encode_int(int: i64, out: &mut [u8; 16]) -> usize {
    let doubled = (int as u64) << 1;
    let (tag, bytes, length) = unit_code(int < 0, if int < 0 { !doubled } else { doubled });
    out[0] = tag;
    out[1..9].copy_from_slice(&bytes);
    1 + length
}

/// The tag of a unit, its bytes at the start of an array, and how many of them count.
#[inline]
fn unit_code(negative: bool, unit: u64) -> (u8, [u8; 8], usize) {
    let small = if negative { NEGATIVE_SMALL_COUNT } else { POSITIVE_SMALL_COUNT };
    if unit < small {
        let tag = if negative { NEGATIVE_SMALL - unit as u8 } else { POSITIVE_SMALL + unit as u8 };
        return (tag, [0; 8], 0);
    }
    let length = 8 - (unit.leading_zeros() / 8) as usize;
    let (tag, stored) = if negative {
        (NEGATIVE_LENGTH - length as u8, !unit)
    } else {
        (POSITIVE_LENGTH + length as u8, unit)
    };
    (tag, (stored << (64 - 8 * length)).to_be_bytes(), length)
}

/// Encodes a number; returns the length of the code. Bytes after it are unspecified.
#[inline]
pub fn encode_number(number: Number, out: &mut [u8; MAX_NUMBER_CODE]) -> usize {
    match number.as_i64() {
        Some(int) => {
            let mut code = [0; 16];
            let length = encode_int(int, &mut code);
            out[..16].copy_from_slice(&code);
            length
        }
        None => match number {
            Number::Decimal(decimal) => encode_decimal(decimal, out),
            // NB: as_i64 is never None for an Int; the arm keeps the match total.
            Number::Int(_) => 0,
        },
    }
}

fn encode_decimal(decimal: Decimal, out: &mut [u8; MAX_NUMBER_CODE]) -> usize {
    let negative = decimal.coefficient() < 0;
    let flip = if negative { 0xFF } else { 0 };
    let magnitude = decimal.coefficient().unsigned_abs();
    let mut digits = [0; 20];
    if decimal.exponent() >= 0 {
        let first = write_digits(magnitude, &mut digits);
        let digits = &digits[first..];
        out[0] = if negative { TAG_NEGATIVE_BIG } else { TAG_POSITIVE_BIG };
        out[1] = (digits.len() as u8 + decimal.exponent() as u8) ^ flip;
        return 2 + write_pairs(0, digits, flip, &mut out[2..]);
    }
    let places = decimal.exponent().unsigned_abs() as usize;
    let scale = POWERS.get(places).copied();
    let (whole, fraction) = match scale {
        Some(scale) => (magnitude / scale, magnitude % scale),
        None => (0, magnitude),
    };
    let unit = 2 * whole + u64::from(!negative);
    let (tag, bytes, length) = unit_code(negative, unit);
    out[0] = tag;
    out[1..9].copy_from_slice(&bytes);
    let first = write_digits(fraction, &mut digits);
    let digits = &digits[first..];
    1 + length + write_pairs(places - digits.len(), digits, flip, &mut out[1 + length..])
}

/// Writes `zeros` zeros and then `digits` (text) as pairs; returns the length.
fn write_pairs(zeros: usize, digits: &[u8], flip: u8, out: &mut [u8]) -> usize {
    let digit = |index: usize| match index.checked_sub(zeros) {
        None => 0,
        Some(place) => digits.get(place).map_or(0, |text| text - b'0'),
    };
    let count = (zeros + digits.len()).div_ceil(2);
    for (index, byte) in out.iter_mut().enumerate().take(count) {
        let pair = 10 * digit(2 * index) + digit(2 * index + 1);
        *byte = (2 * pair + u8::from(index + 1 < count)) ^ flip;
    }
    count
}

/// The length of the code of a byte string that is not a number.
#[inline]
pub(crate) fn string_code_len(bytes: &[u8]) -> usize {
    if bytes.is_empty() {
        return 1;
    }
    bytes.len() + count_escaped(bytes) + 2
}

#[inline]
fn count_escaped(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte <= ESCAPE).count()
}

/// Writes the code of a byte string that is not a number. `out` has exactly `string_code_len`
/// bytes.
#[inline]
pub(crate) fn write_string(bytes: &[u8], out: &mut [u8]) {
    if bytes.is_empty() {
        out[0] = TAG_EMPTY;
        return;
    }
    let last = out.len() - 1;
    out[0] = TAG_STRING;
    out[last] = STRING_END;
    let body = &mut out[1..last];
    if body.len() == bytes.len() {
        body.copy_from_slice(bytes);
        return;
    }
    let mut at = 0;
    for &byte in bytes {
        if byte <= ESCAPE {
            body[at] = ESCAPE;
            body[at + 1] = byte + 1;
            at += 2;
        } else {
            body[at] = byte;
            at += 1;
        }
    }
}

/// Whether a byte string is not empty and needs no escapes: then [`write_plain_string`] writes its code.
#[inline]
pub(crate) fn is_plain_string(bytes: &[u8]) -> bool {
    // Words of 8 bytes, the last of which overlaps; what is shorter is looked at byte by byte.
    match bytes.last_chunk::<8>() {
        Some(last) => !bytes.as_chunks::<8>().0.iter().any(has_escaped) && !has_escaped(last),
        None => !bytes.is_empty() && bytes.iter().all(|byte| *byte > ESCAPE),
    }
}

/// Whether one of the bytes is 00 or 01.
#[inline]
fn has_escaped(bytes: &[u8; 8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let word = u64::from_ne_bytes(*bytes);
    // A byte below 2 borrows, and its highest bit was not set.
    word.wrapping_sub(2 * ONES) & !word & (ONES << 7) != 0
}

/// Writes the code of a string that [`is_plain_string`]; `out` has exactly its length and two bytes.
#[inline]
pub(crate) fn write_plain_string(bytes: &[u8], out: &mut [u8]) {
    let last = out.len() - 1;
    out[0] = TAG_STRING;
    out[last] = STRING_END;
    let body = &mut out[1..last];
    if bytes.len() > 16 {
        return body.copy_from_slice(bytes);
    }
    // Copies of constant size that overlap beat one of variable length.
    match (
        bytes.first_chunk::<8>(),
        bytes.last_chunk::<8>(),
        bytes.first_chunk::<4>(),
        bytes.last_chunk::<4>(),
    ) {
        (Some(first), Some(last), _, _) => {
            body[..8].copy_from_slice(first);
            let at = body.len() - 8;
            body[at..].copy_from_slice(last);
        }
        (_, _, Some(first), Some(last)) => {
            body[..4].copy_from_slice(first);
            let at = body.len() - 4;
            body[at..].copy_from_slice(last);
        }
        _ => body.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
    }
}

/// Encodes a byte string as a subscript (as a number if it is canonical) into `out`; returns the
/// length of the code, or `None` if `out` is too short.
pub fn encode_bytes(bytes: &[u8], out: &mut [u8]) -> Option<usize> {
    if let Some(number) = parse_canonical(bytes) {
        let mut code = [0; MAX_NUMBER_CODE];
        let length = encode_number(number, &mut code);
        out.get_mut(..length)?.copy_from_slice(&code[..length]);
        return Some(length);
    }
    let length = string_code_len(bytes);
    write_string(bytes, out.get_mut(..length)?);
    Some(length)
}
