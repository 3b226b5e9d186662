//! A file of settings. A line is a name and its values; `#` begins a comment line; values with blanks stand in quotes;
//! `include` reads another file there.
//!
//! ```text
//! # who may come
//! bind 127.0.0.1 -::1
//! motto "as it \"is\""
//! include more.conf
//! ```
//!
//! Invariants
//! - An error names the file and the line.
//! - Rewritten, a file keeps its comments and its order. Killed at any time, it is the old file or the new one.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::table::{Id, Setting, Table};
use crate::files::replace;

/// Files that include one another at most.
const DEPTH: usize = 16;

/// Why a settings file could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// It could not be read.
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A line says something that is not understood.
    Line {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        text: String,
    },
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            FileError::Line { path, line, text } => write!(f, "{}:{line}: {text}", path.display()),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FileError::Io { source, .. } => Some(source),
            FileError::Line { .. } => None,
        }
    }
}

/// What takes a line: its name and its values; an error says what is wrong with them.
type Take<'t> = dyn FnMut(&str, &[String]) -> Result<(), String> + 't;

/// Reads the file at `path` and what it includes, line by line.
///
/// # Errors
/// A file that cannot be read, or a line that is not understood.
pub fn read(path: &Path, take: &mut Take<'_>) -> Result<(), FileError> {
    read_at(path, 0, take)
}

fn read_at(path: &Path, depth: usize, take: &mut Take<'_>) -> Result<(), FileError> {
    let text = fs::read_to_string(path).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    for (index, line) in text.lines().enumerate() {
        let wrong = |text: String| FileError::Line { path: path.to_owned(), line: index + 1, text };
        let words = words(line).map_err(|text| wrong(text.to_owned()))?;
        let Some((name, values)) = words.split_first() else { continue };
        if !name.eq_ignore_ascii_case("include") {
            take(name, values).map_err(wrong)?;
            continue;
        }
        match values {
            [_] if depth == DEPTH => {
                return Err(wrong(format!("files include one another more than {DEPTH} deep")));
            }
            [other] => {
                let beside = path.parent().unwrap_or_else(|| Path::new("")).join(other);
                read_at(&beside, depth + 1, take)?;
            }
            _ => return Err(wrong("include takes one file".to_owned())),
        }
    }
    Ok(())
}

/// The words of a line, quotes and escapes undone; none of a comment.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    if rest.starts_with('#') {
        return Ok(words);
    }
    while !rest.is_empty() {
        let (word, used) = word(rest)?;
        words.push(word);
        rest = rest[used..].trim_start();
    }
    Ok(words)
}

/// The first word of `text`, and how many bytes of it that took.
fn word(text: &str) -> Result<(String, usize), &'static str> {
    let mut word = String::new();
    let mut letters = text.char_indices();
    let mut quote = None;
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => return Ok((word, at)),
            (None, '"' | '\'') if word.is_empty() => quote = Some(letter),
            (Some(open), letter) if letter == open => {
                let end = at + letter.len_utf8();
                if text[end..].chars().next().is_some_and(|next| !next.is_whitespace()) {
                    return Err("a blank must follow a closing quote");
                }
                return Ok((word, end));
            }
            (Some('"'), '\\') => match letters.next() {
                Some((_, 'n')) => word.push('\n'),
                Some((_, 'r')) => word.push('\r'),
                Some((_, 't')) => word.push('\t'),
                Some((_, other)) => word.push(other),
                None => break,
            },
            (Some('\''), '\\') if text[at + 1..].starts_with('\'') => {
                letters.next();
                word.push('\'');
            }
            _ => word.push(letter),
        }
    }
    match quote {
        Some(_) => Err("a quote is not closed"),
        None => Ok((word, text.len())),
    }
}

/// A value as it stands in a file.
fn quoted(value: &str, many: bool) -> String {
    let plain = |letter: char| !letter.is_whitespace() && !"\"'\\#".contains(letter) || many && letter == ' ';
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ => text.push(letter),
        }
    }
    text.push('"');
    text
}

