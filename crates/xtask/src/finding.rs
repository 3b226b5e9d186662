//! One thing that a tidy rule found, printed as `file:line: rule: what, and what to do`.

use std::fmt;

/// A broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Name of the rule, for searching in the sources of xtask.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do about it.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        let (path, message) = (path.to_string(), message.into());
        Self { path, line, rule, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message } = self;
        write!(out, "{path}:{line}: {rule}: {message}")
    }
}
