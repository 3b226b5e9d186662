//! `xtask`: the checks of the project that Cargo does not know.
//!
//! `xtask tidy` looks at the sources (rules: `tidy/`, tables: `house.rs`). `xtask test` runs every
//! stage of `make test` (table: `stages.rs`) and ends in one line of totals.
//!
//! Invariants: no external dependency, so that it builds in seconds on a fresh machine; a stage
//! cannot hang; exit code 0 good, 1 something is wrong with the project, 2 wrong use,
//! 3 environment.

#![forbid(unsafe_code)]

mod arrows;
mod finding;
mod house;
mod lanes;
mod lexer;
mod runner;
#[cfg(test)]
mod samples;
mod sources;
mod stages;
mod storeys;
mod tidy;
mod totals;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  tidy                   check names, sizes, import order, unsafe code, links
  tidy --lower-ratchet   also rewrite crates/xtask/ratchet.txt with the smaller sizes of today
  house                  print crates, what each may use, modules, arrows, circles
  house --write          also write the table of who may use whom into ARCHITECTURE.md
  test                   run every stage of make test
  test STAGE...          run the named stages only
  stages                 list the stages
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    match words.as_slice() {
        ["tidy"] => tidy::run(&root, false),
        ["tidy", "--lower-ratchet"] => tidy::run(&root, true),
        ["house"] => storeys::run(&root, false),
        ["house", "--write"] => storeys::run(&root, true),
        ["test", names @ ..] => runner::run(&root, names),
        ["stages"] => runner::list(),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The root of the workspace: the nearest directory from here upwards that holds this crate.
fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let holds_xtask = |dir: &&Path| dir.join("crates/xtask/Cargo.toml").is_file();
    let root = here.ancestors().find(holds_xtask).map(Path::to_path_buf);
    root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}
