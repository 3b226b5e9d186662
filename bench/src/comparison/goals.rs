//! What the project wants to reach against the best mapping of each peer, and what others have published.

use crate::comparison::result::Run;
use crate::statistics::{paired, Ratio};
use crate::verdict::{Bound, Score, Verdict};

/// One goal.
pub(crate) struct Goal {
    pub(crate) text: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) procs: usize,
    pub(crate) class: &'static str,
    /// Our side.
    pub(crate) ours: &'static str,
    /// Theirs; none: all sides that are not ours and not as published.
    pub(crate) theirs: &'static [&'static str],
    /// How many times as fast, or as small, we want to be.
    pub(crate) factor: f64,
}

const fn goal(
    text: &'static str,
    workload: &'static str,
    procs: usize,
    class: &'static str,
    ours: &'static str,
    theirs: &'static [&'static str],
    factor: f64,
) -> Goal {
    Goal { text, workload, procs, class, ours, theirs, factor }
}

/// Every goal.
pub(crate) const GOALS: &[Goal] = &[
    goal(
        "3n+1, one process in Lua: 3x Tarantool",
        "collatz",
        1,
        "D4",
        "perilune-luajit",
        &["tarantool"],
        3.0,
    ),
    goal("3n+1, one process in Lua: 3x M", "collatz", 1, "D4", "perilune-luajit", &["gtm"], 3.0),
    goal(
        "3n+1, one process in Lua: 8x lua-yottadb",
        "collatz",
        1,
        "D4",
        "perilune-luajit",
        &["lua-yottadb"],
        8.0,
    ),
    goal(
        "3n+1, one process in Lua: 40x Redis by its client in Lua",
        "collatz",
        1,
        "D4",
        "perilune-luajit",
        &["redis-lua"],
        40.0,
    ),
    goal(
        "3n+1, one process in Lua: 40x Redis by a client in Rust",
        "collatz",
        1,
        "D4",
        "perilune-luajit",
        &["redis"],
        40.0,
    ),
    goal("3n+1, 2 processes: ahead of all", "collatz", 2, "D4", "perilune", &[], 1.0),
    goal("3n+1, 32 processes: ahead of all", "collatz", 32, "D4", "perilune", &[], 1.0),
    goal("sets in order: 3x LMDB", "set", 1, "D4", "perilune", &["lmdb"], 3.0),
    goal("gets in order: 1.5x LMDB", "get", 1, "D4", "perilune", &["lmdb"], 1.5),
    goal("random sets: 3x LMDB", "set-random", 1, "D4", "perilune", &["lmdb"], 3.0),
    goal("random gets: 1.5x LMDB", "get-random", 1, "D4", "perilune", &["lmdb"], 1.5),
    goal("XML trace: 3x each", "xml", 1, "D4", "perilune", &[], 3.0),
    goal("16 durable writers: 3x LMDB and SQLite", "writers", 16, "D1", "perilune", &["lmdb", "sqlite"], 3.0),
    goal("memory for a small node: at most LMDB's", "space-memory", 1, "D4", "perilune", &["lmdb"], 1.0),
    goal("disk for a small node: at most LMDB's", "space-disk", 1, "D1", "perilune", &["lmdb"], 1.0),
];

/// What came of a goal.
pub(crate) struct Outcome {
    pub(crate) goal: &'static Goal,
    /// The peer that is nearest to it, and our ratio; None if none was measured.
    pub(crate) nearest: Option<(String, Ratio)>,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        Bound::AtLeast(self.goal.factor).judge(self.nearest.as_ref().map(|(_, ratio)| *ratio))
    }
}

/// Is more of it better?
pub(crate) fn more_is_better(unit: &str) -> bool {
    unit == "op/s"
}

/// Is it one of our sides?
pub(crate) fn is_ours(backend: &str) -> bool {
    backend.starts_with("perilune")
}

/// How many times as good `ours` is as `theirs`, in a unit, round by round.
pub(crate) fn advantage(unit: &str, ours: &[f64], theirs: &[f64]) -> Ratio {
    if more_is_better(unit) {
        paired(ours, theirs)
    } else {
        paired(theirs, ours)
    }
}

