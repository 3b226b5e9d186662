//! What a statement answers instead of rows: a code, what is wrong, where in the text, what to do.
//!
//! Codes are SQLSTATEs, as other databases have them, so that a program can tell "run it again" from "there is one already". An
//! error of the engine is kept beside it and wins over whatever SQLite made of it.
//!
//! Invariant: an error that asks for the transaction to be run again stays one when it goes through [`perilune::Error`] and back.

use std::fmt;

use perilune::ErrorCode;
use perilune_sqlite::{constants as sqlite, Failure};

/// The result of whatever runs SQL.
pub type Result<T> = std::result::Result<T, Error>;

/// Five characters that never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlState(&'static str);

impl SqlState {
    /// Run the transaction again.
    pub const CONFLICT: SqlState = SqlState("40001");
    /// The transaction is dead until ROLLBACK.
    pub const DEAD: SqlState = SqlState("25P02");
    /// A transaction is open, or none is.
    pub const TRANSACTION: SqlState = SqlState("25001");
    /// It took too long, or was told to end.
    pub const CANCELLED: SqlState = SqlState("57014");
    /// A UNIQUE or PRIMARY KEY does not hold.
    pub const UNIQUE: SqlState = SqlState("23505");
    /// A NOT NULL does not hold.
    pub const NOT_NULL: SqlState = SqlState("23502");
    /// A CHECK does not hold.
    pub const CHECK: SqlState = SqlState("23514");
    /// A REFERENCES does not hold.
    pub const FOREIGN_KEY: SqlState = SqlState("23503");
    /// The text is no statement.
    pub const SYNTAX: SqlState = SqlState("42601");
    /// There is no such table, view, index or trigger.
    pub const NO_TABLE: SqlState = SqlState("42P01");
    /// There is no such column.
    pub const NO_COLUMN: SqlState = SqlState("42703");
    /// The name may mean two things.
    pub const AMBIGUOUS: SqlState = SqlState("42702");
    /// There is no such function.
    pub const NO_FUNCTION: SqlState = SqlState("42883");
    /// There is no prepared statement of this name.
    pub const NO_STATEMENT: SqlState = SqlState("26000");
    /// Something of this name is there.
    pub const EXISTS: SqlState = SqlState("42P07");
    /// A definition contradicts itself.
    pub const DEFINITION: SqlState = SqlState("42611");
    /// The value is of another type than the column takes.
    pub const TYPE: SqlState = SqlState("42804");
    /// A number is out of range.
    pub const RANGE: SqlState = SqlState("22003");
    /// A parameter is missing, or too much.
    pub const PARAMETER: SqlState = SqlState("22023");
    /// A text is no JSON, or a document has no such place.
    pub const DOCUMENT: SqlState = SqlState("22P02");
    /// A bound is reached.
    pub const LIMIT: SqlState = SqlState("54000");
    /// A function of the schema has raised an error.
    pub const FUNCTION: SqlState = SqlState("38000");
    /// A trigger has refused, by RAISE.
    pub const RAISED: SqlState = SqlState("P0001");
    /// A cache has evicted the row: it is in the backing store.
    pub const MISS: SqlState = SqlState("P0002");
    /// There is no memory left.
    pub const MEMORY: SqlState = SqlState("53200");
    /// There is no room left.
    pub const SPACE: SqlState = SqlState("53100");
    /// It is refused on purpose.
    pub const REFUSED: SqlState = SqlState("0A000");
    /// The user may not do that.
    pub const DENIED: SqlState = SqlState("42501");
    /// A write, where only reading is allowed.
    pub const READ_ONLY: SqlState = SqlState("25006");
    /// Nobody can say whether it has happened, or it is not on disk.
    pub const UNKNOWN: SqlState = SqlState("55000");
    /// The database is damaged, or something of ours is wrong.
    pub const INTERNAL: SqlState = SqlState("XX000");

    /// The five characters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An error of a statement.
#[derive(Debug)]
pub struct Error {
    state: SqlState,
    message: String,
    position: Option<usize>,
    engine: Option<Box<perilune::Error>>,
    /// It asks for the row to be left out, and is no error.
    leaves_out: bool,
}

impl Error {
    /// What leaves a row out, without an error.
    pub(crate) fn left_out() -> Error {
        Error { leaves_out: true, ..Error::new(SqlState::CHECK, "the row is left out") }
    }

    /// Whether it only leaves a row out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// An error of a kind, as a [`crate::Sink`] may answer one; the message says what to do.
    pub fn new(state: SqlState, message: impl Into<String>) -> Error {
        Error { state, message: message.into(), position: None, engine: None, leaves_out: false }
    }

    /// The error, with the byte of the statement at which it lies.
    #[must_use]
    pub(crate) fn at(mut self, position: usize) -> Error {
        self.position = Some(position);
        self
    }

    /// The error of a text that lies elsewhere in another one: its place there.
    pub(crate) fn moved(mut self, by: i64) -> Error {
        let moved = |position: usize| usize::try_from(position as i64 + by).ok();
        self.position = self.position.and_then(moved);
        self
    }

    /// What kind of error it is.
    #[must_use]
    pub fn state(&self) -> SqlState {
        self.state
    }

