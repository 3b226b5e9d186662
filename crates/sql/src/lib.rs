//! Perilune's SQL: tables whose rows are nodes, planned and run by SQLite through virtual tables.
//!
//! A table `users` is the global `^users`; a row is one node of it, `^users(7)`, which Lua, Rust and clients see as well. Storage,
//! indexes, constraints, the catalog, transactions are ours; SQLite parses, plans and computes
//! (`docs/design/0036-sql.md`).
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-sqllib-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! use perilune::{node, Database};
//! use perilune_sql::Connection;
//!
//! let mut session = Database::open(directory.join("t.db"))?.session()?;
//! let sql = Connection::open()?;
//! sql.execute_script(&mut session, "
//!     CREATE TABLE account(name TEXT PRIMARY KEY, money INT CHECK (money >= 0));
//!     INSERT INTO account VALUES ('ann', 100), ('ben', 0);
//! ")?;
//! session.transaction(|session| {
//!     sql.execute(session, "UPDATE account SET money = money - 30 WHERE name = 'ann'", &[])?;
//!     sql.execute(session, "UPDATE account SET money = money + 30 WHERE name = 'ben'", &[])?;
//!     session.increment(&node!("^transfers")?, 1)?;
//!     Ok(())
//! })?;
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_sql::Error>(())
//! ```
//!
//! Invariants
//! - A statement happens wholly or not at all, in a transaction of its own or as a part of the caller's.
//! - Whatever SQLite knows of tables is a copy of the catalog in the tree, compared in each statement's transaction.
//!
//! What it does not do: Redis, Lua, the network. They stand above; a host that has Lua hands a connection an [`Interpreter`].

#![forbid(unsafe_code)]

pub mod limits;

mod error;
mod terms;
mod token;
mod value;

mod decimal;
mod wide;

mod answer;
mod function;

mod document;

mod rewrite;
mod schema;

pub mod alchemy;

mod elements;

mod exact;

mod definition;

mod indexed;

mod row;

mod over;

mod ghost;
mod used;

mod stage;

mod computed;
mod conflict;

mod catalog;
mod plan;
mod scan;
mod write;

mod tables;

mod graphs;

mod engine;

mod define;
mod dump;
mod evict;
mod kept;
mod verify;
mod widen;

mod sizes;

mod show;

mod return_size;

mod connection;
mod own;

pub use crate::answer::{Nowhere, Outcome, Row, Rows, Sink};
pub use crate::connection::{defines, split, Connection};
pub use crate::dump::dumps;
pub use crate::error::{Error, Result, SqlState};
pub use crate::function::{Asks, Change, Function, Interpreter, OwnFunction, Shape};
pub use crate::terms::{Access, Permit, Terms};
pub use crate::value::{real_text, Value, ValueRef};
pub use crate::verify::Verified;
