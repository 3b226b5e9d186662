//! Perilune's native back end: one B+tree in a file that every process maps.

#![forbid(unsafe_code)]
// Regions are std atomics in every build; under loom only mirrors of this code run (`tests/loom_*`).
#![cfg(not(loom))]

mod access;
mod checkpoint;
mod control;
mod error;
#[cfg(test)]
mod fuzz;
mod handle;
mod image;
#[cfg(feature = "instrument")]
#[doc(hidden)]
pub mod instrument;
mod limits;
mod lock;
mod message;
mod meta;
mod open;
mod page;
mod recover;
mod repair;
mod session;
mod tree;
mod txn;
mod verify;
mod warden;
mod watch;

pub use handle::{Database, Session, Statistics};
pub use open::OpenOptions;
pub use verify::VerifyReport;
