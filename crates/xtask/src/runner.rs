//! Runs the stages of `make test` and counts.
//!
//! Invariants: a failing stage does not stop the others; no stage outlives its limit or this
//! program (a guard process kills its process group); stdin is empty, so that nothing waits for a
//! terminal; the last line is `N passed, N failed`.
//!
//! Each stage has a temporary directory of its own (`$TMPDIR`). What it has left there is a failure, by name: a test removes
//! what it made. Then the directory is removed, so that a failed stage leaves nothing either. It lies in memory for some
//! stages ([`IN_MEMORY`]).
//!
//! Everything a stage prints goes to `target/test-logs/STAGE.log`; the end of it is shown only
//! when the stage fails. What made it fail is said once more, in a few words, right before the last line: who keeps only the
//! end of this program's output still reads why.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::lanes;
use crate::stages::{Kind, Stage, IN_MEMORY, STAGES, TOTAL_SECONDS_MAX};
use crate::totals::{failed_tests, why, Totals};

/// Lines of its log that a failing stage shows.
const TAIL_LINES: usize = 60;

/// Where the system keeps files in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// What must be free for stages to have their files in memory, in KiB: they use up to 3.4 GiB, compilers as much.
const MEMORY_LEAST_KIB: u64 = 10 << 20;

/// Exits when told `done`; kills the process group $1 when whoever started it closes the pipe or dies.
const GUARD: &str = r#"read -r word; [ "$word" = done ] || kill -s KILL -- "-$1""#;

/// Prints the table of stages.
pub(crate) fn list() -> ExitCode {
    for stage in STAGES {
        for command in stage.commands {
            println!("{:<12} {:>4} s  {}", stage.name, stage.seconds_max, command.join(" "));
        }
    }
    ExitCode::SUCCESS
}

