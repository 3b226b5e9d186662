//! A row of the server suite, as it goes to `raw.jsonl`.

use serde::{Deserialize, Deserializer, Serialize};

use super::client_processes::Done;
use super::sides::Side;

/// The percentiles of a row's latencies.
pub(crate) const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// A word with static lifetime: one of the program's, or one read from a recorded run, which is leaked, as there are
/// few.
pub(crate) type Word = &'static str;

fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    Ok(Box::leak(String::deserialize(from)?.into_boxed_str()))
}

/// One side's result in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(deserialize_with = "word")]
    pub(crate) suite: Word,
    #[serde(deserialize_with = "word")]
    pub(crate) section: Word,
    pub(crate) workload: String,
    #[serde(deserialize_with = "word")]
    pub(crate) backend: Word,
    #[serde(deserialize_with = "word")]
    pub(crate) class: Word,
    /// Threads of each server process that serve clients.
    pub(crate) threads: usize,
    /// Server processes.
    pub(crate) servers: usize,
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
    pub(crate) round: usize,
    #[serde(deserialize_with = "word")]
    pub(crate) unit: Word,
    pub(crate) value: f64,
    pub(crate) operations: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) server_cpu_seconds: f64,
    pub(crate) client_cpu_seconds: f64,
    /// Microseconds: 50, 90, 99, 99.9 and 100 % of the operations; a batch's for each of its requests.
    pub(crate) latency_us: Vec<f64>,
    /// Percent and microseconds, where a surface is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) curve: Vec<(f64, f64)>,
}

impl Row {
    /// A figure without operations.
    pub(crate) fn figure(
        section: &'static str,
        workload: &str,
        side: Side,
        unit: &'static str,
        value: f64,
    ) -> Row {
        Row {
            suite: "server",
            section,
            workload: workload.to_owned(),
            backend: side.name(),
            class: "D4",
            threads: side.threads(),
            servers: 1,
            connections: 1,
            pipeline: 1,
            round: 0,
            unit,
            value,
            operations: 0,
            wall_seconds: 0.0,
            server_cpu_seconds: 0.0,
            client_cpu_seconds: 0.0,
            latency_us: Vec::new(),
            curve: Vec::new(),
        }
    }

    /// What clients have done, as a rate. `operations`: how many count.
    pub(crate) fn rate(
        section: &'static str,
        workload: &str,
        side: Side,
        operations: u64,
        done: &Done,
        server_cpu_seconds: f64,
    ) -> Row {
        Row {
            operations,
            wall_seconds: done.wall_seconds,
            server_cpu_seconds,
            client_cpu_seconds: done.cpu_seconds,
            latency_us: PERCENTILES.map(|percent| done.latencies.percentile(percent)).to_vec(),
            ..Row::figure(section, workload, side, "op/s", operations as f64 / done.wall_seconds)
        }
    }

    /// Operations in each second of the server's CPU.
    pub(crate) fn per_cpu(&self) -> f64 {
        self.operations as f64 / self.server_cpu_seconds
    }

    /// Cores that server and clients have filled.
    pub(crate) fn cores(&self) -> f64 {
        (self.server_cpu_seconds + self.client_cpu_seconds) / self.wall_seconds
    }

    /// The latency within which 99 % were done, in microseconds; NaN where there are none.
    pub(crate) fn p99(&self) -> f64 {
        self.latency(2)
    }

    /// One of the latencies of [`PERCENTILES`]; NaN where there are none.
    pub(crate) fn latency(&self, at: usize) -> f64 {
        self.latency_us.get(at).copied().unwrap_or(f64::NAN)
    }
}
