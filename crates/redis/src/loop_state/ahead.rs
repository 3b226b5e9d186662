//! What a loop has parsed of the requests behind the one that is to run next, for `together`.

use perilune_resp::RequestParser;

use crate::command::Command;

/// Requests that have come and are not run.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    pub(crate) parsers: Vec<RequestParser>,
    /// The command of the request before, as which most are found again.
    pub(crate) last: Option<&'static Command>,
    /// So many requests are to run one by one, since together they have come to nothing.
    pub(crate) alone: usize,
}
