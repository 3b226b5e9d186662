//! Aggregates of the schema as SQLite knows them: rows of a group are kept, and the function is called once for all of them.
//!
//! One call for a group costs a part of what one for each row would, and the function keeps what it likes between its rows. A
//! window is a group that loses its first rows: so each aggregate is one of windows, too, called once for each of their answers.
//!
//! Invariants
//! - What the rows of a group take is bounded.
//! - A statement that has failed calls no more functions, though SQLite asks for the end of its groups.

use std::collections::VecDeque;
use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{Aggregate, Arguments, Failure, Output, Window};

use crate::error::{Error, Result, SqlState};
use crate::function::Function;
use crate::limits::GROUP_BYTES;
use crate::stage::Stage;
use crate::value::Value;

/// An aggregate.
pub(super) struct Folding {
    pub(super) stage: Rc<Stage>,
    pub(super) function: Rc<Function>,
}

/// The rows of a group, one behind the other.
#[derive(Default)]
pub(super) struct Group {
    values: VecDeque<Value>,
    bytes: usize,
}

/// What a value takes.
fn size(value: &Value) -> usize {
    let bytes = match value {
        Value::Text(bytes) | Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
    };
    size_of::<Value>() + bytes
}

impl Folding {
    fn take_in(&self, group: &mut Group, arguments: Arguments<'_>) -> Result<()> {
        self.stage.host()?.needs_whole()?;
        let mut push = |value: Value| {
            group.bytes += size(&value);
            group.values.push_back(value);
        };
        if arguments.is_empty() {
            // A row without values counts, too.
            push(Value::Null);
        }
        (0..arguments.len()).for_each(|at| push(Value::of(arguments.at(at).get())));
        if group.bytes > GROUP_BYTES {
            let what = format!(
                "{} is given more than {} MiB of rows of one group: group them finer",
                self.function.name,
                GROUP_BYTES >> 20
            );
            return Err(Error::new(SqlState::LIMIT, what));
        }
        Ok(())
    }

    /// Calls the function for the rows that there are.
    fn answer(
        &self,
        session: &mut Session,
        group: &mut Group,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        let host = self.stage.host().map_err(|error| self.stage.fail(error))?;
        let value = host.fold(session, &self.function, group.values.make_contiguous());
        output.set(value.map_err(|error| self.stage.fail(error))?.as_ref());
        Ok(())
    }
}

impl Aggregate<Session> for Folding {
    type State = Group;

    fn step(
        &self,
        _: &mut Session,
        group: &mut Group,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        self.take_in(group, arguments).map_err(|error| self.stage.fail(error))
    }

    fn finish(
        &self,
        session: Option<&mut Session>,
        mut group: Group,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        match session.filter(|_| !self.stage.has_failed()) {
            Some(session) => self.answer(session, &mut group, output),
            None => Ok(()),
        }
    }
}

impl Window<Session> for Folding {
    fn inverse(
        &self,
        _: &mut Session,
        group: &mut Group,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        for value in group.values.drain(..arguments.len().max(1).min(group.values.len())) {
            group.bytes -= size(&value);
        }
        Ok(())
    }

    fn value(
        &self,
        session: &mut Session,
        group: &mut Group,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        if self.stage.has_failed() {
            return Ok(());
        }
        self.answer(session, group, output)
    }
}
