//! Every bound of the SQL layer.
//!
//! What is beyond one of these is an error that says so, with the code 54000; nothing is ever cut.

use std::time::Duration;

/// Bytes of the text of a statement.
pub const STATEMENT_BYTES: usize = 1 << 20;

/// Bytes of the rows that a statement keeps until its transaction has committed.
pub const BUFFER_BYTES: usize = 64 << 20;

/// Temporary views of a connection.
pub const OWN_VIEWS: usize = 1_000;

/// Columns of a table.
pub const COLUMNS: usize = 2_000;

/// Bytes of a text or blob as a part of an index or of a primary key.
pub const COMPONENT_BYTES: usize = 1_000;

/// How deep statements may call statements, by triggers and foreign keys.
pub const DEPTH: usize = 16;

/// How deep lists and maps may stand in a document.
pub const DOCUMENT_DEPTH: usize = 100;

/// Parameters of a function.
pub const PARAMETERS: usize = 100;

/// Bytes that the rows of a group take for an aggregate of the schema, at most.
pub const GROUP_BYTES: usize = 64 << 20;

/// How deep parentheses may stand in a definition.
pub const PARENTHESES: usize = 100;

/// Steps of SQLite's machine between two looks at the clock.
pub(crate) const STEPS: i32 = 1_000;

/// Prepared statements that a connection keeps.
pub(crate) const STATEMENTS: usize = 256;

/// Graphs that a statement keeps open; others it opens each time.
pub(crate) const GRAPHS: usize = 16;

/// One-shot transactions that are tried for a statement that meets others, before a whole one.
pub(crate) const ATTEMPTS: usize = 8;

/// How often a statement is prepared anew because the schema changes under it.
pub(crate) const SCHEMA_TRIES: usize = 100;

/// Rows that are taken into a new index in one transaction.
pub(crate) const INDEX_BATCH: usize = 500;

/// Seconds that stamps of LRU are apart: so often the reads of a row write at most.
pub const QUANTUM: i64 = 10;

/// Rows that a statement stamps by finding them.
pub const FOUND_ROWS: usize = 1_000;

/// Rows of which a connection knows how they are used.
pub const NOTED_ROWS: usize = 4_096;

/// Rows that are stamped in one transaction.
pub(crate) const STAMPED_ROWS: usize = 16;

/// How often the transaction of some stamps is tried.
pub(crate) const STAMP_TRIES: usize = 4;

/// How long such a transaction may take that is more than one-shot.
pub(crate) const STAMP_TIME: Duration = Duration::from_millis(50);

/// Faults that a check of tables tells of.
pub const FAULTS: usize = 100;

/// Nodes of a table and its indexes whose bytes are counted while somebody waits.
pub const MEASURED_NODES: u64 = 1_000_000;

/// Views that are looked through for indexes where one lies over the other.
pub(crate) const VIEWS_DEEP: usize = 8;
