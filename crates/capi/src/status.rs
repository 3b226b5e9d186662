//! What functions return: the codes of `enum perilune_status`, and how errors become them.
//!
//! Invariants
//! - Positive codes are answers, negative ones errors; a code never changes its meaning.
//! - A failure with a fixed text allocates nothing: a call that asks how large a buffer must be ends in such a
//!   failure.

use std::borrow::Cow;
use std::ffi::{c_int, CStr, CString};

use perilune::key::{ArithmeticError, KeyError, ParseError};
use perilune::{Error, ErrorCode};

pub(crate) const OK: c_int = 0;
pub(crate) const NOT_FOUND: c_int = 1;
pub(crate) const TIMED_OUT: c_int = 2;
pub(crate) const DIFFERENT: c_int = 3;
pub(crate) const CONFLICT: c_int = -1;
pub(crate) const RESTART: c_int = -2;
pub(crate) const ROLLBACK: c_int = -3;
pub(crate) const TRANSACTION_TIMEOUT: c_int = -4;
pub(crate) const TRANSACTION_STATE: c_int = -5;
pub(crate) const DEADLOCK: c_int = -6;
pub(crate) const COMMIT_UNKNOWN: c_int = -7;
pub(crate) const FORKED: c_int = -8;
pub(crate) const INVALID: c_int = -9;
pub(crate) const INVALID_NAME: c_int = -10;
pub(crate) const TOO_MANY_SUBSCRIPTS: c_int = -11;
pub(crate) const KEY_TOO_LONG: c_int = -12;
pub(crate) const VALUE_TOO_LONG: c_int = -13;
pub(crate) const NOT_A_NUMBER: c_int = -14;
pub(crate) const NUMBER_OVERFLOW: c_int = -15;
pub(crate) const LIMIT_REACHED: c_int = -16;
pub(crate) const CHANNEL_FULL: c_int = -17;
pub(crate) const BUFFER_TOO_SMALL: c_int = -18;
pub(crate) const CLOSED: c_int = -19;
pub(crate) const READ_ONLY: c_int = -20;
pub(crate) const NOT_A_DATABASE: c_int = -21;
pub(crate) const CANNOT_OPEN: c_int = -22;
pub(crate) const NO_SPACE: c_int = -23;
pub(crate) const IO: c_int = -24;
pub(crate) const WRITES_STOPPED: c_int = -25;
pub(crate) const CORRUPT: c_int = -26;
pub(crate) const OUT_OF_MEMORY: c_int = -27;
pub(crate) const INTERNAL: c_int = -28;
pub(crate) const NOT_DURABLE: c_int = -31;
pub(crate) const BUSY: c_int = -32;
pub(crate) const UNAVAILABLE: c_int = -33;
pub(crate) const SQL: c_int = -34;
pub(crate) const GRAPH: c_int = -35;
pub(crate) const DOM: c_int = -36;
pub(crate) const OVERLAP: c_int = -29;
pub(crate) const PRIVATE: c_int = -30;
pub(crate) const USER: c_int = -1000;

/// Every code with its name in the header.
pub(crate) const NAMES: &[(c_int, &CStr)] = &[
    (OK, c"PERILUNE_OK"),
    (NOT_FOUND, c"PERILUNE_NOT_FOUND"),
    (TIMED_OUT, c"PERILUNE_TIMED_OUT"),
    (DIFFERENT, c"PERILUNE_DIFFERENT"),
    (CONFLICT, c"PERILUNE_CONFLICT"),
    (RESTART, c"PERILUNE_RESTART"),
    (ROLLBACK, c"PERILUNE_ROLLBACK"),
    (TRANSACTION_TIMEOUT, c"PERILUNE_TRANSACTION_TIMEOUT"),
    (TRANSACTION_STATE, c"PERILUNE_TRANSACTION_STATE"),
    (DEADLOCK, c"PERILUNE_DEADLOCK"),
    (COMMIT_UNKNOWN, c"PERILUNE_COMMIT_UNKNOWN"),
    (FORKED, c"PERILUNE_FORKED"),
    (INVALID, c"PERILUNE_INVALID"),
    (INVALID_NAME, c"PERILUNE_INVALID_NAME"),
    (TOO_MANY_SUBSCRIPTS, c"PERILUNE_TOO_MANY_SUBSCRIPTS"),
    (KEY_TOO_LONG, c"PERILUNE_KEY_TOO_LONG"),
    (VALUE_TOO_LONG, c"PERILUNE_VALUE_TOO_LONG"),
    (NOT_A_NUMBER, c"PERILUNE_NOT_A_NUMBER"),
    (NUMBER_OVERFLOW, c"PERILUNE_NUMBER_OVERFLOW"),
    (LIMIT_REACHED, c"PERILUNE_LIMIT_REACHED"),
    (CHANNEL_FULL, c"PERILUNE_CHANNEL_FULL"),
    (BUFFER_TOO_SMALL, c"PERILUNE_BUFFER_TOO_SMALL"),
    (CLOSED, c"PERILUNE_CLOSED"),
    (READ_ONLY, c"PERILUNE_READ_ONLY"),
    (NOT_A_DATABASE, c"PERILUNE_NOT_A_DATABASE"),
    (CANNOT_OPEN, c"PERILUNE_CANNOT_OPEN"),
    (NO_SPACE, c"PERILUNE_NO_SPACE"),
    (IO, c"PERILUNE_IO"),
    (WRITES_STOPPED, c"PERILUNE_WRITES_STOPPED"),
    (CORRUPT, c"PERILUNE_CORRUPT"),
    (OUT_OF_MEMORY, c"PERILUNE_OUT_OF_MEMORY"),
    (INTERNAL, c"PERILUNE_INTERNAL"),
    (NOT_DURABLE, c"PERILUNE_NOT_DURABLE"),
    (BUSY, c"PERILUNE_BUSY"),
    (UNAVAILABLE, c"PERILUNE_UNAVAILABLE"),
    (SQL, c"PERILUNE_SQL"),
    (GRAPH, c"PERILUNE_GRAPH"),
    (DOM, c"PERILUNE_DOM"),
    (OVERLAP, c"PERILUNE_OVERLAP"),
    (PRIVATE, c"PERILUNE_PRIVATE"),
    (USER, c"PERILUNE_USER"),
];

