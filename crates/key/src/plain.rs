//! The kinds of subscripts that nearly all keys end with, told from their codes alone: for whoever looks at many keys and wants
//! the text of each without building a [`crate::Subscript`].
//!
//! Example: of the code `F0 61 62 00` it is said that it is the text `ab`, which lies inside the code.
//!
//! Invariant: what is answered is what [`crate::decode_subscript`] answers of the same bytes.

use crate::decode::decode_int;
use crate::encode::{is_plain_string, ESCAPE, STRING_END, TAG_STRING};
use crate::numeral::parse_canonical;

/// A subscript that is an integer, or a string whose bytes lie in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainSubscript<'a> {
    /// An integer.
    Int(i64),
    /// A string, where it was encoded.
    Text(&'a [u8]),
    /// A string with bytes 00 or 01, which its code escapes: [`unescape`] makes it what it is.
    Escaped(&'a [u8]),
}

/// The subscript that all of `code` is the code of; `None` for any other kind, for more or less than one code, and for what is
/// malformed, all of which [`crate::decode_subscript`] tells apart.
#[inline(always)]
#[must_use]
pub fn decode_plain(code: &[u8]) -> Option<PlainSubscript<'_>> {
    let [TAG_STRING, text @ .., STRING_END] = code else { return decode_int(code).map(PlainSubscript::Int) };
    if is_plain_string(text) {
        // A number has a code of its own.
        return parse_canonical(text).is_none().then_some(PlainSubscript::Text(text));
    }
    // What ends inside is followed by another code.
    (!text.is_empty() && !text.contains(&STRING_END)).then_some(PlainSubscript::Escaped(text))
}

/// Makes `string` the string that was escaped to `text`; false if the encoder has not written it.
#[must_use]
pub fn unescape(text: &[u8], string: &mut Vec<u8>) -> bool {
    string.clear();
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        string.push(match byte {
            ESCAPE => match bytes.next() {
                Some(escaped @ 1..=2) => escaped - 1,
                _ => return false,
            },
            STRING_END => return false,
            byte => byte,
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_subscript, KeyBuf, Number, Subscript};

    fn code_of(subscript: &[u8]) -> Vec<u8> {
        let mut key = KeyBuf::global("t").unwrap();
        let start = key.as_bytes().len();
        key.push_bytes(subscript).unwrap();
        key.as_bytes()[start..].to_vec()
    }

    /// What [`decode_plain`] says, as a subscript.
    fn plain(code: &[u8]) -> Option<Subscript<'static>> {
        Some(match decode_plain(code)? {
            PlainSubscript::Int(int) => Subscript::from(int),
            PlainSubscript::Text(text) => Subscript::Bytes(text.to_vec().into()),
            PlainSubscript::Escaped(text) => {
                let mut string = b"what was there".to_vec();
                if !unescape(text, &mut string) {
                    return None;
                }
                Subscript::Bytes(string.into())
            }
        })
    }

    #[test]
    fn a_plain_subscript_is_what_any_decoder_says() {
        let long = "x".repeat(40);
        let texts = ["a", "ab\0", "\u{1}", "12345678\u{1}", "x\0y\u{1}z\u{2}", "007", "-", "1.", &long];
        for text in texts.map(str::as_bytes).into_iter().chain([&[0xFF, 0x80, 0x7F, 2][..], &[0x80; 9]]) {
            let code = code_of(text);
            assert_eq!(plain(&code), Some(decode_subscript(&code).unwrap().0), "{text:?}");
            assert_eq!(plain(&code[..code.len() - 1]), None, "{text:?}");
            // What follows is another code: of a string, an integer whose last byte is 00, the empty string.
            for more in [code.clone(), code_of(b"128"), code_of(b"1"), code_of(b"")] {
                assert_eq!(plain(&[code.clone(), more].concat()), None, "{text:?}");
            }
        }
        for int in ["0", "-1", "1", "77", "-300", "123456789012345678"] {
            assert_eq!(plain(&code_of(int.as_bytes())), Some(Subscript::from_bytes(int.as_bytes())));
        }
        for other in ["", "1.5", "-.25", "10000000000000000000"] {
            assert_eq!(plain(&code_of(other.as_bytes())), None, "{other:?}");
        }
    }

    #[test]
    fn bytes_that_nobody_has_encoded_are_no_plain_subscript() {
        // Of all short codes, whatever a decoder refuses is refused here, and what it takes is the same.
        for a in [0, 1, 2, 3, 0x30, 0x31, 0x61, 0xF0, 0xFF] {
            for b in [0, 1, 2, 3, 0x30, 0x61, 0xE0, 0xF0] {
                for c in [0, 1, 2, 0x39, 0x61] {
                    for code in [
                        &[TAG_STRING, a, b, c, 0][..],
                        &[TAG_STRING, a, b, 0],
                        &[TAG_STRING, a, 0],
                        &[a, b, c],
                    ] {
                        let whole = decode_subscript(code).ok().filter(|(_, length)| *length == code.len());
                        let frequent =
                            whole.map(|(subscript, _)| subscript).filter(|subscript| match subscript {
                                Subscript::Number(number) => matches!(number, Number::Int(_)),
                                Subscript::Bytes(bytes) => !bytes.is_empty(),
                            });
                        assert_eq!(plain(code), frequent, "{code:X?}");
                    }
                }
            }
        }
    }
}
