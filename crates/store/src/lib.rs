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
//! Deliberately absent: pages, files, subscripts, typed values, protocols.

#![forbid(unsafe_code)]

mod entries;
mod error;
mod few;
mod lock;
mod message;
mod report;
mod session;
mod transaction;
mod watch;

pub use entries::{Ends, Entries, Origin, Scan};
pub use error::{write_lost, Error, Holder, Result};
pub use few::{Few, FewChange, Look, Probe, Sight};
pub use lock::{LockMode, LockOwner, LockRequest, Locks};
pub use message::{ChannelOptions, Message, Messages, WhenFull};
pub use report::{Figure, FigureKind, LockReport, ProcessReport};
pub use session::{
    copy_pieces, count_by_steps, put_piece, Change, Decision, Limits, Presence, Session, Span, Store,
    UpdateBuffer,
};
pub use transaction::{transact, CommitHook, Durability, KeptReads, TransactionOptions, Write, Writes};
pub use watch::{Watch, WatchId, WatchRequest, WatchScope};
