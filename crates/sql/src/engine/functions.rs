//! Functions of the schema as SQLite knows them, and how one is called.
//!
//! A statement that names a function has it looked up in the catalog, once; SQLite is then given a callback that hands the call to
//! the connection's interpreter.
//!
//! Invariants
//! - A function never runs in a one-shot transaction, which may show halves of two states: there it is a conflict, and the
//!   statement runs as a whole transaction.
//! - What SQLite knows of a function is what the catalog had at the schema's version.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Instant;

use perilune::{Node, Session};
use perilune_sqlite::{Arguments, Connection, FunctionKind};

use super::aggregates::Folding;
use super::prepared::Prepared;
use super::yielding::Yielding;
use super::Engine;
use crate::answer::{Outcome, Rows, Sink};
use crate::catalog;
use crate::error::{Error, Result, SqlState};
use crate::function::{Asks, Function, Interpreter, OwnFunction, Shape};
use crate::graphs::global_of;
use crate::limits::PARAMETERS;
use crate::stage::Host;
use crate::terms::Access;
use crate::token::{fold, Kind, Token};
use crate::value::{Value, ValueRef};

/// The functions that SQLite was told of, by their names. What is none is looked up for each statement that is prepared: names
/// that a client makes up take no memory.
pub(super) type Functions = HashMap<String, Rc<Function>>;

/// What a function of the program's is like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnKind {
    /// Equal arguments always give equal answers.
    pub(crate) is_deterministic: bool,
    /// It may ask for something, and so write.
    pub(crate) asks: bool,
}

/// A function of the program's that SQLite was told of.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// With how many arguments SQLite knows it; -1: any number.
    counts: Vec<i32>,
    asks: bool,
}

/// What a function asks for while it runs.
pub(super) struct Running<'a> {
    engine: &'a Engine,
    session: &'a mut Session,
}

impl Asks for Running<'_> {
    fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<(Rows, Outcome)> {
        if self.engine.stage.computes() {
            let what = "a function of an index depends on its arguments alone: it runs no statement";
            return Err(Error::new(SqlState::REFUSED, what));
        }
        self.engine.run_for_function(self.session, sql, parameters)
    }

    fn until(&self) -> Option<Instant> {
        self.engine.until.get()
    }

    fn session(&mut self) -> &mut Session {
        self.session
    }

    fn graph(&mut self, root: &Node, writes: bool) -> Result<&mut Session> {
        let global = global_of(root)?;
        self.engine.may(&global, if writes { Access::Writes } else { Access::Reads })?;
        Ok(self.session)
    }

    fn is_read_only(&self) -> bool {
        self.engine.terms.borrow().read_only
    }

    fn statement(&self) -> u64 {
        self.engine.statements.get()
    }
}

impl Engine {
    /// Has functions run by `interpreter` from now on.
    pub(crate) fn set_interpreter(&self, interpreter: Rc<dyn Interpreter>) {
        self.interpreter.replace(Some(interpreter));
    }

    /// The interpreter.
    pub(crate) fn interpreter(&self) -> Result<Rc<dyn Interpreter>> {
        self.interpreter.borrow().clone().ok_or_else(|| {
            let what = "there is no Lua here for functions: give the connection an interpreter, or use `perilune sql`";
            Error::new(SqlState::REFUSED, what)
        })
    }

    /// Whether a statement may call functions that may write: of the schema, or of the program's.
    pub(super) fn has_functions(&self) -> bool {
        !self.functions.borrow().is_empty() || self.own_functions.borrow().values().any(|own| own.asks)
    }

