//! How far a walk or an algorithm may go: vertices, edges and time, counted as they are read.
//!
//! Example: `view.limit(Limits { edges: 1_000_000, ..Limits::default() })`; what would read one more answers `Error::Limit`.
//!
//! Invariant: an edge is counted before it is kept, so that a hub of more edges than allowed takes no memory for them.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// The limits of one walk or algorithm. By default there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many vertices it may expand.
    pub vertices: u64,
    /// How many edges it may read.
    pub edges: u64,
    /// How long it may take, looked at with each vertex.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { vertices: u64::MAX, edges: u64::MAX, time: Duration::MAX }
    }
}

/// What has been used of the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    vertices: u64,
    edges: u64,
    since: Instant,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, vertices: 0, edges: 0, since: Instant::now() }
    }

    /// As it was before anything was used.
    pub(crate) fn renew(&mut self) {
        *self = Budget::new(self.limits);
    }

    /// Counts a vertex, and looks at the time.
    pub(crate) fn take_vertex(&mut self) -> Result<()> {
        self.look_at_time()?;
        count(&mut self.vertices, self.limits.vertices, "vertices")
    }

    /// Makes sure that there is time left.
    pub(crate) fn look_at_time(&self) -> Result<()> {
        if self.limits.time != Duration::MAX && self.since.elapsed() >= self.limits.time {
            let limit = u64::try_from(self.limits.time.as_millis()).unwrap_or(u64::MAX);
            return Err(Error::Limit { what: "milliseconds", limit });
        }
        Ok(())
    }

    /// Counts an edge.
    pub(crate) fn take_edge(&mut self) -> Result<()> {
        count(&mut self.edges, self.limits.edges, "edges")
    }
}

fn count(used: &mut u64, limit: u64, what: &'static str) -> Result<()> {
    if *used >= limit {
        return Err(Error::Limit { what, limit });
    }
    *used += 1;
    Ok(())
}
