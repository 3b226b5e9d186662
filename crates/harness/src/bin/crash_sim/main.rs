//! The power fails at a random moment: does everything come back that was promised, and nothing else?
//!
//! Processes with threads work on one database at random durability levels until all are killed. Then the
//! files are made what a power loss may leave of them: whatever was not synced is there, half there or garbage.
//! The database is opened, verified and compared with what every session had tried, seen and been told.
//! Nothing of the engine says what was synced: a disk beneath it notes that.
//!
//! `crash_sim [--runs N] [--seed N] [--jobs N] [--dir DIR] [--canary NAME]`; see `make crash-sim` and
//! docs/design/0016-crash-simulator.md.

#![forbid(unsafe_code)]

mod history;
mod judge;
mod operations;
mod power_loss;
#[cfg(test)]
mod promises;
mod recording;
mod storm;
mod work;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use storm::{Outcome, Storm};
use work::Orders;

/// A bug that the simulator must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canary {
    /// A sync of the log answers at once and does nothing: commits are acknowledged too early.
    UnsyncedLog,
    /// A sync of the database file does nothing: meta may come before what it names.
    UnsyncedCheckpoint,
    /// A batch that was durable is not replayed.
    LostBatch,
}

impl Canary {
    const ALL: [Canary; 3] = [Canary::UnsyncedLog, Canary::UnsyncedCheckpoint, Canary::LostBatch];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Canary::UnsyncedLog => "unsynced-log",
            Canary::UnsyncedCheckpoint => "unsynced-checkpoint",
            Canary::LostBatch => "lost-batch",
        }
    }
}

struct Arguments {
    runs: u64,
    seed: u64,
    jobs: u64,
    dir: Option<PathBuf>,
    canary: Option<Canary>,
    /// How the simulator calls itself.
    orders: Option<Orders>,
}

fn arguments() -> Result<Arguments, String> {
    let seed = perilune_harness::seed();
    let mut arguments = Arguments { runs: 100, seed, jobs: 2, dir: None, canary: None, orders: None };
    let mut orders = Orders {
        dir: PathBuf::new(),
        process: 0,
        seed: 0,
        threads: 1,
        begin: Vec::new(),
        level: None,
        checkpoint_every: 0,
        is_restless: false,
        sync_max: 0,
        canary: None,
    };
    let mut is_process = false;
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let operand = given.next().ok_or(format!("{argument} needs an operand"))?;
        let number =
            || operand.parse::<u64>().map_err(|_| format!("{argument} takes a number, not `{operand}`"));
        match argument.as_str() {
            "--runs" => arguments.runs = number()?,
            "--seed" => arguments.seed = number()?,
            "--jobs" => arguments.jobs = number()?.clamp(1, 64),
            "--dir" => arguments.dir = Some(PathBuf::from(operand)),
            "--canary" => {
                let canary = Canary::ALL.into_iter().find(|canary| canary.name() == operand);
                arguments.canary = Some(canary.ok_or(format!("there is no canary {operand}"))?);
            }
            "--process" => (is_process, orders.process) = (true, number()? as usize),
            "--threads" => orders.threads = number()? as usize,
            "--begin" => orders.begin = operand.split(',').filter_map(|word| word.parse().ok()).collect(),
            "--level" => orders.level = work::level_of(&operand),
            "--checkpoint-every" => orders.checkpoint_every = number()?,
            "--restless" => orders.is_restless = number()? != 0,
            "--sync-max" => orders.sync_max = number()?,
            _ => {
                return Err(format!(
                    "unknown option {argument}; there are --runs, --seed, --jobs, --dir, --canary"
                ))
            }
        }
    }
    if is_process {
        (orders.seed, orders.canary) = (arguments.seed, arguments.canary);
        orders.dir = arguments.dir.clone().unwrap_or_default();
        arguments.orders = Some(orders);
    }
    Ok(arguments)
}

