//! Why an operation of a node is not done.

use std::borrow::Cow;

use perilune::Error;

/// What a question is answered instead.
#[derive(Debug)]
pub enum Failure {
    /// What the script is told.
    Refused(Cow<'static, str>),
    /// The database's; a conflict among them, which runs the transaction again.
    Database(Error),
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Failure>;

pub(super) fn refuse<T>(text: &'static str) -> Result<T> {
    Err(Failure::Refused(Cow::Borrowed(text)))
}

pub(super) fn refuse_with<T>(text: String) -> Result<T> {
    Err(Failure::Refused(Cow::Owned(text)))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Database(error)
    }
}
