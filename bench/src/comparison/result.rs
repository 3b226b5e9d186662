//! What a comparison leaves: rows, and what a reader must know to judge them.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::subject::Result;

/// One side's result in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) suite: String,
    pub(crate) workload: String,
    pub(crate) backend: String,
    pub(crate) class: String,
    pub(crate) keys: u64,
    pub(crate) procs: usize,
    pub(crate) threads: usize,
    pub(crate) round: usize,
    pub(crate) unit: String,
    pub(crate) value: f64,
    pub(crate) wall_seconds: f64,
    /// Of players and server.
    pub(crate) cpu_seconds: f64,
    pub(crate) operations: u64,
}

/// A side as it was measured, or why it was not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) class: String,
    /// Made as published, not as well as we know how.
    pub(crate) published: bool,
    pub(crate) client: String,
    pub(crate) settings: String,
    pub(crate) version: String,
    /// Why it took no part.
    pub(crate) missing: Option<String>,
}

/// All but the rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Notes {
    pub(crate) command: String,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sides: Vec<About>,
    pub(crate) problems: Vec<String>,
    /// Seconds that each cell took, all sides and rounds.
    #[serde(default)]
    pub(crate) took: Vec<String>,
    /// Sides that were not through in time, each with its cell.
    #[serde(default)]
    pub(crate) cut: Vec<String>,
}

/// A run, new or read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) notes: Notes,
    pub(crate) lines: Vec<Line>,
}

impl Run {
    /// Writes `raw.jsonl` and `run.json` to a directory.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let mut raw = std::io::BufWriter::new(std::fs::File::create(directory.join("raw.jsonl"))?);
        for line in &self.lines {
            serde_json::to_writer(&mut raw, line)?;
            raw.write_all(b"\n")?;
        }
        raw.flush()?;
        let mut notes = serde_json::to_string_pretty(&self.notes)?;
        notes.push('\n');
        Ok(std::fs::write(directory.join("run.json"), notes)?)
    }

    /// Reads what [`Run::write`] has written.
    ///
    /// # Errors
    /// There is no run, or it is damaged.
    pub(crate) fn read(directory: &Path) -> Result<Run> {
        let open = |name: &str| {
            let path = directory.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("{} holds no run: {}: {error}", directory.display(), path.display()))
        };
        let lines =
            open("raw.jsonl")?.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
        Ok(Run { notes: serde_json::from_str(&open("run.json")?)?, lines })
    }

    /// The values of a side in a cell.
    pub(crate) fn values(&self, workload: &str, procs: usize, class: &str, backend: &str) -> Vec<f64> {
        let of = |line: &&Line| {
            line.workload == workload && line.procs == procs && line.class == class && line.backend == backend
        };
        self.lines.iter().filter(of).map(|line| line.value).collect()
    }

    /// Is a side made as results were published?
    pub(crate) fn is_published(&self, backend: &str) -> bool {
        self.notes.sides.iter().any(|side| side.name == backend && side.published)
    }
}
