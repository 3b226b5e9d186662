//! Perilune: an embedded database of hierarchical nodes that many processes update at once.
//!
//! A [`Database`] is a file that every process maps; a [`Session`] is one thread's way into it; a
//! [`Node`] names a place, `^person(21,"birthday")`, whether or not anything lies there. A node
//! exists while it or a descendant has a value. Values carry their type; subscripts sort as numbers
//! by value, then as strings by bytes.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-lib-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let path = directory.join("t.db");
//! use perilune::{node, Database};
//!
//! let mut session = Database::open(&path)?.session()?;
//! session.set(&node!("^person", 21, "name")?, "Ada")?;
//! session.set(&node!("^person", 21, "born")?, 1815)?;
//! session.increment(&node!("^visits")?, 1)?;
//!
//! for entry in session.subtree(&node!("^person")?) {
//!     let (node, value) = entry?;
//!     println!("{node} = {value}");
//! }
//! assert_eq!(session.count_children(&node!("^person", 21)?)?, 2);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune::Error>(())
//! ```
//!
//! Names without `^` are local: trees in the session's own memory, with the same operations.
//!
//! - One operation is atomic by itself; several are made one by [`Session::transaction`].
//! - Order is walked by [`Session::next`] and its kin, or faster by a [`Cursor`].
//! - [`Session::lock`] takes hierarchical locks, [`Session::watch`] waits for changes,
//!   [`Session::channel`] carries messages; all across processes.
//! - Every [`Error`] says what to do; its [`ErrorCode`] never changes its meaning.
//!
//! This crate knows keys and values; pages, files and shared memory are the business of the back
//! end below, which it uses by the traits of `perilune_store` alone.

#![forbid(unsafe_code)]

pub mod limits;
pub mod remote;

mod error;
mod node;
mod subscript;
mod value;

mod backend;
mod channel;
mod cursor;
mod database;
mod hook;
mod levels;
mod local;
mod lock;
mod maintenance;
mod options;
mod report;
mod session;
mod sigbus;
mod subtree;
mod transaction;
mod verify;
mod watch;

/// The codec of keys and values, for bindings that build keys in memory of their own.
pub use perilune_key as key;

pub use perilune_key::{
    ArithmeticError, Decimal, Field, KeyError, KeyMark, Number, ParseError, PlainSubscript, Record,
    Subscript, SubscriptBuf, Value, ValueError, ValueRef,
};
pub use perilune_store::{
    ChannelOptions, Durability, Error as StoreError, Figure, FigureKind, FirstTry, Holder, KeptReads, Limits,
    LockMode, LockOwner, Message, ProcessReport, TransactionOptions, WatchId, WhenFull,
};

pub use crate::backend::RecoveryReport;
pub use crate::channel::Channel;
pub use crate::cursor::{Child, Children, Cursor, Subtree};
pub use crate::database::Database;
pub use crate::error::{Error, ErrorCode, Result};
pub use crate::hook::{CommitWrites, NodeWrite};
pub use crate::levels::Levels;
pub use crate::lock::LockOwners;
pub use crate::maintenance::{BackupKind, BackupReport, CompactReport, LostPage, LostRange, SalvageReport};
pub use crate::node::{Node, NodeRef};
pub use crate::options::OpenOptions;
pub use crate::report::{LockReport, TreeSize};
pub use crate::session::{
    Batch, Conditional, Data, Neighbour, Piece, Probe, ProbeResult, Probed, RangeEnds, Serving, Session,
    Steps,
};
pub use crate::sigbus::install_sigbus;
pub use crate::subscript::IntoSubscript;
pub use crate::value::{IntoNumber, IntoValue, ABSENT};
pub use crate::verify::VerifyReport;
pub use crate::watch::WatchScope;
