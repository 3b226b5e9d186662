//! What a store tells about itself to whoever operates it: figures, locks, processes.
//!
//! A back end names its figures itself: nothing above knows what a split is, but everything can show it.
//!
//! Example: [`Figure`] `{ name: "file_bytes", kind: Gauge, value: 1_048_576, .. }` becomes a line of `perilune stat`, and
//! `perilune_file_bytes` for Prometheus.
//!
//! Invariant: a name never changes its meaning.
//!
//! Deliberately absent: what lies in the store; that is read like any other data.

use std::time::Duration;

use crate::{LockOwner, Result};

/// Whether a figure can be compared with itself of before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FigureKind {
    /// Counts events since the store was built in this boot of the machine: only grows.
    Count,
    /// What is so now.
    Gauge,
}

/// One number about a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Lower-case words joined by `_`, the unit last, as `file_bytes`. Never changes its meaning.
    pub name: &'static str,
    /// Count or gauge.
    pub kind: FigureKind,
    /// The number.
    pub value: u64,
    /// What it is, for people.
    pub meaning: &'static str,
}

/// A lock that is held, or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReport {
    /// The lock's name, as in [`crate::LockRequest::name`].
    pub name: Vec<u8>,
    /// Excludes all others, or only exclusive ones.
    pub exclusive: bool,
    /// How often it is held; 0: it is waited for. Those who wait come in the order of their arrival.
    pub count: u32,
    /// Its process.
    pub pid: u32,
    /// Who in that process.
    pub owner: LockOwner,
    /// For how long it has been held, or waited for.
    pub since: Duration,
}

/// A process that has the store open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReport {
    /// Its place among the processes.
    pub slot: u16,
    /// Its number, as it sees it itself: in a container another one than outside.
    pub pid: u32,
    /// It lives; the dead are repaired within 100 ms, by the others.
    pub alive: bool,
    /// It is stopped: by a signal, a debugger, or with its container, as far as that can be told.
    pub stopped: bool,
    /// Pages that it holds at this moment, for which others wait: none as a rule, few for some microseconds.
    pub pages_held: u32,
    /// It is the one that asks.
    pub is_this: bool,
    /// Its sessions.
    pub sessions: u32,
    /// The version of its library, as `0.1.0`.
    pub version: String,
    /// For how long it has had the store open.
    pub since: Duration,
}

/// The facet of a store that tells about itself.
pub trait Reports {
    /// Figures about the store, in the order in which they are shown. Sums of what sessions count for
    /// themselves: exact when nothing happens, else of about now.
    ///
    /// # Errors
    /// I/O only.
    fn figures(&self) -> Result<Vec<Figure>>;

    /// Locks that are held, and those waited for, in the order of their names. Each is true by itself.
    ///
    /// # Errors
    /// I/O; [`crate::Error::LimitReached`] when it needs a session and there is none.
    fn locks(&self) -> Result<Vec<LockReport>>;

    /// Processes that have the store open for writing.
    ///
    /// # Errors
    /// I/O only.
    fn processes(&self) -> Result<Vec<ProcessReport>>;
}
