//! Why a command failed: a text for the user, and the exit code (1 found something wrong, 2 wrong use, 3
//! environment).

use std::process::ExitCode;
use std::{fmt, io};

use perilune::ErrorCode;
use perilune_luahost::HostError;

/// The result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// What kind of failure: its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The program ran and found something wrong, or a script raised an error.
    Found = 1,
    /// Words that it does not understand.
    Use = 2,
    /// Something is missing, full or not permitted.
    Environment = 3,
}

/// A text for the user, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

/// Something wrong was found.
pub(crate) fn found(message: impl Into<String>) -> Failure {
    Failure { kind: Kind::Found, message: message.into() }
}

/// The program was called wrongly.
pub(crate) fn wrong_use(message: impl Into<String>) -> Failure {
    Failure { kind: Kind::Use, message: message.into() }
}

/// The machine cannot do it now.
pub(crate) fn environment(message: impl Into<String>) -> Failure {
    Failure { kind: Kind::Environment, message: message.into() }
}

/// For `map_err`: an I/O error with what was being done.
pub(crate) fn doing(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Failure {
    move |error| environment(format!("cannot {what}: {error}"))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<perilune::Error> for Failure {
    fn from(error: perilune::Error) -> Failure {
        let kind = match error.code() {
            ErrorCode::Invalid => Kind::Use,
            ErrorCode::CannotOpen
            | ErrorCode::NotADatabase
            | ErrorCode::NoSpace
            | ErrorCode::Io
            | ErrorCode::Unavailable
            | ErrorCode::ReadOnly
            | ErrorCode::NotDurable
            | ErrorCode::WritesStopped => Kind::Environment,
            _ => Kind::Found,
        };
        Failure { kind, message: ours(error.to_string()) }
    }
}

/// With the option of the program beside that of the library.
fn ours(text: String) -> String {
    text.replace("open it with read_only=true", "open it with --read-only (read_only=true)")
}

/// Without our name, which is put before it anyway, and the frames below the script, which are ours.
fn readable(text: &str) -> String {
    let text = text.strip_prefix("perilune: ").unwrap_or(text);
    let frames = |line: &&str| !line.starts_with("\t[C]: at 0x") && !line.starts_with("\t[builtin#");
    text.lines().filter(frames).collect::<Vec<_>>().join("\n")
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        let outside = [
            "CANNOT_OPEN",
            "UNAVAILABLE",
            "NOT_A_DATABASE",
            "NO_SPACE",
            "IO",
            "READ_ONLY",
            "WRITES_STOPPED",
            "NOT_DURABLE",
        ];
        let kind = match &error {
            HostError::Unreadable { .. } => Kind::Environment,
            HostError::Raised { code: Some(code), .. } if outside.contains(&code.as_str()) => {
                Kind::Environment
            }
            _ => Kind::Found,
        };
        Failure { kind, message: ours(readable(&error.to_string())) }
    }
}