/// Writes the file at `path` anew: lines that set what `values` names say what it says; what no line says and is not the
/// default comes at the end, behind a line `mark`. Lines of what has no value go.
///
/// # Errors
/// The system's; then the file is as it was.
pub fn rewrite<N: Id>(
    path: &Path,
    table: &Table<N>,
    values: &[(&'static Setting<N>, Option<String>)],
    mark: &str,
) -> io::Result<()> {
    let old = fs::read_to_string(path)?;
    let (mut text, mut said) = (String::new(), Vec::new());
    for line in old.lines() {
        let name = words(line).ok().and_then(|words| words.into_iter().next());
        let setting = name.as_deref().and_then(|name| table.find(name));
        match setting.and_then(|setting| values.iter().find(|(known, _)| known.id == setting.id)) {
            Some((setting, _)) if said.contains(&setting.name) => {}
            Some((_, None)) => {}
            Some((setting, Some(value))) => {
                said.push(setting.name);
                let _ = writeln!(text, "{} {}", setting.name, quoted(value, setting.kind.takes_many()));
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    let mut marked = text.contains(mark);
    for (setting, value) in values {
        let Some(value) = value else { continue };
        if said.contains(&setting.name) || *value == setting.default {
            continue;
        }
        if !std::mem::replace(&mut marked, true) {
            let _ = writeln!(text, "{mark}");
        }
        let _ = writeln!(text, "{} {}", setting.name, quoted(value, setting.kind.takes_many()));
    }
    // Settings may have a password.
    replace(path, 0o600, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::TABLE;
    use super::*;

    #[test]
    fn lines_are_split_into_words() {
        let good: [(&str, &[&str]); 6] = [
            ("  # maxclients 3", &[]),
            ("save \"\"", &["save", ""]),
            ("bind 127.0.0.1  -::1", &["bind", "127.0.0.1", "-::1"]),
            ("requirepass \"a \\\"b\\\" \\\\\"", &["requirepass", "a \"b\" \\"]),
            ("x 'it\\'s \\n'", &["x", "it's \\n"]),
            ("a pa#ss", &["a", "pa#ss"]),
        ];
        for (line, expected) in good {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert!(words("a \"b").is_err() && words("a 'b'c").is_err());
        for value in ["", "a b", "\"\\'", "x#", "tab\t", "é"] {
            let line = format!("requirepass {}", quoted(value, false));
            assert_eq!(words(&line).unwrap(), ["requirepass", value]);
        }
    }

    #[test]
    fn files_are_read_with_what_they_include_and_written_anew() {
        let place = std::env::temp_dir().join(format!("perilune-settings-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let (main, more, own) = (place.join("main.conf"), place.join("more.conf"), place.join("own.conf"));
        fs::write(&main, "# first\nmax 4\nINCLUDE more.conf\nother thing\n").unwrap();
        fs::write(&more, "bind a 'b c'\n").unwrap();
        fs::write(&own, "x\ninclude own.conf\n").unwrap();
        let mut lines = Vec::new();
        let mut take = |name: &str, values: &[String]| match name {
            "x" => Ok(()),
            "wrong" => Err("no".to_owned()),
            _ => {
                lines.push(format!("{name}={}", values.join("+")));
                Ok(())
            }
        };
        read(&main, &mut take).unwrap();
        assert!(read(&own, &mut take)
            .unwrap_err()
            .to_string()
            .ends_with("own.conf:2: files include one another more than 16 deep"));
        fs::write(&more, "\nwrong\n").unwrap();
        assert!(read(&main, &mut take).unwrap_err().to_string().ends_with("more.conf:2: no"));
        assert_eq!(lines, ["max=4", "bind=a+b c", "other=thing", "max=4"]);

        let values: Vec<_> =
            TABLE.rows.iter().zip(["a b", "9"]).map(|(row, text)| (row, Some(text.to_owned()))).collect();
        rewrite(&main, &TABLE, &values, "# added").unwrap();
        let written = fs::read_to_string(&main).unwrap();
        assert_eq!(written, "# first\nlimit 9\nINCLUDE more.conf\nother thing\n# added\nbind a b\n");
        let values: Vec<_> = TABLE.rows.iter().map(|row| (row, None)).collect();
        rewrite(&main, &TABLE, &values, "# added").unwrap();
        let written = fs::read_to_string(&main).unwrap();
        assert_eq!(written, "# first\nINCLUDE more.conf\nother thing\n# added\n");
        fs::remove_dir_all(&place).unwrap();
    }
}
