//! `perilune.conf`: the syntax of redis.conf. A line is a name and its values; `#` begins a comment line;
//! values with blanks stand in quotes; `include` reads another file there.
//!
//! Invariant: an error names the file and the line. What Redis alone has, and means nothing here, is passed over and
//! remembered, to be told.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fixed::{foreign, Foreign};
use super::{find, known, SettingError, Settings};
use perilune_net::files::replace;

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

impl Settings {
    /// Applies the file at `path`, and remembers it for CONFIG REWRITE.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that is not understood.
    pub fn read_file(&mut self, path: &Path) -> Result<(), FileError> {
        self.read(path, 0)?;
        self.file = Some(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        Ok(())
    }

    fn read(&mut self, path: &Path, depth: usize) -> Result<(), FileError> {
        let text =
            fs::read_to_string(path).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        for (index, line) in text.lines().enumerate() {
            let wrong = |text: String| FileError::Line { path: path.to_owned(), line: index + 1, text };
            let words = words(line).map_err(|text| wrong(text.to_owned()))?;
            let Some((name, values)) = words.split_first() else { continue };
            match (&*name.to_ascii_lowercase(), values) {
                ("include", [_]) if depth == DEPTH => {
                    return Err(wrong(format!("files include one another more than {DEPTH} deep")));
                }
                ("include", [other]) => {
                    let beside = path.parent().unwrap_or_else(|| Path::new("")).join(other);
                    self.read(&beside, depth + 1)?;
                }
                ("include", _) => return Err(wrong("include takes one file".to_owned())),
                ("user", [_, ..]) => self.users.push(values.to_vec()),
                ("save", [none]) if none.is_empty() => {}
                (lower, values) if find(lower).is_none() || lower == "save" => {
                    self.pass_over(name, values).map_err(|error| wrong(error.to_string()))?;
                }
                _ => self.set_words(name, values).map_err(|error| wrong(error.to_string()))?,
            }
        }
        Ok(())
    }

    /// Takes a line of redis.conf that sets nothing here, if it asks for nothing that matters.
    fn pass_over(&mut self, name: &str, values: &[String]) -> Result<(), SettingError> {
        match foreign(name, &values.join(" ")) {
            Some(Foreign::So) => {}
            Some(Foreign::Vain(vain)) if self.passed_over.contains(&vain) => {}
            Some(Foreign::Vain(vain)) => self.passed_over.push(vain),
            Some(Foreign::Refused(why)) => return Err(SettingError::invalid(name, &why)),
            None => return known(name).map(drop),
        }
        Ok(())
    }

    /// Sets `name` to `values`, which only some settings take several of.
    pub(crate) fn set_words(&mut self, name: &str, values: &[String]) -> Result<(), SettingError> {
        let many = find(name).is_some_and(|setting| setting.kind.takes_many());
        match values {
            [value] => self.set(name, value),
            [] | [_, _, ..] if many => self.set(name, &values.join(" ")),
            _ => {
                // An unknown name is the greater mistake.
                known(name)?;
                Err(SettingError::invalid(name, "takes one value; one with blanks stands in quotes"))
            }
        }
    }
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

/// Writes `path` anew: lines that set what `values` names say what it says; what no line says and is not the
/// default comes at the end. Lines of what has no value go. Comments stay. Killed at any time, it is the old file or the new one.
pub(crate) fn rewrite(path: &Path, values: &[(&'static super::Setting, Option<String>)]) -> io::Result<()> {
    const MARK: &str = "# Generated by CONFIG REWRITE";
    let old = fs::read_to_string(path)?;
    let (mut text, mut said) = (String::new(), Vec::new());
    for line in old.lines() {
        let name = words(line).ok().and_then(|words| words.into_iter().next());
        let setting = name.as_deref().and_then(find);
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
    let mut marked = text.contains(MARK);
    for (setting, value) in values {
        let Some(value) = value else { continue };
        if said.contains(&setting.name) || *value == setting.default {
            continue;
        }
        if !std::mem::replace(&mut marked, true) {
            let _ = writeln!(text, "{MARK}");
        }
        let _ = writeln!(text, "{} {}", setting.name, quoted(value, setting.kind.takes_many()));
    }
    // Settings may have a password.
    replace(path, 0o600, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_in_redis_conf() {
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
}
