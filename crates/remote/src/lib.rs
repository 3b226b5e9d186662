//! A database behind a server, as a store: the storage traits over a connection.
//!
//! A program on another machine asks for `^person(21,"name")`; what it gets is what a program would read that has the file
//! mapped. So this is a back end like the engine: keys and values travel as they are stored, one request for an operation,
//! and all above works unchanged. What answers at the other end stands in the crate `perilune`; docs/format/wire.md describes
//! the bytes between the two, and [`wire`] holds what both must agree on.
//!
//! ```no_run
//! use perilune_remote::{RemoteOptions, RemoteStore};
//! use perilune_store::{Session, Store};
//!
//! let store = RemoteStore::open("tcp://db.example:6379".as_ref(), &RemoteOptions::default())?;
//! let mut value = Vec::new();
//! let is_there = store.session()?.get(b"visits\0", &mut value)?;
//! # Ok::<(), perilune_store::Error>(())
//! ```
//!
//! Invariants
//! - A write is sent once. When the connection is lost before its answer, the caller is told that its outcome is unknown
//!   (`CommitUnknown`); nothing is repeated silently. What was not sent, or changes nothing, is `Unavailable`.
//! - A transaction keeps its writes here, and what it has read; its commit is one request, which the server checks and
//!   applies as one transaction. Nothing that it needs lies at the server meanwhile.
//! - Walks are read ahead, in pages; what is known so is less than a moment old, or a condition of the commit.
//! - Locks and watches belong to the connection, and are gone when it is.
//!
//! Deliberately absent: a pool of connections (a session has its own), caches that outlive a transaction.

#![forbid(unsafe_code)]

pub mod limits;
pub mod wire;

mod address;
mod ahead;
mod bell;
mod bulk;
mod codes;
mod database;
mod facilities;
mod granular;
mod input;
mod link;
mod overlay;
mod questions;
mod reads;
mod running;
mod search;
mod seen;
mod session;
mod shared;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod transactions;

pub use crate::address::SCHEMES;
pub use crate::database::RemoteStore;
pub use crate::session::RemoteSession;
pub use crate::shared::RemoteOptions;