    /// Tells SQLite of the functions of the schema that the tokens name.
    pub(super) fn declare_functions(&self, session: &mut Session, tokens: &[Token<'_>]) -> Result<()> {
        for (token, behind) in tokens.iter().zip(tokens.iter().skip(1)) {
            let may_be = matches!(token.kind, Kind::Word | Kind::Name)
                && behind.is_sign("(")
                && token.text.len() <= 300;
            if !may_be {
                continue;
            }
            let Some(name) = token.name().map(|name| fold(&name)) else { continue };
            if self.functions.borrow().contains_key(&name) || self.own_functions.borrow().contains_key(&name)
            {
                continue;
            }
            let Some(function) = self.find_function(session, &name)?.map(Rc::new) else { continue };
            self.add_function(Rc::clone(&function))?;
            self.functions.borrow_mut().insert(name, function);
        }
        Ok(())
    }

    /// The function of this name: of the schema, else one that the interpreter knows and SQLite does not.
    fn find_function(&self, session: &mut Session, name: &str) -> Result<Option<Function>> {
        if let Some(function) = catalog::function(session, name)? {
            return Ok(Some(function));
        }
        let interpreter = self.interpreter.borrow().clone();
        match interpreter {
            Some(interpreter) if !is_of_sqlite(name)? => interpreter.find(name, session),
            _ => Ok(None),
        }
    }

    /// Looks all functions up again that SQLite knows, and has it forget those that have changed.
    pub(super) fn refresh_functions(&self, session: &mut Session) -> Result<()> {
        let known: Vec<(String, Rc<Function>)> =
            self.functions.borrow().iter().map(|(name, it)| (name.clone(), Rc::clone(it))).collect();
        for (name, function) in known {
            if catalog::function(session, &name)?.as_ref() != Some(&*function) {
                self.remove_function(&function)?;
                self.functions.borrow_mut().remove(&name);
            }
        }
        Ok(())
    }

    /// Gives the connection a function of the program's, which stands before one of the schema; none takes it back.
    pub(crate) fn set_own_function(
        &self,
        name: &str,
        count: Option<usize>,
        kind: OwnKind,
        run: Option<Box<OwnFunction>>,
    ) -> Result<()> {
        let name = fold(name);
        let count = match count {
            Some(count) if count > PARAMETERS => {
                let what = format!("a function has {PARAMETERS} parameters at most");
                return Err(Error::new(SqlState::LIMIT, what));
            }
            Some(count) => count as i32,
            None => -1,
        };
        if self.stage.is_running() {
            let what = "a statement runs: functions are given and taken back between statements";
            return Err(Error::new(SqlState::REFUSED, what));
        }
        self.forget_function(&name)?;
        // What was prepared may have meant another one.
        self.cache.borrow_mut().clear();
        let Some(run) = run else { return Ok(()) };
        if is_of_sqlite(&name)? || name.starts_with("perilune_") {
            let what = format!("{name} is a function that every database has: choose another name");
            return Err(Error::new(SqlState::EXISTS, what));
        }
        let asks = kind.asks;
        let kind = FunctionKind { deterministic: kind.is_deterministic, direct_only: false };
        let run: Rc<OwnFunction> = run.into();
        let counts = if count < 0 { self.any_count(&name) } else { vec![count] };
        for count in &counts {
            let (stage, called, run) = (Rc::clone(&self.stage), name.clone(), Rc::clone(&run));
            self.sqlite.add_function(&name, *count, kind, move |session, arguments, output| {
                let host = stage.host().map_err(|error| stage.fail(error))?;
                if stage.computes() {
                    let what = format!(
                        "an index is on {called} of the schema, and the program has one of that name: take it back to write the table"
                    );
                    return Err(stage.fail(Error::new(SqlState::REFUSED, what)));
                }
                let value = host.call_own(session, &*run, &values_of(arguments));
                output.set(value.map_err(|error| stage.fail(error))?.as_ref());
                Ok(())
            })?;
        }
        self.own_functions.borrow_mut().insert(name, Own { counts, asks });
        Ok(())
    }

    /// Has SQLite forget the function of this name, of the schema or of the program's.
    fn forget_function(&self, name: &str) -> Result<()> {
        if let Some(function) = self.functions.borrow_mut().remove(name) {
            self.remove_function(&function)?;
        }
        let Some(own) = self.own_functions.borrow_mut().remove(name) else { return Ok(()) };
        for count in own.counts {
            self.sqlite.remove_function(name, count)?;
            if count >= 0 {
                self.removed.borrow_mut().insert((name.to_owned(), count));
            }
        }
        Ok(())
    }

    /// Whether the tokens call a function of the program's.
    pub(super) fn call_own_functions(&self, tokens: &[Token<'_>]) -> bool {
        let own = self.own_functions.borrow();
        let is_call = |pair: &[Token<'_>]| {
            pair[1].is_sign("(") && pair[0].name().is_some_and(|name| own.contains_key(&fold(&name)))
        };
        !own.is_empty() && tokens.windows(2).any(is_call)
    }

    /// Whether statements may call functions of the program's.
    pub(crate) fn has_own_functions(&self) -> bool {
        !self.own_functions.borrow().is_empty()
    }

    fn add_function(&self, function: Rc<Function>) -> Result<()> {
        let kind = FunctionKind { deterministic: function.is_deterministic, direct_only: false };
        let stage = Rc::clone(&self.stage);
        let name = function.name.clone();
        match &function.shape {
            // NB: triggers are in no list of functions.
            Shape::Value | Shape::Change => {
                for count in self.arities(&function) {
                    let (stage, function) = (Rc::clone(&stage), Rc::clone(&function));
                    self.sqlite.add_function(&name, count, kind, move |session, arguments, output| {
                        let host = stage.host().map_err(|error| stage.fail(error))?;
                        let mut answer = |value: ValueRef<'_>| output.set(value);
                        let at = |at: usize| arguments.at(at).get();
                        // NB: few arguments take no memory, and are written where they are read.
                        let done = match arguments.len() {
                            0 => host.call(session, &function, &[], &mut answer),
                            1 => host.call(session, &function, &[at(0)], &mut answer),
                            2 => host.call(session, &function, &[at(0), at(1)], &mut answer),
                            3 => host.call(session, &function, &[at(0), at(1), at(2)], &mut answer),
                            many => {
                                let given: Vec<_> = (0..many).map(at).collect();
                                host.call(session, &function, &given, &mut answer)
                            }
                        };
                        done.map_err(|error| stage.fail(error))
                    })?;
                }
            }
            Shape::Aggregate => {
                let count = function.parameters.len() as i32;
                self.sqlite.add_window(&name, count, kind, Folding { stage, function })?;
            }
            Shape::Rows(_) => self.sqlite.add_module(&name, Yielding { stage, function })?,
        }
        Ok(())
    }

    fn remove_function(&self, function: &Function) -> Result<()> {
        if let Shape::Rows(_) = function.shape {
            return Ok(self.sqlite.remove_module(&function.name)?);
        }
        for count in self.arities(function) {
            self.sqlite.remove_function(&function.name, count)?;
            if !function.is_of_host {
                self.removed.borrow_mut().insert((function.name.clone(), count));
            }
        }
        Ok(())
    }

    /// With how many arguments SQLite is to know a function; -1: any number.
    fn arities(&self, function: &Function) -> Vec<i32> {
        if !function.is_of_host {
            return vec![function.parameters.len() as i32];
        }
        self.any_count(&function.name)
    }

    /// What SQLite is told of a function that takes any number of arguments. NB: a number that it has known and forgotten it refuses
    /// until it is told that again.
    fn any_count(&self, name: &str) -> Vec<i32> {
        let removed = self.removed.borrow();
        let before = removed.iter().filter(|(known, _)| known == name).map(|(_, count)| *count);
        std::iter::once(-1).chain(before).collect()
    }

    /// What a function may ask for.
    pub(super) fn running<'a>(&'a self, session: &'a mut Session) -> Running<'a> {
        Running { engine: self, session }
    }

    /// Runs a statement of a function inside the one that has called it, with the rights of who runs that.
    fn run_for_function(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
    ) -> Result<(Rows, Outcome)> {
        let rowid = self.sqlite.last_rowid();
        let mut prepared = self.take(session, sql)?;
        prepared.frame.uses = prepared.reads;
        self.check_terms(&prepared)?;
        prepared.bind(parameters)?;
        let mut rows = Rows::default();
        rows.start(&prepared.columns)?;
        // The function may catch its error and go on: then nothing of it may be left. One that reads may call functions.
        let result = if prepared.reads && !self.has_functions() {
            self.step(session, &mut prepared, |row| rows.row(row))
        } else {
            let whole =
                session.transaction(|session| Ok(self.step_whole(session, &mut prepared, &mut rows)?));
            whole.map_err(Error::from)
        };
        let changes = if prepared.reads { 0 } else { self.sqlite.changes() };
        let outcome = Outcome { changes, last_rowid: self.sqlite.last_rowid() };
        self.put(prepared);
        self.sqlite.set_last_rowid(rowid);
        result?;
        Ok((rows, outcome))
    }

    /// Runs a statement to its end, with what it returns.
    fn step_whole(&self, session: &mut Session, prepared: &mut Prepared, rows: &mut Rows) -> Result<()> {
        if prepared.returning.is_some() {
            self.step_returning(session, prepared, rows)
        } else {
            self.step(session, prepared, |row| rows.row(row))
        }
    }
}

/// Whether every database has a function, or a table, of this name.
pub(crate) fn is_of_sqlite(name: &str) -> Result<bool> {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    let is_it = |names: &HashSet<String>| names.contains(name) || crate::graphs::has(name);
    if let Some(names) = NAMES.get() {
        return Ok(is_it(names));
    }
    let scratch = Connection::<()>::open()?;
    let sql = "SELECT name FROM pragma_function_list UNION SELECT name FROM pragma_module_list";
    let (Some(mut statement), _) = scratch.prepare(&mut (), sql)? else { return Ok(false) };
    let mut names = HashSet::new();
    while statement.step(&mut ())? {
        if let ValueRef::Text(text) = statement.column(0) {
            names.insert(fold(&String::from_utf8_lossy(text)));
        }
    }
    Ok(is_it(NAMES.get_or_init(|| names)))
}

/// The arguments of a call.
pub(super) fn values_of(arguments: Arguments<'_>) -> Vec<Value> {
    (0..arguments.len()).map(|at| Value::of(arguments.at(at).get())).collect()
}
