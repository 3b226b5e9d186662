//! The door: statements in, rows and outcomes out.
//!
//! Invariants
//! - All calls of a connection go with sessions of one database; while a transaction is open by BEGIN, with one session.
//! - A transaction that has met a conflict is dead: nothing runs in it until ROLLBACK.

mod given;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use perilune::{Levels, Session, TransactionOptions};

use crate::answer::{Nowhere, Outcome, Rows, Sink};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::limits::STATEMENT_BYTES;
use crate::terms::Terms;
use crate::token::{fold, tokens, Token};
use crate::value::Value;
use crate::verify::{verify, Verified};
use crate::widen::widen;
use crate::{define, dump, evict, kept, return_size, show};

/// A transaction that was opened by BEGIN or SAVEPOINT.
#[derive(Debug, Default)]
struct Open {
    /// Savepoints, the innermost last; each is a level of the session's.
    savepoints: Vec<String>,
    /// It began with a SAVEPOINT, whose RELEASE commits it.
    by_savepoint: bool,
    is_dead: bool,
}

/// Runs statements of SQL over sessions of a database.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("perilune-doc-sql-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
/// use perilune_sql::{Connection, Value};
///
/// let sql = Connection::open()?;
/// sql.execute(&mut session, "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, born INT)", &[])?;
/// sql.execute(&mut session, "INSERT INTO users VALUES (7, ?1, ?2)", &["Ada".into(), 1815.into()])?;
/// let rows = sql.query(&mut session, "SELECT name FROM users WHERE born < 1900", &[])?;
/// assert_eq!(rows.first(), Some(&Value::from("Ada")));
/// # let _ = std::fs::remove_dir_all(&directory);
/// # Ok::<(), perilune_sql::Error>(())
/// ```
pub struct Connection {
    pub(crate) engine: Rc<Engine>,
    open: RefCell<Option<Open>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("open", &self.open.borrow()).finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection, for sessions of one database.
    ///
    /// # Errors
    /// Without memory.
    pub fn open() -> Result<Connection> {
        Ok(Connection { engine: Engine::open()?, open: RefCell::default() })
    }

    /// Runs a statement and answers its rows.
    ///
    /// # Errors
    /// Of every [`SqlState`]; nothing has happened then, but for `UNKNOWN`.
    pub fn query(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<Rows> {
        let mut rows = Rows::default();
        self.run(session, sql, parameters, &mut rows)?;
        Ok(rows)
    }

    /// Runs a statement, without looking at rows.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn execute(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<Outcome> {
        self.run(session, sql, parameters, &mut Nowhere)
    }

