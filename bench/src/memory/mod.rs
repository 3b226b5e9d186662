//! Data larger than memory: a process in a memory cgroup works on a database several times as large, and what
//! that costs is measured beside the same without a limit.
//!
//! Invariants
//! - What is read is compared, and at the end everything is: a wrong byte ends the run with an error.
//! - A process that the kernel kills for its memory is an error.
//! - Space that deletes freed is used again: the file grows by at most a tenth of what was deleted.
//!
//! Deliberately absent: peers. What the kernel does to a mapped file it does to LMDB's, too.

mod cgroup;
pub(crate) mod work;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use indicatif::{ProgressBar, ProgressStyle};
use perilune::Durability;

use crate::durability;
use crate::engine::Results;
use crate::peers::perilune::{options, FILE};
use crate::report::Table;
use crate::row::Row;
use crate::scratch::Scratch;
use crate::subject::Result;
use cgroup::Group;
use work::{Done, Phase, VALUE};

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Bytes of values.
    pub(crate) data: u64,
    /// Bytes of memory, with the pages of files.
    pub(crate) limit: u64,
    /// Seconds of phases by time.
    pub(crate) seconds: u64,
    pub(crate) level: Durability,
    /// Sides that are run; none: both.
    pub(crate) only: Vec<String>,
    /// Where databases are made and removed again.
    pub(crate) directory: PathBuf,
}

/// Runs the work with the limit, and without.
///
/// # Errors
/// There is no memory cgroup to be had, or the directory cannot be used. What goes wrong with the work is a
/// problem in the results.
pub(crate) fn run(wish: &Wish) -> Result<Results> {
    let scratch = Scratch::new(&wish.directory, &format!("perilune-bench-{}", std::process::id()))?;
    let style = ProgressStyle::with_template("{elapsed_precise} {msg}")?;
    let progress = ProgressBar::new_spinner().with_style(style);
    let mut results = Results::default();
    for (backend, limit) in SIDES.map(|side| (side, if side == LIMITED { wish.limit } else { u64::MAX >> 1 }))
    {
        if !wish.only.is_empty() && wish.only.iter().all(|side| side != backend) {
            continue;
        }
        let directory = Scratch::new(scratch.path(), backend)?;
        let group = Group::new(limit)?;
        let mut side = Side { backend, wish, group: &group, rows: &mut results.rows };
        if let Err(error) = side.run(directory.path(), &progress) {
            results.problems.push(format!("{backend}: {error}"));
        }
    }
    progress.finish_and_clear();
    Ok(results)
}

/// The figures of each phase, with the limit beside without.
pub(crate) fn tables(rows: &[Row]) -> Vec<Table> {
    let (table, _) = durability::tables(rows);
    table.into_iter().take(1).collect()
}

struct Side<'a> {
    backend: &'static str,
    wish: &'a Wish,
    group: &'a Group,
    rows: &'a mut Vec<Row>,
}

impl Side<'_> {
    fn run(&mut self, directory: &Path, progress: &ProgressBar) -> Result<()> {
        let nodes = self.wish.data / VALUE as u64;
        let mut worker = Worker::start(directory, nodes, self.wish)?;
        self.group.add(worker.child.id())?;
        let mut full = 0;
        for phase in Phase::ALL {
            progress.set_message(format!("{} {}", self.backend, phase.name()));
            progress.tick();
            let before = self.group.counters()?;
            let done = worker.ask(phase)?;
            let after = self.group.counters()?;
            self.push(phase, nodes, &done, &before, &after);
            if after.get("kills") != Some(&0) {
                return Err("the kernel killed for want of memory".into());
            }
            if phase == Phase::Delete {
                full = done.file;
            }
            // NB: a quarter of the nodes was deleted.
            if phase == Phase::Again && done.file > full + self.wish.data / 40 {
                return Err(
                    format!("the file grew from {full} to {} bytes beside free space", done.file).into()
                );
            }
        }
        worker.finish()?;
        progress.set_message(format!("{} verify and compact", self.backend));
        progress.tick();
        let report = options().compact(directory.join(FILE), |_, _| ())?;
        if report.nodes != nodes {
            return Err(format!("{} nodes were there to compact, not {nodes}", report.nodes).into());
        }
        self.figure("compact", nodes, "MiB before", report.bytes_before as f64 / MIB);
        self.figure("compact", nodes, "MiB", report.bytes_after as f64 / MIB);
        Ok(())
    }

    fn push(
        &mut self,
        phase: Phase,
        nodes: u64,
        done: &Done,
        before: &BTreeMap<String, u64>,
        after: &BTreeMap<String, u64>,
    ) {
        let seconds = done.nanoseconds as f64 / 1e9;
        self.rows.push(Row {
            wall_seconds: seconds,
            cpu_seconds: done.cpu as f64 / 1e9,
            operations: done.operations,
            ..self.row(phase.name(), nodes, "op/s", done.operations as f64 / seconds)
        });
        let more = |name: &str| {
            let of = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
            (of(after) - of(before)) as f64
        };
        let operations = done.operations.max(1) as f64;
        self.figure(phase.name(), nodes, "major faults/op", more("pgmajfault") / operations);
        self.figure(phase.name(), nodes, "refaults/op", more("workingset_refault_file") / operations);
        self.figure(phase.name(), nodes, "limit met", more("failures"));
        self.figure(phase.name(), nodes, "MiB of file", done.file as f64 / MIB);
        self.figure(phase.name(), nodes, "MiB free", done.free as f64 / MIB);
        let highest = after.get("highest").copied().unwrap_or(0);
        self.figure(phase.name(), nodes, "MiB of memory", highest as f64 / MIB);
    }

    fn figure(&mut self, workload: &'static str, nodes: u64, unit: &'static str, value: f64) {
        let row = self.row(workload, nodes, unit, value);
        self.rows.push(row);
    }

    fn row(&self, workload: &'static str, nodes: u64, unit: &'static str, value: f64) -> Row {
        let class = name_of(self.wish.level);
        Row { suite: "memory", workload, backend: self.backend, class, ..Row::bare(nodes, 0, unit, value) }
    }
}

/// The level as options and rows have it.
pub(crate) fn name_of(level: Durability) -> &'static str {
    match level {
        Durability::None => "none",
        Durability::Periodic => "periodic",
        Durability::Fsync => "fsync",
    }
}

/// The sides: with the limit, and without.
const LIMITED: &str = "limited";
pub(crate) const SIDES: [&str; 2] = [LIMITED, "free"];

const MIB: f64 = (1 << 20) as f64;

/// The process that works.
struct Worker {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(directory: &Path, nodes: u64, wish: &Wish) -> Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["memory-worker", "--nodes", &nodes.to_string(), "--seconds", &wish.seconds.to_string()])
            .args(["--level", name_of(wish.level), "--dir"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("a worker has no output")?;
        Ok(Worker { child, output: BufReader::new(output) })
    }

    fn ask(&mut self, phase: Phase) -> Result<Done> {
        let mut line = serde_json::to_vec(&phase)?;
        line.push(b'\n');
        self.child.stdin.as_mut().ok_or("the worker has no input")?.write_all(&line)?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            return Err(format!("the worker ended with {status} in phase {}", phase.name()).into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Has it close the database.
    fn finish(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the worker ended with {status}").into())
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