/// A directory in memory, if there is one: what is on disk is the simulator's affair.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    parent.join(format!("perilune-crash-sim-{}", std::process::id()))
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("crash_sim: {problem}");
            return ExitCode::from(2);
        }
    };
    if let Some(orders) = &arguments.orders {
        return match work::run(orders) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let dir = arguments.dir.clone().unwrap_or_else(scratch);
    println!("crash-sim: {} power losses, seed {}, in {}", arguments.runs, arguments.seed, dir.display());
    let begun = Instant::now();
    match simulate(&arguments, &dir) {
        Ok(outcomes) => {
            let failed = summary(&arguments, &outcomes, begun);
            if failed && arguments.canary.is_none() {
                println!("crash-sim: the files are left in {}", dir.display());
            } else if arguments.dir.is_none() {
                // What cannot be removed is left.
                let _ = storm::remove(&dir);
            }
            if failed == arguments.canary.is_some() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(problem) => {
            eprintln!("crash_sim: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Runs all, several at once, until one fails.
fn simulate(arguments: &Arguments, dir: &Path) -> io::Result<Vec<Outcome>> {
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..arguments.jobs)
            .map(|job| {
                let (next, is_over) = (&next, &is_over);
                let seed = arguments.seed ^ job.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                scope.spawn(move || {
                    let mut storm = Storm::new(dir.join(job.to_string()), seed, arguments.canary)?;
                    while !is_over.load(Relaxed) {
                        let run = next.fetch_add(1, Relaxed);
                        if run >= arguments.runs {
                            break;
                        }
                        show(run, arguments.runs)?;
                        storm.round().inspect_err(|_| is_over.store(true, Relaxed))?;
                        if storm.outcome.failure.is_some() {
                            is_over.store(true, Relaxed);
                        }
                    }
                    Ok(storm.outcome)
                })
            })
            .collect();
        let ended = jobs.into_iter().map(|job| job.join());
        ended.map(|outcome| outcome.unwrap_or_else(|_| Err(io::Error::other("a job panicked")))).collect()
    })
}

fn show(done: u64, all: u64) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return Ok(());
    }
    let filled = (done * 30 / all.max(1)) as usize;
    print!("\r[{:<30}] {done} of {all} ", "#".repeat(filled));
    io::stdout().flush()
}

/// Prints the results; true if anything is wrong.
fn summary(arguments: &Arguments, outcomes: &[Outcome], begun: Instant) -> bool {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let mut is_wrong = false;
    for failure in outcomes.iter().filter_map(|outcome| outcome.failure.as_ref()) {
        is_wrong = true;
        println!("\ncrash-sim: seed {}: {failure}", arguments.seed);
    }
    let level = |level: usize| outcomes.iter().map(|outcome| outcome.by_level[level]).sum::<u64>();
    println!(
        "\rcrash-sim: {:.0} s, {} power losses (none {}, periodic {}, fsync {}, changing {}), {} of them after \
         closing, {} before anything was acknowledged",
        begun.elapsed().as_secs_f64(),
        sum(|outcome| outcome.rounds),
        level(0),
        level(1),
        level(2),
        level(3),
        sum(|outcome| outcome.closed),
        sum(|outcome| outcome.early),
    );
    println!(
        "crash-sim: {} commits acknowledged, {} lost as the levels allow, {} records replayed, {} checkpoints",
        sum(|outcome| outcome.acknowledged),
        sum(|outcome| outcome.lost),
        sum(|outcome| outcome.replayed),
        sum(|outcome| outcome.checkpoints),
    );
    let mut ages: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.ages.iter().copied()).collect();
    ages.sort_unstable();
    if let (Some(most), Some(half)) = (ages.last(), ages.get(ages.len() / 2)) {
        println!("crash-sim: at periodic what was lost was at most {half} ms old in half of the cases, {most} ms in all");
    }
    if let Some(canary) = arguments.canary {
        let name = canary.name();
        println!("crash-sim: the canary {name} was {}", if is_wrong { "found" } else { "not found" });
    }
    let is_good = is_wrong == arguments.canary.is_some();
    println!("{} passed, {} failed", u8::from(is_good), u8::from(!is_good));
    is_wrong
}
