//! What a running function asks for, and who answers that.
//!
//! Invariants
//! - What asks for the transaction to be run again ends the function, whatever it catches.
//! - A DETERMINISTIC function is told nothing but what it was called with.
//! - Rows that a function has given, and what it has written into graphs, count as its memory.

use std::ops::ControlFlow;
use std::slice::Chunks;

use perilune::Serving;
use perilune_sql::{Asks, Change, Error, Function, Result, Shape, Value};

use super::convert::{parameters, tell, tell_change, tell_rows, values};
use super::surroundings::{asked, tell as tell_failure, Surroundings};
use crate::graphs::{self, Graphs};
use crate::nodes::Failure;
use crate::sandbox::{Answers, Question, Values};

/// What a function is called with besides its arguments.
pub(super) enum Feed<'a> {
    Nothing,
    /// Rows of a group in batches, their values one behind the other.
    Group(Chunks<'a, Value>),
    /// The change of a row that a trigger is called for.
    Change(&'a Change<'a>),
}

/// What answers a run. One is made for each row of a statement, so it holds no more than it is told.
pub(super) struct Bridge<'a> {
    asks: &'a mut dyn Asks,
    around: &'a dyn Surroundings,
    function: &'a Function,
    feed: Feed<'a>,
    kept: Option<Box<Kept>>,
}

/// What is kept of a run that asks for more than statements.
#[derive(Default)]
struct Kept {
    graphs: Graphs,
    /// Rows that the function has given, and their bytes.
    given: Vec<Vec<Value>>,
    bytes: usize,
    /// Why it was ended.
    failure: Option<Error>,
}

impl<'a> Bridge<'a> {
    pub(super) fn new(
        asks: &'a mut dyn Asks,
        around: &'a dyn Surroundings,
        function: &'a Function,
        feed: Feed<'a>,
    ) -> Bridge<'a> {
        Bridge { asks, around, function, feed, kept: None }
    }

    /// The rows that the function has given.
    pub(super) fn given(self) -> Vec<Vec<Value>> {
        self.kept.map(|kept| kept.given).unwrap_or_default()
    }

    /// Why it was ended.
    pub(super) fn failure(&mut self) -> Option<Error> {
        self.kept.as_mut()?.failure.take()
    }

    /// Runs a statement.
    fn run(&mut self, question: &Question<'_>, answer: &mut Vec<u8>) -> Result<()> {
        let start = answer.len();
        let Some((text, parameters)) = parameters(question) else {
            Values::new(answer)
                .error(b"SQL takes a statement, then its parameters: strings, numbers, booleans, nil");
            return Ok(());
        };
        match self.asks.query(&text, &parameters) {
            Ok((rows, outcome)) => {
                tell_rows(&rows, outcome, &mut Values::new(answer));
                if answer.len() - start > question.room {
                    answer.truncate(start);
                    Values::new(answer)
                        .error(b"the rows take more memory than a function has: ask for fewer");
                }
            }
            // The engine's errors are not for functions: they may have the statement run again.
            Err(error) if error.engine().is_some() => return Err(error),
            Err(error) => {
                Values::new(answer).error(format!("{} {}", error.state(), error.message()).as_bytes());
            }
        }
        Ok(())
    }

    /// Tells the next batch: how many values there are, and those.
    fn take(&mut self, answer: &mut Vec<u8>) {
        let batches = match &mut self.feed {
            Feed::Nothing => return,
            Feed::Change(change) => return tell_change(change, &mut Values::new(answer)),
            Feed::Group(batches) => batches,
        };
        let Some(batch) = batches.next() else { return };
        let mut values = Values::new(answer);
        values.list(batch.len() + 1);
        values.integer(batch.len() as i64);
        batch.iter().for_each(|value| tell(value, &mut values));
    }

    /// Does something with a graph, in the statement's transaction and with its user's rights.
    fn graph(&mut self, question: &Question<'_>, answer: &mut Vec<u8>) -> Result<()> {
        let start = answer.len();
        let Bridge { asks, around, kept, .. } = self;
        let Kept { graphs, bytes, .. } = &mut **kept.get_or_insert_default();
        let outcome = match graphs.wanted(question) {
            Ok(wanted) => match around.refuses(&wanted.root) {
                Some(why) => Err(Failure::Refused(why.into())),
                None => match asks.graph(&wanted.root, wanted.writes) {
                    Ok(session) => {
                        // What it writes stands in memory until the commit, so it counts as the function's.
                        let before = session.pending_bytes();
                        session.limit_pending(before + question.keeps);
                        let outcome = graphs.answer(session, question, answer);
                        session.limit_pending(usize::MAX);
                        *bytes += session.pending_bytes().saturating_sub(before);
                        outcome
                    }
                    Err(error) => {
                        Err(Failure::Refused(format!("{} {}", error.state(), error.message()).into()))
                    }
                },
            },
            Err(failure) => Err(failure),
        };
        tell_failure(outcome, start, answer)
    }

    /// Keeps a row.
    fn give(&mut self, question: &Question<'_>) {
        let mut row = values(question, 0);
        let width = match &self.function.shape {
            Shape::Rows(columns) => columns.len(),
            Shape::Value | Shape::Aggregate | Shape::Change => 0,
        };
        row.resize(width, Value::Null);
        let long = |value: &Value| match value {
            Value::Text(bytes) | Value::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        let kept = self.kept.get_or_insert_default();
        kept.bytes += size_of::<Vec<Value>>() + row.len() * size_of::<Value>();
        kept.bytes += row.iter().map(long).sum::<usize>();
        kept.given.push(row);
    }
}

impl Answers for Bridge<'_> {
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let is_own = question.library == self.around.place();
        let done = match question.function {
            asked::TAKE if is_own => {
                self.take(answer);
                Ok(())
            }
            asked::GIVE if is_own => {
                self.give(&question);
                Ok(())
            }
            _ if self.function.is_deterministic => {
                // What it is given decides alone what it answers: the planner relies on it.
                let what = b"a DETERMINISTIC function asks for nothing: neither SQL nor nodes nor commands";
                Values::new(answer).error(what);
                Ok(())
            }
            asked::RUN if is_own => self.run(&question, answer),
            _ if self.around.graphs() == Some(question.library) => self.graph(&question, answer),
            _ => self.around.answer(self.asks, question, answer),
        };
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.kept.get_or_insert_default().failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn module(&mut self, name: &[u8], answer: &mut Vec<u8>) -> ControlFlow<()> {
        if self.around.graphs().is_some() {
            answer.extend(graphs::module(name).unwrap_or_default().as_bytes());
        }
        ControlFlow::Continue(())
    }

    fn kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes)
    }
}
