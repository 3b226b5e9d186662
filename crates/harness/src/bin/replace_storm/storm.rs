//! The storm: starts workers, kills them, and takes the database away under them.
//!
//! Invariants
//! - Only the storm removes and renames. The database file goes last, so that what is removed are never the files of
//!   a database that has come meanwhile.
//! - A database whose directory was renamed keeps all of its files; of one whose file alone was renamed nothing is
//!   expected but that it is sound, or refused.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perilune_harness::bank::Random;

use crate::judge::{judge, Parked, Verdict};
use crate::worker;

/// How many databases wait to be judged at most.
const PARKED_MAX: usize = 8;
/// How long workers may take to end when told to, and databases to be let go.
const END: Duration = Duration::from_secs(30);

/// What is asked for.
pub(crate) struct Plan {
    pub(crate) dir: PathBuf,
    pub(crate) processes: usize,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    /// The engine has a bug that is to be found.
    pub(crate) is_canary: bool,
}

/// What the workers did.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) opened: usize,
    pub(crate) written: usize,
    pub(crate) acknowledged: usize,
    pub(crate) told: usize,
    pub(crate) closed: usize,
}

/// What has come of it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) kills: u64,
    pub(crate) removed: u64,
    pub(crate) renamed: u64,
    pub(crate) put_back: u64,
    pub(crate) judged: u64,
    pub(crate) tally: Tally,
    pub(crate) failures: Vec<String>,
}

struct Storm<'a> {
    plan: &'a Plan,
    workers: Vec<Child>,
    random: Random,
    parked: VecDeque<Parked>,
    names: u64,
    outcome: Outcome,
}

/// Runs the plan.
///
/// # Errors
/// What keeps the storm itself from going on.
pub(crate) fn run(plan: &Plan) -> io::Result<Outcome> {
    fs::create_dir_all(worker::database_directory(&plan.dir))?;
    let random = Random::new(plan.seed);
    let (workers, parked, outcome) = (Vec::new(), VecDeque::new(), Outcome::default());
    let mut storm = Storm { plan, workers, random, parked, names: 0, outcome };
    let begun = Instant::now();
    let raged = storm.rage(begun + plan.time).and_then(|()| storm.end());
    for child in &mut storm.workers {
        let _ = child.kill();
        let _ = child.wait();
    }
    raged?;
    storm.outcome.seconds = begun.elapsed().as_secs_f64();
    for number in 0..plan.processes {
        let done = fs::read(worker::tally_path(&plan.dir, number)).unwrap_or_default();
        let count = |what: u8| done.iter().filter(|done| **done == what).count();
        let tally = &mut storm.outcome.tally;
        tally.opened += count(b'o');
        tally.written += count(b'w');
        tally.acknowledged += count(b'a');
        tally.told += count(b'r');
        tally.closed += count(b'c');
    }
    Ok(storm.outcome)
}

