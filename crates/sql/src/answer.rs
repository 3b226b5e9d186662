//! Where the rows of a statement go.
//!
//! A statement may run several times before it has happened once: a [`Sink`] is told when it begins anew, and forgets. [`Rows`] is
//! the sink that keeps all, within a bound; a server has one that writes replies.
//!
//! Invariant: what a sink has when the statement has answered is of the run that counts.

use perilune::Session;
use perilune_sqlite::Statement;

use crate::error::{Error, Result, SqlState};
use crate::limits::BUFFER_BYTES;
use crate::value::{Value, ValueRef};

/// A row, while the statement stands at it.
#[derive(Debug)]
pub struct Row<'a> {
    pub(crate) statement: &'a Statement<Session>,
}

impl Row<'_> {
    /// How many columns it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.statement.column_count()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a column, counted from 0.
    ///
    /// # Panics
    /// Without such a column.
    #[must_use]
    pub fn get(&self, column: usize) -> ValueRef<'_> {
        self.statement.column(column)
    }
}

/// Takes the rows of a statement.
pub trait Sink {
    /// The statement begins, with these columns; whatever it gave before does not count.
    ///
    /// # Errors
    /// What the statement then answers.
    fn start(&mut self, columns: &[String]) -> Result<()>;

    /// A row comes.
    ///
    /// # Errors
    /// What the statement then answers.
    fn row(&mut self, row: &Row<'_>) -> Result<()>;
}

/// A sink for statements whose rows nobody wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn start(&mut self, _columns: &[String]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &Row<'_>) -> Result<()> {
        Ok(())
    }
}

/// The rows of a statement, all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    columns: Vec<String>,
    values: Vec<Value>,
    bytes: usize,
}

impl Rows {
    /// The names of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.columns.len()).unwrap_or(0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows, from first to last.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, Value> {
        self.values.chunks_exact(self.columns.len().max(1))
    }

    /// A row, counted from 0.
    #[must_use]
    pub fn at(&self, row: usize) -> Option<&[Value]> {
        let start = row.checked_mul(self.columns.len())?;
        self.values.get(start..start.checked_add(self.columns.len())?).filter(|row| !row.is_empty())
    }

    /// The first value of the first row.
    #[must_use]
    pub fn first(&self) -> Option<&Value> {
        self.values.first()
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a [Value];
    type IntoIter = std::slice::ChunksExact<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Sink for Rows {
    fn start(&mut self, columns: &[String]) -> Result<()> {
        self.columns.clear();
        self.columns.extend_from_slice(columns);
        self.values.clear();
        self.bytes = 0;
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        for column in 0..row.len() {
            let value = row.get(column);
            self.bytes += size_of::<Value>();
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = value {
                self.bytes += bytes.len();
            }
            self.values.push(Value::of(value));
        }
        if self.bytes > BUFFER_BYTES {
            let what =
                format!("the rows take more than {} MiB: ask for fewer, with LIMIT", BUFFER_BYTES >> 20);
            return Err(Error::new(SqlState::LIMIT, what));
        }
        Ok(())
    }
}

/// What a statement has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows inserted, updated and deleted.
    pub changes: u64,
    /// The number of the row inserted last on this connection.
    pub last_rowid: i64,
}
