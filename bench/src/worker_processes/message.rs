//! What the suite and its workers say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::subject::{Passage, Tree};
use crate::workload::{Order, Outcome};

/// What the suite asks of a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Load so many keys, with the values of a stamp; accounts get the same balance each.
    Fill(Tree, u64),
    /// Load so many keys in an order without order.
    Scatter(Tree, u64),
    /// Read one value.
    Get(Tree, u64),
    /// Walk a tree with its values.
    Scan(Tree),
    /// Warm up for a round, and wait for [`Request::Go`].
    Prepare(Order),
    /// Run the round.
    Go,
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The database is open and has answered a first get; the nanoseconds that took.
    Opened(u64),
    /// What was asked is done.
    Done,
    Value(Option<i64>),
    Passage(Passage),
    /// Warmed up.
    Ready,
    Outcome(Outcome),
    /// The peer's error, or a wrong result.
    Failed(String),
}
