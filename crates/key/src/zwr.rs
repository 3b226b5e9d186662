//! Keys and values as YottaDB and GT.M write them in ZWRITE format (ZWR) extracts.
//!
//! Numbers stand bare where M has them canonical; everything else, every value too, is a string. What a
//! string shows as it is and what as numbers depends on the character set of the system that wrote it:
//!
//! - *M*: bytes. 0 to 31, 127 to 159 and 255 stand in `$C(...)`.
//! - *UTF-8*: characters. Those that are not printable (controls, formats, line and paragraph
//!   separators, private and unassigned ones) stand in `$C(...)` by their number, bytes that are no
//!   UTF-8 and non-characters in `$ZCH(...)`.
//!
//! So an extract read by [`crate::read_key`] and [`read_zwr`] and written again is the same bytes, but
//! for characters that one side's Unicode tables do not know yet.
//!
//! Deliberately absent: the two lines before the nodes, which say nothing of keys.

use std::io::Write;

use crate::decode::{split_name, subscripts};
use crate::error::KeyError;
use crate::numeral::is_canonical;
use crate::quoted::{read_quoted, Codes};
use crate::subscript::Subscript;
use crate::text::{syntax, ParseError};

/// The character set of the system that writes or reads an extract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// Characters are bytes.
    M,
    /// Characters are those of Unicode.
    #[default]
    Utf8,
}

impl Charset {
    /// What the numbers in `$C(...)` are.
    pub fn codes(self) -> Codes {
        match self {
            Charset::M => Codes::Bytes,
            Charset::Utf8 => Codes::Characters,
        }
    }
}

/// Appends the key of a global.
///
/// # Errors
/// `Malformed` if the bytes are not an encoded key.
pub fn write_zwr_key(key: &[u8], charset: Charset, out: &mut Vec<u8>) -> Result<(), KeyError> {
    out.push(b'^');
    out.extend_from_slice(split_name(key)?.0);
    let mut separator = b'(';
    for subscript in subscripts(key)? {
        out.push(separator);
        separator = b',';
        match subscript? {
            Subscript::Number(number) => {
                let text = number.to_string();
                // NB: M has 18 digits; an `i64` of 19 is no number there.
                if is_canonical(text.as_bytes()) {
                    out.extend_from_slice(text.as_bytes());
                } else {
                    write_zwr(text.as_bytes(), charset, out);
                }
            }
            Subscript::Bytes(bytes) => write_zwr(&bytes, charset, out),
        }
    }
    if separator == b',' {
        out.push(b')');
    }
    Ok(())
}

/// Appends a string.
pub fn write_zwr(bytes: &[u8], charset: Charset, out: &mut Vec<u8>) {
    let mut writer = Writer { out, part: Part::None };
    match charset {
        _ if bytes.is_empty() => writer.shift(Part::Quoted),
        Charset::M => {
            for byte in bytes {
                match byte {
                    0..=31 | 127..=159 | 255 => writer.code(Part::Codes, (*byte).into()),
                    _ => writer.shown(&[*byte]),
                }
            }
        }
        Charset::Utf8 => {
            for chunk in bytes.utf8_chunks() {
                for character in chunk.valid().chars() {
                    let mut encoded = [0; 4];
                    let encoded = character.encode_utf8(&mut encoded).as_bytes();
                    if is_printable(character) {
                        writer.shown(encoded);
                    } else if is_noncharacter(character) {
                        encoded.iter().for_each(|byte| writer.code(Part::Bytes, (*byte).into()));
                    } else {
                        writer.code(Part::Codes, character.into());
                    }
                }
                chunk.invalid().iter().for_each(|byte| writer.code(Part::Bytes, (*byte).into()));
            }
        }
    }
    writer.shift(Part::None);
}

/// Reads a whole text as a string into `bytes`.
///
/// # Errors
/// What is wrong and where.
pub fn read_zwr(text: &[u8], charset: Charset, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
    bytes.clear();
    let end = read_quoted(text, 0, charset.codes(), bytes).map_err(|(at, what)| syntax(at, what))?;
    if end < text.len() {
        return Err(syntax(end, "expected the end of the value, or _ and more of it"));
    }
    Ok(())
}

