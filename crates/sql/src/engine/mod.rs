//! A connection's machine: SQLite, the tables it was told of, prepared statements, and how one statement runs.
//!
//! A statement is a function that may run again: reset, step to the end, rows into a sink. So it is a transaction like any other:
//! a brief one first, which costs least, then a whole one. Inside a transaction of the caller's it is a level of that.
//!
//! Invariants
//! - A statement reads the schema's version in its own transaction; if that is not the one whose tables SQLite knows, nothing has
//!   happened, the tables are looked up again, and the statement runs anew.
//! - What holds for a statement ([`Terms`]) is asked each time that it runs.

mod aggregates;
mod decimals;
mod functions;
mod instead;
mod known;
mod prepared;
mod viewed;
mod yielding;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

use perilune::{node, Error as EngineError, Node, Serving, Session, TransactionOptions};
use perilune_sqlite::{constants as sqlite, Action, Arguments, Connection, FunctionKind};

pub(crate) use self::functions::{is_of_sqlite, OwnKind};
use self::functions::{Functions, Own};
use self::instead::Instead;
use self::known::Known;
use self::prepared::Prepared;

use crate::answer::{Outcome, Row, Rows, Sink};
use crate::catalog;
use crate::computed::ROW_PREFIX;
use crate::document::Json;
use crate::elements::{ELEMENT, SET};
use crate::error::{Error, Result, SqlState};
use crate::function::{Change, Function, Interpreter, OwnFunction};
use crate::graphs;
use crate::limits::{ATTEMPTS, DEPTH, SCHEMA_TRIES, STATEMENT_BYTES, STEPS};
use crate::rewrite::RAISE;
use crate::schema::Table;
use crate::stage::{Host, Noted, Stage};
use crate::tables::{Rows as RowHelpers, Tables, ROWS, TABLES};
use crate::terms::{Access, Terms, Touch, Touches};
use crate::token::fold;
use crate::value::{node_order, Value, ValueRef};

/// A flag that is set as long as this lives, also if what runs meanwhile panics.
struct Within<'a>(&'a Cell<bool>);