    /// Runs a statement and hands its rows to a sink. Inside [`Session::transaction`] it is a part of that.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn run(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        self.run_under(session, sql, parameters, &Terms::default(), sink)
    }

    /// Runs a statement as [`Connection::run`], for somebody who may not do everything.
    ///
    /// # Errors
    /// As [`Connection::query`]; `DENIED`, `READ_ONLY` and `CANCELLED` by what the terms say.
    pub fn run_under(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        terms: &Terms,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        if sql.len() > STATEMENT_BYTES {
            let what = format!("a statement has {STATEMENT_BYTES} bytes at most, not {}", sql.len());
            return Err(Error::new(SqlState::LIMIT, what));
        }
        let first = first_word(sql);
        if is_control(&first) {
            if terms.shared_session {
                let what = "a transaction here is one of the caller's: MULTI and EXEC, or a script";
                return Err(Error::new(SqlState::REFUSED, what));
            }
            self.control(session, sql)?;
            return Ok(Outcome::default());
        }
        if self.open.borrow().as_ref().is_some_and(|open| open.is_dead) {
            return Err(dead());
        }
        let before = self.engine.set_terms(terms.clone());
        let result = if is_definition(&first) {
            terms.check_definition().and_then(|()| define::run(&self.engine, session, sql))
        } else if dump::is_one(&first) {
            dump::run(&self.engine, session, sql, sink)
        } else if evict::is_one(&first) {
            evict::run(&self.engine, session, sql, parameters, terms)
        } else if show::is_one(&first) {
            show::run(&self.engine, session, sql, terms, sink)
        } else if kept::is_one(&first) {
            kept::run(&self.engine, session, sql, parameters, terms, sink)
        } else {
            self.run_rows(session, sql, parameters, terms, sink)
        };
        self.engine.set_terms(before);
        if result.as_ref().is_err_and(Error::is_retry) {
            self.die(session);
        }
        result
    }

    /// Runs a statement over rows; an INSERT that names columns which its table may get, when it has them.
    fn run_rows(
        &self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        terms: &Terms,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        let sized = return_size::before(sql)?;
        let mut run = |session: &mut Session| match sized {
            Some(sql) => return_size::run(&self.engine, session, sql, parameters, sink),
            None => self.engine.run_statement(session, sql, parameters, sink),
        };
        let result = run(session);
        if result.as_ref().is_err_and(|error| error.state() == SqlState::NO_COLUMN) {
            // In one transaction: what kills or refuses the row leaves no column of its.
            let widened = session.transaction(|session| {
                let is_wider = widen(&self.engine, session, sql, terms)?;
                Ok(if is_wider { Some(run(session)?) } else { None })
            })?;
            return widened.map_or(result, Ok);
        }
        result
    }

    /// Runs statements one after the other, until one fails; answers the sum of what they have changed.
    ///
    /// # Errors
    /// As [`Connection::query`]; those before have happened.
    pub fn execute_script(&self, session: &mut Session, sql: &str) -> Result<Outcome> {
        let mut sum = Outcome::default();
        for statement in split(sql)? {
            let outcome = self.execute(session, statement, &[])?;
            sum = Outcome { changes: sum.changes + outcome.changes, ..outcome };
        }
        Ok(sum)
    }

    /// Compares all tables with their indexes, and with what says how their rows are used. To see one state while others write, give
    /// a snapshot's session.
    ///
    /// # Errors
    /// The database's. What is wrong with tables is no error, but in what is answered.
    pub fn verify(&self, session: &mut Session) -> Result<Verified> {
        verify(&self.engine, session)
    }

    /// Whether a transaction is open by BEGIN or SAVEPOINT.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.open.borrow().is_some()
    }

    /// Marks the open transaction as dead, after a conflict, and gives up what it has written.
    fn die(&self, session: &mut Session) {
        if let Some(open) = self.open.borrow_mut().as_mut() {
            open.is_dead = true;
            while session.depth() > 0 && session.rollback().is_ok() {}
            session.give_up();
            self.engine.has_defined(session);
        }
    }

    /// Runs BEGIN, COMMIT, ROLLBACK, SAVEPOINT or RELEASE.
    fn control(&self, session: &mut Session, sql: &str) -> Result<()> {
        let tokens = tokens(sql)?;
        let words: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_sign(";")).collect();
        let is = |at: usize, word: &str| words.get(at).is_some_and(|token| token.is(word));
        let last = words.last().and_then(|token| token.name()).map(|name| fold(&name));
        if is(0, "begin") {
            return self.begin(session, Open::default());
        }
        if is(0, "savepoint") {
            let name = last.filter(|_| words.len() == 2).ok_or_else(|| expected("SAVEPOINT name"))?;
            if self.open.borrow().is_none() {
                self.begin(session, Open { by_savepoint: true, ..Open::default() })?;
            }
            self.living()?;
            session.begin(&TransactionOptions::default())?;
            if let Some(open) = self.open.borrow_mut().as_mut() {
                open.savepoints.push(name);
            }
            return Ok(());
        }
        let name = |what| last.as_deref().ok_or_else(|| expected(what));
        let is_to = words.iter().any(|token| token.is("to"));
        match (is(0, "commit") || is(0, "end"), is(0, "rollback"), is(0, "release")) {
            (true, ..) => self.commit(session),
            (_, true, _) if is_to => self.back_to(session, name("ROLLBACK TO name")?),
            (_, true, _) => self.rollback(session),
            _ => self.release(session, name("RELEASE name")?),
        }
    }

    fn begin(&self, session: &mut Session, open: Open) -> Result<()> {
        if self.open.borrow().is_some() || session.depth() > 0 {
            return Err(Error::new(SqlState::TRANSACTION, "a transaction is open: end it, or use SAVEPOINT"));
        }
        session.begin(&TransactionOptions::default())?;
        self.open.replace(Some(open));
        Ok(())
    }

    /// Fails without a transaction that lives.
    fn living(&self) -> Result<()> {
        match self.open.borrow().as_ref() {
            None => Err(Error::new(SqlState::TRANSACTION, "no transaction is open: BEGIN one")),
            Some(open) if open.is_dead => Err(dead()),
            Some(_) => Ok(()),
        }
    }

    fn commit(&self, session: &mut Session) -> Result<()> {
        self.living()?;
        // Savepoints that are left are parts of it.
        while session.depth() > 1 {
            session.commit()?;
        }
        self.open.replace(None);
        let result = session.commit();
        self.engine.write_notes(session);
        if result.as_ref().is_err_and(perilune::Error::is_retry) {
            session.give_up();
            self.engine.has_defined(session);
        }
        Ok(result?)
    }

    fn rollback(&self, session: &mut Session) -> Result<()> {
        if self.open.replace(None).is_none() {
            return Err(Error::new(SqlState::TRANSACTION, "no transaction is open: BEGIN one"));
        }
        while session.depth() > 0 {
            session.rollback()?;
        }
        session.give_up();
        self.engine.has_defined(session);
        Ok(())
    }

    /// Which savepoint has this name, the innermost first.
    fn savepoint(&self, name: &str) -> Result<usize> {
        self.living()?;
        let open = self.open.borrow();
        let found = open.as_ref().and_then(|open| open.savepoints.iter().rposition(|other| other == name));
        found.ok_or_else(|| Error::new(SqlState::TRANSACTION, format!("no such savepoint: {name}")))
    }

    fn release(&self, session: &mut Session, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        let mut ends = false;
        if let Some(open) = self.open.borrow_mut().as_mut() {
            while open.savepoints.len() > at {
                open.savepoints.pop();
                session.commit()?;
            }
            ends = open.by_savepoint && open.savepoints.is_empty();
        }
        if ends {
            return self.commit(session);
        }
        Ok(())
    }

    fn back_to(&self, session: &mut Session, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        if let Some(open) = self.open.borrow_mut().as_mut() {
            for _ in at..open.savepoints.len() {
                session.rollback()?;
            }
            open.savepoints.truncate(at + 1);
            session.begin(&TransactionOptions::default())?;
        }
        self.engine.has_defined(session);
        Ok(())
    }
}

