//! A kill after every instruction of every operation leaves the old or the new state, and trees that
//! verify.
//!
//! For each case a forked child performs one operation on shared files, one instruction at a time.
//! After each the parent looks at the files through a private mapping, as the processes that survive
//! would if the child had been killed there: it repairs the child's session, verifies both trees and
//! compares all content with what it was and what it is to become. Then it forgets its own view, and
//! the child goes on. After an instruction that wrote nothing shared there is nothing new to be seen, and
//! the look is spared (`stores`).
//!
//! `kill_step [--list] [--quick] [--every N] [--case TEXT] [--part K/N] [--canary]`; see `make kill-step`.
//! Quick: one instruction in nineteen, and not the cases of [`LONG`]. Part 2/3: every third case from the
//! second on, so that several of these run beside each other. With `--canary` success means that failures were
//! found, in a build with a bug.

#![deny(unsafe_code)]

mod cases;
mod commits;
mod graphs;
mod logs;
mod openings;
mod records;
mod repairs;
mod run_case;
mod setup;
mod stores;
mod survivor;
mod tracee;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use perilune_engine::instrument;
use run_case::{Pace, Report};

/// Instructions between two kills of a quick run.
const QUICK: u64 = 61;

/// Cases that a quick run leaves out, by how their names begin: long ones, of which there is a shorter case of the
/// same kind.
const LONG: &[&str] = &[
    "repair-of-repair-of-",
    "repair-of-",
    "compact-replace",
    "volatile-split",
    "volatile-merge",
    "leaf-split-right-edge",
    "leaf-split-of-few",
    "root-split",
    "inner-split",
    "merge-inner",
    "lower-root",
    "first-touch-twice",
    "first-touch-split",
    "first-touch-merge",
    "first-touch-lower-root",
    "long-splits-leaf",
    "reuse-freed-page",
    "growth-by-split",
    "run-",
    "one-shot-overflow",
    "transaction-splits",
    "transaction-first-touch",
    "transaction-merges",
    "transaction-long-record",
    "transaction-exclusive",
    "remove-prefix-first-touch",
    "remove-everything",
    "lock-waits",
    "create",
    "attach-",
    "checkpoint",
    "snapshot",
    "flush-",
    "make-room",
    "level-lowered",
    "log-growth",
    "log-close",
    "log-recover",
    "backup-",
    "graph-edge-deleted",
    "graph-vertex-",
];
/// Exceptions: in a quick run all the same.
const BUT: &[&str] = &["repair-of-set-new", "lower-root-to-leaf"];

struct Arguments {
    pace: Pace,
    only: Option<String>,
    /// Of so many parts the one with this number, from 0 on.
    part: (usize, usize),
    list: bool,
    quick: bool,
    canary: bool,
}

impl Arguments {
    fn want(&self, name: &str) -> bool {
        match &self.only {
            Some(text) => name.contains(text),
            None => {
                let is_long = LONG.iter().any(|long| name.starts_with(long)) && !BUT.contains(&name);
                !(self.quick && is_long)
            }
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let seed = perilune_harness::seed();
    let mut arguments = Arguments {
        pace: Pace { every: 1, seed },
        only: None,
        part: (0, 1),
        list: false,
        quick: false,
        canary: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut operand = || given.next().ok_or(format!("{argument} needs an operand"));
        match argument.as_str() {
            "--list" => arguments.list = true,
            "--canary" => arguments.canary = true,
            "--quick" => {
                arguments.quick = true;
                arguments.pace.every = QUICK;
            }
            "--every" => {
                let number = operand()?;
                arguments.pace.every = number.parse().ok().filter(|every| *every > 0).ok_or_else(|| {
                    format!("--every takes a number of instructions from 1 on, not `{number}`")
                })?;
            }
            "--case" => arguments.only = Some(operand()?),
            "--part" => {
                arguments.part = part(&operand()?).ok_or("--part takes a number and how many parts: 1/2")?;
            }
            _ => {
                return Err(format!(
                "unknown option {argument}; there are --list, --quick, --every N, --case TEXT, --part K/N, \
                     --canary"
            ))
            }
        }
    }
    if arguments.canary {
        instrument::plant(instrument::Bug::EarlyLength);
    }
    Ok(arguments)
}

/// Reads "2/3" as (1, 3).
fn part(text: &str) -> Option<(usize, usize)> {
    let (number, parts) = text.split_once('/')?;
    let (number, parts) = (number.parse::<usize>().ok()?, parts.parse::<usize>().ok()?);
    (1..=parts).contains(&number).then(|| (number - 1, parts))
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("kill_step: {problem}");
            return ExitCode::from(2);
        }
    };
    if arguments.list {
        cases::all()
            .map(|case| case.name.to_owned())
            .chain(repairs::names())
            .chain(openings::NAMES.iter().chain(logs::NAMES).map(|name| (*name).to_owned()))
            .for_each(|name| {
                println!("{name}");
            });
        return ExitCode::SUCCESS;
    }
    tracee::stay_on_one_processor();
    std::panic::set_hook(Box::new(|_| {}));
    println!(
        "kill-step: a kill after every {} instruction(s), seed {}",
        arguments.pace.every, arguments.pace.seed
    );
    let mut reports = Vec::new();
    let mut number = 0;
    let mut is_wanted = |name: &str| {
        let wanted = arguments.want(name);
        number += usize::from(wanted);
        wanted && number % arguments.part.1 == (arguments.part.0 + 1) % arguments.part.1
    };
    for case in cases::all().filter(|case| is_wanted(case.name)) {
        reports.push(timed(case.name, || run_case::run(case, &arguments.pace)));
    }
    for name in repairs::names().filter(|name| is_wanted(name)) {
        reports.push(timed(&name, || repairs::run(&name, &arguments.pace)));
    }
    for name in openings::NAMES.iter().filter(|name| is_wanted(name)) {
        reports.push(timed(name, || openings::run(name, &arguments.pace)));
    }
    for name in logs::NAMES.iter().filter(|name| is_wanted(name)) {
        reports.push(timed(name, || logs::run(name, &arguments.pace)));
    }
    summary(&reports, arguments.canary)
}

/// Runs one case and prints its line.
fn timed(name: &str, run: impl FnOnce() -> Report) -> Report {
    let terminal = std::io::stdout().is_terminal();
    if terminal {
        print!("{name:<34} ...");
        let _ = std::io::stdout().flush();
    }
    let begin = Instant::now();
    let report = run();
    if terminal {
        print!("\r");
    }
    println!(
        "{name:<34} {:>9} instructions {:>9} kill points {:>7} looks {:>6} failed {:>7.1} s",
        report.instructions,
        report.points,
        report.looks,
        report.failed,
        begin.elapsed().as_secs_f64()
    );
    report.problems.iter().for_each(|problem| println!("    {problem}"));
    report
}

fn summary(reports: &[Report], canary: bool) -> ExitCode {
    let points: u64 = reports.iter().map(|report| report.points).sum();
    let failures: u64 = reports.iter().map(|report| report.failed).sum();
    let failed = reports.iter().filter(|report| report.failed > 0 || report.points == 0).count();
    let looks: u64 = reports.iter().map(|report| report.looks).sum();
    println!("kill-step: {} cases, {points} kill points ({looks} looks), {failures} failed", reports.len());
    if canary {
        println!("kill-step: the canary was {}", if failed > 0 { "found" } else { "missed" });
        return if failed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    println!("{} passed, {failed} failed", reports.len() - failed);
    if failed == 0 && !reports.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
