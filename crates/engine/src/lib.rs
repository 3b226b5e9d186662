//! Perilune's native back end: one B+tree in a file that every process maps.

#![forbid(unsafe_code)]
// Regions are std atomics in every build; under loom only mirrors of this code run (`tests/loom_*`).
#![cfg(not(loom))]

mod access;
mod attendant;
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
mod message;
mod meta;
mod notice;
mod open;
mod page;
mod pin;
mod proof;
mod recover;
mod repair;
mod salvage;
mod session;
mod snapshot;
mod still;
mod tree;
mod txn;
mod upkeep;
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