fn dead() -> Error {
    Error::new(SqlState::DEAD, "the transaction has failed: ROLLBACK, and begin it again")
}

fn expected(what: &str) -> Error {
    Error::new(SqlState::SYNTAX, format!("expected {what}"))
}

/// The first word of a statement, in lower case.
fn first_word(sql: &str) -> String {
    // NB: comments may stand before it; an error in the text shows later.
    let plain = sql.trim_start();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let end = plain.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(plain.len());
        return fold(&plain[..end]);
    }
    tokens(sql).ok().and_then(|tokens| tokens.first().map(|token| fold(token.text))).unwrap_or_default()
}

fn is_control(word: &str) -> bool {
    ["begin", "commit", "end", "rollback", "savepoint", "release"].contains(&word)
}

fn is_definition(word: &str) -> bool {
    ["create", "drop", "alter", "analyze", "reindex", "interpret"].contains(&word)
}

/// Whether a statement changes the schema, which may take several transactions and has no limit of time.
#[must_use]
pub fn defines(sql: &str) -> bool {
    is_definition(&first_word(sql))
}

/// The statements of a script, without their semicolons; those inside of a trigger belong to it.
///
/// # Errors
/// `SYNTAX` for a text that does not end.
pub fn split(sql: &str) -> Result<Vec<&str>> {
    let tokens = tokens(sql)?;
    let (mut statements, mut start, mut end) = (Vec::new(), None, 0);
    let (mut is_trigger, mut open) = (false, 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        if start.is_none() {
            is_trigger =
                token.is("create") && tokens[at..].iter().skip(1).take(2).any(|token| token.is("trigger"));
            open = 0;
        }
        // A trigger ends in END, as each CASE in it does.
        if is_trigger && (token.is("begin") || token.is("case")) {
            open += 1;
        } else if is_trigger && token.is("end") {
            open = open.saturating_sub(1);
        }
        if token.is_sign(";") && open == 0 {
            statements.extend(start.take().map(|start: usize| &sql[start..end]));
        } else if !token.is_sign(";") || start.is_some() {
            start.get_or_insert(token.at);
            end = token.end();
        }
    }
    statements.extend(start.map(|start| &sql[start..end]));
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_script_is_cut_between_statements() {
        let trigger =
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM b; END";
        let script = format!(";; SELECT 'a;b' ; -- ;\n{trigger};BEGIN; END;");
        assert_eq!(split(&script).expect("statements"), ["SELECT 'a;b'", trigger, "BEGIN", "END"]);
    }
}
