//! The two sides that run the same statements.

use std::path::PathBuf;

use perilune::{Database, Durability, Session};
use perilune_sql::{split, Connection, Value};
use perilune_sqlite::Connection as Sqlite;

/// The rows of a statement.
pub(crate) type Answer = Vec<Vec<Value>>;

/// Runs statements.
pub(crate) trait Side {
    /// Runs the statements of a text; answers all their rows.
    fn run(&mut self, sql: &str) -> Result<Answer, String>;
}

/// Tables in the tree.
pub(crate) struct Ours {
    directory: PathBuf,
    session: Session,
    sql: Connection,
}

impl Ours {
    pub(crate) fn new(name: &str) -> Ours {
        let directory = std::env::temp_dir().join(format!("perilune-slt-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let options = Database::options().durability(Durability::None);
        let database = options.open(directory.join("t.db")).expect("a database");
        let session = database.session().expect("a session");
        Ours { directory, session, sql: Connection::open().expect("a connection") }
    }
}

impl Side for Ours {
    fn run(&mut self, sql: &str) -> Result<Answer, String> {
        let mut answer = Vec::new();
        for statement in split(sql).map_err(|error| error.to_string())? {
            let rows =
                self.sql.query(&mut self.session, statement, &[]).map_err(|error| error.to_string())?;
            answer.extend(rows.iter().map(<[Value]>::to_vec));
        }
        Ok(answer)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // What is left behind lies in a directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// SQLite, in memory.
pub(crate) struct Plain {
    sqlite: Sqlite<()>,
}

impl Plain {
    pub(crate) fn new() -> Plain {
        Plain { sqlite: Sqlite::open().expect("a connection") }
    }
}

impl Side for Plain {
    fn run(&mut self, sql: &str) -> Result<Answer, String> {
        let (mut rows, mut rest) = (Vec::new(), sql);
        while !rest.is_empty() {
            let (statement, end) = self.sqlite.prepare(&mut (), rest).map_err(|error| error.to_string())?;
            rest = &rest[end..];
            let Some(mut statement) = statement else { continue };
            while statement.step(&mut ()).map_err(|error| error.to_string())? {
                rows.push((0..statement.column_count()).map(|at| Value::of(statement.column(at))).collect());
            }
        }
        Ok(rows)
    }
}
