//! The one error type of the public API: what went wrong and what to do next.
//!
//! [`Error::Conflict`], [`Error::Restart`] and [`Error::Rollback`] are control flow of transactions:
//! a body hands them on unchanged (with `?`), and [`crate::Session::transaction`] acts on them.

use std::fmt;

use perilune_key::{ArithmeticError, KeyError, ParseError, ValueError};
use perilune_store::{write_lost, Error as StoreError, Holder};

/// The result of every operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What an operation can answer instead of its result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What the open transaction has read is no longer one state. Hand it on: the transaction runs again.
    Conflict,
    /// The body asks for its transaction to be run again from the outermost level.
    Restart,
    /// The body asks for its level to be rolled back; [`crate::Session::transaction`] returns this.
    Rollback,
    /// A name, a subscript or a key is not one.
    Key(KeyError),
    /// The text of a node is not one.
    Text(ParseError),
    /// A number is out of range or cannot be computed exactly.
    Number(ArithmeticError),
    /// A value's bytes are not one.
    Value(ValueError),
    /// The value has another type than the operation takes.
    WrongType {
        /// What the operation takes.
        wanted: &'static str,
        /// What the node holds.
        found: &'static str,
    },
    /// One of the two trees of a copy or merge contains the other.
    Overlap,
    /// The operation is one of nodes of the database, and the node is local (no `^`).
    LocalNode {
        /// What cannot be done.
        operation: &'static str,
    },
    /// The storage below answered.
    Store(StoreError),
    /// An error of the caller's own, carried out of a transaction's body.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// The kind of an error as a small number that never changes its meaning.
///
/// The C interface and the bindings hand these on. New kinds get new numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorCode {
    /// An option or argument is unknown or out of range.
    Invalid = 1,
    /// A name, subscript or text of a node is not one.
    InvalidKey = 2,
    /// The key is longer than its tree takes.
    KeyTooLong = 3,
    /// The value is longer than its tree takes.
    ValueTooLong = 4,
    /// A number is out of range or cannot be computed exactly.
    Number = 5,
    /// The value has another type than the operation takes.
    WrongType = 6,
    /// One tree of a copy or merge contains the other.
    Overlap = 7,
    /// Not possible for a local node.
    LocalNode = 8,
    /// A bounded resource is used up.
    LimitReached = 9,
    /// The transaction met a concurrent change and has to run again.
    Conflict = 10,
    /// The transaction asked to run again.
    Restart = 11,
    /// The transaction asked to be rolled back.
    Rollback = 12,
    /// The transaction reached its time limit.
    TransactionTimeout = 13,
    /// The operation needs an open transaction, or the reverse.
    TransactionState = 14,
    /// The transaction belongs to the parent of this forked process.
    Forked = 15,
    /// Waiting for the lock would close a circle.
    Deadlock = 16,
    /// The commit may or may not have happened.
    CommitUnknown = 17,
    /// The channel is full.
    ChannelFull = 18,
    /// The database was opened read-only.
    ReadOnly = 19,
    /// The file is no Perilune database, or none this version reads.
    NotADatabase = 20,
    /// The database cannot be opened now or here.
    CannotOpen = 21,
    /// No space left to grow.
    NoSpace = 22,
    /// The operating system refused.
    Io = 23,
    /// Writing has stopped after an I/O error.
    WritesStopped = 24,
    /// The database is damaged.
    Corrupt = 25,
    /// A function of the caller refused.
    Refused = 26,
    /// An invariant of Perilune failed.
    Internal = 27,
    /// An error of the caller's own.
    Other = 28,
    /// Committed, but not on disk.
    NotDurable = 29,
    /// Another process holds what is needed, and did not go on for the whole wait limit.
    Busy = 30,
    /// The database is not to be reached now; nothing has happened.
    Unavailable = 31,
}

impl ErrorCode {
    /// Every kind.
    const ALL: [ErrorCode; 31] = [
        ErrorCode::Invalid,
        ErrorCode::InvalidKey,
        ErrorCode::KeyTooLong,
        ErrorCode::ValueTooLong,
        ErrorCode::Number,
        ErrorCode::WrongType,
        ErrorCode::Overlap,
        ErrorCode::LocalNode,
        ErrorCode::LimitReached,
        ErrorCode::Conflict,
        ErrorCode::Restart,
        ErrorCode::Rollback,
        ErrorCode::TransactionTimeout,
        ErrorCode::TransactionState,
        ErrorCode::Forked,
        ErrorCode::Deadlock,
        ErrorCode::CommitUnknown,
        ErrorCode::ChannelFull,
        ErrorCode::ReadOnly,
        ErrorCode::NotADatabase,
        ErrorCode::CannotOpen,
        ErrorCode::NoSpace,
        ErrorCode::Io,
        ErrorCode::WritesStopped,
        ErrorCode::Corrupt,
        ErrorCode::Refused,
        ErrorCode::Internal,
        ErrorCode::Other,
        ErrorCode::NotDurable,
        ErrorCode::Busy,
        ErrorCode::Unavailable,
    ];

