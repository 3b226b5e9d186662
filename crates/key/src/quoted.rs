//! Byte strings as readable text, in the manner of ZWRITE.
//!
//! Printable UTF-8 stands between quotes, a quote doubled; every byte of anything else (control
//! characters, invalid UTF-8) is a number in `$C(...)`; the parts are joined by `_`:
//! `"a""b"_$C(0,255)_"c"`. The numbers are bytes, not code points, so text and bytes convert both
//! ways without loss. The reader also takes `$CHAR`, `$ZCH` and `$ZCHAR`, in either case; where it is
//! told that `$C` means characters, as in extracts of M systems in UTF-8 mode, `$ZCH` still means bytes.

use std::fmt::{self, Write};

/// Writes `bytes` in quoted form.
///
/// # Errors
/// Only those of `out`.
pub fn write_quoted<W: Write + ?Sized>(bytes: &[u8], out: &mut W) -> fmt::Result {
    if bytes.is_empty() {
        return out.write_str("\"\"");
    }
    let mut writer = Writer { out, part: Part::None };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                let mut encoded = [0; 4];
                writer.codes(character.encode_utf8(&mut encoded).as_bytes())?;
            } else {
                writer.printable(character)?;
            }
        }
        writer.codes(chunk.invalid())?;
    }
    writer.close()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Quoted,
    Codes,
}

struct Writer<'o, W: Write + ?Sized> {
    out: &'o mut W,
    part: Part,
}

impl<W: Write + ?Sized> Writer<'_, W> {
    fn printable(&mut self, character: char) -> fmt::Result {
        if self.part != Part::Quoted {
            self.open(Part::Quoted, "\"")?;
        }
        if character == '"' {
            self.out.write_char('"')?;
        }
        self.out.write_char(character)
    }

    fn codes(&mut self, bytes: &[u8]) -> fmt::Result {
        for byte in bytes {
            if self.part == Part::Codes {
                self.out.write_char(',')?;
            } else {
                self.open(Part::Codes, "$C(")?;
            }
            write!(self.out, "{byte}")?;
        }
        Ok(())
    }

    fn open(&mut self, part: Part, start: &str) -> fmt::Result {
        if self.part != Part::None {
            self.close()?;
            self.out.write_char('_')?;
        }
        self.part = part;
        self.out.write_str(start)
    }

    fn close(&mut self) -> fmt::Result {
        match self.part {
            Part::None => Ok(()),
            Part::Quoted => self.out.write_char('"'),
            Part::Codes => self.out.write_char(')'),
        }
    }
}

/// What the numbers in `$C(...)` are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codes {
    /// Bytes: in Perilune's text, and in extracts of M systems in M mode.
    #[default]
    Bytes,
    /// Characters, written as UTF-8: in extracts in UTF-8 mode. `$ZCH(...)` holds bytes there, too.
    Characters,
}

/// Reads a whole text in quoted form.
///
/// # Errors
/// The offset of the first wrong byte and what was expected there.
pub fn parse_quoted(text: &[u8]) -> Result<Vec<u8>, (usize, &'static str)> {
    let mut bytes = Vec::new();
    let end = read_quoted(text, 0, Codes::Bytes, &mut bytes)?;
    if end < text.len() {
        return Err((end, "expected the end of the text or _"));
    }
    Ok(bytes)
}

/// Reads quoted form from `at` on, appending to `bytes`; returns where it ends.
pub(crate) fn read_quoted(
    text: &[u8],
    mut at: usize,
    codes: Codes,
    bytes: &mut Vec<u8>,
) -> Result<usize, (usize, &'static str)> {
    loop {
        at = match text.get(at) {
            Some(b'"') => read_string(text, at + 1, bytes)?,
            Some(b'$') => read_codes(text, at, codes, bytes)?,
            _ => return Err((at, "expected a string: \"...\" or $C(...)")),
        };
        if text.get(at) != Some(&b'_') {
            return Ok(at);
        }
        at += 1;
    }
}

fn read_string(text: &[u8], start: usize, bytes: &mut Vec<u8>) -> Result<usize, (usize, &'static str)> {
    let mut at = start;
    loop {
        let rest = &text[at..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'"')
            .ok_or((start - 1, "expected a closing quote for this one"))?;
        bytes.extend_from_slice(&rest[..length]);
        at += length + 1;
        if text.get(at) != Some(&b'"') {
            return Ok(at);
        }
        bytes.push(b'"');
        at += 1;
    }
}

fn read_codes(
    text: &[u8],
    start: usize,
    codes: Codes,
    bytes: &mut Vec<u8>,
) -> Result<usize, (usize, &'static str)> {
    let name = text[start..].iter().take(7).take_while(|byte| **byte != b'(').count();
    let is = |known: &[&str]| {
        let name = &text[start..start + name];
        known.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let of_bytes = is(&["$ZCH", "$ZCHAR"]);
    if !of_bytes && !is(&["$C", "$CHAR"]) || text.get(start + name) != Some(&b'(') {
        return Err((start, "expected $C(...) or $ZCH(...)"));
    }
    let mut at = start + name + 1;
    loop {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let code: Option<u32> =
            std::str::from_utf8(&text[at..at + digits]).ok().and_then(|digits| digits.parse().ok());
        if of_bytes || codes == Codes::Bytes {
            let byte = code.and_then(|code| u8::try_from(code).ok());
            bytes.push(byte.ok_or((at, "expected a byte from 0 to 255"))?);
        } else {
            let character =
                code.and_then(char::from_u32).ok_or((at, "expected the number of a character"))?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        at += digits;
        match text.get(at) {
            Some(b',') => at += 1,
            Some(b')') => return Ok(at + 1),
            _ => return Err((at, "expected , or )")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(bytes: &[u8]) -> String {
        let mut text = String::new();
        write_quoted(bytes, &mut text).unwrap();
        text
    }

    #[test]
    fn text_is_that_of_zwrite() {
        for (bytes, text) in [
            (&b""[..], "\"\""),
            (b"abc", "\"abc\""),
            (b"a\"b", "\"a\"\"b\""),
            (b"\x01", "$C(1)"),
            (b"\x01\x02x\xFF", "$C(1,2)_\"x\"_$C(255)"),
            ("é".as_bytes(), "\"é\""),
            (b"\x7F\xC2\x85", "$C(127,194,133)"),
        ] {
            assert_eq!(quoted(bytes), text);
            assert_eq!(parse_quoted(text.as_bytes()).unwrap(), bytes);
        }
        assert_eq!(parse_quoted(b"$zch(0)_\"a\"_$CHAR(10,9)").unwrap(), b"\0a\n\t");
    }

    #[test]
    fn wrong_text_is_located() {
        for (text, at) in [
            ("", 0),
            ("abc", 0),
            ("\"abc", 0),
            ("\"a\"b", 3),
            ("\"a\"_", 4),
            ("$C(256)", 3),
            ("$C()", 3),
            ("$C(1", 4),
            ("$X(1)", 0),
            ("$C", 0),
        ] {
            assert_eq!(parse_quoted(text.as_bytes()).unwrap_err().0, at, "{text}");
        }
    }
}
