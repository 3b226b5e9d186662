//! What callbacks of a running statement need besides the session, and what they leave for whoever runs it.
//!
//! Invariants
//! - An error of ours is kept here, whatever SQLite makes of it; the runner takes it out.
//! - Each running statement has a frame; callbacks belong to the innermost.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Instant;

use perilune::Session;
use perilune_graph::Graph;
use perilune_sqlite::Failure;

use crate::error::{failure, Error, Result, SqlState};
use crate::function::{Change, Function, OwnFunction};
use crate::limits::GRAPHS;
use crate::rewrite::Upsert;
use crate::schema::Table;
use crate::terms::Access;
use crate::used::{seconds_now, stamp_of, Notes};
use crate::value::{Value, ValueRef};

/// Tells the time, in seconds since 1970.
pub(crate) type Clock = dyn Fn() -> i64;

/// What runs statements for callbacks: whoever has prepared them.
pub(crate) trait Host {
    /// Runs a statement inside the one that runs, and answers its rows.
    fn run(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>>;

    /// Runs a piece of the user's statement inside it, which may do no more than the user may.
    fn run_for_user(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<()>;

    /// Calls a function of the schema, and hands on what it answers.
    fn call(
        &self,
        session: &mut Session,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()>;

    /// Calls a function of the program's.
    fn call_own(&self, session: &mut Session, run: &OwnFunction, arguments: &[Value]) -> Result<Value>;

    /// Fails unless the statement's user may do this with this global, named without `^`.
    fn may(&self, global: &str, access: Access) -> Result<()>;

    /// When the statement is to have ended.
    fn until(&self) -> Option<Instant>;

    /// Has the statement, which runs in a one-shot transaction, run again in a whole one: the error by which it ends now.
    fn ask_for_whole(&self) -> Error;

    /// Calls an aggregate of the schema for the rows of a group.
    fn fold(&self, session: &mut Session, function: &Function, rows: &[Value]) -> Result<Value>;

    /// Calls a function of the schema that answers rows.
    fn rows(
        &self,
        session: &mut Session,
        function: &Function,
        arguments: &[Value],
    ) -> Result<Vec<Vec<Value>>>;

    /// Calls a trigger that is no statement.
    fn change(
        &self,
        session: &mut Session,
        function: &Function,
        change: &Change<'_>,
    ) -> Result<Option<Vec<(usize, Value)>>>;

    /// Fails with a conflict in a one-shot transaction: what calls functions runs as a whole one.
    fn needs_whole(&self) -> Result<()>;

    /// The table of this name.
    fn table(&self, session: &mut Session, name: &str) -> Result<Option<Rc<Table>>>;
}

/// What is known of a running statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The columns of the table it inserts into that it does not name: their defaults count.
    pub(crate) omitted: Rc<Vec<usize>>,
    /// What is done about rows that are there already.
    pub(crate) upserts: Rc<Vec<Upsert>>,
    /// The parameters of the statement.
    pub(crate) parameters: Rc<Vec<Value>>,
    /// The rows that it has changed, by their numbers, if it answers them.
    pub(crate) noted: Option<Noted>,
    /// It changes rows.
    pub(crate) writes: bool,
    /// Rows that it finds are used, by a user.
    pub(crate) uses: bool,
}

/// Rows as a statement has made them, or as they were before it removed them.
pub(crate) type Noted = Rc<RefCell<Vec<(i64, Rc<Vec<Value>>)>>>;

/// The state that a connection's tables share.
#[derive(Default)]
pub(crate) struct Stage {
    error: RefCell<Option<Error>>,
    /// Tables that SQLite has been told of, by their names in lower case.
    pub(crate) tables: RefCell<HashMap<String, Rc<Table>>>,
    /// The row that helper statements look at.
    pub(crate) row: RefCell<Rc<Vec<Value>>>,
    /// Its number.
    pub(crate) row_number: Cell<i64>,
    /// What is being computed goes into an index.
    computes: Cell<bool>,
    frames: RefCell<Vec<Frame>>,
    /// What statements have found of tables that say how their rows are used.
    pub(crate) notes: RefCell<Notes>,
    /// What tells the time, in seconds since 1970, if it is not the clock.
    pub(crate) clock: RefCell<Option<Box<Clock>>>,
    /// The graphs that the innermost statement has opened, by their texts, and for what its user was let in.
    graphs: RefCell<Vec<(String, Access, Rc<Graph>)>>,
    /// Who runs statements for callbacks; gone with the connection.
    pub(crate) host: RefCell<Option<Weak<dyn Host>>>,
}

impl Stage {
    /// Who runs statements for callbacks.
    pub(crate) fn host(&self) -> Result<Rc<dyn Host>> {
        let host = self.host.borrow().as_ref().and_then(Weak::upgrade);
        host.ok_or_else(|| Error::new(SqlState::INTERNAL, "the connection is gone"))
    }

    /// Does what computes a part of an index.
    pub(crate) fn computing<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.computes.replace(true);
        let result = body();
        self.computes.set(before);
        result
    }

    /// Whether what is being computed goes into an index, which is to depend on the row alone.
    pub(crate) fn computes(&self) -> bool {
        self.computes.get()
    }

    /// The time by which rows are stamped.
    pub(crate) fn now(&self) -> i64 {
        stamp_of(self.clock.borrow().as_ref().map_or_else(seconds_now, |clock| clock()))
    }

    /// Whether rows that the innermost statement finds are used.
    pub(crate) fn uses(&self) -> bool {
        self.frames.borrow().last().is_some_and(|frame| frame.uses)
    }

    /// Keeps an error, and answers what SQLite is told.
    pub(crate) fn fail(&self, error: Error) -> Failure {
        let told = failure(&error);
        self.error.replace(Some(error));
        told
    }

    /// Whether an error is kept.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.borrow().is_some()
    }

    /// The error that was kept.
    pub(crate) fn take_error(&self) -> Option<Error> {
        self.error.take()
    }

    /// Begins a statement; answers how many run.
    pub(crate) fn enter(&self, frame: Frame) -> usize {
        self.graphs.borrow_mut().clear();
        let mut frames = self.frames.borrow_mut();
        frames.push(frame);
        frames.len()
    }

    /// Ends the innermost statement.
    pub(crate) fn leave(&self) {
        self.frames.borrow_mut().pop();
        self.graphs.borrow_mut().clear();
    }

    /// A graph that the statement has opened for this.
    pub(crate) fn graph(&self, text: &str, access: Access) -> Option<Rc<Graph>> {
        let graphs = self.graphs.borrow();
        let found = graphs.iter().find(|(name, known, _)| *known == access && name == text)?;
        Some(Rc::clone(&found.2))
    }

    /// Keeps a graph open until the statement ends, or calls another one, which may make it anew.
    pub(crate) fn keep_graph(&self, text: &str, access: Access, graph: &Rc<Graph>) {
        let mut graphs = self.graphs.borrow_mut();
        if graphs.len() < GRAPHS {
            graphs.push((text.to_owned(), access, Rc::clone(graph)));
        }
    }

    /// Whether the innermost statement changes rows.
    pub(crate) fn writes(&self) -> bool {
        self.frames.borrow().last().is_some_and(|frame| frame.writes)
    }

    /// Whether a statement runs.
    pub(crate) fn is_running(&self) -> bool {
        !self.frames.borrow().is_empty()
    }

    /// The innermost statement.
    pub(crate) fn frame(&self) -> Frame {
        self.frames.borrow().last().cloned().unwrap_or_default()
    }
}