/// Whether M shows a character as it is.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    if character.is_control() || is_noncharacter(character) {
        return false;
    }
    if character.is_whitespace() {
        return !matches!(character, '\u{2028}' | '\u{2029}');
    }
    // NB: the standard library keeps its table of printable characters to itself; a character that is
    // escaped behind another one is none of them.
    let mut text = [0; 5];
    let length = 1 + character.encode_utf8(&mut text[1..]).len();
    text[0] = b'a';
    let text = std::str::from_utf8(&text[..length]).unwrap_or("\u{ad}");
    text.escape_debug().nth(1) == Some(character)
}

/// Whether Unicode says that this is never going to be a character.
fn is_noncharacter(character: char) -> bool {
    let code = u32::from(character);
    code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Quoted,
    Codes,
    Bytes,
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    part: Part,
}

impl Writer<'_> {
    /// Closes the part before and opens another.
    fn shift(&mut self, part: Part) {
        match self.part {
            Part::None => {}
            Part::Quoted => self.out.push(b'"'),
            Part::Codes | Part::Bytes => self.out.push(b')'),
        }
        if self.part != Part::None && part != Part::None {
            self.out.push(b'_');
        }
        self.part = part;
        self.out.extend_from_slice(match part {
            Part::None => b"",
            Part::Quoted => b"\"",
            Part::Codes => b"$C(",
            Part::Bytes => b"$ZCH(",
        });
    }

    fn shown(&mut self, bytes: &[u8]) {
        if self.part != Part::Quoted {
            self.shift(Part::Quoted);
        }
        if bytes == b"\"" {
            self.out.push(b'"');
        }
        self.out.extend_from_slice(bytes);
    }

    fn code(&mut self, part: Part, code: u32) {
        if self.part == part {
            self.out.push(b',');
        } else {
            self.shift(part);
        }
        // A vector cannot fail as a writer.
        let _ = write!(self.out, "{code}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyBuf;
    use crate::text::read_key;

    /// Lines that GT.M V7.0-005 wrote.
    const BY_GTM: &[(Charset, &[u8])] = &[
        (Charset::M, b"^a(1,\"\xc3\xa9\")=\"\xc3\xa9\"_$C(127,128)_\"\xc8z\""),
        (Charset::M, b"^a(\"a\"_$C(0)_\"b\")=$C(1,2,255)_\"t\"_$C(10)"),
        (Charset::M, b"^a(-1.5)=\".5\""),
        (Charset::M, b"^a(\"\")=\"he said \"\"hi\"\"\""),
        (Charset::M, b"^%c(\"1E3\",.00001,1000000000000000000,\"1234567890123456789\")=\"\""),
        (Charset::Utf8, b"^a(1,\"\xc3\xa9\")=\"\xc3\xa9\"_$C(127,128)_$ZCH(200)_\"z\""),
        (Charset::Utf8, b"^u(173)=$C(173)"),
        (Charset::Utf8, b"^u(8232)=$C(8232)"),
        (Charset::Utf8, b"^u(57344)=$C(57344)"),
        (Charset::Utf8, b"^u(12288)=\"\xe3\x80\x80\""),
        (Charset::Utf8, b"^u(768)=\"\xcc\x80\""),
    ];

    #[test]
    fn lines_of_gtm_are_written_as_they_were_read() {
        for (charset, line) in BY_GTM {
            let mut key = KeyBuf::global("a").unwrap();
            let (_, end) = read_key(line, charset.codes(), &mut key).unwrap();
            assert_eq!(line[end], b'=');
            let (mut value, mut again) = (Vec::new(), Vec::new());
            read_zwr(&line[end + 1..], *charset, &mut value).unwrap();
            write_zwr_key(key.as_bytes(), *charset, &mut again).unwrap();
            again.push(b'=');
            write_zwr(&value, *charset, &mut again);
            assert_eq!(again, *line, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn integers_of_19_digits_are_no_numbers_to_m() {
        let mut key = KeyBuf::global("a").unwrap();
        key.push_int(i64::MAX).unwrap();
        let mut text = Vec::new();
        write_zwr_key(key.as_bytes(), Charset::M, &mut text).unwrap();
        assert_eq!(text, b"^a(\"9223372036854775807\")");
    }
}
