//! What can go wrong with a document, list or key/value store, and what to do then.
//!
//! Inside a transaction errors travel as [`perilune::Error`], with `?`; outside they are told apart again.

use std::fmt;

use perilune::{Session, TransactionOptions};

/// The result of every call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Nothing of it has happened then.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The database answered; conflicts among them, which a transaction's body hands on.
    Database(perilune::Error),
    /// The text is not JSON.
    Json(String),
    /// The node holds what JSON cannot say.
    NotJson(String),
    /// The node has children that are no list's.
    NotAList(String),
    /// An index has a transform that is none of the three known ones.
    Transform(String),
    /// A call by a name that there is not, or with arguments that it does not take.
    Call(String),
    /// The nodes contradict each other.
    Damaged(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Database(error) => error.fmt(f),
            Error::Json(what) => write!(f, "the text is no JSON: {what}"),
            Error::NotJson(node) => {
                write!(f, "{node} has bytes that are no UTF-8, or no finite number, which JSON cannot say: read it by node")
            }
            Error::NotAList(node) => {
                write!(f, "{node} has children that are no list's: give the list a node of its own")
            }
            Error::Transform(name) => write!(
                f,
                "the index has the transform {name:?}, which only JSdb can load: use toLowerCase, toString or toInteger"
            ),
            Error::Call(what) => f.write_str(what),
            Error::Damaged(what) => write!(f, "the nodes contradict each other: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<perilune::Error> for Error {
    fn from(error: perilune::Error) -> Error {
        match error {
            perilune::Error::Other(other) => match other.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Error::Database(perilune::Error::Other(other)),
            },
            error => Error::Database(error),
        }
    }
}

impl From<Error> for perilune::Error {
    fn from(error: Error) -> perilune::Error {
        match error {
            Error::Database(error) => error,
            own => perilune::Error::other(own),
        }
    }
}

/// Runs `body` as one transaction, or as a level of the one that is open.
pub(crate) fn change<R>(session: &mut Session, mut body: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
    Ok(session.transaction(|session| body(session).map_err(perilune::Error::from))?)
}

/// Runs `body` so that all it reads is one state.
pub(crate) fn look<R>(session: &mut Session, mut body: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    Ok(session.transaction_with(&options, |session| body(session).map_err(perilune::Error::from))?)
}