impl<'a> Within<'a> {
    fn new(flag: &'a Cell<bool>) -> Within<'a> {
        flag.set(true);
        Within(flag)
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// See the head of the module.
pub(crate) struct Engine {
    sqlite: Connection<Session>,
    stage: Rc<Stage>,
    version_node: Node,
    version: Cell<i64>,
    /// The schema was changed in a transaction that may still be rolled back.
    is_tentative: Cell<bool>,
    is_stale: Cell<bool>,
    known: RefCell<HashMap<String, Known>>,
    functions: RefCell<Functions>,
    /// Functions of the program's, by name.
    own_functions: RefCell<HashMap<String, Own>>,
    /// Functions of the schema that SQLite has known and forgotten, with how many arguments they took.
    removed: RefCell<HashSet<(String, i32)>>,
    interpreter: RefCell<Option<Rc<dyn Interpreter>>>,
    /// Triggers in Lua of views, by name.
    instead: Rc<RefCell<HashMap<String, Rc<Instead>>>>,
    /// The statement runs in a one-shot transaction.
    is_attempt: Cell<bool>,
    /// The last one-shot transaction has called a function, which takes a whole one.
    needs_whole: Cell<bool>,
    cache: RefCell<HashMap<String, Prepared>>,
    /// Temporary views, by name: they end with the connection.
    own_views: RefCell<HashMap<String, String>>,
    /// Names that SQLite was told of while a statement ran: if that fails, SQLite forgets them.
    declared_inside: RefCell<Vec<String>>,
    /// SQLite is told of tables by us, now.
    is_declaring: Rc<Cell<bool>>,
    /// What holds for the statement that runs, and when it is to have ended.
    terms: RefCell<Terms>,
    until: Rc<Cell<Option<Instant>>>,
    /// Statements of the user's so far.
    statements: Cell<u64>,
    /// What the statement does that is being prepared.
    touches: Rc<Touches>,
}

impl Engine {
    pub(crate) fn open() -> Result<Rc<Engine>> {
        let sqlite = Connection::open()?;
        let stage = Rc::new(Stage::default());
        sqlite.add_module(TABLES, Tables(Rc::clone(&stage)))?;
        sqlite.add_module(ROWS, RowHelpers(Rc::clone(&stage)))?;
        graphs::add(&sqlite, &stage)?;
        sqlite.add_collation("NODE", node_order)?;
        sqlite.add_collation("U128", crate::wide::order)?;
        let raises = Rc::clone(&stage);
        sqlite.add_function(RAISE, -1, FunctionKind::default(), move |_, arguments, _| {
            let text = |at: usize| match (at < arguments.len()).then(|| arguments.at(at).get()) {
                Some(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            let error = match &text(0)[..] {
                "ignore" => Error::left_out(),
                _ => Error::new(SqlState::RAISED, text(1)),
            };
            Err(raises.fail(error))
        })?;
        add_document_functions(&sqlite, &stage)?;
        let instead = instead::add(&sqlite, &stage)?;
        decimals::add(&sqlite, &stage)?;
        sqlite.limit(sqlite::SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES as i32);
        let is_declaring = Rc::new(Cell::new(false));
        let declares = Rc::clone(&is_declaring);
        let (touches, until) = (Rc::<Touches>::default(), Rc::<Cell<Option<Instant>>>::default());
        let notes = Rc::clone(&touches);
        sqlite.set_authorizer(move |action| {
            declares.get() || {
                notes.note(action);
                is_allowed(action)
            }
        });
        let ends = Rc::clone(&until);
        sqlite.set_progress(STEPS, move || ends.get().is_some_and(|until| Instant::now() >= until));
        let engine = Rc::new(Engine {
            sqlite,
            stage,
            version_node: node!("^sql", "version")?,
            version: Cell::new(-1),
            is_tentative: Cell::new(false),
            is_stale: Cell::new(false),
            known: RefCell::default(),
            functions: RefCell::default(),
            own_functions: RefCell::default(),
            removed: RefCell::default(),
            interpreter: RefCell::default(),
            instead,
            is_attempt: Cell::new(false),
            needs_whole: Cell::new(false),
            cache: RefCell::default(),
            own_views: RefCell::default(),
            declared_inside: RefCell::default(),
            is_declaring,
            terms: RefCell::default(),
            until,
            statements: Cell::new(0),
            touches,
        });
        let host: Rc<dyn Host> = engine.clone();
        engine.stage.host.replace(Some(Rc::downgrade(&host)));
        Ok(engine)
    }

    /// Sets what holds for statements from now on; answers what did.
    pub(crate) fn set_terms(&self, terms: Terms) -> Terms {
        self.until.set(terms.until);
        if !self.stage.is_running() {
            self.statements.set(self.statements.get() + 1);
        }
        self.terms.replace(terms)
    }

    /// Whether statements of several users run here.
    pub(crate) fn is_shared(&self) -> bool {
        self.terms.borrow().shared_session
    }

    /// Fails unless what a user has written may do what it does.
    fn check_terms(&self, prepared: &Prepared) -> Result<()> {
        let terms = self.terms.borrow();
        if terms.permit.is_none() && !terms.read_only {
            return Ok(());
        }
        // The row that is being written is of the table that it is written to; of others only those count that there are.
        let known = self.known.borrow();
        // Entries of an index are their table's.
        let tables = self.stage.tables.borrow();
        let meant = prepared.touches.iter().map(|touch| {
            let name = touch.table.strip_prefix(ROW_PREFIX).unwrap_or(&touch.table);
            let owner = tables.get(name).and_then(|table| table.entries_of.as_deref());
            Touch { table: owner.unwrap_or(name).to_owned(), ..*touch }
        });
        let is_there = |touch: &Touch| {
            touch.table.starts_with("sqlite_")
                || touch.table.starts_with("pragma_")
                || known.get(&touch.table).is_some_and(|known| !matches!(known, Known::Nothing))
        };
        terms.check(&meant.filter(is_there).collect::<Vec<_>>(), prepared.reads)
    }

    /// What callbacks share.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// SQLite itself.
    pub(crate) fn sqlite(&self) -> &Connection<Session> {
        &self.sqlite
    }

    /// The schema was changed, perhaps in a transaction that is still open.
    pub(crate) fn has_defined(&self, session: &Session) {
        self.is_tentative.set(session.depth() > 0);
        self.version.set(-1);
    }

    /// Runs a statement that reads or changes rows.
    pub(crate) fn run_statement(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        for _ in 0..SCHEMA_TRIES {
            if self.version.get() < 0 || self.is_tentative.get() {
                self.refresh(session)?;
            }
            let mut prepared = match self.take(session, sql) {
                Ok(prepared) => prepared,
                // It may name what others have just made.
                Err(error) if self.is_current(session)? => return Err(error),
                Err(_) => {
                    self.version.set(-1);
                    continue;
                }
            };
            self.is_stale.set(false);
            prepared.frame.uses = prepared.reads;
            let result = self
                .check_terms(&prepared)
                .and_then(|()| prepared.bind(parameters))
                .and_then(|()| self.in_transaction(session, &mut prepared, sink));
            if self.is_stale.get() {
                self.version.set(-1);
                drop(prepared);
                continue;
            }
            let changes = if prepared.reads { 0 } else { self.sqlite.changes() };
            self.put(prepared);
            result?;
            self.take_in_notes(session);
            return Ok(Outcome { changes, last_rowid: self.sqlite.last_rowid() });
        }
        Err(Error::new(SqlState::CONFLICT, "the schema changes all the time: run the statement again"))
    }

    /// Takes in what a statement has found, and writes how rows are used, unless a transaction is open.
    fn take_in_notes(&self, session: &mut Session) {
        let mut notes = self.stage.notes.borrow_mut();
        if !self.stage.is_running() {
            notes.take_in(|| self.stage.now());
        }
        drop(notes);
        self.write_notes(session);
    }

    /// Writes how rows are used that statements have found, unless a transaction is open.
    pub(crate) fn write_notes(&self, session: &mut Session) {
        let mut notes = self.stage.notes.borrow_mut();
        if session.depth() == 0 && notes.are_due() {
            notes.write(session, self.stage.now(), |session| self.is_current(session));
        }
    }

    /// Prepares a statement to see what it answers.
    pub(crate) fn columns_of(&self, session: &mut Session, sql: &str) -> Result<Vec<(String, String)>> {
        self.refresh(session)?;
        let prepared = self.take(session, sql)?;
        let statement = &prepared.statement;
        let column =
            |at: usize| (statement.column_name(at), statement.column_declaration(at).unwrap_or_default());
        Ok((0..statement.column_count()).map(column).collect())
    }

    fn in_transaction(
        &self,
        session: &mut Session,
        prepared: &mut Prepared,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if session.depth() > 0 {
            // A statement that fails half way takes back what it has written; a reading one has written nothing, unless by
            // functions.
            if prepared.reads && !self.has_functions() {
                return Ok(self.step_all(session, prepared, sink)?);
            }
            return Ok(session.transaction(|session| self.step_all(session, prepared, sink))?);
        }
        let attempts = if prepared.is_large { 0 } else { ATTEMPTS };
        for _ in 0..attempts {
            self.needs_whole.set(false);
            let done = session.attempt(|session| {
                let _within = Within::new(&self.is_attempt);
                self.step_all(session, prepared, sink)
            });
            let is_beyond = self.needs_whole.get();
            if !is_beyond && done?.is_some() {
                return Ok(());
            }
            if is_beyond || !session.was_disturbed() {
                prepared.is_large = true;
                break;
            }
        }
        let read_only = prepared.reads && !self.has_functions();
        let options = TransactionOptions { read_only, ..TransactionOptions::default() };
        Ok(session.transaction_with(&options, |session| self.step_all(session, prepared, sink))?)
    }

    /// Runs a statement to its end, in the transaction that is open.
    fn step_all(
        &self,
        session: &mut Session,
        prepared: &mut Prepared,
        sink: &mut dyn Sink,
    ) -> perilune::Result<()> {
        // NB: an attempt that did not hold may have seen another version than this one.
        self.is_stale.set(false);
        self.stage.notes.borrow_mut().begin();
        if catalog::version(session, &self.version_node)? != self.version.get() {
            self.is_stale.set(true);
            return Err(EngineError::Rollback);
        }
        if prepared.returning.is_some() {
            return Ok(self.step_returning(session, prepared, sink)?);
        }
        sink.start(&prepared.columns)?;
        Ok(self.step(session, prepared, |row| sink.row(row))?)
    }

    /// Runs a statement, and then answers an expression over each row that it has changed.
    fn step_returning(
        &self,
        session: &mut Session,
        prepared: &mut Prepared,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let noted = Noted::default();
        prepared.frame.noted = Some(Rc::clone(&noted));
        self.step(session, prepared, |_| Ok(()))?;
        let sql = prepared.returning.clone().unwrap_or_default();
        let mut answer = self.take(session, &sql)?;
        self.check_terms(&answer)?;
        let count = answer.statement.parameter_count();
        answer.bind(prepared.frame.parameters.get(..count).unwrap_or(&[]))?;
        sink.start(&answer.columns)?;
        let before = self.stage.row.borrow().clone();
        let rows = noted.take();
        let result = rows.into_iter().try_for_each(|(rowid, row)| {
            self.stage.row.replace(row);
            self.stage.row_number.set(rowid);
            self.step(session, &mut answer, |row| sink.row(row))
        });
        self.stage.row.replace(before);
        self.put(answer);
        result
    }

    fn step(
        &self,
        session: &mut Session,
        prepared: &mut Prepared,
        mut each: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let depth = self.stage.enter(prepared.frame.clone());
        let result = if depth > DEPTH {
            let what =
                format!("statements call statements at most {DEPTH} deep: foreign keys go in a circle");
            Err(Error::new(SqlState::LIMIT, what))
        } else {
            loop {
                match prepared.statement.step(session) {
                    Ok(false) => break Ok(()),
                    Ok(true) => {
                        if let Err(error) = each(&Row { statement: &prepared.statement }) {
                            break Err(error);
                        }
                    }
                    Err(error) => {
                        break Err(self.stage.take_error().unwrap_or_else(|| Error::of_sqlite(error)));
                    }
                }
            }
        };
        prepared.statement.reset();
        self.stage.leave();
        if depth == 1 {
            self.forget_inside(result.is_err() && !prepared.reads);
        }
        // What a statement has left out (OR IGNORE) is no error.
        self.stage.take_error();
        result
    }
}

impl Host for Engine {
    fn run(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.run_inside(session, sql, parameters, false)
    }

    fn run_for_user(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<()> {
        self.run_inside(session, sql, parameters, true).map(drop)
    }

    fn call(
        &self,
        session: &mut Session,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()> {
        self.needs_whole()?;
        self.interpreter()?.call(function, arguments, &mut self.running(session), answer)
    }

    fn call_own(&self, session: &mut Session, run: &OwnFunction, arguments: &[Value]) -> Result<Value> {
        self.needs_whole()?;
        run(&mut self.running(session), arguments)
    }

    fn fold(&self, session: &mut Session, function: &Function, rows: &[Value]) -> Result<Value> {
        self.needs_whole()?;
        self.interpreter()?.fold(function, rows, &mut self.running(session))
    }

    fn rows(
        &self,
        session: &mut Session,
        function: &Function,
        arguments: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        self.needs_whole()?;
        self.interpreter()?.rows(function, arguments, &mut self.running(session))
    }

    fn change(
        &self,
        session: &mut Session,
        function: &Function,
        change: &Change<'_>,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        self.needs_whole()?;
        self.interpreter()?.change(function, change, &mut self.running(session))
    }

    fn needs_whole(&self) -> Result<()> {
        if self.is_attempt.get() {
            return Err(self.ask_for_whole());
        }
        Ok(())
    }

    fn may(&self, global: &str, access: Access) -> Result<()> {
        let touch = Touch { table: global.to_owned(), access };
        self.terms.borrow().check(&[touch], access == Access::Reads)
    }

    fn until(&self) -> Option<Instant> {
        self.until.get()
    }

    fn ask_for_whole(&self) -> Error {
        self.needs_whole.set(true);
        EngineError::Conflict.into()
    }

    fn table(&self, session: &mut Session, name: &str) -> Result<Option<Rc<Table>>> {
        let name = fold(name);
        self.declare_name(session, &name)?;
        Ok(self.stage.tables.borrow().get(&name).cloned())
    }
}

impl Engine {
    /// Runs a statement inside the one that runs; what its user has written is checked.
    fn run_inside(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        is_of_user: bool,
    ) -> Result<Vec<Vec<Value>>> {
        let rowid = self.sqlite.last_rowid();
        let mut prepared = self.take(session, sql)?;
        prepared.frame.uses = false;
        if is_of_user {
            self.check_terms(&prepared)?;
        }
        prepared.bind(parameters)?;
        let mut rows = Rows::default();
        rows.start(&prepared.columns)?;
        let result = self.step(session, &mut prepared, |row| rows.row(row));
        self.put(prepared);
        self.sqlite.set_last_rowid(rowid);
        result?;
        Ok(rows.iter().map(<[Value]>::to_vec).collect())
    }
}

/// The functions that elements of documents become.
fn add_document_functions(sqlite: &Connection<Session>, stage: &Rc<Stage>) -> Result<()> {
    let kind = FunctionKind { deterministic: true, direct_only: false };
    let parts = |arguments: Arguments<'_>, from: usize| -> Vec<String> {
        let part = |at: usize| match arguments.at(at).get() {
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        (from..arguments.len()).map(part).collect()
    };
    let fails = Rc::clone(stage);
    sqlite.add_function(ELEMENT, -1, kind, move |_, arguments, output| {
        let json = Json::of(&Value::of(arguments.at(0).get())).map_err(|error| fails.fail(error))?;
        let found = json.as_ref().and_then(|json| json.element(&parts(arguments, 1)));
        output.set(found.map_or(Value::Null, Json::to_value).as_ref());
        Ok(())
    })?;
    let fails = Rc::clone(stage);
    sqlite.add_function(SET, -1, kind, move |_, arguments, output| {
        let set = || -> Result<Vec<u8>> {
            let json = Json::of(&Value::of(arguments.at(0).get()))?;
            let mut json = json.unwrap_or_else(|| Json::Map(Vec::new()));
            for at in (1..arguments.len().saturating_sub(1)).step_by(2) {
                let ValueRef::Text(path) = arguments.at(at).get() else { continue };
                let path: Vec<String> = String::from_utf8_lossy(path).split('.').map(str::to_owned).collect();
                json.set_element(&path, Json::of_element(&Value::of(arguments.at(at + 1).get())))?;
            }
            Ok(json.to_text())
        };
        let text = set().map_err(|error| fails.fail(error))?;
        output.set(ValueRef::Text(&text));
        Ok(())
    })?;
    Ok(())
}

/// Whether a statement of a user may do something.
fn is_allowed(action: &Action<'_>) -> bool {
    match action.code {
        sqlite::SQLITE_SELECT
        | sqlite::SQLITE_READ
        | sqlite::SQLITE_FUNCTION
        | sqlite::SQLITE_RECURSIVE
        | sqlite::SQLITE_INSERT
        | sqlite::SQLITE_UPDATE
        | sqlite::SQLITE_DELETE => !is_sqlites_own(action.first, action.code),
        sqlite::SQLITE_PRAGMA => {
            action.first.is_some_and(|name| ["table_info", "table_xinfo", "table_list"].contains(&name))
        }
        _ => false,
    }
}

/// Whether it changes SQLite's own tables.
fn is_sqlites_own(table: Option<&str>, code: i32) -> bool {
    let changes = matches!(code, sqlite::SQLITE_INSERT | sqlite::SQLITE_UPDATE | sqlite::SQLITE_DELETE);
    changes && table.is_some_and(|table| table.starts_with("sqlite_"))
}