/// How many goals came to what.
pub(crate) fn score(run: &Run) -> Score {
    let mut score = Score::default();
    outcomes(run).iter().for_each(|outcome| score.add(outcome.verdict()));
    score
}

/// Every goal with what came of it, those that were missed first.
pub(crate) fn outcomes(run: &Run) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> =
        GOALS.iter().map(|goal| Outcome { goal, nearest: nearest(run, goal) }).collect();
    outcomes.sort_by_key(Outcome::verdict);
    outcomes
}

fn nearest(run: &Run, goal: &Goal) -> Option<(String, Ratio)> {
    let of = |backend: &str| run.values(goal.workload, goal.procs, goal.class, backend);
    let ours = of(goal.ours);
    let unit = run.lines.iter().find(|line| line.workload == goal.workload && line.class == goal.class)?;
    if ours.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = run.notes.sides.iter().map(|side| side.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| match goal.theirs {
        [] => !is_ours(name) && !run.is_published(name),
        named => named.contains(name),
    });
    let measured = names.into_iter().filter_map(|name| {
        let theirs = of(name);
        (!theirs.is_empty()).then(|| (name.to_owned(), advantage(&unit.unit, &ours, &theirs)))
    });
    measured.min_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio))
}

/// A figure that others have published; another machine, so for orientation.
pub(crate) struct Published {
    pub(crate) workload: &'static str,
    pub(crate) procs: usize,
    /// Our name for the side, or theirs.
    pub(crate) name: &'static str,
    /// In the unit of the workload.
    pub(crate) value: f64,
    pub(crate) source: &'static str,
}

const RYZEN: &str = "Hoyt's paper, Ryzen 7 5800X";
const NUC: &str = "Global Storage comparison (final), NUC i7 of the 8th generation, Node.js";

const fn published(
    workload: &'static str,
    procs: usize,
    name: &'static str,
    value: f64,
    source: &'static str,
) -> Published {
    Published { workload, procs, name, value, source }
}

/// What others have published: the article "Lua API and benchmark design using 3n+1 sequences" (`RYZEN`), and
/// "Performance Comparisons of Global Storage Databases" (`NUC`; 500,000 sets or gets, here as rates).
pub(crate) const PUBLISHED: &[Published] = &[
    published("collatz", 1, "YottaDB", 1.2, RYZEN),
    published("collatz", 32, "YottaDB", 0.4, RYZEN),
    published("collatz", 1, "redis-lua", 12.9, RYZEN),
    published("collatz", 32, "redis-lua", 5.0, RYZEN),
    published("collatz", 1, "Garnet", 15.8, RYZEN),
    published("collatz", 32, "Garnet", 2.5, RYZEN),
    published("collatz", 1, "Xider", 16.4, RYZEN),
    published("collatz", 32, "Xider", 3.1, RYZEN),
    published("set", 1, "IRIS", 500_000.0 / 1.16, NUC),
    published("set", 1, "YottaDB", 500_000.0 / 1.23, NUC),
    published("set", 1, "bdb-published", 500_000.0 / 1.70, NUC),
    published("set", 1, "lmdb-published", 500_000.0 / 3_672.02, NUC),
    published("set", 1, "redis-published", 500_000.0 / 194.19, NUC),
    published("get", 1, "IRIS", 500_000.0 / 0.87, NUC),
    published("get", 1, "YottaDB", 500_000.0 / 0.78, NUC),
    published("get", 1, "bdb-published", 500_000.0 / 1.45, NUC),
    published("get", 1, "lmdb-published", 500_000.0 / 1.13, NUC),
    published("get", 1, "redis-published", 500_000.0 / 49.71, NUC),
    published("xml-parse", 1, "IRIS", 3.70, NUC),
    published("xml-parse", 1, "YottaDB", 3.22, NUC),
    published("xml-parse", 1, "bdb-published", 3.69, NUC),
    published("xml-parse", 1, "lmdb-published", 161.45, NUC),
    published("xml-parse", 1, "redis-published", 27.34, NUC),
    published("xml-output", 1, "IRIS", 0.82, NUC),
    published("xml-output", 1, "YottaDB", 0.74, NUC),
    published("xml-output", 1, "bdb-published", 0.93, NUC),
    published("xml-output", 1, "lmdb-published", 0.73, NUC),
    published("xml-output", 1, "redis-published", 4.06, NUC),
];
