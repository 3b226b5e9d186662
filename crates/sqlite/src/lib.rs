//! SQLite as a parser, planner and executor: connections in memory, statements, functions, virtual tables.
//!
//! The problem: Perilune's SQL keeps its rows in the tree, so SQLite must never store anything; it is given virtual tables and
//! asked to plan and to run. What it offers for that (`index_info` with everything in it, `sqlite3_vtab_in`,
//! `sqlite3_value_nochange`, conflict modes, collations) is C with callbacks. This crate is all of the unsafe code for it.
//!
//! The idea: each call that may lead to callbacks takes the **host**, a `&mut H` that the caller has at hand (a session of the
//! database), and each callback gets it back. Nothing global, nothing reference-counted stands between a row and the tree.
//!
//! ```
//! use perilune_sqlite::{Connection, ValueRef};
//!
//! let connection = Connection::<()>::open()?;
//! let (statement, _) = connection.prepare(&mut (), "SELECT ?1 + 1")?;
//! let mut statement = statement.expect("there is one");
//! statement.bind(1, ValueRef::Integer(41))?;
//! assert!(statement.step(&mut ())?);
//! assert_eq!(statement.column(0), ValueRef::Integer(42));
//! # Ok::<(), perilune_sqlite::Error>(())
//! ```
//!
//! Invariants
//! - A panic in a callback crosses no C: it is caught at the edge, fails the statement, and goes on in the Rust caller.
//! - A callback has its `&mut H` alone: what may call back takes the host, and what does not take it lends none.
//! - Whatever SQLite lends (texts, values) lives as long as the callback or until the statement's next call, as types say.
//!
//! What it does not do: files, SQLite's own tables on disk, threads (a connection is used where it was made), extensions.

mod error;
mod value;

mod function;
mod index;
mod inner;
mod statement;
mod table;

mod connection;

/// SQLite's numbers: result codes, actions, limits.
pub use libsqlite3_sys as constants;

pub use crate::connection::Connection;
pub use crate::error::{Error, Failure};
pub use crate::function::{Aggregate, FunctionKind, Window};
pub use crate::index::{Constraint, IndexInfo, Operator};
pub use crate::inner::Action;
pub use crate::statement::Statement;
pub use crate::table::{Change, Conflict, Cursor, Module, Table};
pub use crate::value::{Argument, Arguments, Output, ValueRef};
