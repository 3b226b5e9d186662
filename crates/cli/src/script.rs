//! `run`, `-e`, and a script named in place of a command.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use perilune_luahost::Host;

use crate::failure::{wrong_use, Result};

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
        Some(word) if !Path::new(word).is_file() => Err(wrong_use(format!(
            "`{}` is neither a command nor a file; `perilune --help` lists the commands",
            word.to_string_lossy()
        ))),
        _ => run_first(words),
    }
}

/// The path of this program, for scripts that start others.
pub(crate) fn program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| PathBuf::from("perilune"))
}
