//! Random work of many processes on one database, while one after the other is stopped, anywhere, and goes on later.
//!
//! A process that is stopped in the midst of a change holds pages. Whoever needs them waits, up to his limit, and is told the
//! process; nobody else is concerned. Workers note when each operation began, in memory that the storm sees: one that
//! takes longer than its limit, and some time more for a busy machine, is a failure, as is an answer that is neither a
//! result nor names a process. At the end all go on, and the accounts and the structure are checked.
//!
//! The storm counts at which stops a page was held, which is how much of its time a process has pages latched.
//!
//! `stop_storm [--seconds N] [--processes N] [--seed N] [--dir DIR] [--canary yes]`; see `make stop-storm`. The canary's workers
//! wait without a limit, and the storm must find that.

#![deny(unsafe_code)]

mod board;
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
    let made = std::fs::create_dir_all(&plan.dir).map_err(|error| error.to_string());
    match made.and_then(|()| storm::run(plan)) {
        Ok(outcome) => summary(&arguments, &outcome),
        Err(problem) => {
            eprintln!("stop_storm: {problem}");
            ExitCode::from(2)
        }
    }
}

fn summary(arguments: &Arguments, outcome: &Outcome) -> ExitCode {
    let plan = &arguments.plan;
    let failed = outcome.failures.len();
    for failure in outcome.failures.iter().take(20) {
        println!("stop-storm: seed {}: {failure}", plan.seed);
    }
    if failed > 0 && !plan.canary {
        println!("stop-storm: the files are left in {}", plan.dir.display());
    } else if arguments.is_scratch {
        // What cannot be removed is left.
        let _ = std::fs::remove_dir_all(&plan.dir);
    }
    let share = 1_000.0 * outcome.quiet_caught as f64 / outcome.quiet_stops.max(1) as f64;
    println!(
        "stop-storm: {:.0} s, {} stops, {} of them with a page held ({share:.1} of 1,000 where all work), {} operations, {} ended at their \
         limit, the longest {} ms beyond it, {failed} failed",
        outcome.seconds, outcome.stops, outcome.caught, outcome.operations, outcome.refusals, outcome.latest_ms
    );
    // The canary has to be found, by whoever was stopped with a page held.
    let is_well = if plan.canary { failed > 0 } else { failed == 0 && outcome.operations > 0 };
    println!("{} passed, {} failed", usize::from(is_well), usize::from(!is_well));
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
