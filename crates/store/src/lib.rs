//! What every Perilune back end promises: an ordered, transactional map of byte strings, shared by
//! many processes, with locks, watches and messages beside it.
//!
//! Invariants of the contract
//! - Keys are compared as unsigned bytes. The *first component* of a key is its bytes up to and
//!   including the first zero byte; nothing else of a key's inside is known here.
//! - No key contains more than [`Limits::key_bytes`], and none begins with 0xFF.
//! - Every operation outside a transaction is atomic and linearizable by itself. Operations inside
//!   see one state of the store plus their own writes; commits are serializable.
//! - [`Error::Conflict`] and [`Error::CommitUnknown`] are different answers: after a conflict nothing
//!   happened, after an unknown commit it may have. A back end on one machine never says the latter.
//! - Limits are read from the back end, never assumed.
//!
//! Three layers. The core, [`Session`] and [`Transactions`]: every back end has all of it. [`Bulk`]: what steps of the core could
//! do, and some back ends do faster. [`Facets`]: what a back end has, or names as missing.
//!
//! Deliberately absent: pages, files, subscripts, typed values, protocols.

#![forbid(unsafe_code)]

mod absent;
mod bounds;
mod bulk;
mod deferral;
mod entries;
mod error;
mod facets;
mod granularity;
mod hook;
mod limits;
mod lock;
mod message;
mod optimistic;
mod options;
mod page;
mod programs;
mod read_set;
mod report;
mod runner;
mod session;
mod store;
mod transaction;
mod update;
mod watch;

pub use absent::Absent;
pub use bounds::Bounds;
pub use bulk::{
    copy_pieces, count_by_entries, entry_by_step, page_by_entries, page_by_steps, put_piece, Bulk,
};
pub use deferral::Deferral;
pub use entries::{Ends, Entries, Origin, Scan};
pub use error::{write_lost, Error, Holder, Place, Result};
pub use facets::{facets_of, Facets, FACETS};
pub use granularity::{Granular, Granularity};
pub use hook::{CommitHook, Write, Writes};
pub use limits::Limits;
pub use lock::{LockMode, LockOwner, LockRequest, Locks};
pub use message::{ChannelOptions, Message, Messages, WhenFull};
pub use optimistic::{Optimistic, Probe, ProbeResult, ProbeTarget, Probed, ProbedChange};
pub use options::{Durability, FirstTry, TransactionOptions, TRIES_BEFORE_EXCLUSIVE};
pub use page::{Page, Span};
pub use programs::Programs;
pub use read_set::{KeptReads, ReadSets};
pub use report::{Figure, FigureKind, LockReport, ProcessReport, Reports};
pub use runner::{get_many, transact};
pub use session::{Presence, Session};
pub use store::{Snapshots, Store};
pub use transaction::Transactions;
pub use update::{Added, Addition, Change, Decision, UpdateBuffer};
pub use watch::{Watch, WatchId, WatchRequest, WatchScope};
