//! Why a command answers an error, and how engine errors are said to clients.
//!
//! A command can be wrong in itself (`WRONGTYPE`), which is its answer; or its transaction has met others, which nobody is
//! told: it runs again. Both are one type, so that `?` does the right thing in a handler.
//!
//! Example: `refuse("ERR no such key")` is an answer; a conflict that comes out of `keys.session.get(..)?` ends the try.
//!
//! Invariant: what a client is told of the engine's errors begins with a word in capitals that programs can compare.

use std::borrow::Cow;
use std::fmt;

use perilune::{Error, ErrorCode};
use perilune_resp::Replies;
use perilune_sandbox::nodes::Failure as NodeFailure;

/// What a handler answers instead of its reply.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A text for the client, its code first.
    Reply(Cow<'static, str>),
    /// It takes longer than an event loop can be spared for: it is to run aside.
    TakesLong,
    /// The database answered; a conflict among them, which runs the command again.
    Database(Error),
}

/// The result of a handler.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

pub(crate) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub(crate) const NOT_FLOAT: &str = "ERR value is not a valid float";
pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NO_KEY: &str = "ERR no such key";
pub(crate) const INDEX_RANGE: &str = "ERR index out of range";
pub(crate) const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// Refuses with a text for the client.
pub(crate) fn refuse<T>(text: &'static str) -> Result<T> {
    Err(Failure::Reply(Cow::Borrowed(text)))
}

/// Refuses with a text made for the occasion.
pub(crate) fn refuse_with<T>(text: String) -> Result<T> {
    Err(Failure::Reply(Cow::Owned(text)))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<NodeFailure> for Failure {
    fn from(failure: NodeFailure) -> Failure {
        match failure {
            NodeFailure::Refused(text) => Failure::Reply(text),
            NodeFailure::Database(error) => Failure::Database(error),
        }
    }
}

/// A refusal on its way out of a transaction's body.
#[derive(Debug)]
struct Refusal(Cow<'static, str>);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// [`Failure::TakesLong`] on its way out.
#[derive(Debug)]
struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this takes too long here")
    }
}

impl std::error::Error for TooLong {}

/// Whether an operation has happened although it answers an error.
pub(crate) fn has_happened(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::NotDurable | ErrorCode::CommitUnknown)
}

/// What an operation for `count` requests has answered. None: it has happened, but who asked is told an error, each of them;
/// to run one of them again would do it twice.
///
/// # Errors
/// The operation's, which has not happened.
pub(crate) fn told(
    done: perilune::Result<bool>,
    count: usize,
    replies: &mut Replies<'_>,
) -> Result<Option<bool>> {
    match done {
        Err(error) if has_happened(&error) => {
            (0..count).for_each(|_| replies.error(&text_of(&error)));
            Ok(None)
        }
        done => Ok(Some(done?)),
    }
}

/// Whether it is to run aside.
pub(crate) fn takes_long(error: &Error) -> bool {
    matches!(error, Error::Other(inner) if inner.is::<TooLong>())
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::TakesLong => Error::other(TooLong),
            Failure::Reply(text) => Error::other(Refusal(text)),
            Failure::Database(error) => error,
        }
    }
}

/// The line that a client is told.
pub(crate) fn text_of(error: &Error) -> Cow<'static, str> {
    if let Error::Other(inner) = error {
        if let Some(Refusal(text)) = inner.downcast_ref::<Refusal>() {
            return text.clone();
        }
    }
    let code = match error.code() {
        ErrorCode::NoSpace => "OOM",
        ErrorCode::WritesStopped | ErrorCode::Io => "MISCONF",
        // NB: it has happened; whoever takes it for MISCONF does it again.
        ErrorCode::NotDurable => "NOTDURABLE",
        ErrorCode::ReadOnly => "READONLY",
        ErrorCode::Busy => "BUSY",
        _ => "ERR",
    };
    Cow::Owned(format!("{code} {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use perilune_resp::Protocol;

    /// Requests that were one operation share its error if it has happened; those behind them have not asked for it.
    #[test]
    fn what_has_happened_is_told_to_each_who_asked() {
        let mut out = Vec::new();
        let mut replies = Replies::new(&mut out, Protocol::Resp2);
        let failed = perilune_store::Error::NotDurable { why: "the disk".to_owned() };
        assert!(matches!(told(Err(failed.into()), 2, &mut replies), Ok(None)));
        assert!(matches!(told(Ok(true), 3, &mut replies), Ok(Some(true))));
        assert!(told(Err(Error::Conflict), 3, &mut replies).is_err());
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("-NOTDURABLE ").count(), 2, "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
