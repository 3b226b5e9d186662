//! What running Lua code can answer instead of its results.
//!
//! Example: a script that cannot open its database ends with [`HostError::Raised`], whose code is `CANNOT_OPEN`; the
//! program `perilune` chooses its exit code by that.
//!
//! Invariant: an error has a text for people, with the place in the script where there is one.

use std::path::PathBuf;
use std::{fmt, io};

/// The result of what a [`crate::Host`] does.
pub type Result<T> = std::result::Result<T, HostError>;

/// Why code did not run to its end.
#[derive(Debug)]
pub enum HostError {
    /// The script's file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The code is not Lua.
    Syntax {
        /// Place and cause.
        message: String,
        /// Whether more code could make it Lua.
        incomplete: bool,
    },
    /// The code raised an error that nobody caught.
    Raised {
        /// Its text and a traceback.
        message: String,
        /// The code of an error of Perilune, as `CANNOT_OPEN`.
        code: Option<String>,
    },
    /// Lua itself failed: no memory, or an error in handling an error.
    Lua(mlua::Error),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Unreadable { path, source } => {
                write!(f, "cannot read {}: {source}; check the path and its permissions", path.display())
            }
            HostError::Syntax { message, .. } | HostError::Raised { message, .. } => f.write_str(message),
            HostError::Lua(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for HostError {}

impl From<mlua::Error> for HostError {
    fn from(error: mlua::Error) -> HostError {
        match error {
            mlua::Error::SyntaxError { message, incomplete_input } => {
                HostError::Syntax { message, incomplete: incomplete_input }
            }
            mlua::Error::RuntimeError(message) => HostError::Raised { message, code: None },
            other => HostError::Lua(other),
        }
    }
}
