//! What the tests of the suite share: a directory of their own, and the program.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

/// A directory that goes with the test.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A fresh directory; `name` is no other test's.
pub(crate) fn scratch(name: &str) -> Scratch {
    let path = env::temp_dir().join(format!("bench-test-{name}-{}", std::process::id()));
    fs::create_dir(&path).unwrap();
    Scratch(path)
}

/// `perilune-bench` with arguments.
pub(crate) fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perilune-bench"));
    command.args(arguments);
    command
}

/// All that a program has printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