impl Storm<'_> {
    fn rage(&mut self, end: Instant) -> io::Result<()> {
        for number in 0..self.plan.processes {
            let child = self.start(number)?;
            self.workers.push(child);
        }
        let mut next = Instant::now();
        while Instant::now() < end && self.outcome.failures.is_empty() {
            // NB: the pace of the storm, which waits for nobody.
            std::thread::sleep(Duration::from_millis(1));
            self.look()?;
            if Instant::now() < next {
                continue;
            }
            match self.random.below(10) {
                0..5 => self.kill()?,
                5 => self.remove(true)?,
                6 => self.remove(false)?,
                7 => self.rename_directory()?,
                8 => self.rename_file()?,
                _ => self.put_back()?,
            }
            if self.parked.len() > PARKED_MAX {
                self.judge_oldest()?;
            }
            next = Instant::now() + Duration::from_millis(2 + self.random.below(40));
        }
        Ok(())
    }

    /// Lets the workers end and judges all that is left.
    fn end(&mut self) -> io::Result<()> {
        fs::write(worker::end_path(&self.plan.dir), "")?;
        let begun = Instant::now();
        let mut workers = std::mem::take(&mut self.workers);
        while workers.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
            if begun.elapsed() > END {
                self.outcome.failures.push(format!("a worker has not ended after {END:?}"));
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        for (number, child) in workers.iter_mut().enumerate() {
            if let Ok(Some(status)) = child.try_wait() {
                self.note_end(number, status);
            }
        }
        self.workers = workers;
        let path = worker::database_path(&self.plan.dir);
        if path.exists() {
            self.parked.push_back(Parked { path, is_whole: true });
        }
        while !self.parked.is_empty() && begun.elapsed() < 2 * END {
            self.judge_oldest()?;
        }
        if let Some(parked) = self.parked.front() {
            self.outcome.failures.push(format!("{} is in use by nobody who lives", parked.path.display()));
        }
        Ok(())
    }

    fn start(&self, number: usize) -> io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args(["--worker", &number.to_string(), "--seed", &self.plan.seed.to_string(), "--dir"])
            .arg(&self.plan.dir)
            .args(["--canary", if self.plan.is_canary { "yes" } else { "no" }])
            .stdin(Stdio::null())
            .spawn()
    }

    /// Starts successors, and notes who has ended without being killed.
    fn look(&mut self) -> io::Result<()> {
        for number in 0..self.workers.len() {
            if let Some(status) = self.workers[number].try_wait()? {
                self.note_end(number, status);
                self.workers[number] = self.start(number)?;
            }
        }
        Ok(())
    }

    fn note_end(&mut self, number: usize, status: std::process::ExitStatus) {
        let is_killed = status.signal() == Some(9);
        if !is_killed && !status.success() {
            let told = fs::read_to_string(worker::problem_path(&self.plan.dir, number));
            let problem = told.unwrap_or_else(|_| format!("it ended with {status}"));
            self.outcome.failures.push(format!("worker {number}: {problem}"));
        }
    }

    fn kill(&mut self) -> io::Result<()> {
        let number = self.random.below(self.workers.len() as u64) as usize;
        self.outcome.kills += 1;
        self.workers[number].kill()
    }

    fn remove(&mut self, all: bool) -> io::Result<()> {
        let path = worker::database_path(&self.plan.dir);
        if !path.exists() {
            return Ok(());
        }
        if all {
            for entry in fs::read_dir(worker::database_directory(&self.plan.dir))? {
                let entry = entry?.path();
                let is_new = entry.to_str().is_some_and(|name| name.ends_with("-new"));
                if entry != path && !is_new {
                    gone(fs::remove_file(entry))?;
                }
            }
        }
        fs::remove_file(path)?;
        self.outcome.removed += 1;
        Ok(())
    }

    /// A name that none has.
    fn name(&mut self) -> PathBuf {
        self.names += 1;
        self.plan.dir.join(format!("parked-{}", self.names))
    }

    fn rename_directory(&mut self) -> io::Result<()> {
        let (here, there) = (worker::database_directory(&self.plan.dir), self.name());
        fs::rename(&here, &there)?;
        fs::create_dir(&here)?;
        self.park(&there, true);
        self.outcome.renamed += 1;
        Ok(())
    }

    fn park(&mut self, directory: &Path, is_whole: bool) {
        let path = directory.join("x.db");
        if path.exists() {
            self.parked.push_back(Parked { path, is_whole });
        } else {
            let _ = fs::remove_dir_all(directory);
        }
    }

    fn rename_file(&mut self) -> io::Result<()> {
        let (here, there) = (worker::database_path(&self.plan.dir), self.name());
        if here.exists() {
            fs::create_dir(&there)?;
            fs::rename(&here, there.join("x.db"))?;
            self.park(&there, false);
            self.outcome.renamed += 1;
        }
        Ok(())
    }

    /// Gives an older database its name again, with all of its files, and parks the one that has it.
    fn put_back(&mut self) -> io::Result<()> {
        let Some(at) = self.parked.iter().position(|parked| parked.is_whole) else { return Ok(()) };
        let Some(parked) = self.parked.remove(at) else { return Ok(()) };
        let (here, there) = (worker::database_directory(&self.plan.dir), self.name());
        fs::rename(&here, &there)?;
        fs::rename(parked.path.parent().unwrap_or(&here), &here)?;
        self.park(&there, true);
        self.outcome.put_back += 1;
        Ok(())
    }

    fn judge_oldest(&mut self) -> io::Result<()> {
        let Some(parked) = self.parked.pop_front() else { return Ok(()) };
        match judge(&self.plan.dir, self.plan.processes, &parked) {
            // Its users have a second to find out.
            Verdict::InUse => self.parked.push_back(parked),
            Verdict::Bad(problem) => self.outcome.failures.push(problem),
            Verdict::Good | Verdict::Refused => {
                self.outcome.judged += 1;
                if let Some(directory) = parked.path.parent() {
                    fs::remove_dir_all(directory)?;
                }
            }
        }
        Ok(())
    }
}

/// A file that is gone already is as good as one removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
