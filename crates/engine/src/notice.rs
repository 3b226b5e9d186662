//! What the library says on the standard error of its process, if $PERILUNE_LOG asks for it.
//!
//! Invariants
//! - Nothing is said by default: the terminal is the program's. Nothing is said of single operations.
//! - A line is one write: those of several processes do not mix.
//!
//! Deliberately absent: files, times and rotation (whoever collects the lines has them); results, which the
//! caller gets.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::{env, process};

/// How much is said; each level says what those before it say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing.
    Off,
    /// What went wrong and nobody could be told: a sweep that failed.
    Error,
    /// Opened, closed, recovered, repaired.
    Info,
}

/// What $PERILUNE_LOG asks for, read once.
fn asked() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match env::var("PERILUNE_LOG") {
        Ok(text) => level(&text).unwrap_or_else(|| {
            say("error", &format!("PERILUNE_LOG is off, error or info, not `{text}`: info is taken"));
            Level::Info
        }),
        Err(_) => Level::Off,
    })
}

fn level(text: &str) -> Option<Level> {
    match text {
        "" | "off" => Some(Level::Off),
        "error" => Some(Level::Error),
        "info" => Some(Level::Info),
        _ => None,
    }
}

fn say(word: &str, text: &str) {
    let line = format!("perilune[{}]: {word}: {text}\n", process::id());
    // Nobody is left to tell that the standard error cannot be written.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Says what has happened, if that is wanted; else `text` is not made.
pub(crate) fn info(text: impl FnOnce() -> String) {
    if asked() >= Level::Info {
        say("info", &text());
    }
}

/// Says what went wrong.
pub(crate) fn error(text: impl FnOnce() -> String) {
    if asked() >= Level::Error {
        say("error", &text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_include_those_before() {
        assert!(Level::Info > Level::Error && Level::Error > Level::Off);
        let known = ["", "off", "error", "info"].map(level);
        assert_eq!(known, [Some(Level::Off), Some(Level::Off), Some(Level::Error), Some(Level::Info)]);
        assert_eq!(level("debug"), None);
    }
}
