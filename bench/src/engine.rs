//! Runs the engine suite: loads, measures with sides alternating, checks, and hands over rows.
//!
//! Invariants
//! - In each round of a cell every side runs once, and the order of sides turns from round to round:
//!   what disturbs the machine disturbs all.
//! - Rows count only after the check of their cell: a side with a wrong result has none there, and the
//!   run ends with an error.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use crate::data::{essence, essence_of};
use crate::disk;
use crate::plan::{Cell, Group, ACCOUNTS};
use crate::row::Row;
use crate::scratch::Scratch;
use crate::subject::{Passage, Peer, Result, Tree};
use crate::worker_processes::worker::BALANCE;
use crate::worker_processes::Workers;
use crate::workload::{expected, Job, Order};

/// A round longer than this makes later ones dear: such a side has [`ROUNDS_LONG`] of them.
const LONG_SECONDS: f64 = 5.0;
const ROUNDS_LONG: usize = 3;

/// How a run measures.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) rounds: usize,
    pub(crate) milliseconds: u64,
    /// Entries of one pass of walks and scans.
    pub(crate) walk: u64,
    /// Measure the disk itself in each round.
    pub(crate) disk: bool,
    /// Where databases are made and removed again.
    pub(crate) directory: PathBuf,
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// Sides whose rows do not count, and why.
    pub(crate) problems: Vec<String>,
}

/// Measures all cells of `groups` with the `peers` that can take part.
///
/// # Errors
/// The directory cannot be used. What goes wrong with one side is a problem in the results.
pub(crate) fn run(groups: &[Group], peers: &[Peer], measure: &Measure) -> Result<Results> {
    let scratch = Scratch::new(&measure.directory, &format!("perilune-bench-{}", std::process::id()))?;
    let takes = |cell: &Cell| peers.iter().filter(|peer| cell.suits(peer.abilities)).count();
    let cells = groups.iter().flat_map(|group| &group.cells);
    let steps: usize = cells.map(|cell| takes(cell) * measure.rounds).sum();
    let style = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg:36}")?;
    let progress = ProgressBar::new(steps as u64).with_style(style);
    let mut run = Run { measure, scratch, progress, databases: 0, results: Results::default() };
    for group in groups {
        run.group(group, peers)?;
    }
    run.progress.finish_and_clear();
    Ok(run.results)
}

struct Run<'a> {
    measure: &'a Measure,
    scratch: Scratch,
    progress: ProgressBar,
    /// How many were made: their directories are numbered.
    databases: usize,
    results: Results,
}

/// A peer in a group. Fields are dropped in their order: workers before the directory.
struct Side {
    workers: Workers,
    peer: Peer,
    /// What the counter must read.
    counted: u64,
    _directory: Scratch,
}

