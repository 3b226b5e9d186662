//! One run's results: a line of the table, an object of the JSON Lines.

use std::fmt;

use serde_json::json;

/// The table's first line.
pub(crate) const HEAD: &str =
    "procs  longest         highest     stored      reads    updates  seconds      cpu       ops/s  lua";

/// What a run found and took.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) lua: String,
    pub(crate) durability: String,
    pub(crate) procs: u32,
    /// From 1.
    pub(crate) round: u32,
    pub(crate) n: u64,
    /// None for N = 1, which has no sequence.
    pub(crate) longest: Option<u64>,
    pub(crate) highest: Option<u64>,
    pub(crate) stored: u64,
    pub(crate) reads: u64,
    pub(crate) updates: u64,
    pub(crate) seconds: f64,
    /// Of all processes together, while they worked.
    pub(crate) cpu_seconds: f64,
}

impl Row {
    /// Reads and updates a second.
    pub(crate) fn operations_per_second(&self) -> f64 {
        (self.reads + self.updates) as f64 / self.seconds.max(1e-9)
    }

    /// The row as one JSON object.
    pub(crate) fn json(&self) -> serde_json::Value {
        let class = match self.durability.as_str() {
            "fsync" => "D1",
            "periodic" => "D3",
            _ => "D4",
        };
        json!({
            "backend": "perilune", "lua": self.lua, "procs": self.procs, "n": self.n,
            "longest": self.longest, "highest": self.highest, "stored": self.stored,
            "reads": self.reads, "updates": self.updates, "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds, "ops_per_second": self.operations_per_second(),
            "suite": "collatz", "workload": "3n+1", "class": class, "round": self.round, "unit": "s",
            "value": self.seconds,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        write!(
            f,
            "{:>5}  {:>7}  {:>14}  {:>9}  {:>9}  {:>9}  {:>7.3}  {:>7.3}  {:>10.0}  {}",
            self.procs,
            number(self.longest),
            number(self.highest),
            self.stored,
            self.reads,
            self.updates,
            self.seconds,
            self.cpu_seconds,
            self.operations_per_second(),
            self.lua
        )
    }
}
