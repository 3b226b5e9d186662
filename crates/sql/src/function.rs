//! Functions of the schema that another language runs: what they are, who runs them, and what they may ask for.
//!
//! SQL knows no language. A host that has one hands a connection an [`Interpreter`]; a function of the schema is a text, kept in
//! the tree, that any such host can run.
//!
//! ```text
//! CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)'
//! SELECT gross(price, 0.25) FROM item ORDER BY gross(price, 0.25)
//! ```
//!
//! Invariants
//! - A function runs in the transaction of the statement that calls it, which runs again if that has met others: so it may run
//!   several times for one answer.
//! - What a function asks for its caller's user may do, and no more.

use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use perilune::{Node, Session};

use crate::answer::{Outcome, Rows};
use crate::error::Result;
use crate::value::{Value, ValueRef};

/// What a function is called with, and what it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value for values.
    Value,
    /// A value for the rows of a group: its text answers what takes a row in (`step`), and what answers for all (`final`).
    Aggregate,
    /// Rows, whose columns these are, for values.
    Rows(Vec<String>),
    /// Whether a change of a row goes on: it is a trigger, which may change the row before it is written.
    Change,
}

/// The change of a row that a trigger is called for.
#[derive(Debug)]
pub struct Change<'a> {
    /// The names of the columns.
    pub columns: &'a [&'a str],
    /// The row as it was.
    pub old: Option<&'a [Value]>,
    /// The row as it is to be, or is.
    pub new: Option<&'a [Value]>,
    /// It is not written yet.
    pub may_change: bool,
}

/// A function of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, in lower case.
    pub name: String,
    /// The names of its parameters, as they were written; at most [`crate::limits::PARAMETERS`].
    pub parameters: Vec<String>,
    /// What it answers.
    pub shape: Shape,
    /// Equal arguments always give equal answers.
    pub is_deterministic: bool,
    /// The text that the interpreter runs: the body of a function with those parameters.
    pub body: String,
    /// It is no function of the schema but one that the interpreter knows by itself: one of values takes any number of arguments,
    /// one of rows up to as many as it has parameters.
    pub is_of_host: bool,
}

/// What a running function may ask for.
pub trait Asks {
    /// Runs a statement in the transaction of the one that called the function.
    ///
    /// # Errors
    /// As [`crate::Connection::query`]; one that asks for the transaction to be run again must end the function.
    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<(Rows, Outcome)>;

    /// When the function is to have ended; none: the interpreter's own limit holds.
    fn until(&self) -> Option<Instant>;

    /// The session, in the transaction of the statement: for nodes beside the statement's.
    fn session(&mut self) -> &mut Session;

    /// The session, in the transaction of the statement, if its user may read the graph at this node, or change it.
    ///
    /// # Errors
    /// `DENIED`, `REFUSED`.
    fn graph(&mut self, root: &Node, writes: bool) -> Result<&mut Session>;

    /// Whether the statement may read alone.
    fn is_read_only(&self) -> bool;

    /// The number of the user's statement: all calls of one have the same.
    fn statement(&self) -> u64;
}

/// A function of the program's, for one connection: it is called with what it may ask for and with values, and answers one.
pub type OwnFunction = dyn Fn(&mut dyn Asks, &[Value]) -> Result<Value>;

/// Runs functions in its language.
pub trait Interpreter {
    /// Whether a function can be run at all: that its text is one of the language.
    ///
    /// # Errors
    /// `DEFINITION`, with what is wrong and where.
    fn check(&self, function: &Function) -> Result<()>;

    /// The function of this name that the interpreter knows by itself, where neither the schema nor SQLite has one; it is asked
    /// again after each change of the schema.
    ///
    /// # Errors
    /// What reading has answered.
    fn find(&self, _name: &str, _session: &mut Session) -> Result<Option<Function>> {
        Ok(None)
    }

    /// Calls a function with as many arguments as it has parameters, and hands on what it answers, which is copied there. The
    /// function is shared, so that who runs it knows by the pointer alone that it has it compiled: it is called for each row.
    ///
    /// # Errors
    /// `FUNCTION` for what it has raised; `CANCELLED` and `MEMORY` beyond its limits; what [`Asks`] has answered, if that is to
    /// have the transaction run again. Then nothing is handed on.
    fn call(
        &self,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        asks: &mut dyn Asks,
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()>;

    /// Calls an aggregate for a group, of whose rows the values stand one behind the other; a row without values is a NULL.
    ///
    /// # Errors
    /// As [`Interpreter::call`].
    fn fold(&self, function: &Function, rows: &[Value], asks: &mut dyn Asks) -> Result<Value>;

    /// Calls a function that answers rows, each with as many values as the function has columns.
    ///
    /// # Errors
    /// As [`Interpreter::call`]; `MEMORY` for rows without end.
    fn rows(&self, function: &Function, arguments: &[Value], asks: &mut dyn Asks) -> Result<Vec<Vec<Value>>>;

    /// Calls a trigger: None, if the row is to be left out; else what its columns are to be that it has changed, by number.
    ///
    /// # Errors
    /// As [`Interpreter::call`].
    fn change(
        &self,
        function: &Function,
        change: &Change<'_>,
        asks: &mut dyn Asks,
    ) -> Result<Option<Vec<(usize, Value)>>>;
}

impl fmt::Debug for dyn Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interpreter")
    }
}