    /// The name by which servers and clients of theirs call it, as `KEY_TOO_LONG`. Never changes its meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::Invalid => "INVALID",
            ErrorCode::InvalidKey => "INVALID_KEY",
            ErrorCode::KeyTooLong => "KEY_TOO_LONG",
            ErrorCode::ValueTooLong => "VALUE_TOO_LONG",
            ErrorCode::Number => "NUMBER",
            ErrorCode::WrongType => "WRONG_TYPE",
            ErrorCode::Overlap => "OVERLAP",
            ErrorCode::LocalNode => "LOCAL_NODE",
            ErrorCode::LimitReached => "LIMIT_REACHED",
            ErrorCode::Conflict => "CONFLICT",
            ErrorCode::Restart => "RESTART",
            ErrorCode::Rollback => "ROLLBACK",
            ErrorCode::TransactionTimeout => "TRANSACTION_TIMEOUT",
            ErrorCode::TransactionState => "TRANSACTION_STATE",
            ErrorCode::Forked => "FORKED",
            ErrorCode::Deadlock => "DEADLOCK",
            ErrorCode::CommitUnknown => "COMMIT_UNKNOWN",
            ErrorCode::ChannelFull => "CHANNEL_FULL",
            ErrorCode::ReadOnly => "READ_ONLY",
            ErrorCode::NotADatabase => "NOT_A_DATABASE",
            ErrorCode::CannotOpen => "CANNOT_OPEN",
            ErrorCode::NoSpace => "NO_SPACE",
            ErrorCode::Io => "IO",
            ErrorCode::WritesStopped => "WRITES_STOPPED",
            ErrorCode::Corrupt => "CORRUPT",
            ErrorCode::Refused => "REFUSED",
            ErrorCode::Internal => "INTERNAL",
            ErrorCode::Other => "OTHER",
            ErrorCode::NotDurable => "NOT_DURABLE",
            ErrorCode::Busy => "BUSY",
            ErrorCode::Unavailable => "UNAVAILABLE",
        }
    }

    fn from_name(name: &str) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The number, as the C interface shows it.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }
}

impl Error {
    /// The error's kind.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Conflict => ErrorCode::Conflict,
            Error::Restart => ErrorCode::Restart,
            Error::Rollback => ErrorCode::Rollback,
            Error::Key(KeyError::KeyTooLong { .. }) => ErrorCode::KeyTooLong,
            Error::Key(KeyError::Malformed { .. }) | Error::Value(_) => ErrorCode::Corrupt,
            Error::Key(_) | Error::Text(_) => ErrorCode::InvalidKey,
            Error::Number(_) => ErrorCode::Number,
            Error::WrongType { .. } => ErrorCode::WrongType,
            Error::Overlap => ErrorCode::Overlap,
            Error::LocalNode { .. } => ErrorCode::LocalNode,
            Error::Store(error) => store_code(error),
            Error::Other(_) => ErrorCode::Other,
        }
    }

    /// Wraps an error of the caller's own, to carry it out of a transaction's body.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Other(error.into())
    }

    /// For which process it was waited in vain, of `Busy` and `TransactionTimeout`, if it was for one.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        match self {
            Error::Store(StoreError::Busy { holder, .. } | StoreError::TransactionTimeout { holder, .. }) => {
                *holder
            }
            _ => None,
        }
    }

    /// Whether a transaction's body that answers this is run again.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Error::Conflict | Error::Restart)
    }

    /// Whether a session has refused to read a long value, as [`crate::Serving::limit_reads`] has it.
    #[must_use]
    pub fn is_long_read(&self) -> bool {
        matches!(self, Error::Store(StoreError::LongRead { .. }))
    }

    /// The word for its kind that a server says, which is [`ErrorCode::name`] but for arithmetic.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Error::Number(error) => {
                ARITHMETIC.iter().find(|(known, _)| known == error).map_or("NUMBER", |(_, word)| word)
            }
            error => error.code().name(),
        }
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Error {
        Error::Store(StoreError::Invalid(why.into()))
    }
}

