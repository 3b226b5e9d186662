//! Random work of many processes on one database, while one after the other is killed.
//!
//! Every few milliseconds a worker gets SIGKILL and a successor; now and then one is stopped for a while,
//! and now and then all are killed at once and the database is opened and checked as a whole. Checked are
//! the workloads of the harness (accounts, counters, lists), values that show whether they are whole,
//! numbers under locks, counts of messages, watches, the structure; and that no survivor hangs. Every 50 ms
//! some worker takes a checkpoint; the level is one for all, or each life of a worker asks for its own.
//!
//! `kill_storm [--seconds N] [--processes N] [--level none|periodic|fsync|changing] [--checkpoints MS]
//! [--seed N] [--dir DIR]`; see `make kill-storm`. Without checkpoints: `--checkpoints 0`.

#![deny(unsafe_code)]

mod heartbeats;
mod shared;
mod signal;
mod storm;
mod values;
mod waiting;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use storm::{Outcome, Plan};
use worker::{Level, Work};

struct Arguments {
    plan: Plan,
    /// The files are the storm's own, to be removed if all went well.
    is_scratch: bool,
    worker: Option<usize>,
}

fn arguments() -> Result<Arguments, String> {
    let mut plan = Plan {
        dir: PathBuf::new(),
        processes: 16,
        time: Duration::from_secs(60),
        work: Work { level: Level::Changing, checkpoints: 50 },
        seed: perilune_harness::seed(),
    };
    let (mut worker, mut dir) = (None, None);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let operand = given.next().ok_or(format!("{argument} needs an operand"))?;
        let number =
            || operand.parse::<u64>().map_err(|_| format!("{argument} takes a number, not `{operand}`"));
        match argument.as_str() {
            "--seconds" => plan.time = Duration::from_secs(number()?),
            "--processes" => plan.processes = number()?.clamp(1, 1_000) as usize,
            "--level" => plan.work.level = operand.parse()?,
            "--checkpoints" => plan.work.checkpoints = number()?,
            "--seed" => plan.seed = number()?,
            "--dir" => dir = Some(PathBuf::from(operand)),
            // How the storm calls itself.
            "--worker" => worker = Some(number()? as usize),
            _ => {
                return Err(format!(
                    "unknown option {argument}; there are --seconds, --processes, --level, --checkpoints, \
                     --seed, --dir"
                ))
            }
        }
    }
    let is_scratch = dir.is_none();
    let scratch = || std::env::temp_dir().join(format!("perilune-kill-storm-{}", std::process::id()));
    plan.dir = dir.unwrap_or_else(scratch);
    Ok(Arguments { plan, is_scratch, worker })
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("kill_storm: {problem}");
            return ExitCode::from(2);
        }
    };
    let plan = &arguments.plan;
    if let Some(number) = arguments.worker {
        return match worker::run(&plan.dir, number, plan.seed, plan.work) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    println!(
        "kill-storm: {} processes, level {}, {} ms from one checkpoint to the next, seed {}, in {}",
        plan.processes,
        plan.work.level,
        plan.work.checkpoints,
        plan.seed,
        plan.dir.display()
    );
    let made = std::fs::create_dir_all(&plan.dir).map_err(|error| error.to_string());
    let made = made.and_then(|()| shared::create(&plan.dir).map_err(|error| error.to_string()));
    let outcome = made.and_then(|()| storm::run(plan).map_err(|error| error.to_string()));
    match outcome {
        Ok(outcome) => summary(&arguments, &outcome),
        Err(problem) => {
            eprintln!("kill_storm: {problem}");
            ExitCode::from(2)
        }
    }
}

fn summary(arguments: &Arguments, outcome: &Outcome) -> ExitCode {
    let plan = &arguments.plan;
    let failed = outcome.failures.len();
    for failure in &outcome.failures {
        println!("\nkill-storm: seed {}: {failure}", plan.seed);
    }
    if failed > 0 {
        println!("kill-storm: the files are left in {}", plan.dir.display());
    } else if arguments.is_scratch {
        // What cannot be removed is left.
        let _ = std::fs::remove_dir_all(&plan.dir);
    }
    println!(
        "\rkill-storm: {:.0} s, {} kills, {} stops, {} times all at once, {} operations, {} checkpoints, \
         {failed} failed",
        outcome.seconds, outcome.kills, outcome.stops, outcome.calms, outcome.operations, outcome.checkpoints
    );
    let mut reopened = outcome.reopened.clone();
    reopened.sort_unstable();
    if let (Some(half), Some(most)) = (reopened.get(reopened.len() / 2), reopened.last()) {
        println!("kill-storm: opened again after {half:.1?} in half of the cases, {most:.1?} at most");
    }
    println!("{} passed, {failed} failed", usize::from(failed == 0));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