impl Run<'_> {
    fn group(&mut self, group: &Group, peers: &[Peer]) -> Result<()> {
        let mut sides = Vec::new();
        if !group.fresh {
            for peer in peers.iter().filter(|peer| group.cells.iter().any(|cell| cell.suits(peer.abilities)))
            {
                self.progress.set_message(format!("load {} {}", group.keys, peer.name));
                match self.load(group, peer) {
                    Ok(side) => sides.push(side),
                    Err(error) => self.problem(peer, "load", &*error),
                }
            }
        }
        for cell in &group.cells {
            if group.fresh {
                self.fresh(cell, peers);
            } else {
                self.cell(cell, &mut sides);
            }
        }
        for side in sides {
            if let Err(error) = side.workers.finish() {
                self.problem(&side.peer, "close", &*error);
            }
        }
        Ok(())
    }

    fn start(&mut self, peer: &Peer, processes: usize) -> Result<Side> {
        self.databases += 1;
        let directory = Scratch::new(self.scratch.path(), &format!("{}-{}", peer.name, self.databases))?;
        let workers = Workers::start(peer, directory.path(), processes)?;
        Ok(Side { workers, peer: *peer, counted: 0, _directory: directory })
    }

    fn load(&mut self, group: &Group, peer: &Peer) -> Result<Side> {
        let mut side = self.start(peer, group.processes)?;
        if group.keys > 0 {
            side.workers.fill(Tree::Data, group.keys)?;
        }
        if group.cells.iter().any(|cell| cell.job == Job::Transfer) {
            side.workers.fill(Tree::Bank, ACCOUNTS)?;
        }
        Ok(side)
    }

    /// Rounds of a cell on databases that stay.
    fn cell(&mut self, cell: &Cell, sides: &mut Vec<Side>) {
        let mut pending: Vec<Row> = Vec::new();
        for round in 0..self.measure.rounds {
            if self.measure.disk {
                match disk::rows(self.scratch.path(), cell, round, self.measure.milliseconds) {
                    Ok(rows) => pending.extend(rows),
                    Err(error) => self.results.problems.push(format!("disk: {error}")),
                }
            }
            let count = sides.len().max(1);
            sides.rotate_left(usize::from(round > 0) % count);
            let mut index = 0;
            while index < sides.len() {
                let side = &mut sides[index];
                if !cell.suits(side.peer.abilities) {
                    index += 1;
                    continue;
                }
                self.announce(cell, &side.peer);
                if is_long(&pending, &side.peer, round) {
                    index += 1;
                    continue;
                }
                match side.workers.run(self.order(cell, round)) {
                    Ok(outcomes) => {
                        side.counted += outcomes.iter().map(|outcome| outcome.applied).sum::<u64>()
                            * u64::from(cell.job == Job::Increment);
                        pending.push(Row::new(cell, &side.peer, round, &outcomes));
                        index += 1;
                    }
                    Err(error) => {
                        let side = sides.remove(index);
                        pending.retain(|row| !row.is_of(&side.peer));
                        self.problem(&side.peer, cell.workload, &*error);
                    }
                }
            }
        }
        for side in sides.iter_mut().filter(|side| cell.suits(side.peer.abilities)) {
            if let Err(error) = check(cell, side) {
                pending.retain(|row| !row.is_of(&side.peer));
                self.problem(&side.peer, cell.workload, &*error);
            }
        }
        self.results.rows.append(&mut pending);
    }

    /// Rounds of 3n+1, each on an empty database.
    fn fresh(&mut self, cell: &Cell, peers: &[Peer]) {
        let mut suiting: Vec<&Peer> = peers.iter().filter(|peer| cell.suits(peer.abilities)).collect();
        let mut pending: Vec<Row> = Vec::new();
        for round in 0..self.measure.rounds {
            let count = suiting.len().max(1);
            suiting.rotate_left(usize::from(round > 0) % count);
            suiting.retain(|peer| {
                self.announce(cell, peer);
                if is_long(&pending, peer, round) {
                    return true;
                }
                match self.collatz(cell, peer, round) {
                    Ok(row) => pending.push(row),
                    Err(error) => {
                        pending.retain(|row| !row.is_of(peer));
                        self.problem(peer, cell.workload, &*error);
                        return false;
                    }
                }
                true
            });
        }
        self.results.rows.append(&mut pending);
    }

    fn collatz(&mut self, cell: &Cell, peer: &Peer, round: usize) -> Result<Row> {
        let mut side = self.start(peer, cell.processes)?;
        side.workers.fill(Tree::Blocks, cell.keys)?;
        side.workers.all_see(Tree::Blocks, 1)?;
        let outcomes = side.workers.run(self.order(cell, round))?;
        let expected = expected(cell.keys).ok_or("3n+1 has no known results for this many numbers")?;
        let sum = |what: fn(&crate::workload::Outcome) -> u64| outcomes.iter().map(what).sum::<u64>();
        let (reads, updates) = (sum(|outcome| outcome.reads), sum(|outcome| outcome.updates));
        let longest = side.workers.get(Tree::Record, 0)?;
        let highest = side.workers.get(Tree::Record, 1)?;
        let stored = side.workers.scan(Tree::Step)?.entries;
        let found = (longest, highest, stored);
        if found != (Some(expected.longest), Some(expected.highest), expected.stored) {
            return Err(format!("3n+1 found {found:?}, not {expected:?}").into());
        }
        let exact = (reads, updates) == (expected.reads, expected.updates);
        if cell.processes == 1 && !exact || updates < expected.stored {
            return Err(format!("3n+1 took {reads} reads and {updates} updates, not as {expected:?}").into());
        }
        side.workers.finish()?;
        Ok(Row::new(cell, peer, round, &outcomes))
    }

    fn order(&self, cell: &Cell, round: usize) -> Order {
        Order {
            job: cell.job,
            keys: cell.keys,
            threads: cell.threads,
            walk: self.measure.walk,
            milliseconds: self.measure.milliseconds,
            seed: round as u64 + 1,
            stamp: round as u64 + 2,
        }
    }

    fn announce(&self, cell: &Cell, peer: &Peer) {
        self.progress
            .set_message(format!("{} {} x{} {}", cell.workload, cell.keys, cell.processes, peer.name));
        self.progress.inc(1);
    }

    fn problem(&mut self, peer: &Peer, what: &str, error: &(dyn std::error::Error + Send + Sync)) {
        self.results.problems.push(format!("{}, {what}: {error}", peer.name));
    }
}

/// Has this side had the rounds that a long one gets?
fn is_long(rows: &[Row], peer: &Peer, round: usize) -> bool {
    let first = rows.iter().find(|row| row.is_of(peer));
    round >= ROUNDS_LONG && first.is_some_and(|row| row.wall_seconds > LONG_SECONDS)
}

/// Is what the rounds of a cell left behind right? What single reads answered the workers have checked.
fn check(cell: &Cell, side: &mut Side) -> Result<()> {
    match cell.job {
        Job::Set | Job::Commit | Job::Scan => {
            let sum = |of: fn(u64) -> u64| (0..cell.keys).map(of).fold(0, u64::wrapping_add);
            let wanted =
                Passage { entries: cell.keys, numbers: sum(|number| number), values: sum(essence_of) };
            same("the tree holds", side.workers.scan(Tree::Data)?, wanted)
        }
        Job::Increment => {
            let counter = side.workers.get(Tree::Counter, 0)?.unwrap_or(0);
            same("the counter reads", counter as u64, side.counted)
        }
        Job::Transfer => {
            let bank = side.workers.scan(Tree::Bank)?;
            let wanted = (ACCOUNTS, essence(BALANCE) * ACCOUNTS);
            same("the bank holds", (bank.entries, bank.values), wanted)
        }
        _ => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<()> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what} {found:?}, not {wanted:?}").into())
    }
}
