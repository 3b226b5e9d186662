//! `perilune sql`: statements from the command line, from the standard input, or from a shell.
//!
//! ```text
//! $ perilune --db shop.db sql -c "SELECT id, name FROM users" --mode csv
//! id,name
//! 1,Ada
//! ```
//!
//! Invariants
//! - Rows go to the standard output, errors to the standard error; a script ends at its first error, a shell goes on.
//! - A statement's rows are shown when it has happened, and not before: it may run again. Only a DUMP, which may be large, is
//!   shown as it is read, from a snapshot.

mod shell;
mod show;

use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use perilune::{Database, ErrorCode, Session, TransactionOptions};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::SCRIPT_STACK;
use perilune_sql::{dumps, split, Connection, Value};

use crate::arguments::SqlOptions;
use crate::failure::{doing, found, wrong_use, Failure, Result};
use crate::sql::show::{Mode, Streamed};
use crate::which_database;

/// A connection, a session, and how rows are shown.
struct Runner {
    database: Database,
    session: Session,
    sql: Connection,
    mode: Mode,
}

/// Runs statements, or talks to the user: on a thread with the stack that functions in Lua may take.
pub(crate) fn run(options: &SqlOptions, flag: Option<&Path>) -> Result<()> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("sql".to_owned()).stack_size(SCRIPT_STACK);
        let running =
            builder.spawn_scoped(scope, || run_here(options, flag)).map_err(doing("start a thread"))?;
        running.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn run_here(options: &SqlOptions, flag: Option<&Path>) -> Result<()> {
    let word = options.path.as_deref();
    let database = match which_database::only(word, flag)? {
        Some(path) => {
            is_no_statement(path)?;
            Database::open(path).map_err(|error| may_be_a_script(error, path))?
        }
        None => Database::open_default()?,
    };
    let is_terminal = io::stdin().is_terminal() && options.command.is_none();
    let mode = options.mode.as_deref().map_or(if is_terminal { Mode::Table } else { Mode::List }, Mode::of);
    let sql = Connection::open()?;
    sql.set_interpreter(Rc::new(LuaFunctions::new(Limits::default())));
    let path = database.path().to_owned();
    let mut runner = Runner { session: database.session()?, database, sql, mode };
    for file in &options.functions {
        runner.functions(file)?;
    }
    if let Some(text) = &options.command {
        return runner.script(text);
    }
    if is_terminal {
        println!("perilune {}: {}", env!("CARGO_PKG_VERSION"), path.display());
        println!("statements end in ; .help says more, Ctrl-D ends");
        return shell::run(&mut runner);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(doing("read the standard input"))?;
    runner.script(&text)
}

/// Refuses a statement in place of a database that is not there.
fn is_no_statement(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    if !text.trim().contains(char::is_whitespace) || path.exists() {
        return Ok(());
    }
    Err(wrong_use(format!(
        "{text}: is no database: statements are given by -c; to make a database of that name: ./{text}"
    )))
}

/// What is no database may be a file of statements whose database was not named.
fn may_be_a_script(error: perilune::Error, path: &Path) -> Failure {
    let is_other = error.code() == ErrorCode::NotADatabase;
    let mut failure = Failure::from(error);
    if is_other {
        let hint = format!("; to run its statements: perilune --db DB sql <{}", path.display());
        failure.message.push_str(&hint);
    }
    failure
}

/// What became of rows that were written.
fn is_written(result: io::Result<()>) -> Result<()> {
    match result {
        // Nobody reads on.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(doing("write the rows")),
    }
}

impl Runner {
    /// Runs statements until one fails; lines that begin with a point are commands.
    fn script(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while !rest.trim_start().is_empty() {
            let begun = rest.trim_start();
            if begun.starts_with('.') {
                let (line, behind) = begun.split_once('\n').unwrap_or((begun, ""));
                self.command(line.trim())?;
                rest = behind;
                continue;
            }
            // Statements up to the next command.
            let end = begun.find("\n.").map_or(begun.len(), |end| end + 1);
            for statement in split(&begun[..end])? {
                self.statement(statement)?;
            }
            rest = &begun[end..];
        }
        Ok(())
    }

    /// Runs a statement and shows its rows.
    fn statement(&mut self, statement: &str) -> Result<()> {
        if dumps(statement) && self.mode != Mode::Table && !self.sql.is_in_transaction() {
            // NB: without snapshots, as of a database that is only read, rows are kept until all are there.
            if let Ok(snapshot) = self.database.snapshot() {
                return self.dump(snapshot, statement);
            }
        }
        let rows = self.sql.query(&mut self.session, statement, &[])?;
        if rows.columns().is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        show::write(&rows, self.mode, &mut out);
        is_written(io::stdout().write_all(&out).and_then(|()| io::stdout().flush()))
    }

    /// Shows the rows of a DUMP while they are read, of a state that stays: so it runs once, and may be of any size.
    fn dump(&self, mut snapshot: Session, statement: &str) -> Result<()> {
        let mut shown = Streamed::new(self.mode, BufWriter::new(io::stdout().lock()));
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        let done = snapshot.transaction_with(&options, |session| {
            self.sql.run(session, statement, &[], &mut shown)?;
            Ok(())
        });
        let written = shown.end();
        match (done, &written) {
            (Err(error), Ok(())) => Err(perilune_sql::Error::from(error).into()),
            _ => is_written(written),
        }
    }

    /// Does what a line says that begins with a point.
    fn command(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [".help"] => println!("{HELP}"),
            [".mode", mode] if Mode::NAMES.contains(&mode) => self.mode = Mode::of(mode),
            [".mode", ..] => return Err(found(format!("modes are {}", Mode::NAMES.join(", ")))),
            [".tables"] => {
                for kind in ["table", "view"] {
                    for name in self.names(kind)? {
                        println!("{name}");
                    }
                }
            }
            [".schema"] => self.schema(None)?,
            [".schema", name] => self.schema(Some(name))?,
            [".import", file, table] => self.import(Path::new(file), table)?,
            [".functions", file] => self.functions(Path::new(file))?,
            _ => return Err(found(format!("there is no command {line}; .help lists them"))),
        }
        Ok(())
    }

    /// The names below a part of the catalog.
    fn names(&mut self, kind: &str) -> Result<Vec<String>> {
        let node = perilune::node!("^sql", kind)?;
        let names = self.session.children(&node).map(|child| Ok(child?.to_text().into_owned()));
        let names: perilune::Result<Vec<Vec<u8>>> = names.collect();
        Ok(names?.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Shows how tables and views were made.
    fn schema(&mut self, only: Option<&str>) -> Result<()> {
        let mut is_shown = only.is_none();
        for kind in ["table", "view"] {
            for name in self.names(kind)? {
                if only.is_some_and(|only| !only.eq_ignore_ascii_case(&name)) {
                    continue;
                }
                is_shown = true;
                let node = perilune::node!("^sql", kind, &name, "sql")?;
                if let Some(sql) = self.session.get_str(&node)? {
                    println!("{sql};");
                }
                for index in self.session.get_tree(&perilune::node!("^sql", kind, &name, "index")?)? {
                    let (node, value) = index;
                    let path = node.subscripts()?;
                    if let ([.., index, last], perilune::Value::String(columns)) = (&path[..], value) {
                        if last.to_text().as_ref() == b"sql" {
                            let (index, columns) =
                                (index.to_text(), String::from_utf8_lossy(&columns).into_owned());
                            println!(
                                "CREATE INDEX {} ON {name}({columns});",
                                String::from_utf8_lossy(&index)
                            );
                        }
                    }
                }
            }
        }
        match only {
            Some(name) if !is_shown => {
                Err(found(format!("there is no table or view {name}; .tables lists them")))
            }
            _ => Ok(()),
        }
    }

    /// Keeps the functions that a file in Lua defines, all or none.
    fn functions(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(doing(format!("read {}", file.display())))?;
        let statement = format!("INTERPRET LUA '{}'", text.replace('\'', "''"));
        let done = self.sql.execute(&mut self.session, &statement, &[]);
        done.map_err(|error| found(format!("{}: {}: {error}", file.display(), error.state())))?;
        Ok(())
    }

    /// Puts the lines of a CSV file into a table, all or none; the first line names columns.
    fn import(&mut self, file: &Path, table: &str) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(doing(format!("read {}", file.display())))?;
        let mut records = show::read_csv(&text).into_iter();
        let Some(names) = records.next() else { return Err(found("the file is empty")) };
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        let columns = names.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let marks = vec!["?"; names.len()].join(", ");
        let insert = format!("INSERT INTO {}({columns}) VALUES ({marks})", quoted(&table.to_owned()));
        let records: Vec<Vec<String>> = records.collect();
        let sql = &self.sql;
        let count = self.session.transaction(|session| {
            for (at, record) in records.iter().enumerate() {
                if record.len() != names.len() {
                    let what = format!("line {} has {} fields, not {}", at + 2, record.len(), names.len());
                    return Err(perilune::Error::other(what));
                }
                let values: Vec<Value> = record.iter().map(|field| Value::from(&field[..])).collect();
                sql.execute(session, &insert, &values)?;
            }
            Ok(records.len())
        });
        let count = count.map_err(perilune_sql::Error::from)?;
        eprintln!("{count} rows");
        Ok(())
    }
}

const HELP: &str = "\
SELECT ...;            a statement goes on until its semicolon; EXPLAIN QUERY PLAN shows how it runs
.tables                names of tables and views
.schema [TABLE]        how they were made
.mode MODE             how rows are shown: table, list, line, csv, json
.import FILE TABLE     puts a CSV file into a table; its first line names columns
.functions FILE        keeps the functions of a file in Lua, for statements of all
.quit, Ctrl-D          end";

impl From<perilune_sql::Error> for Failure {
    fn from(error: perilune_sql::Error) -> Failure {
        let place = error.position().map_or(String::new(), |at| format!(" (at byte {at})"));
        let message = format!("{}: {error}{place}", error.state());
        match error.engine() {
            Some(_) => Failure { message, ..Failure::from(perilune::Error::from(error)) },
            None => found(message),
        }
    }
}
