//! Keys as text: `^name(1,"x",.5)`.
//!
//! A name with `^` is a global, without it a local. Numbers are bare, strings quoted as in
//! `quoted.rs`. A string that looks like a number without being canonical (19 digits, `1.0`) is
//! quoted, and the `i64` of the same digits is bare, so text keeps them apart. The reader takes any
//! numeric literal and its value (`007` is 7), takes quoted canonical numbers as the numbers they
//! are, and allows blanks around subscripts.

use std::fmt::{self, Write};

use crate::decimal::ArithmeticError;
use crate::decode::{split_name, subscripts};
use crate::error::KeyError;
use crate::key::{KeyBuf, MAX_ENCODED, MAX_ENCODED_LOCAL};
use crate::name::is_name_byte;
use crate::numeral::{parse_literal, LiteralError};
use crate::quoted::{read_quoted, Codes};

/// Where a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// In the database; written with `^`.
    Global,
    /// In the memory of the process; written without.
    Local,
}

/// A key read from text.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    /// Whether the text had a `^`.
    pub space: Space,
    /// The key.
    pub key: KeyBuf,
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.space == Space::Global {
            f.write_char('^')?;
        }
        write_key(self.key.as_bytes(), f)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why text is not a key, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The offset of the first wrong byte.
    pub at: usize,
    /// What is wrong there.
    pub problem: ParseProblem,
}

/// What is wrong with the text of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseProblem {
    /// The text does not continue as a key does; says what was expected.
    Syntax(&'static str),
    /// A number cannot be held exactly.
    Number(ArithmeticError),
    /// The key is too long, too deep or badly named.
    Key(KeyError),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of the key: {}", self.at, self.problem)
    }
}

impl fmt::Display for ParseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseProblem::Syntax(expected) => f.write_str(expected),
            ParseProblem::Number(error) => {
                write!(f, "{error}; or quote it to use it as a string")
            }
            ParseProblem::Key(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for ParseError {}

pub(crate) fn syntax(at: usize, expected: &'static str) -> ParseError {
    ParseError { at, problem: ParseProblem::Syntax(expected) }
}

fn invalid(at: usize) -> impl Fn(KeyError) -> ParseError {
    move |error| ParseError { at, problem: ParseProblem::Key(error) }
}

/// The text of an encoded key.
///
/// # Errors
/// As [`subscripts`] if the bytes are not an encoded key.
pub fn key_text(space: Space, key: &[u8]) -> Result<String, KeyError> {
    crate::decode::validate(key)?;
    let mut text = String::new();
    if space == Space::Global {
        text.push('^');
    }
    // A String cannot fail as a writer.
    let _ = write_key(key, &mut text);
    Ok(text)
}

/// Writes an encoded key without `^`. Damaged bytes are shown as `<malformed: ...>`.
///
/// # Errors
/// Only those of `out`.
pub fn write_key<W: Write + ?Sized>(key: &[u8], out: &mut W) -> fmt::Result {
    let (name, items) = match split_name(key).and_then(|(name, _)| Ok((name, subscripts(key)?))) {
        Ok(parts) => parts,
        Err(error) => return write!(out, "<{error}>"),
    };
    out.write_str(std::str::from_utf8(name).map_err(|_| fmt::Error)?)?;
    let mut separator = '(';
    for item in items {
        out.write_char(separator)?;
        match item {
            Ok(subscript) => write!(out, "{subscript}")?,
            Err(error) => write!(out, "<{error}>")?,
        }
        separator = ',';
    }
    if separator == ',' {
        out.write_char(')')?;
    }
    Ok(())
}

/// Reads a whole text as a key.
///
/// # Errors
/// What is wrong and where.
pub fn parse_key(text: impl AsRef<[u8]>) -> Result<KeyText, ParseError> {
    let text = text.as_ref();
    let limit = if text.first() == Some(&b'^') { MAX_ENCODED } else { MAX_ENCODED_LOCAL };
    let mut key = KeyBuf::with_limit("a", limit).map_err(invalid(0))?;
    let (space, end) = read_key(text, Codes::Bytes, &mut key)?;
    match text.get(end) {
        None => Ok(KeyText { space, key }),
        Some(_) if key.depth() > 0 => Err(syntax(end, "expected the end after )")),
        Some(_) => Err(syntax(end, "expected ( or the end")),
    }
}

/// Reads the key that `text` begins with into `key`, whose limit stays; answers where it lives and
/// where its text ends. After an error `key` is any key.
///
/// # Errors
/// What is wrong and where.
pub fn read_key(text: &[u8], codes: Codes, key: &mut KeyBuf) -> Result<(Space, usize), ParseError> {
    let (space, start) = match text.first() {
        Some(b'^') => (Space::Global, 1),
        _ => (Space::Local, 0),
    };
    let length = text[start..].iter().take_while(|&&byte| is_name_byte(byte)).count();
    key.set_name(&text[start..start + length]).map_err(invalid(start))?;
    let mut at = start + length;
    if text.get(at) != Some(&b'(') {
        return Ok((space, at));
    }
    loop {
        at = skip_blanks(text, at + 1);
        at = skip_blanks(text, read_subscript(text, at, codes, key)?);
        match text.get(at) {
            Some(b',') => {}
            Some(b')') => return Ok((space, at + 1)),
            _ => return Err(syntax(at, "expected , or )")),
        }
    }
}

fn skip_blanks(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|&&byte| byte == b' ').count()
}

