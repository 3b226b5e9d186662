//! Aggregates of the schema as SQLite knows them: rows of a group are kept, and the function is called once for all of them.
//!
//! One call for a group costs a part of what one for each row would, and the function keeps what it likes between its rows.
//!
//! Invariants
//! - What the rows of a group take is bounded.
//! - A statement that has failed calls no more functions, though SQLite asks for the end of its groups.

use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{Aggregate, Arguments, Failure, Output};

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
    values: Vec<Value>,
    bytes: usize,
}

impl Folding {
    fn take_in(&self, group: &mut Group, arguments: Arguments<'_>) -> Result<()> {
        self.stage.host()?.needs_whole()?;
        if arguments.is_empty() {
            // A row without values counts, too.
            group.bytes += size_of::<Value>();
            group.values.push(Value::Null);
        }
        for at in 0..arguments.len() {
            let value = Value::of(arguments.at(at).get());
            group.bytes += size_of::<Value>();
            if let Value::Text(bytes) | Value::Blob(bytes) = &value {
                group.bytes += bytes.len();
            }
            group.values.push(value);
        }
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
        group: Group,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        let Some(session) = session.filter(|_| !self.stage.has_failed()) else { return Ok(()) };
        let host = self.stage.host().map_err(|error| self.stage.fail(error))?;
        let value = host.fold(session, &self.function, &group.values);
        output.set(value.map_err(|error| self.stage.fail(error))?.as_ref());
        Ok(())
    }
}