/// Runs the stages with these names, all if there are none.
pub(crate) fn run(root: &Path, names: &[&str]) -> ExitCode {
    let known = |name: &&str| STAGES.iter().any(|stage| stage.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        eprintln!("xtask test: no stage `{unknown}`; `cargo xtask stages` lists them");
        return ExitCode::from(2);
    }
    let logs = logs(root);
    if let Err(error) = fs::create_dir_all(&logs) {
        eprintln!("xtask test: cannot create {}: {error}", logs.display());
        return ExitCode::from(3);
    }
    let deadline = Instant::now() + Duration::from_secs(TOTAL_SECONDS_MAX);
    let wanted: Vec<&Stage> =
        STAGES.iter().filter(|stage| names.is_empty() || names.contains(&stage.name)).collect();
    let mut totals = Totals::default();
    for (one, reason) in lanes::run(&wanted, |stage| run_stage(root, &logs, stage, deadline)) {
        totals.add(one);
        if let Some(reason) = reason {
            println!("{reason}");
        }
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    ExitCode::from(u8::from(totals.failed > 0))
}

/// Where the logs go: into the target directory in use.
fn logs(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("test-logs")
}

/// What a stage came to, and why it failed if it did.
fn run_stage(root: &Path, logs: &Path, stage: &Stage, deadline: Instant) -> (Totals, Option<String>) {
    let start = Instant::now();
    let path = logs.join(format!("{}.log", stage.name));
    let end = deadline.min(start + Duration::from_secs(stage.seconds_max));
    let outcome = Scratch::new(stage.name).and_then(|scratch| {
        run_commands(root, &path, stage, &scratch.path, end)?;
        scratch.check()
    });
    let log = fs::read(&path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let totals = count(stage.kind, &log, outcome.is_ok());
    let seconds = start.elapsed().as_secs_f64();
    let (passed, failed) = (totals.passed, totals.failed);
    let mut told = format!("{:<12} {seconds:>7.1} s  {passed} passed, {failed} failed\n", stage.name);
    let mut reason = None;
    if totals.failed > 0 {
        let message = outcome.err().unwrap_or_default();
        told += &format!("{}: {message}\n", stage.name);
        told += &end_of(&log, &path);
        reason = Some(format!("{}: {}", stage.name, why(&log).unwrap_or(message)));
    }
    // At once, so that the lines of two stages do not mix.
    print!("{told}");
    let _ = io::stdout().flush();
    (totals, reason)
}

/// A stage that failed counts at least one failure, also when no test ran.
fn count(kind: Kind, log: &str, good: bool) -> Totals {
    let mut totals = match kind {
        Kind::Check => Totals { passed: u64::from(good), failed: 0 },
        Kind::Tests => Totals::of_log(log),
    };
    let nothing_ran = kind == Kind::Tests && totals == Totals::default();
    if (!good && totals.failed == 0) || nothing_ran {
        totals.failed = 1;
    }
    totals
}

/// What a failing stage shows of its log.
fn end_of(log: &str, path: &Path) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let failed: String = failed_tests(log).into_iter().map(|line| format!("    {line}\n")).collect();
    let last: String = lines[first..].iter().map(|line| format!("{line}\n")).collect();
    format!("{failed}---- the last {} lines of {}\n{last}----\n", lines.len() - first, path.display())
}

/// The temporary directory of a stage, removed with this value. Its path is short, since sockets lie in it.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(stage: &str) -> Result<Scratch, String> {
        let base = memory().filter(|_| IN_MEMORY.contains(&stage)).unwrap_or_else(std::env::temp_dir);
        let path = base.join(format!("xtask-{}-{stage}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Scratch { path })
    }

    /// That nothing lies there.
    fn check(&self) -> Result<(), String> {
        let entries = fs::read_dir(&self.path).map_err(|error| format!("has lost its $TMPDIR: {error}"))?;
        let left = entries.flatten().filter(|entry| !has_come_late(&entry.path()));
        let mut left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        left.sort();
        match &left[..] {
            [] => Ok(()),
            _ => Err(format!("has left in its $TMPDIR what a test of it has made: {}", left.join(" "))),
        }
    }
}

/// A directory whose files lie in memory, if there is one, and enough memory.
fn memory() -> Option<PathBuf> {
    let kib = |text: &str| text.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    let said = fs::read_to_string("/proc/meminfo").ok()?;
    let free = kib(said.lines().find(|line| line.starts_with("MemAvailable:"))?)?;
    let mut df = Command::new("df");
    let said = df.args(["--output=avail", "-k", "--type=tmpfs", SHARED_MEMORY]).output().ok()?;
    let room = kib(&String::from_utf8_lossy(&said.stdout))?;
    (free.min(room) >= MEMORY_LEAST_KIB).then(|| SHARED_MEMORY.into())
}

/// Whether a directory holds nothing but files of a log: its test has removed it, while a thread of the database that the
/// test still had open made one. An example in a document has its database until its end, behind the removal.
fn has_come_late(path: &Path) -> bool {
    let is_of_log = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().contains("-wal.");
    path.is_dir() && fs::read_dir(path).is_ok_and(|entries| entries.flatten().all(|entry| is_of_log(&entry)))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies where temporary files lie.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn run_commands(root: &Path, log: &Path, stage: &Stage, scratch: &Path, end: Instant) -> Result<(), String> {
    let file = File::create(log).map_err(|error| format!("cannot create its log: {error}"))?;
    for command in stage.commands {
        run_command(root, &file, stage, scratch, command, end)
            .map_err(|message| format!("`{}` {message}", command.join(" ")))?;
    }
    Ok(())
}

fn run_command(
    root: &Path,
    log: &File,
    stage: &Stage,
    scratch: &Path,
    command: &[&str],
    end: Instant,
) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("has no program")?;
    let output = || log.try_clone().map_err(|error| format!("has no log: {error}"));
    let mut child = Command::new(program)
        .args(arguments)
        .envs(stage.variables.iter().copied())
        .env("CARGO_TERM_COLOR", "never")
        .env("TERM", "dumb")
        .env("TMPDIR", scratch)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    let guard = Guard::start(&child);
    let status = match guard {
        Ok(guard) => wait(&mut child, guard, end),
        Err(error) => {
            let _ = child.kill();
            Err(error)
        }
    };
    match status.map_err(|error| format!("cannot be watched: {error}"))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("ended with {status}")),
        None => Err(format!(
            "was killed at its time limit ({} s for the stage, {TOTAL_SECONDS_MAX} s for all)",
            stage.seconds_max
        )),
    }
}

/// Waits until `end`; none if the command had to be killed.
fn wait(child: &mut Child, guard: Guard, end: Instant) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_millis(2);
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            guard.dismiss();
            return Ok(Some(status));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    guard.kill();
    // Ends the wait even where the guard could not start its `kill`.
    let _ = child.kill();
    child.wait()?;
    Ok(None)
}

/// A shell that kills a process group unless it is dismissed.
struct Guard {
    shell: Child,
}

impl Guard {
    fn start(child: &Child) -> io::Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", GUARD, "guard", &child.id().to_string()])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    fn dismiss(mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // A guard that is gone needs no word.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }

    fn kill(mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::Place;

    fn stage(kind: Kind, commands: &'static [&'static [&'static str]]) -> Stage {
        Stage {
            name: "sample",
            kind,
            place: Place::Beside,
            seconds_max: 1,
            variables: &[("SAMPLE", "7")],
            commands,
        }
    }

    fn outcome(stage: &Stage, name: &str) -> (Result<(), String>, String) {
        let log = std::env::temp_dir().join(format!("xtask-{}-{name}.log", std::process::id()));
        let end = Instant::now() + Duration::from_secs(stage.seconds_max);
        let outcome = Scratch::new(name).and_then(|scratch| {
            run_commands(Path::new("/"), &log, stage, &scratch.path, end)?;
            scratch.check()
        });
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        (outcome, text)
    }

    #[test]
    fn a_stage_that_hangs_is_killed_with_its_children() {
        let hangs = stage(Kind::Check, &[&["sh", "-c", "sleep 1000 & echo $! ; wait"]]);
        let start = Instant::now();
        let (outcome, log) = outcome(&hangs, "hangs");
        assert!(outcome.unwrap_err().contains("time limit"));
        assert!(start.elapsed() < Duration::from_secs(20));
        let sleeper = format!("/proc/{}/stat", log.trim());
        // A killed process dies when it is scheduled next, which a busy machine may put off; it is then
        // a zombie until init reaps it.
        let gone = |state: &str| state.is_empty() || state.contains(") Z ") || state.contains(") X ");
        while !gone(&fs::read_to_string(&sleeper).unwrap_or_default()) {
            assert!(start.elapsed() < Duration::from_secs(60), "the child of a killed stage lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_test_leaves_is_found_but_for_a_log_that_came_late() {
        assert_eq!(
            outcome(
                &stage(Kind::Check, &[&["sh", "-c", "mkdir $TMPDIR/a && touch $TMPDIR/a/t.db-wal.0"]]),
                "late"
            )
            .0,
            Ok(())
        );
        let left =
            outcome(&stage(Kind::Check, &[&["sh", "-c", "mkdir $TMPDIR/a && touch $TMPDIR/a/t.db"]]), "left")
                .0;
        assert!(left.unwrap_err().contains("$TMPDIR"));
    }

    #[test]
    fn commands_run_until_one_fails() {
        let fails = stage(Kind::Check, &[&["sh", "-c", "echo a$SAMPLE"], &["false"], &["echo", "b"]]);
        let (outcome, log) = outcome(&fails, "fails");
        assert!(outcome.unwrap_err().contains("exit status: 1"));
        assert_eq!(log, "a7\n");
    }

    #[test]
    fn what_is_left_in_the_temporary_directory_is_a_failure() {
        let tidy = stage(Kind::Check, &[&["sh", "-c", "file=$(mktemp) && echo $TMPDIR && rm $file"]]);
        let (tidied, log) = outcome(&tidy, "tidy");
        assert_eq!(tidied, Ok(()));
        assert!(log.contains("xtask-") && !Path::new(log.trim()).exists(), "{log}");
        let leaves = stage(
            Kind::Check,
            &[&["sh", "-c", "mkdir $TMPDIR/some && touch $TMPDIR/some/file $TMPDIR/other; pwd"]],
        );
        let (left, _) = outcome(&leaves, "leaves");
        assert!(left.unwrap_err().ends_with(": other some"));
        assert!(!std::env::temp_dir().join(format!("xtask-{}-leaves", std::process::id())).exists());
    }

    #[test]
    fn files_lie_in_memory_for_stages_that_say_so_and_where_there_is_some() {
        let base = |stage: &str| Scratch::new(stage).expect("a directory").path.parent().map(Path::to_owned);
        assert_eq!(base(IN_MEMORY[0]), Some(memory().unwrap_or_else(std::env::temp_dir)));
        assert_eq!(base("elsewhere"), Some(std::env::temp_dir()));
        assert!(IN_MEMORY.iter().all(|name| STAGES.iter().any(|stage| stage.name == *name)));
    }

    #[test]
    fn a_stage_reads_nothing_from_the_terminal() {
        let (outcome, log) = outcome(&stage(Kind::Check, &[&["cat"]]), "stdin");
        assert_eq!((outcome, log.as_str()), (Ok(()), ""));
    }

    #[test]
    fn a_failure_is_counted_also_when_no_test_ran() {
        assert_eq!(count(Kind::Tests, "error: no", false), Totals { passed: 0, failed: 1 });
        assert_eq!(count(Kind::Tests, "", true), Totals { passed: 0, failed: 1 });
        assert_eq!(count(Kind::Check, "", true), Totals { passed: 1, failed: 0 });
        let log = "test result: ok. 3 passed; 0 failed; 0 ignored";
        assert_eq!(count(Kind::Tests, log, false), Totals { passed: 3, failed: 1 });
    }

    #[test]
    fn the_limits_of_all_stages_are_bounded() {
        assert!(STAGES.iter().all(|stage| stage.seconds_max > 0 && stage.seconds_max <= TOTAL_SECONDS_MAX));
    }
}
