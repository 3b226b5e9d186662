//! Second processes for tests: the test binary runs itself again in a named role.
//!
//! Each test file that uses this has a test `helper_process` that plays the role named in the
//! environment, and returns at once if there is none. A role says lines starting with `@` on its
//! standard output and lives until its standard input ends; an alarm ends it if a test hangs.

// Each test file is its own crate and uses some of this.
#![allow(dead_code, unreachable_pub)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ROLE: &str = "PERILUNE_SHM_TEST_ROLE";
const PATH: &str = "PERILUNE_SHM_TEST_PATH";
const LIFETIME_S: libc::c_uint = 60;

/// A file that is removed when dropped.
pub struct ScratchFile {
    pub path: PathBuf,
}

impl ScratchFile {
    /// An empty file in `directory`.
    pub fn new(directory: &Path) -> ScratchFile {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("perilune-shm-{}-{number}", std::process::id());
        let path = directory.join(name);
        File::create(&path).unwrap();
        ScratchFile { path }
    }

    /// A file of `len` zero bytes on the file system of the build.
    pub fn of_len(len: u64) -> ScratchFile {
        let scratch = ScratchFile::new(Path::new(env!("CARGO_TARGET_TMPDIR")));
        scratch.open().set_len(len).unwrap();
        scratch
    }

    /// A new open of the file, for reading and writing.
    pub fn open(&self) -> File {
        let options = OpenOptions::new().read(true).write(true).clone();
        options.open(&self.path).unwrap()
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The directories to test in: the disk of the build, and tmpfs.
pub fn directories() -> [&'static Path; 2] {
    [Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new("/dev/shm")]
}

/// A process of this test binary in a role.
pub struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Helper {
    pub fn start(role: &str, path: &Path) -> Helper {
        let mut child = command(role, path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Helper { input: child.stdin.take(), output: BufReader::new(child.stdout.take().unwrap()), child }
    }

    /// The rest of the next line the role says, which must start with `word`.
    pub fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.output.read_line(&mut line).unwrap();
            assert_ne!(count, 0, "the helper ended before it said {word}");
            // The harness prints its own text before ours, on the same line.
            if let Some((_, said)) = line.trim_end().split_once('@') {
                let rest = said.strip_prefix(word);
                return rest.expect("the helper said another word").trim().to_owned();
            }
        }
    }

    /// SIGKILL, without reaping: the process stays as a zombie.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Ends the input of the role and of all it has forked, and waits until the last has ended.
    pub fn finish(mut self) -> ExitStatus {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap()
    }
}

/// This test binary in a role.
pub fn command(role: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "helper_process", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PATH, path);
    command
}

/// In a helper process: its role and file.
pub fn role() -> Option<(String, PathBuf)> {
    let role = std::env::var(ROLE).ok()?;
    limit_lifetime();
    Some((role, std::env::var_os(PATH)?.into()))
}

pub fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "@{line}").unwrap();
    output.flush().unwrap();
}

pub fn wait_for_end_of_input() {
    let mut byte = [0_u8];
    // SAFETY: `byte` is writable for its length. Not through std, whose lock a fork may copy.
    while unsafe { libc::read(0, byte.as_mut_ptr().cast(), 1) } > 0 {}
}

fn limit_lifetime() {
    // SAFETY: takes no pointer; nobody in the helper handles SIGALRM, which ends it.
    unsafe { libc::alarm(LIFETIME_S) };
}

/// Forks a child that runs `body` and exits with 0 if it is true.
pub fn fork(body: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child runs `body` alone and leaves by `_exit`; glibc makes allocation usable in
    // it, and the bodies take no lock another thread of the test could have held.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        limit_lifetime();
        let status = if body() { 0 } else { 1 };
        // SAFETY: ends the process without running the parent's exit handlers.
        unsafe { libc::_exit(status) };
    }
    pid
}

/// Waits for a forked child: whether its body was true.
pub fn succeeded(pid: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: `status` is writable; `pid` is a child nobody else waits for.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid, "waitpid failed");
    status == 0
}

/// Asks until `condition` holds, at most `limit`.
pub fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