    /// What is wrong, and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The byte of the statement's text at which it lies, if it lies in the text.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.position
    }

    /// The engine's own error, if it is one.
    #[must_use]
    pub fn engine(&self) -> Option<&perilune::Error> {
        self.engine.as_deref()
    }

    /// Whether the transaction around is to be run again.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.engine.as_ref().is_some_and(|error| error.is_retry())
    }

    /// What SQLite says of a statement, unless a callback of ours has put its own error aside.
    pub(crate) fn of_sqlite(error: perilune_sqlite::Error) -> Error {
        let message = error.message;
        let says = |start: &str| message.starts_with(start);
        let state = match (error.code, error.code & 0xFF) {
            (sqlite::SQLITE_CONSTRAINT_PRIMARYKEY | sqlite::SQLITE_CONSTRAINT_UNIQUE, _)
            | (sqlite::SQLITE_CONSTRAINT_ROWID, _) => SqlState::UNIQUE,
            (sqlite::SQLITE_CONSTRAINT_NOTNULL, _) => SqlState::NOT_NULL,
            (sqlite::SQLITE_CONSTRAINT_FOREIGNKEY, _) => SqlState::FOREIGN_KEY,
            (_, sqlite::SQLITE_CONSTRAINT) => SqlState::CHECK,
            (_, sqlite::SQLITE_MISMATCH) => SqlState::TYPE,
            (_, sqlite::SQLITE_INTERRUPT) => SqlState::CANCELLED,
            (_, sqlite::SQLITE_AUTH) => SqlState::REFUSED,
            (_, sqlite::SQLITE_NOMEM) => SqlState::MEMORY,
            (_, sqlite::SQLITE_TOOBIG) => SqlState::LIMIT,
            (_, sqlite::SQLITE_RANGE) => SqlState::PARAMETER,
            _ if says("no such table") || says("no such view") => SqlState::NO_TABLE,
            _ if says("no such column") || message.contains("has no column named") => SqlState::NO_COLUMN,
            _ if says("no such function") || says("wrong number of arguments") => SqlState::NO_FUNCTION,
            _ if says("ambiguous") => SqlState::AMBIGUOUS,
            _ if message.contains("already exists") => SqlState::EXISTS,
            _ if says("integer overflow") => SqlState::RANGE,
            _ if says("too many") || message.contains("too large") || says("at most") => SqlState::LIMIT,
            _ => SqlState::SYNTAX,
        };
        let message = match state {
            SqlState::CANCELLED => {
                "the statement took longer than it may: ask for less of it at a time".to_owned()
            }
            _ => message,
        };
        Error { state, message, position: error.offset, engine: None, leaves_out: false }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.engine.as_ref().map(|error| &**error as _)
    }
}

impl From<perilune::Error> for Error {
    fn from(error: perilune::Error) -> Error {
        let error = match error {
            perilune::Error::Other(other) => match other.downcast::<Error>() {
                Ok(own) => return *own,
                Err(other) => perilune::Error::Other(other),
            },
            error => error,
        };
        let state = match error.code() {
            ErrorCode::Conflict | ErrorCode::Restart => SqlState::CONFLICT,
            ErrorCode::TransactionTimeout | ErrorCode::Busy => SqlState::CANCELLED,
            ErrorCode::KeyTooLong | ErrorCode::ValueTooLong | ErrorCode::LimitReached => SqlState::LIMIT,
            ErrorCode::Number => SqlState::RANGE,
            ErrorCode::NoSpace => SqlState::SPACE,
            ErrorCode::ReadOnly => SqlState::READ_ONLY,
            ErrorCode::TransactionState => SqlState::TRANSACTION,
            ErrorCode::CommitUnknown | ErrorCode::NotDurable => SqlState::UNKNOWN,
            _ => SqlState::INTERNAL,
        };
        let message = match state {
            SqlState::CONFLICT => {
                "others have changed what this transaction has read: run it again".to_owned()
            }
            _ => error.to_string(),
        };
        Error { state, message, position: None, engine: Some(Box::new(error)), leaves_out: false }
    }
}

impl From<Error> for perilune::Error {
    fn from(error: Error) -> perilune::Error {
        match error.engine {
            Some(engine) => *engine,
            None => perilune::Error::other(error),
        }
    }
}

impl From<perilune_sqlite::Error> for Error {
    fn from(error: perilune_sqlite::Error) -> Error {
        Error::of_sqlite(error)
    }
}

/// What a callback tells SQLite of an error that is kept aside.
pub(crate) fn failure(error: &Error) -> Failure {
    let code = match error.state {
        SqlState::CONFLICT => sqlite::SQLITE_BUSY,
        SqlState::UNIQUE => sqlite::SQLITE_CONSTRAINT_UNIQUE,
        SqlState::NOT_NULL => sqlite::SQLITE_CONSTRAINT_NOTNULL,
        SqlState::CHECK => sqlite::SQLITE_CONSTRAINT_CHECK,
        SqlState::FOREIGN_KEY => sqlite::SQLITE_CONSTRAINT_FOREIGNKEY,
        SqlState::TYPE => sqlite::SQLITE_MISMATCH,
        _ => sqlite::SQLITE_ERROR,
    };
    Failure::of(code, error.message.clone())
}
