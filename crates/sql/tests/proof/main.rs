//! SQL held against plain SQLite, and against processes that are killed.

#[path = "../scratch/mod.rs"]
mod scratch;

mod chance;
mod compared;
mod dumped;
mod isolation;
mod killed;
mod layout;
