//! The `perilune` program: runs Lua, looks at databases, serves Redis's clients, measures 3n+1.
//!
//! Invariants
//! - Exit codes: 0 good, 1 found something wrong, 2 wrong use, 3 environment (`failure.rs`).
//! - Results go to the standard output, everything about how it went to the standard error.
//! - A file that is named in place of a command is a script, so that `#!/usr/bin/env perilune` works.

#![forbid(unsafe_code)]

mod failure;

mod arguments;
mod chart;
mod collatz;
mod dom;
mod exchange;
mod graph;
mod import;
mod inspect;
mod keep;
mod maintenance;
mod manual;
mod module_paths;
mod repl;
mod scratch;
mod script;
mod serve;
mod sql;
mod typed;
mod which_database;
mod workloads;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use signal_hook::consts::SIGXFSZ;

use crate::arguments::{Arguments, Benchmark, Command};
use crate::failure::Result;

/// Exit status of a process that lost its database file beneath it: environment.
const SIGBUS_STATUS: u8 = 3;

fn main() -> ExitCode {
    // Without it such an end is only a word shorter.
    let _ = perilune::install_sigbus(Some(SIGBUS_STATUS));
    // With it a file that may grow no more (`ulimit -f`) is an error like a full disk; without it, the end.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("perilune: {failure}");
            failure.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let db = arguments.db.as_deref();
    if let Some(path) = db {
        // The default database of this process and of those that it starts.
        env::set_var("PERILUNE_DB", path);
    }
    if arguments.read_only {
        if let Some(name) = arguments.command.as_ref().and_then(Command::writes) {
            return Err(failure::wrong_use(format!(
                "`{name}` writes: --read-only is for commands that read"
            )));
        }
        // For this process and those that it starts.
        env::set_var("PERILUNE_READ_ONLY", "1");
    }
    if let Some(code) = &arguments.execute {
        return match arguments.command {
            None => script::execute(code, &[]),
            Some(Command::Script(rest)) => script::execute(code, &rest),
            Some(_) => Err(failure::wrong_use("-e CODE takes arguments for the code, not a command")),
        };
    }
    match arguments.command {
        None | Some(Command::Repl) => repl::run(),
        Some(Command::Run { words }) => script::run_first(&words),
        Some(Command::Script(words)) => script::run_named(&words),
        Some(Command::Bench { what: Benchmark::Collatz(options) }) => collatz::run(&options, db),
        Some(Command::Bench { what: Benchmark::CollatzWorker { db, durability, id } }) => {
            collatz::work(&db, &durability, id)
        }
        Some(Command::Bench { what: Benchmark::Lua(options) }) => workloads::run(&options),
        Some(Command::Bench { what: Benchmark::LuaWorker { db } }) => workloads::work(&db),
        Some(Command::Check { path, json }) => {
            inspect::check(which_database::only(path.as_deref(), db)?, json)
        }
        Some(Command::Stat(options)) => inspect::stat(&options, db),
        Some(Command::Locks { path, json }) => {
            inspect::locks(which_database::only(path.as_deref(), db)?, json)
        }
        Some(Command::Processes { path, json }) => {
            inspect::processes(which_database::only(path.as_deref(), db)?, json)
        }
        Some(Command::Dump(options)) => exchange::dump(&options, db),
        Some(Command::Load(options)) => exchange::load(&options, db),
        Some(Command::Checkpoint { path, accept_lost_commits }) => {
            inspect::checkpoint(which_database::only(path.as_deref(), db)?, accept_lost_commits)
        }
        Some(Command::Keep { path }) => keep::keep(which_database::only(path.as_deref(), db)?),
        Some(Command::Backup(options)) => maintenance::backup(&options, db),
        Some(Command::Compact(options)) => maintenance::compact(&options, db),
        Some(Command::Salvage(options)) => maintenance::salvage(&options, db),
        Some(Command::Serve(options)) => serve::run(&options, db),
        Some(Command::Sql(options)) => sql::run(&options, db),
        Some(Command::ImportRdb(options)) => import::run(&options, db),
        Some(Command::Dom { what }) => dom::run(&what, db),
        Some(Command::Graph { what }) => graph::run(&what, db),
        Some(Command::Version) => inspect::version(),
        Some(Command::Completions { shell }) => manual::completions(&shell),
        Some(Command::Manual { directory }) => manual::write(&directory),
    }
}
