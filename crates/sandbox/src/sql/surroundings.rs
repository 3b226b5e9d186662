//! What functions of SQL reach besides statements: by default nodes; a server adds its commands.
//!
//! Invariants
//! - What is reached is in the transaction of the statement that calls the function.
//! - What its caller's user may not do is refused here: a function has no rights of its own.

use std::sync::LazyLock;

use perilune::Node;
use perilune_sql::{Asks, Error, Result};

use crate::graphs;
use crate::nodes::{self, Failure, Terms};
use crate::sandbox::{Format, HostFunction, Library, Offer, Question, Values};

/// The functions of [`library`], by their places.
pub(super) mod asked {
    /// Runs a statement.
    pub(crate) const RUN: usize = 0;
    /// Answers the next rows of what a function is called with, if there are any.
    pub(crate) const TAKE: usize = 1;
    /// Takes a row of what it answers.
    pub(crate) const GIVE: usize = 2;
}

static LIBRARY: Library = Library::new(
    c"sql",
    &[HostFunction::new(c"run"), HostFunction::new(c"take"), HostFunction::new(c"give")],
);
/// Where graphs stand in [`OFFER`].
const GRAPHS: usize = 2;
static OFFER: LazyLock<Offer> =
    LazyLock::new(|| Offer::new(&[&LIBRARY, Library::nodes(), graphs::library()], Format::values()));

/// The library of statements, which each [`Surroundings`] offers.
#[must_use]
pub fn library() -> &'static Library {
    &LIBRARY
}

/// What functions reach besides statements.
pub trait Surroundings {
    /// What sandboxes give functions: [`library`] among it, and a format of values.
    fn offer(&self) -> &'static Offer;

    /// Where [`library`] stands in the offer.
    fn place(&self) -> usize;

    /// Where [`graphs::library`] stands in the offer, if it does.
    fn graphs(&self) -> Option<usize> {
        None
    }

    /// Why functions do not reach what lies at a node, whatever their user may do; none: they do.
    fn refuses(&self, node: &Node) -> Option<String> {
        let _ = node;
        None
    }

    /// Names that functions find besides `SQL`, each with a statement of Lua on one line that makes it: for those that have it.
    fn names(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Answers a question to another library; what the function is to be told as an error is an answer, too.
    ///
    /// # Errors
    /// What ends the function, whatever it catches, and the statement with it.
    fn answer(&self, asks: &mut dyn Asks, question: Question<'_>, answer: &mut Vec<u8>) -> Result<()>;
}

/// In place of a server's commands, functions that say where those are; `alchemy` is another name of `client`.
const OF_A_SERVER: &[(&str, &str)] = &[
    (
        "redis",
        "local redis = setmetatable({}, {__index = function(_, name) error('redis.' .. tostring(name) .. \
            ' is at a server: run the statement by its command SQL', 0) end})",
    ),
    ("client", "local function client() error('client() is at a server: run the statement by its command SQL', 0) end"),
    ("alchemy", "local function alchemy() error('alchemy() is at a server: run the statement by its command SQL', 0) end"),
];

/// Nodes of the database, for who may do everything.
#[derive(Debug)]
pub(super) struct Nodes;

impl Surroundings for Nodes {
    fn offer(&self) -> &'static Offer {
        &OFFER
    }

    fn place(&self) -> usize {
        0
    }

    fn graphs(&self) -> Option<usize> {
        Some(GRAPHS)
    }

    fn names(&self) -> &'static [(&'static str, &'static str)] {
        OF_A_SERVER
    }

    fn answer(&self, asks: &mut dyn Asks, question: Question<'_>, answer: &mut Vec<u8>) -> Result<()> {
        let terms = Terms { writes: !asks.is_read_only(), fence: None, room: question.room, shipped: false };
        let start = answer.len();
        let outcome = nodes::answer(asks.session(), question.arguments, &terms, answer);
        tell(outcome, start, answer)
    }
}

/// Answers with what a function is told of a failure, which it may catch.
///
/// # Errors
/// What has the transaction run again.
pub(super) fn tell(outcome: nodes::Result<()>, start: usize, answer: &mut Vec<u8>) -> Result<()> {
    let told = match outcome {
        Ok(()) => return Ok(()),
        Err(Failure::Database(error)) if error.is_retry() => return Err(Error::from(error)),
        Err(Failure::Database(error)) => error.to_string(),
        Err(Failure::Refused(text)) => text.into_owned(),
    };
    answer.truncate(start);
    Values::new(answer).error(told.as_bytes());
    Ok(())
}
