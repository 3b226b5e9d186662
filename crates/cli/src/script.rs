//! Runs Lua for `run FILE`, `-e CODE`, and `perilune FILE`; a word that is neither a file nor a command is answered
//! with the command that it resembles.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use perilune::Database;
use perilune_luahost::Host;

use crate::arguments::Arguments;
use crate::failure::{wrong_use, Failure, Kind, Result};

/// Runs the script `file`, `-` being the standard input.
pub(crate) fn run(file: &Path, arguments: &[OsString]) -> Result<()> {
    let host = Host::new()?;
    host.set_arguments(&program(), file, arguments)?;
    host.run_file(file, arguments)?;
    Ok(())
}

/// Runs `code` with `arguments` as its `...`.
pub(crate) fn execute(code: &str, arguments: &[OsString]) -> Result<()> {
    let host = Host::new()?;
    host.set_arguments(&program(), Path::new("-e"), arguments)?;
    host.run_code(code, "=(command line)", arguments)?;
    Ok(())
}

/// Runs the first word as a script with the others as its arguments.
pub(crate) fn run_first(words: &[OsString]) -> Result<()> {
    let (file, arguments) = words.split_first().ok_or_else(|| wrong_use("run needs a script"))?;
    run(Path::new(file), arguments)
}

/// Runs `perilune FILE ...`; a word that is no file was meant as a command.
pub(crate) fn run_named(words: &[OsString]) -> Result<()> {
    match words.first() {
        Some(word) if !is_script(Path::new(word)) => Err(unknown(&word.to_string_lossy())),
        Some(word) => run_first(words).map_err(|failure| may_be_a_database(failure, Path::new(word))),
        None => run_first(words),
    }
}

/// Why a script failed; if it is no script but a database, how that is opened.
fn may_be_a_database(failure: Failure, file: &Path) -> Failure {
    let is_data = failure.kind == Kind::Found && file.is_file();
    if !is_data || Database::options().create(false).read_only(true).open(file).is_err() {
        return failure;
    }
    let file = file.display();
    wrong_use(format!("{file} is a database: `perilune --db {file}` opens a session with it"))
}

/// `-`, or what can be read: a file, but also a pipe, as in `perilune <(generate)`.
fn is_script(path: &Path) -> bool {
    path == Path::new("-") || (path.exists() && !path.is_dir())
}

fn unknown(word: &str) -> Failure {
    let program = Arguments::command();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let near = commands.map(|command| (distance(word, command.get_name()), command.get_name())).min();
    wrong_use(match near {
        Some((distance, name)) if distance <= 2 => format!(
            "`{word}` is neither a command nor a file; did you mean `{name}`? `perilune --help` lists the commands"
        ),
        _ => format!("`{word}` is neither a command nor a file; `perilune --help` lists the commands"),
    })
}

/// How many letters must be inserted, removed or replaced to make `a` of `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[row.len() - 1]
}

/// The path of this program, for scripts that start others.
pub(crate) fn program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| PathBuf::from("perilune"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_letters() {
        let found = [("check", "check"), ("chek", "check"), ("stats", "stat"), ("", "run"), ("äbc", "abd")];
        assert_eq!(found.map(|(a, b)| distance(a, b)), [0, 1, 1, 3, 2]);
    }
}
