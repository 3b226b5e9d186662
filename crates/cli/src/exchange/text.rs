//! Perilune's own text format: a node, `=`, and a value whose form tells its type, as `^person(21,"name")="Ada"`.

use perilune::key::{read_key, read_value, write_key, write_value, Codes, KeyBuf, Space};
use perilune::{Batch, NodeRef, ValueRef};

use crate::exchange::format::Wrong;

/// Reads lines of text.
#[derive(Default)]
pub(crate) struct Parser {
    key: Option<KeyBuf>,
    string: Vec<u8>,
}

impl Parser {
    /// Takes a line; blank ones say nothing.
    pub(crate) fn line(&mut self, line: &[u8], batch: &mut Batch) -> Result<(), Wrong> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let (key, end) = read_node(&mut self.key, line, Codes::Bytes)?;
        let value = read_value(&line[end..], &mut self.string)
            .map_err(|error| Wrong::new(end + error.at, error.problem))?;
        batch.push(NodeRef::from_encoded(key.as_bytes(), false), value).map_err(|error| Wrong::new(0, error))
    }
}

/// Reads the key that a line begins with, and the `=` behind it; answers where the value begins.
pub(crate) fn read_node<'k>(
    kept: &'k mut Option<KeyBuf>,
    line: &[u8],
    codes: Codes,
) -> Result<(&'k KeyBuf, usize), Wrong> {
    let key = match kept {
        Some(key) => key,
        None => kept.insert(KeyBuf::global("a").map_err(|error| Wrong::new(0, error))?),
    };
    if line.first() != Some(&b'^') {
        return Err(Wrong::new(0, "expected ^ and the name of a global"));
    }
    let (space, end) = read_key(line, codes, key).map_err(|error| Wrong::new(error.at, error.problem))?;
    debug_assert_eq!(space, Space::Global);
    if line.get(end) != Some(&b'=') {
        return Err(Wrong::new(end, if key.depth() > 0 { "expected =" } else { "expected ( or =" }));
    }
    Ok((key, end + 1))
}

/// Appends a line.
pub(crate) fn write(key: &[u8], value: &ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let mut text = Utf8(out);
    let written = std::fmt::Write::write_char(&mut text, '^')
        .and_then(|()| write_key(key, &mut text))
        .and_then(|()| std::fmt::Write::write_char(&mut text, '='))
        .and_then(|()| write_value(value, &mut text));
    out.push(b'\n');
    written.map_err(|_| "its name is damaged".to_owned())
}

/// Bytes that text is appended to.
pub(crate) struct Utf8<'o>(pub(crate) &'o mut Vec<u8>);

impl std::fmt::Write for Utf8<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_located() {
        let mut parser = Parser::default();
        for (line, at, expected) in [
            ("a(1)=2", 0, "expected ^"),
            ("^a(1)", 5, "expected ="),
            ("^a 1", 2, "expected ( or ="),
            ("^a(1,)=2", 5, "expected a number or a quoted string"),
            ("^a(1)=x", 6, "expected a value"),
            ("^a(1)=\"x", 6, "expected a closing quote"),
            ("^a(1)=\"x\"y", 9, "expected the end of the value"),
            ("^a(1)=12345678901234567890", 6, "quote it"),
        ] {
            let wrong = parser.line(line.as_bytes(), &mut Batch::new()).unwrap_err();
            assert!(wrong.at == at && wrong.what.contains(expected), "{line}: {wrong:?}");
        }
    }
}
