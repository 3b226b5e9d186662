//! The program, run in a directory of its own.

#![allow(dead_code, unreachable_pub)] // Each file of tests is a crate that uses some of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A new directory, in which the program runs and has its database; removed at the end.
pub struct Place {
    path: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("perilune-cli-test-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Place { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file there.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, text).expect("a file for the test");
        path
    }

    /// The program with `words`.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_perilune"));
        command.args(words);
        command
    }

    /// Another program in this directory; it sees no settings of whoever runs the tests.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).env("HOME", &self.path);
        for name in ["PERILUNE_DB", "XDG_DATA_HOME", "XDG_STATE_HOME", "LUA_PATH", "LUA_CPATH", "LUA_INIT"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs it to its end: exit code, standard output, standard error.
    pub fn run(&self, words: &[&str]) -> (i32, String, String) {
        told(self.command(words).output().expect("the program starts"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.path).is_ok() || !self.path.exists());
    }
}

/// A process that is killed with this, unless it has ended.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process told.
pub fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
