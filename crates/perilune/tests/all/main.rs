//! All tests of the crate's interface that may share a process: one program, linked once.
//!
//! A program of its own has `stopped`, which stops its process.

mod chance;
mod checkpointed;
mod counts;
mod cursor_modes;
mod cursor_races;
mod cursors;
mod errors;
mod fixture;
mod formats;
mod many_removals;
mod model;
mod one_shot;
mod operations;
mod probed;
mod sharing;
mod snapshots;
mod transactions;
mod walk;
