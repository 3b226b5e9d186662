//! Databases are removed, renamed and made anew under the processes that have them open.
//!
//! Some processes open whatever database has the name, write, take checkpoints, read back and close, at all levels of
//! durability. Meanwhile the storm removes its files, all or some, gives its directory or its file another name, puts
//! an older one back, and kills processes. Checked is that no process writes into another database than its own: every
//! database has a token, every value bears that of its database, and each database that still has its files is sound
//! and holds what was acknowledged at `fsync`; and that each process is told, by an answer that says so.
//!
//! `replace_storm [--seconds N] [--processes N] [--seed N] [--dir DIR] [--canary yes]`; see `make replace-storm`.

#![deny(unsafe_code)]

mod content;
mod judge;
mod storm;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use perilune_engine::instrument;
use storm::{Outcome, Plan};

struct Arguments {
    plan: Plan,
    /// The files are the storm's own, to be removed if all went well.
    is_scratch: bool,
    worker: Option<usize>,
}

fn arguments() -> Result<Arguments, String> {
    let (processes, time) = (8, Duration::from_secs(60));
    let (dir, seed) = (PathBuf::new(), perilune_harness::seed());
    let mut plan = Plan { dir, processes, time, seed, is_canary: false };
    let (mut worker, mut dir) = (None, None);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let operand = given.next().ok_or(format!("{argument} needs an operand"))?;
        let number =
            || operand.parse::<u64>().map_err(|_| format!("{argument} takes a number, not `{operand}`"));
        match argument.as_str() {
            "--seconds" => plan.time = Duration::from_secs(number()?),
            "--processes" => plan.processes = number()?.clamp(1, 100) as usize,
            "--seed" => plan.seed = number()?,
            "--dir" => dir = Some(PathBuf::from(operand)),
            "--canary" => plan.is_canary = operand == "yes",
            // How the storm calls itself.
            "--worker" => worker = Some(number()? as usize),
            _ => {
                return Err(format!(
                    "unknown option {argument}; there are --seconds, --processes, --seed, --dir, --canary"
                ))
            }
        }
    }
    let is_scratch = dir.is_none();
    let scratch = || std::env::temp_dir().join(format!("perilune-replace-storm-{}", std::process::id()));
    plan.dir = dir.unwrap_or_else(scratch);
    Ok(Arguments { plan, is_scratch, worker })
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("replace_storm: {problem}");
            return ExitCode::from(2);
        }
    };
    let plan = &arguments.plan;
    if plan.is_canary {
        instrument::plant(instrument::Bug::AnyHome);
    }
    if let Some(number) = arguments.worker {
        return match worker::run(&plan.dir, number, plan.seed) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => worker::tell(&plan.dir, number, &problem),
        };
    }
    println!("replace-storm: {} processes, seed {}, in {}", plan.processes, plan.seed, plan.dir.display());
    match storm::run(plan) {
        Ok(outcome) => summary(&arguments, &outcome),
        Err(problem) => {
            eprintln!("replace_storm: {problem}");
            ExitCode::from(2)
        }
    }
}

fn summary(arguments: &Arguments, outcome: &Outcome) -> ExitCode {
    let plan = &arguments.plan;
    let found = outcome.failures.len();
    for failure in &outcome.failures {
        println!("replace-storm: seed {}: {failure}", plan.seed);
    }
    let failed = if plan.is_canary { usize::from(found == 0) } else { found };
    if failed > 0 {
        println!("replace-storm: the files are left in {}", plan.dir.display());
    } else if arguments.is_scratch {
        // What cannot be removed is left.
        let _ = std::fs::remove_dir_all(&plan.dir);
    }
    let Outcome { tally, .. } = outcome;
    println!(
        "replace-storm: {:.0} s, {} kills, {} databases removed, {} renamed, {} put back; {} opened, {} batches \
         written, {} of them acknowledged on disk, {} processes told, {} closed; {} databases checked, {failed} failed",
        outcome.seconds,
        outcome.kills,
        outcome.removed,
        outcome.renamed,
        outcome.put_back,
        tally.opened,
        tally.written,
        tally.acknowledged,
        tally.told,
        tally.closed,
        outcome.judged,
    );
    println!("{} passed, {failed} failed", usize::from(failed == 0));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
