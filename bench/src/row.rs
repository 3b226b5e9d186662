//! Raw results: one JSON object a row, in JSON Lines.

use serde::Serialize;

use crate::plan::{Cell, Unit};
use crate::subject::Peer;
use crate::workload::Outcome;

/// One side's result in one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) suite: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) backend: &'static str,
    pub(crate) class: &'static str,
    pub(crate) keys: u64,
    pub(crate) procs: usize,
    pub(crate) threads: usize,
    pub(crate) round: usize,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    /// From the first worker's start to the last one's end.
    pub(crate) wall_seconds: f64,
    /// Of all workers.
    pub(crate) cpu_seconds: f64,
    pub(crate) operations: u64,
}

impl Row {
    /// A row of one worker of `peer` that says a figure.
    pub(crate) fn figure(
        workload: &'static str,
        peer: &Peer,
        keys: u64,
        round: usize,
        unit: &'static str,
        value: f64,
    ) -> Row {
        Row { workload, backend: peer.name, class: peer.class.name(), ..Row::bare(keys, round, unit, value) }
    }

    /// A figure of nobody yet.
    pub(crate) fn bare(keys: u64, round: usize, unit: &'static str, value: f64) -> Row {
        Row {
            suite: "durability",
            workload: "",
            backend: "",
            class: "",
            keys,
            procs: 1,
            threads: 1,
            round,
            unit,
            value,
            wall_seconds: 0.0,
            cpu_seconds: 0.0,
            operations: 0,
        }
    }

    /// Is this a row of `peer`, with its settings?
    pub(crate) fn is_of(&self, peer: &Peer) -> bool {
        self.backend == peer.name && self.class == peer.class.name()
    }

    /// The row of a round whose workers did `outcomes`, of which there is at least one.
    pub(crate) fn new(cell: &Cell, peer: &Peer, round: usize, outcomes: &[Outcome]) -> Row {
        let start = outcomes.iter().map(|outcome| outcome.start).min().unwrap_or(0);
        let end = outcomes.iter().map(|outcome| outcome.end).max().unwrap_or(0);
        let cpu: u64 = outcomes.iter().map(|outcome| outcome.cpu).sum();
        let operations: u64 = outcomes.iter().map(|outcome| outcome.operations).sum();
        let wall = (end - start) as f64;
        let value = match cell.unit() {
            Unit::Nanoseconds => wall / operations as f64,
            Unit::CpuNanoseconds => cpu as f64 / operations as f64,
            Unit::Rate => operations as f64 / wall * 1e9,
        };
        Row {
            suite: "engine",
            workload: cell.workload,
            backend: peer.name,
            class: peer.class.name(),
            keys: cell.keys,
            procs: cell.processes,
            threads: cell.threads,
            round,
            unit: cell.unit().name(),
            value,
            wall_seconds: wall / 1e9,
            cpu_seconds: cpu as f64 / 1e9,
            operations,
        }
    }
}
