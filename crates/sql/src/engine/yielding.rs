//! Functions of the schema that answer rows, as SQLite knows them: `SELECT * FROM days(2024, 2)`.
//!
//! Such a function is a table whose hidden columns are its arguments. It is called when a walk over it begins, for all of its rows.
//!
//! Invariant: a walk has the arguments that it was begun with, all of them.

use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{
    constants as sqlite, Arguments, Change, Conflict, Cursor, Failure, IndexInfo, Module, Operator, Output,
    Table, ValueRef,
};

use super::functions::values_of;
use crate::function::{Function, Shape};
use crate::stage::Stage;
use crate::token::quote;
use crate::value::Value;

/// A function that answers rows; the module of its table, and that.
#[derive(Clone)]
pub(super) struct Yielding {
    pub(super) stage: Rc<Stage>,
    pub(super) function: Rc<Function>,
}

impl Yielding {
    fn columns(&self) -> &[String] {
        match &self.function.shape {
            Shape::Rows(columns) => columns,
            Shape::Value | Shape::Aggregate | Shape::Change => &[],
        }
    }
}

impl Module<Session> for Yielding {
    type Table = Yielding;

    const EPONYMOUS: bool = true;

    fn connect(&self, _: &mut Session, name: &str) -> std::result::Result<(Yielding, String), Failure> {
        let columns = self.columns().iter().map(|column| quote(column));
        // NB: no name of a column begins so.
        let hidden = (0..self.function.parameters.len()).map(|at| format!("\"%{at}\" HIDDEN"));
        let all: Vec<String> = columns.chain(hidden).collect();
        Ok((self.clone(), format!("CREATE TABLE {}({})", quote(name), all.join(", "))))
    }
}

impl Table<Session> for Yielding {
    type Cursor = Walk;

    fn best_index(&self, info: &mut IndexInfo<'_>) -> std::result::Result<(), Failure> {
        let (constraints, first) = (info.constraints(), self.columns().len());
        for at in first..first + self.function.parameters.len() {
            let is_it = |constraint: &&perilune_sqlite::Constraint| {
                constraint.column == Some(at) && constraint.operator == Operator::Equal
            };
            if !constraints.iter().any(|constraint| is_it(&constraint)) {
                if self.function.is_of_host {
                    break;
                }
                let (name, count) = (&self.function.name, self.function.parameters.len());
                return Err(Failure::new(format!(
                    "wrong number of arguments to function {name}(): it takes {count}"
                )));
            }
            let usable = constraints.iter().position(|constraint| is_it(&constraint) && constraint.usable);
            match usable {
                Some(constraint) => info.take(constraint, true),
                None => {
                    return Err(Failure::of(sqlite::SQLITE_CONSTRAINT, "its arguments are not known yet"))
                }
            }
        }
        info.cost(10_000.0, 1_000, false);
        Ok(())
    }

    fn open(&self) -> Walk {
        Walk::default()
    }

    fn update(&self, _: &mut Session, _: &Change<'_>, _: Conflict) -> std::result::Result<i64, Failure> {
        Err(Failure::new("the rows that a function answers cannot be changed"))
    }
}

/// A walk over the rows that a call has answered.
#[derive(Default)]
pub(super) struct Walk {
    arguments: Vec<Value>,
    rows: Vec<Vec<Value>>,
    at: usize,
}

impl Cursor<Session> for Walk {
    type Table = Yielding;

    fn filter(
        &mut self,
        table: &Yielding,
        session: &mut Session,
        _number: i32,
        _text: &str,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        self.arguments = values_of(arguments);
        let host = table.stage.host().map_err(|error| table.stage.fail(error))?;
        let rows = host.rows(session, &table.function, &self.arguments);
        self.rows = rows.map_err(|error| table.stage.fail(error))?;
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, _: &Yielding, _: &mut Session) -> std::result::Result<(), Failure> {
        self.at += 1;
        if self.is_at_end() {
            // A walk is kept for the next one: its rows may be many.
            self.rows = Vec::new();
        }
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn column(
        &mut self,
        table: &Yielding,
        _: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        let count = table.columns().len();
        let value = match column.checked_sub(count) {
            Some(argument) => self.arguments.get(argument),
            None => self.rows.get(self.at).and_then(|row| row.get(column)),
        };
        output.set(value.map_or(ValueRef::Null, Value::as_ref));
        Ok(())
    }

    fn rowid(&mut self, _: &Yielding) -> std::result::Result<i64, Failure> {
        Ok(i64::try_from(self.at).unwrap_or(i64::MAX))
    }
}
