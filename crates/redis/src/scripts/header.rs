//! The first line of a script, `#!lua flags=...`, and of a library, `#!lua name=...`: what it says.

use perilune_resp::{Progress, RequestParser};

/// Flags of scripts and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// It writes nothing, and is refused when it tries to.
    pub(crate) no_writes: bool,
    /// Each of its calls is a transaction by itself.
    pub(crate) non_atomic: bool,
    /// Those of Redis that mean nothing here are kept, and allow-oom is for FUNCTION LIST: allow-oom, allow-stale, no-cluster,
    /// allow-cross-slot-keys.
    others: [bool; 4],
    /// It says of itself what it does; scripts without a first line do not.
    pub(crate) declared: bool,
}

/// Flags that change nothing here, and the one about memory, which is the first.
const OTHERS: [&str; 4] = ["allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

impl Flags {
    /// Those of what says of itself what it does, as yet nothing.
    pub(crate) fn declared() -> Flags {
        Flags { declared: true, ..Flags::default() }
    }

    /// Whether it may write although memory is short.
    pub(crate) fn allows_oom(self) -> bool {
        self.others[0]
    }

    /// Adds the flag called so; false if there is none.
    pub(crate) fn add(&mut self, name: &str) -> bool {
        match name {
            "no-writes" => self.no_writes = true,
            "non-atomic" => self.non_atomic = true,
            _ => match OTHERS.iter().position(|other| *other == name) {
                Some(place) => self.others[place] = true,
                None => return false,
            },
        }
        true
    }

    /// Their names.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.no_writes {
            names.push("no-writes");
        }
        names.extend(OTHERS.iter().zip(self.others).filter(|(_, set)| *set).map(|(name, _)| *name));
        if self.non_atomic {
            names.push("non-atomic");
        }
        names
    }
}

/// The first line of `source`, if it says something, and the code, whose lines keep their numbers.
fn first_line(source: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = source.iter().position(|byte| *byte == b'\n')?;
    Some(source.split_at(end))
}

/// The flags that the first line of a script says, if it says any, and the code; or what is wrong, in the words of Redis.
pub(crate) fn split(source: &[u8]) -> Result<(Option<Flags>, &[u8]), String> {
    if !source.starts_with(b"#!") {
        return Ok((None, source));
    }
    let Some((line, code)) = first_line(source) else { return Err("ERR Invalid script shebang".to_owned()) };
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    let mut known = Flags::declared();
    for word in words {
        let Some(flags) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}"));
        };
        for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
            if !known.add(flag) {
                return Err(format!("ERR Unexpected flag in script shebang: {flag}"));
            }
        }
    }
    Ok((Some(known), code))
}

/// The name that the first line of a library says, whose words may stand in quotes, and the code; or what is wrong.
pub(crate) fn library(source: &[u8]) -> Result<(String, &[u8]), String> {
    let wrong = |text: &str| Err(format!("ERR {text}"));
    if !source.starts_with(b"#!") {
        return wrong("Missing library metadata");
    }
    let Some((line, code)) = first_line(source) else { return wrong("Invalid library metadata") };
    let line = [line, b"\r\n"].concat();
    let mut parser = RequestParser::default();
    let Ok(Progress::Complete { .. }) = parser.parse(&line, true) else {
        return wrong("Invalid library metadata");
    };
    let words: Vec<_> = parser.arguments(&line).iter().map(String::from_utf8_lossy).collect();
    let mut name = None;
    for word in &words[1..] {
        match word.split_at_checked(5) {
            Some((label, text)) if label.eq_ignore_ascii_case("name=") => {
                if name.replace(text).is_some() {
                    return wrong("Invalid metadata value, name argument was given multiple times");
                }
            }
            _ => return Err(format!("ERR Invalid metadata value given: {word}")),
        }
    }
    let Some(name) = name else { return wrong("Library name was not given") };
    if !is_name(name) {
        return wrong(NAMES);
    }
    let engine = &words[0][2..];
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("ERR Engine '{engine}' not found"));
    }
    Ok((name.to_owned(), code))
}

/// What is wrong with a name that is none.
pub(crate) const NAMES: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// Whether a library or a function may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_say_what_they_do() {
        assert_eq!(split(b"return 1"), Ok((None, &b"return 1"[..])));
        let (flags, code) = split(b"#!lua flags=no-writes,non-atomic\nreturn 1").unwrap();
        let flags = flags.unwrap();
        assert_eq!(code, b"\nreturn 1");
        assert!(flags.no_writes && flags.non_atomic);
        assert_eq!(flags.names(), ["no-writes", "non-atomic"]);
        for (source, error) in [
            (&b"#!lua"[..], "ERR Invalid script shebang"),
            (b"#!sh\n", "ERR Unexpected engine in script shebang: #!sh"),
            (b"#!lua flags=x\n", "ERR Unexpected flag in script shebang: x"),
            (b"#!lua x=1\n", "ERR Unknown lua shebang option: x=1"),
        ] {
            assert_eq!(split(source), Err(error.to_owned()));
        }
    }

    #[test]
    fn libraries_say_their_names() {
        for source in [&b"#!LUA name=lib\nreturn"[..], b"#!lua  NAME=\"lib\" \nreturn"] {
            assert_eq!(library(source), Ok(("lib".to_owned(), &b"\nreturn"[..])));
        }
        for (source, error) in [
            (&b"#!lua name=a"[..], "ERR Invalid library metadata"),
            (b"#!lua name=\"a\n", "ERR Invalid library metadata"),
            (b"#! name=a\n", "ERR Engine '' not found"),
            (b"#!lua name=a name=b\n", "ERR Invalid metadata value, name argument was given multiple times"),
        ] {
            assert_eq!(library(source), Err(error.to_owned()));
        }
    }
}
