//! The first line of a script, `#!lua name=... flags=...`: what it says of the script.

/// What a script says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Of a library.
    pub(crate) name: Option<String>,
    pub(crate) flags: Flags,
}

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

/// Splits `source` into what its first line says, if that is a header, and the code, whose lines keep their
/// numbers; or says what is wrong, in the words of Redis.
pub(crate) fn split(source: &[u8]) -> Result<(Option<Header>, &[u8]), String> {
    if !source.starts_with(b"#!") {
        return Ok((None, source));
    }
    let Some(end) = source.iter().position(|byte| *byte == b'\n') else {
        return Err("ERR Invalid script shebang".to_owned());
    };
    let line = String::from_utf8_lossy(&source[..end]).into_owned();
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    let mut header = Header { name: None, flags: Flags::declared() };
    for word in words {
        if let Some(flags) = word.strip_prefix("flags=") {
            for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
                if !header.flags.add(flag) {
                    return Err(format!("ERR Unexpected flag in script shebang: {flag}"));
                }
            }
        } else if let Some(name) = word.strip_prefix("name=") {
            header.name = Some(name.to_owned());
        } else {
            return Err(format!("ERR Unknown lua shebang option: {word}"));
        }
    }
    Ok((Some(header), &source[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_they_say() {
        assert_eq!(split(b"return 1"), Ok((None, &b"return 1"[..])));
        let (header, code) = split(b"#!lua name=lib flags=no-writes,non-atomic\nreturn 1").unwrap();
        let header = header.unwrap();
        assert_eq!((header.name.as_deref(), code), (Some("lib"), &b"\nreturn 1"[..]));
        assert!(header.flags.no_writes && header.flags.non_atomic);
        assert_eq!(header.flags.names(), ["no-writes", "non-atomic"]);
        for (source, error) in [
            (&b"#!lua"[..], "ERR Invalid script shebang"),
            (b"#!sh\n", "ERR Unexpected engine in script shebang: #!sh"),
            (b"#!lua flags=x\n", "ERR Unexpected flag in script shebang: x"),
            (b"#!lua x=1\n", "ERR Unknown lua shebang option: x=1"),
        ] {
            assert_eq!(split(source), Err(error.to_owned()));
        }
    }
}
