//! Requests typed by hand: words on a line, with quotes, as `redis-cli` and telnet send them.
//!
//! Example: `set greeting "hello \x41"` has the words `set`, `greeting` and `hello A`.
//!
//! Invariant: a line without an end is bounded ([`crate::limits::LINE_BYTES`]).

use crate::arguments::Span;

/// The quotes of the line do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unbalanced;

/// Splits `line` into words, appended to `text` and named by `spans`.
pub(crate) fn split(line: &[u8], text: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), Unbalanced> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let start = text.len();
        rest = word(rest, text)?.trim_ascii_start();
        spans.push([start, text.len()]);
    }
    Ok(())
}

/// Takes one word off the front of `rest`.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    while let [byte, after @ ..] = rest {
        match byte {
            b'"' => return closed(double_quoted(after, text)?),
            b'\'' => return closed(single_quoted(after, text)?),
            byte if byte.is_ascii_whitespace() || *byte == 0 => return Ok(after),
            byte => text.push(*byte),
        }
        rest = after;
    }
    Ok(rest)
}

/// Behind a closing quote a blank or the end must follow.
fn closed(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok(rest),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Unbalanced),
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (16 * nibble(*high) + nibble(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescaped(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Unbalanced),
            [b'\'', after @ ..] => return Ok(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, Unbalanced> {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split(line, &mut text, &mut spans)?;
        Ok(spans.iter().map(|&[start, end]| text[start..end].to_vec()).collect())
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        assert_eq!(words(b" set  k v "), Ok(vec![b"set".to_vec(), b"k".to_vec(), b"v".to_vec()]));
        assert_eq!(
            words(b"a \"b c\\x41\\n\" 'd\\'\\n'"),
            Ok(vec![b"a".to_vec(), b"b cA\n".to_vec(), b"d'\\n".to_vec()])
        );
        assert_eq!(words(b"\"\""), Ok(vec![Vec::new()]));
        for wrong in [&b"\"a"[..], b"'a", b"\"a\"b", b"\"a\\"] {
            assert_eq!(words(wrong), Err(Unbalanced), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