/// An error on its way to the caller: its code and its text.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    pub(crate) text: Cow<'static, CStr>,
}

/// What a function answers: a code that is no error, or a failure.
pub(crate) type Answer = Result<c_int, Failure>;

impl Failure {
    /// A failure with a fixed text.
    pub(crate) const fn fixed(status: c_int, text: &'static CStr) -> Failure {
        Failure { status, text: Cow::Borrowed(text) }
    }

    /// A failure with a text made for the occasion.
    pub(crate) fn with(status: c_int, text: impl std::fmt::Display) -> Failure {
        let mut bytes = text.to_string().into_bytes();
        // A C string ends at its first zero byte, and texts may quote the user's bytes.
        bytes.retain(|&byte| byte != 0);
        Failure { status, text: Cow::Owned(CString::new(bytes).unwrap_or_default()) }
    }

    /// A bad argument.
    pub(crate) const fn invalid(text: &'static CStr) -> Failure {
        Failure::fixed(INVALID, text)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Failure {
        let status = match error {
            KeyError::InvalidName => INVALID_NAME,
            KeyError::SubscriptTooLong | KeyError::KeyTooLong { .. } => KEY_TOO_LONG,
            KeyError::TooManySubscripts => TOO_MANY_SUBSCRIPTS,
            KeyError::Malformed { .. } => INVALID,
        };
        Failure::with(status, error)
    }
}

impl From<ParseError> for Failure {
    fn from(error: ParseError) -> Failure {
        Failure::with(INVALID, error)
    }
}

impl From<ArithmeticError> for Failure {
    fn from(error: ArithmeticError) -> Failure {
        Failure::with(arithmetic_status(error), error)
    }
}

fn arithmetic_status(error: ArithmeticError) -> c_int {
    match error {
        ArithmeticError::Overflow | ArithmeticError::Underflow | ArithmeticError::Inexact => NUMBER_OVERFLOW,
        ArithmeticError::NotANumber => NOT_A_NUMBER,
        ArithmeticError::Malformed => CORRUPT,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Conflict => {
                Failure::fixed(CONFLICT, c"the transaction met a concurrent change and has to run again")
            }
            Error::Restart => Failure::fixed(RESTART, c"the transaction asked to run again"),
            Error::Key(error) => {
                let mut failure = Failure::from(error);
                if matches!(error, KeyError::Malformed { .. }) {
                    failure.status = CORRUPT;
                }
                failure
            }
            Error::Number(error) => Failure::from(error),
            other => Failure::with(status_of(other.code()), other),
        }
    }
}

fn status_of(code: ErrorCode) -> c_int {
    match code {
        ErrorCode::Invalid | ErrorCode::InvalidKey | ErrorCode::Refused => INVALID,
        ErrorCode::KeyTooLong => KEY_TOO_LONG,
        ErrorCode::ValueTooLong => VALUE_TOO_LONG,
        ErrorCode::Number => NUMBER_OVERFLOW,
        ErrorCode::WrongType => NOT_A_NUMBER,
        ErrorCode::Overlap => OVERLAP,
        ErrorCode::LocalNode => PRIVATE,
        ErrorCode::LimitReached => LIMIT_REACHED,
        ErrorCode::Conflict => CONFLICT,
        ErrorCode::Restart => RESTART,
        ErrorCode::Rollback => ROLLBACK,
        ErrorCode::TransactionTimeout => TRANSACTION_TIMEOUT,
        ErrorCode::TransactionState => TRANSACTION_STATE,
        ErrorCode::Forked => FORKED,
        ErrorCode::Deadlock => DEADLOCK,
        ErrorCode::CommitUnknown => COMMIT_UNKNOWN,
        ErrorCode::ChannelFull => CHANNEL_FULL,
        ErrorCode::ReadOnly => READ_ONLY,
        ErrorCode::NotADatabase => NOT_A_DATABASE,
        ErrorCode::CannotOpen => CANNOT_OPEN,
        ErrorCode::NoSpace => NO_SPACE,
        ErrorCode::Io => IO,
        ErrorCode::WritesStopped => WRITES_STOPPED,
        ErrorCode::NotDurable => NOT_DURABLE,
        ErrorCode::Busy => BUSY,
        ErrorCode::Unavailable => UNAVAILABLE,
        ErrorCode::Corrupt => CORRUPT,
        _ => INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_named() {
        for (index, (code, name)) in NAMES.iter().enumerate() {
            assert!(name.to_bytes().starts_with(b"PERILUNE_"));
            assert!(NAMES[..index].iter().all(|(other, _)| other != code), "{code} twice");
        }
    }

    #[test]
    fn texts_lose_their_zero_bytes() {
        let failure = Failure::with(INVALID, "a\0b");
        assert_eq!(failure.text.to_bytes(), b"ab");
    }
}
