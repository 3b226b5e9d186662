//! Random work of many processes on one database, while one after the other is stopped, anywhere, and goes on
//! later.
//!
//! A process that is stopped in the midst of a change holds pages. A process that needs them waits, up to its
//! limit, and then gets an error that names the stopped one; others are not concerned. Workers note when each
//! operation began, in memory that the storm sees: one that takes longer than its limit, and some time more for a
//! busy machine, is a failure, as is an answer that is neither a result nor names a process. At the end all go on,
//! and the accounts and the structure are checked.
//!
//! The storm counts at which stops a page was held, which is how much of its time a process has pages latched, and
//! how many operations ended at their limit. In the second half of the time, a process that waits for a stopped one
//! makes it go on until its operation is complete (it gets SIGCONT, and stops itself again), so that none should end at its limit.
//!
//! `stop_storm [--seconds N] [--processes N] [--seed N] [--dir DIR] [--canary yes]`; see `make stop-storm`. The
//! canary's workers wait without a limit and let nobody go on, and the storm must find that.

#![deny(unsafe_code)]

mod progress;
#[path = "../kill_storm/signal.rs"]
mod signal;
mod storm;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use storm::{Outcome, Plan};

struct Arguments {
    plan: Plan,
    /// The files are the storm's own, to be removed if all went well.
    is_scratch: bool,
    worker: Option<usize>,
}

fn arguments() -> Result<Arguments, String> {
    let mut plan = Plan {
        dir: PathBuf::new(),
        processes: 8,
        time: Duration::from_secs(60),
        seed: perilune_harness::seed(),
        canary: false,
        wakes: false,
    };
    let (mut worker, mut dir) = (None, None);
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let operand = given.next().ok_or(format!("{argument} needs an operand"))?;
        let number =
            || operand.parse::<u64>().map_err(|_| format!("{argument} takes a number, not `{operand}`"));
        match argument.as_str() {
            "--seconds" => plan.time = Duration::from_secs(number()?),
            "--processes" => plan.processes = number()?.clamp(2, 1_000) as usize,
            "--seed" => plan.seed = number()?,
            "--dir" => dir = Some(PathBuf::from(operand)),
            "--canary" => plan.canary = operand == "yes",
            // How the storm calls itself.
            "--wake" => plan.wakes = operand == "yes",
            "--worker" => worker = Some(number()? as usize),
            _ => {
                return Err(format!(
                    "unknown option {argument}; there are --seconds, --processes, --seed, --dir, --canary"
                ))
            }
        }
    }
    let is_scratch = dir.is_none();
    let scratch = || std::env::temp_dir().join(format!("perilune-stop-storm-{}", std::process::id()));
    plan.dir = dir.unwrap_or_else(scratch);
    Ok(Arguments { plan, is_scratch, worker })
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("stop_storm: {problem}");
            return ExitCode::from(2);
        }
    };
    let plan = &arguments.plan;
    if let Some(number) = arguments.worker {
        return match worker::run(plan, number) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("stop_storm: worker {number}: {problem}");
                ExitCode::FAILURE
            }
        };
    }
    println!("stop-storm: {} processes, seed {}, in {}", plan.processes, plan.seed, plan.dir.display());
    let halves: &[bool] = if plan.canary { &[false] } else { &[false, true] };
    let mut are_well = true;
    for wakes in halves {
        match half(plan, *wakes, halves.len() as u32) {
            Ok(is_well) => are_well &= is_well,
            Err(problem) => {
                eprintln!("stop_storm: {problem}");
                return ExitCode::from(2);
            }
        }
    }
    if are_well && arguments.is_scratch {
        // What cannot be removed is left.
        let _ = std::fs::remove_dir_all(&plan.dir);
    }
    println!("{} passed, {} failed", usize::from(are_well), usize::from(!are_well));
    if are_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One of `halves` parts of the storm, in a directory of its own; whether it went well.
fn half(plan: &Plan, wakes: bool, halves: u32) -> Result<bool, String> {
    let dir = plan.dir.join(if wakes { "woken" } else { "stopped" });
    std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let plan = Plan { dir, time: plan.time / halves, wakes, ..plan.clone() };
    storm::run(&plan).map(|outcome| summary(&plan, &outcome))
}

/// Says what was done and found; whether it went well.
fn summary(plan: &Plan, outcome: &Outcome) -> bool {
    let failed = outcome.failures.len();
    for failure in outcome.failures.iter().take(20) {
        println!("stop-storm: seed {}: {failure}", plan.seed);
    }
    if failed > 0 && !plan.canary {
        println!("stop-storm: the files are left in {}", plan.dir.display());
    }
    let share = 1_000.0 * outcome.quiet_caught as f64 / outcome.quiet_stops.max(1) as f64;
    let kind = if plan.wakes { "let go on by who waits" } else { "waited for" };
    println!(
        "stop-storm: {kind}: {:.0} s, {} stops, {} of them with a page held ({share:.1} of 1,000 where all work), {} operations, {} \
         ended at their limit, the longest {} ms beyond it, {failed} failed",
        outcome.seconds, outcome.stops, outcome.caught, outcome.operations, outcome.refusals, outcome.latest_ms
    );
    // The canary has to be found, by whoever was stopped with a page held.
    if plan.canary {
        failed > 0
    } else {
        failed == 0 && outcome.operations > 0
    }
}
