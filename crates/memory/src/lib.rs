//! A database in the memory of one process: the storage traits, implemented so simply that nobody doubts them.
//!
//! It has two uses. A program's tests want a database that is new each time, leaves no file and needs no directory:
//! `memory:` opens this one. And the instruments that test stores (`crates/harness`) are themselves tested on this
//! one: what they find wrong here is a fault of theirs.
//!
//! ```
//! use perilune_memory::MemoryStore;
//! use perilune_store::{Session, Store};
//!
//! let store = MemoryStore::new();
//! store.session()?.set(b"visits\0", b"1")?;
//! let mut value = Vec::new();
//! assert!(store.session()?.get(b"visits\0", &mut value)?);
//! # Ok::<(), perilune_store::Error>(())
//! ```
//!
//! Invariants
//! - All state lies behind one mutex; whoever changes it notifies the one condition variable, and whoever waits
//!   looks again at what it waits for.
//! - `version` grows with every commit, so a transaction that sees the version it knows needs no check.
//! - A transaction's reads are kept as queries with their answers. They still hold when every query, run again,
//!   gives the same answer: that is checked before each further read and at commit, so no body ever sees halves of
//!   two states.
//! - Only a commit changes the map; a single write is a transaction of one.
//!
//! Deliberately absent: speed, durability, other processes, descriptors for watches.

#![forbid(unsafe_code)]

mod bulk;
mod channels;
mod facets;
mod fault;
mod hook;
mod levels;
mod lock_table;
mod locks;
mod messages;
mod overlay;
mod probed;
mod query;
mod session;
mod state;
mod store;
mod transaction;
mod watch_table;
mod watches;

pub use crate::fault::Fault;
pub use crate::session::MemorySession;
pub use crate::store::MemoryStore;
