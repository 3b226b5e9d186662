//! Perilune's native back end: one B+tree in a file that every process maps.
//!
//! The problem: many processes read and write one ordered, transactional map at the speed of memory. No server stands
//! between them, and any of them may be killed at any instruction.
//!
//! The idea: everything that is shared lies in two mapped files, pages in `x.db`, latches, sessions and control words in
//! `x.db-shm`. A writer latches the pages that it changes; a reader latches nothing, and checks afterwards that versions
//! have not changed. A writer first puts what it is about to do into its session's ring, as a record, and publishes that
//! by one compare-and-swap: from then on it has happened. Whoever meets a page of a dead writer completes its record, or
//! takes back what was not published. Checkpoints and a log make all of it durable.
//!
//! Example: how a set works, step by step, is told in ARCHITECTURE.md; the tree has a README.md of its own.
//!
//! Invariants
//! - For every write to shared memory there is an answer to "and if we are killed here?", in the head of its module.
//! - Modules stand in one order (`crates/xtask/src/house.rs`); each uses only those above it.
//! - Bytes that come from a file or from shared memory are checked before they are used.
//!
//! Deliberately absent: names, subscripts and typed values (`perilune`); networks; unsafe code (`perilune-shm`).

#![forbid(unsafe_code)]
// Regions are std atomics in every build; under loom only mirrors of this code run (`tests/loom_*`).
#![cfg(not(loom))]

mod access;
mod background;
mod backup;
mod bulk;
mod checkpoint;
mod compact;
mod control;
mod duty;
mod error;
#[cfg(test)]
mod fuzz;
mod handle;
mod idle;
mod image;
#[cfg(feature = "instrument")]
#[doc(hidden)]
pub mod instrument;
mod limits;
mod lock;
#[allow(dead_code, unused_imports)] // Recovery's part.
mod log;
mod maintenance;
mod message;
mod meta;
mod notice;
mod offline;
mod open;
mod page;
mod pin;
mod planted;
mod proof;
mod recover;
mod repair;
mod salvage;
mod session;
mod snapshot;
mod tree;
mod txn;
mod verify;
mod warden;
mod watch;

pub use backup::{BackupKind, BackupReport};
pub use compact::CompactReport;
pub use handle::{Database, Session, Statistics};
pub use meta::sums::{checkpoint_pages, CheckpointPages};
pub use open::OpenOptions;
pub use perilune_shm::sigbus::install as install_sigbus;
pub use recover::RecoveryReport;
pub use salvage::{LostPage, LostRange, SalvageReport};
pub use verify::VerifyReport;