/// Reads one subscript at `at` into `key`; returns where it ends.
fn read_subscript(text: &[u8], at: usize, codes: Codes, key: &mut KeyBuf) -> Result<usize, ParseError> {
    if matches!(text.get(at), Some(b'"' | b'$')) {
        let mut bytes = Vec::new();
        let end = read_quoted(text, at, codes, &mut bytes).map_err(|(at, what)| syntax(at, what))?;
        key.push_bytes(&bytes).map_err(invalid(at))?;
        return Ok(end);
    }
    let length = text[at..]
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        .count();
    let end = at + length;
    let number = parse_literal(&text[at..end]).map_err(|error| match error {
        LiteralError::Syntax(_) if length == 0 => syntax(at, "expected a number or a quoted string"),
        LiteralError::Syntax(offset) => syntax(at + offset, "expected a digit of a number"),
        LiteralError::Range(error) => ParseError { at, problem: ParseProblem::Number(error) },
    })?;
    key.push_number(number).map_err(invalid(at))?;
    Ok(end)
}

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(self.as_bytes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reprint(text: &str) -> String {
        parse_key(text).unwrap().to_string()
    }

    #[test]
    fn keys_print_as_they_parse() {
        for text in [
            "^a",
            "a",
            "%",
            "^a(1)",
            "^a.b_c%(\"\")",
            "^name(1,\"x\",.5,-34.56)",
            "^a(\"1234567890123456789\",1234567890123456789)",
            "^a($C(0)_\"x\"\"y\"_$C(255),\"1.0\",100000000000000000000)",
            "a(-9223372036854775808)",
        ] {
            assert_eq!(reprint(text), text);
        }
        assert_eq!(reprint("^a( 007 , 1.0,\"5\",1E3,+2)"), "^a(7,1,5,1000,2)");
    }

    #[test]
    fn wrong_text_is_located() {
        for (text, at) in [
            ("", 0),
            ("^", 1),
            ("^1", 1),
            ("^a b", 2),
            ("^a(", 3),
            ("^a()", 3),
            ("^a(1", 4),
            ("^a(1)x", 5),
            ("^a(1,)", 5),
            ("^a(x)", 3),
            ("^a(\"x)", 3),
            ("^a(1,1-1)", 6),
            ("^a(1,12345678901234567890)", 5),
            ("^a(1E99)", 3),
        ] {
            assert_eq!(parse_key(text).unwrap_err().at, at, "{text}");
        }
        let error = parse_key("^a(1,)").unwrap_err().to_string();
        assert!(error.contains("byte 5") && error.contains("expected"));
        assert!(parse_key("^a(,1)".as_bytes()).is_err());
    }

    #[test]
    fn damaged_keys_are_shown_not_hidden() {
        assert!(key_text(Space::Global, b"a\0\xFF").is_err());
        let mut text = String::new();
        write_key(b"a\0\xFF", &mut text).unwrap();
        assert!(text.starts_with("a(<malformed"), "{text}");
    }
}
