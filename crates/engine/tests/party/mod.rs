//! Other processes for tests: the test program runs itself again, as a session that takes steps.
//!
//! Each test file that uses this has a test `party_process` that plays the role named in the environment,
//! and does nothing if there is none. A party that serves steps ends when its input does.

// Each test file is a crate of its own and uses some of this.
#![allow(dead_code)]

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::script::serve_steps;
use perilune_store::Store;

const ROLE: &str = "PERILUNE_TEST_ROLE";
const PATH: &str = "PERILUNE_TEST_PATH";
/// What begins an answer; see `perilune_harness::script`.
const ANSWER: &str = "=> ";
/// An answer that has not come by then never comes.
const PATIENCE: Duration = Duration::from_secs(40);

/// Address space that 200 processes can have at once.
pub(crate) fn options() -> OpenOptions {
    OpenOptions { max_size: 1 << 30, ..OpenOptions::default() }
}

/// A directory of a test's own, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("perilune-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// The path of the test's database.
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("test.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// The role that this process is to play, and the database; none in the test itself.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((env::var(ROLE).ok()?, env::var_os(PATH)?.into()))
}

/// A session of the database at `path`.
pub(crate) fn session(path: &Path) -> Session {
    Database::open(path, &options()).unwrap().session().unwrap()
}

/// Plays the role `steps`.
pub(crate) fn serve(path: &Path) {
    serve_steps(session(path), io::stdin().lock(), io::stdout()).unwrap();
}

/// Says something to the test.
pub(crate) fn say(text: &str) {
    println!("{ANSWER}{text}");
    io::stdout().flush().unwrap();
}

/// This program in a role. `wrapper`: a program and arguments that are to run it.
pub(crate) fn command(wrapper: &[&str], role: &str, path: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut command = match wrapper.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.args(["--exact", "party_process", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PATH, path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A process in a role; killed when dropped.
pub(crate) struct Party {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Party {
    /// A process that serves steps on the database at `path`.
    pub(crate) fn new(path: &Path) -> Party {
        Party::start(&mut command(&[], "steps", path))
    }

    pub(crate) fn start(command: &mut Command) -> Party {
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (said, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once(ANSWER) {
                    // Nobody may be listening any more.
                    let _ = said.send(answer.to_owned());
                }
            }
        });
        Party { child, input, answers }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self, step: &str) {
        writeln!(self.input.as_mut().unwrap(), "{step}").unwrap();
    }

    /// The next answer.
    pub(crate) fn answer(&self) -> String {
        self.answers.recv_timeout(PATIENCE).expect("the party answers")
    }

    /// Whether an answer has come that nobody has taken.
    pub(crate) fn has_answered(&self) -> Option<String> {
        self.answers.try_recv().ok()
    }

    /// Runs a step and gives its answer.
    pub(crate) fn ask(&mut self, step: &str) -> String {
        self.begin(step);
        self.answer()
    }

    /// Kills the process and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process, and returns when it is stopped.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
        let stat = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::yield_now();
        }
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Lets the process end by itself.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
