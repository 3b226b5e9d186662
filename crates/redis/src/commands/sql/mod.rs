//! SQL: statements over tables in the tree (`perilune_sql`), beside Redis's commands.
//!
//! ```text
//! SQL "SELECT id, name FROM users WHERE city = ?" Oslo     1) 1) (integer) 7   2) "Ada"
//! SQL "UPDATE users SET city = ? WHERE id = ?" Rome 7      (integer) 1
//! INSERT INTO users VALUES "(8,'Ben')"                     (integer) 1         AlchemyDB's words (`words`)
//! SQL "SELECT id, name FROM users STORE HSET names"        (integer) 3         rows and keys (`morph`)
//! ```
//!
//! A statement is tried in the event loop for a millisecond, and else runs aside. Inside EXEC and scripts it is a part of their
//! transaction. What a thread knows of tables it keeps: SQLite's connections stay with their threads.
//!
//! Invariants
//! - A statement has its reply from the run that was committed.
//! - A user reads and changes table `users` who may read and write a key called `^users`; who changes the schema must be allowed
//!   PERILUNE.SET, which takes all keys.
//! - Transactions are EXEC's and scripts': the loop's session is everybody's.

mod morph;
mod words;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use perilune::TransactionOptions;
use perilune_resp::{Arguments, ArgumentsBuf, ArrayMark, Protocol, Replies};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::Pool;
use perilune_sql::alchemy::{foreign, Foreign};
use perilune_sql::{
    defines, real_text, Access, Connection, Outcome, Permit, Row, Sink, SqlState, Terms, Value, ValueRef,
};

use self::morph::Morph;
use self::words::Statement;
use crate::acl::User;
use crate::busy_pages::is_held;
use crate::command::{self, access, Command, READ, WRITE};
use crate::commands::nodes;
use crate::context::Context;
use crate::eviction;
use crate::execution::Way;
use crate::failure::{refuse, Failure, Result};
use crate::scripts::sql::{Around, Lending, ServerFunctions};
use crate::settings::Name;

/// How long a statement is tried in an event loop.
const IN_LOOP: Duration = Duration::from_millis(1);