fn store_code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Conflict => ErrorCode::Conflict,
        StoreError::Restart => ErrorCode::Restart,
        StoreError::CommitUnknown { .. } => ErrorCode::CommitUnknown,
        StoreError::TransactionTimeout { .. } => ErrorCode::TransactionTimeout,
        StoreError::Deadlock => ErrorCode::Deadlock,
        StoreError::TransactionState(_) => ErrorCode::TransactionState,
        StoreError::Forked => ErrorCode::Forked,
        StoreError::KeyTooLong { .. } => ErrorCode::KeyTooLong,
        StoreError::ValueTooLong { .. } => ErrorCode::ValueTooLong,
        StoreError::LimitReached { .. } | StoreError::LongRead { .. } => ErrorCode::LimitReached,
        StoreError::ChannelFull => ErrorCode::ChannelFull,
        StoreError::ReadOnly => ErrorCode::ReadOnly,
        StoreError::NotADatabase { .. } => ErrorCode::NotADatabase,
        StoreError::CannotOpen { .. } => ErrorCode::CannotOpen,
        StoreError::NoSpace { .. } => ErrorCode::NoSpace,
        StoreError::Io { .. } => ErrorCode::Io,
        StoreError::NotDurable { .. } => ErrorCode::NotDurable,
        StoreError::Busy { .. } => ErrorCode::Busy,
        StoreError::Unavailable { .. } => ErrorCode::Unavailable,
        StoreError::WritesStopped { .. } | StoreError::Replaced { .. } => ErrorCode::WritesStopped,
        StoreError::Corrupt { .. } | StoreError::Lost { .. } => ErrorCode::Corrupt,
        StoreError::Refused(_) => ErrorCode::Refused,
        StoreError::Invalid(_) => ErrorCode::Invalid,
        StoreError::Answered { kind, .. } => ErrorCode::from_name(kind).unwrap_or(ErrorCode::Internal),
        _ => ErrorCode::Internal,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict => StoreError::Conflict.fmt(f),
            Error::Restart => StoreError::Restart.fmt(f),
            Error::Rollback => f.write_str("the transaction was rolled back, as its body asked"),
            Error::Key(error) => error.fmt(f),
            Error::Text(error) => error.fmt(f),
            Error::Number(error) => error.fmt(f),
            Error::Value(error) => error.fmt(f),
            Error::WrongType { wanted, found } => {
                write!(f, "the node holds {found}, not {wanted}: read it with `get`, or store {wanted} there")
            }
            Error::Overlap => f.write_str(
                "one of the two trees contains the other: copy to a tree outside, then move it from there",
            ),
            Error::LocalNode { operation } => {
                write!(f, "a local node cannot be {operation}: use a node of the database, whose name begins with ^")
            }
            Error::Store(StoreError::Lost { place, keys }) => {
                write_lost(f, place, &bound(&keys.0), &bound(&keys.1))
            }
            Error::Store(error) => error.fmt(f),
            Error::Other(error) => error.fmt(f),
        }
    }
}

/// The text of a key that bounds others, which may end anywhere in a subscript: as much of it as is one.
fn bound(key: &[u8]) -> String {
    let whole = (1..=key.len()).rev().find(|len| perilune_key::validate(&key[..*len]).is_ok());
    match whole {
        Some(len) if len == key.len() => Global(key).to_string(),
        Some(len) => format!("{}...", Global(&key[..len])),
        None => key.escape_ascii().to_string(),
    }
}

/// A node of the database, by its key.
struct Global<'k>(&'k [u8]);

impl fmt::Display for Global<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("^")?;
        perilune_key::write_key(self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Store(error) => std::error::Error::source(error),
            Error::Other(error) => error.source(),
            _ => None,
        }
    }
}

/// Every way in which arithmetic fails, and its word on the wire.
const ARITHMETIC: [(ArithmeticError, &str); 5] = [
    (ArithmeticError::Overflow, "NUMBER_OVERFLOW"),
    (ArithmeticError::Underflow, "NUMBER_UNDERFLOW"),
    (ArithmeticError::Inexact, "NUMBER_INEXACT"),
    (ArithmeticError::NotANumber, "NOT_A_NUMBER"),
    (ArithmeticError::Malformed, "NUMBER_MALFORMED"),
];

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict => Error::Conflict,
            StoreError::Restart => Error::Restart,
            // A sum that was made elsewhere fails there: its word says of which kind.
            StoreError::Answered { kind, .. } => {
                let known = ARITHMETIC.iter().find(|(_, word)| *word == kind);
                known.map_or(Error::Store(error), |(known, _)| Error::Number(*known))
            }
            other => Error::Store(other),
        }
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Error::Key(error)
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Error::Text(error)
    }
}

impl From<ArithmeticError> for Error {
    fn from(error: ArithmeticError) -> Self {
        Error::Number(error)
    }
}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Error::Value(error)
    }
}

#[cfg(test)]
mod tests {
    use perilune_remote::wire::WORDS;

    use super::*;

    /// What a server's word becomes at the client is of the same kind again.
    #[test]
    fn every_kind_has_a_word_on_the_wire() {
        for code in ErrorCode::ALL {
            assert!(WORDS.contains(&code.name()), "{code:?}");
            let kind = code.name();
            assert_eq!(Error::from(StoreError::Answered { kind, text: String::new() }).code(), code);
        }
        for (error, word) in ARITHMETIC {
            assert!(WORDS.contains(&word));
            assert_eq!(Error::Number(error).word(), word);
            let back = Error::from(StoreError::Answered { kind: word, text: error.to_string() });
            assert!(matches!(back, Error::Number(back) if back == error), "{back:?}");
        }
        assert_eq!(WORDS.len(), ErrorCode::ALL.len() + ARITHMETIC.len());
    }
}
