//! A database for a test, gone with it.

use std::path::PathBuf;

use perilune::{Database, Durability, Session};
use perilune_sql::{Connection, Result, Rows, Value};

/// A database, a session of it, and a connection.
pub(crate) struct Scratch {
    directory: PathBuf,
    pub(crate) database: Database,
    pub(crate) session: Session,
    pub(crate) sql: Connection,
}

impl Scratch {
    /// An empty one.
    pub(crate) fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("perilune-sql-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let options = Database::options().durability(Durability::None);
        let database = options.open(directory.join("t.db")).expect("a database");
        let session = database.session().expect("a session");
        Scratch { directory, database, session, sql: Connection::open().expect("a connection") }
    }

    /// Runs statements.
    pub(crate) fn run(&mut self, sql: &str) -> Result<()> {
        self.sql.execute_script(&mut self.session, sql).map(|_| ())
    }

    /// The rows of a query as text: `1|a 2|b`.
    pub(crate) fn rows(&mut self, sql: &str) -> String {
        match self.sql.query(&mut self.session, sql, &[]) {
            Ok(rows) => text(&rows),
            Err(error) => format!("{}: {error}", error.state()),
        }
    }
}

/// Rows as text.
pub(crate) fn text(rows: &Rows) -> String {
    let field = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(blob) => {
            format!("x'{}'", blob.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    };
    let row = |row: &[Value]| row.iter().map(field).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