thread_local! {
    /// What this thread knows of the tables of the server whose thread it is; none while a statement runs.
    static CONNECTION: RefCell<Option<Kept>> = const { RefCell::new(None) };
    /// Statements under way, each of which a function of the one before has asked for.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// So many statements call the command of the next at most.
const NESTED_MAX: usize = 8;

/// What a thread keeps.
struct Kept {
    /// When the server was started that it belongs to.
    server: Instant,
    connection: Connection,
    lending: Rc<Lending>,
}

/// SQL: runs a statement for as long as it takes.
pub(crate) fn sql(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    run_to_end(context, arguments, false, replies)
}

/// SQL_RO: runs a statement that reads.
pub(crate) fn sql_ro(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    run_to_end(context, arguments, true, replies)
}

/// Calls a function of SQL for a user who may run statements; its value is the reply.
pub(crate) fn call(
    context: &mut Context<'_>,
    name: &str,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    const MISSING: &str = "ERR Function not found";
    let Some(sql) = command::find(b"sql") else { return refuse(MISSING) };
    let words: ArgumentsBuf = ["sql", name].into_iter().collect();
    if let Err(refused) = context.permit(sql, words.as_arguments(), "toplevel") {
        return Err(Failure::Reply(refused.into()));
    }
    let until = end_of_time(context);
    match run(context, &words::call(name, arguments), (false, until), replies) {
        Err(Failure::Reply(text)) if text.starts_with("ERR 42883 no such function") => refuse(MISSING),
        done => done,
    }
}

fn run_to_end(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    read_only: bool,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let until = end_of_time(context);
    run(context, &words::statement(arguments)?, (read_only, until), replies)
}

/// When a statement that begins now is to have ended.
fn end_of_time(context: &Context<'_>) -> Option<Instant> {
    let limit = context.server.rules().live().number(Name::ScriptTimeLimit);
    let limit = u64::try_from(limit).ok().filter(|limit| *limit > 0).map(Duration::from_millis);
    limit.map(|limit| Instant::now() + limit)
}

/// Tries a statement in the event loop; false: it has done nothing, and runs aside.
pub(crate) fn attempt(
    context: &mut Context<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> bool {
    // Errors are told aside.
    let Ok(statement) = words::statement(arguments) else { return false };
    if defines(&statement.text) || !context.server.commons().monitors().is_empty() {
        return false;
    }
    let start = replies.position();
    match run(context, &statement, (command.is(READ), Some(Instant::now() + IN_LOOP)), replies) {
        Ok(()) => {}
        Err(Failure::Reply(text)) => replies.error(&text),
        Err(_) => return false,
    }
    context.end(command, arguments, Way::Request, replies.since(start));
    true
}

fn run(
    context: &mut Context<'_>,
    wanted: &Statement<'_>,
    (read_only, until): (bool, Option<Instant>),
    replies: &mut Replies<'_>,
) -> Result<()> {
    nodes::admit(context)?;
    let terms = Terms { until, read_only, shared_session: true, permit: permit(context)? };
    let started = context.server.measures().started();
    let nested = Nested::enter();
    let kept = CONNECTION.take().filter(|kept| kept.server == started);
    match kept.map_or_else(|| connect(context), Ok) {
        _ if nested.0 >= NESTED_MAX => Err(Failure::Reply(
            format!("LIMIT 54000 functions call the command SQL at most {NESTED_MAX} deep").into(),
        )),
        Err(failure) => Err(failure),
        Ok(kept) => {
            let done = statement(context, &kept, wanted, &terms, replies);
            CONNECTION.set(Some(kept));
            done
        }
    }
}

/// A command SQL that runs, perhaps inside of others, whose number this is; also one that panics ends.
struct Nested(usize);

impl Nested {
    fn enter() -> Nested {
        Nested(NESTED.replace(NESTED.get() + 1))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(self.0);
    }
}

/// Runs a statement on a connection, with its client if its functions ask for that.
fn statement(
    context: &mut Context<'_>,
    kept: &Kept,
    wanted: &Statement<'_>,
    terms: &Terms,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (text, parameters): (&str, &[Value]) = (&wanted.text, &wanted.parameters);
    let Kept { connection, lending, .. } = kept;
    let start = replies.position();
    let mut answer = Answer { start, replies, mark: None, rows: 0, is_value: wanted.is_value };
    let is_known = lending.is_known(text);
    lending.set_in_loop(context.may_park);
    let mut outcome = match is_known {
        false => connection.run_under(context.session, text, parameters, terms, &mut answer),
        true => Ok(Outcome::default()),
    };
    let refused = outcome.as_ref().err().filter(|error| error.state() == SqlState::SYNTAX);
    let foreign = refused.and_then(|_| with_commands(text));
    if is_known || foreign.is_some() || outcome.is_err() && lending.is_wanted(text) {
        if context.may_park {
            return Err(Failure::TakesLong);
        }
        let server = context.server;
        let is_full = eviction::is_limited(server.rules()) && !context.make_room(0);
        let done = context.transaction(&TransactionOptions::default(), |session, client, effects| {
            let run = || match &foreign {
                Some(foreign) => {
                    Morph { connection, lending, terms, parameters }.run(session, foreign, &mut answer)
                }
                None => connection.run_under(session, text, parameters, terms, &mut answer),
            };
            outcome = Ok(lending.lend(server, is_full, client, effects, run)?);
            Ok(())
        });
        if let Err(error) = done {
            outcome = Err(error.into());
        }
    }
    match outcome {
        Ok(outcome) => {
            answer.end(outcome.changes);
            Ok(())
        }
        Err(error) => {
            answer.replies.rewind(start);
            // Those that run the command again, or aside, are for whoever runs it.
            let again =
                |engine: &perilune::Error| engine.is_retry() || engine.is_long_read() || is_held(engine);
            Err(match error.engine() {
                Some(engine) if again(engine) => Failure::Database(error.into()),
                _ if context.may_park && error.state() == SqlState::CANCELLED => Failure::TakesLong,
                _ => failure(&error),
            })
        }
    }
}

/// What a statement that SQL refuses says, if it names commands of Redis.
fn with_commands(text: &str) -> Option<Foreign> {
    let reads = |name: &str| command::find(name.as_bytes()).is_some_and(|command| command.is(READ));
    let writes = |name: &str| {
        command::find(name.as_bytes()).is_some_and(|command| command.is(WRITE) && command.is_on_keys())
    };
    // One that is not so, either, has the error that SQL has told.
    foreign(text, &reads, &writes).ok().flatten()
}

/// A connection for this thread, with an interpreter within the limits of scripts.
fn connect(context: &Context<'_>) -> Result<Kept> {
    let bytes = |name| usize::try_from(context.server.rules().live().number(name)).unwrap_or(usize::MAX);
    let connection = Connection::open().map_err(|error| failure(&error))?;
    let limits = Limits {
        memory: bytes(Name::ScriptMemoryLimit),
        pool: Pool::new(bytes(Name::ScriptMemoryTotal)),
        // The statement's own limit ends what its functions do.
        time: None,
    };
    let lending = Rc::<Lending>::default();
    let around = Box::new(Around(Rc::clone(&lending)));
    let lua = LuaFunctions::within(limits, around);
    connection.set_interpreter(Rc::new(ServerFunctions::new(lua, Rc::clone(&lending), context.server)));
    Ok(Kept { server: context.server.measures().started(), connection, lending })
}

/// What the client's user may do; none: everything.
fn permit(context: &mut Context<'_>) -> Result<Option<Rc<Permit>>> {
    let acl = context.server.rules().acl();
    if context.client.is_unlimited(acl) {
        return Ok(None);
    }
    let Some(user) = context.client.shared_user(acl) else {
        return refuse("NOAUTH the user of this connection has been deleted");
    };
    if user.is_unlimited() {
        return Ok(None);
    }
    Ok(Some(Rc::new(move |table: &str, access: Access| may(&user, table, access))))
}

/// Whether a user may use a table so.
fn may(user: &User, table: &str, access: Access) -> bool {
    // What SQLite says of tables is what the catalog says.
    let is_catalog = table.starts_with("sqlite_") || table.starts_with("pragma_");
    let key = if is_catalog { "^sql".to_owned() } else { format!("^{table}") };
    let wanted = match access {
        Access::Reads => access::READS,
        Access::Writes => access::WRITES,
        Access::Defines => {
            let words: ArgumentsBuf = ["perilune.set", "node", "value"].into_iter().collect();
            let set = command::find(b"perilune.set");
            return set.is_some_and(|set| user.check(set, words.as_arguments()).is_ok());
        }
    };
    user.selectors.iter().any(|selector| selector.allows_key(key.as_bytes(), wanted))
}

/// The line that a client is told.
fn failure(error: &perilune_sql::Error) -> Failure {
    let state = error.state();
    let prefix = match state {
        SqlState::CONFLICT => "CONFLICT",
        SqlState::UNIQUE | SqlState::NOT_NULL | SqlState::CHECK | SqlState::FOREIGN_KEY => "CONSTRAINT",
        SqlState::LIMIT => "LIMIT",
        SqlState::CANCELLED => "BUSY",
        SqlState::MEMORY | SqlState::SPACE => "OOM",
        SqlState::DENIED => "NOPERM",
        SqlState::READ_ONLY => "READONLY",
        SqlState::UNKNOWN => "NOTDURABLE",
        SqlState::MISS => "MISS",
        _ => "ERR",
    };
    let place = error.position().map_or(String::new(), |at| format!(" (at byte {at})"));
    Failure::Reply(format!("{prefix} {state} {error}{place}").into())
}

/// Rows as a reply: an array of arrays; of a statement without rows, how many it has changed.
struct Answer<'a, 'r> {
    start: usize,
    replies: &'a mut Replies<'r>,
    mark: Option<ArrayMark>,
    rows: usize,
    /// Only the first value counts.
    is_value: bool,
}

impl Answer<'_, '_> {
    fn end(self, changes: u64) {
        match self.mark {
            Some(mark) => self.replies.end_array(mark, self.rows),
            None if self.is_value && self.rows > 0 => {}
            None => self.replies.integer(i64::try_from(changes).unwrap_or(i64::MAX)),
        }
    }
}

impl Answer<'_, '_> {
    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.replies.null(),
            ValueRef::Integer(integer) => self.replies.integer(integer),
            ValueRef::Real(real) if self.replies.protocol() == Protocol::Resp3 => self.replies.double(real),
            ValueRef::Real(real) => self.replies.bulk(real_text(real).as_bytes()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => self.replies.bulk(bytes),
        }
    }
}

impl Sink for Answer<'_, '_> {
    fn start(&mut self, columns: &[String]) -> perilune_sql::Result<()> {
        self.replies.rewind(self.start);
        self.rows = 0;
        let is_list = !columns.is_empty() && !self.is_value;
        self.mark = is_list.then(|| self.replies.begin_array());
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> perilune_sql::Result<()> {
        if self.replies.is_full() {
            let what = "the rows take more than client-output-buffer-limit allows: ask for fewer, with LIMIT";
            return Err(perilune_sql::Error::new(SqlState::LIMIT, what));
        }
        self.rows += 1;
        if self.is_value {
            self.value(row.get(0));
            return Ok(());
        }
        self.replies.array(row.len());
        for column in 0..row.len() {
            self.value(row.get(column));
        }
        Ok(())
    }
}
