//! `dump` and `load`: nodes and their values as lines of text, for other systems and other versions.
//!
//! A format is a pair of pure functions: a parser that takes a line into a batch, and a writer that appends one
//! (`text`, `zwr`, `jsonl`). `dump` and `load` move the bytes. What the lines are: `docs/format/dump.md`.
//!
//! Invariants
//! - Memory: one line and one batch, however large the database or the file.
//! - A dump leaves out the global [`OWN`], in which the program keeps how far files are loaded: that is no data of
//!   the user.
//! - A load sets nodes and nothing else, so that what was loaded may be loaded again.

mod dump;
mod format;
mod jsonl;
mod load;
mod progress;
mod resume;
mod text;
mod zwr;

pub(crate) use dump::{dump, DumpOptions};
pub(crate) use load::{load, LoadOptions};
pub(crate) use progress::Progress;

/// The global in which the program keeps how far loads have come.
const OWN: &str = "^_perilune";
