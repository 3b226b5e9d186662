//! The storm: starts workers, kills and stops them at random, and watches that the survivors go on.
//!
//! Invariants
//! - A worker's successor starts when it is gone, so that each ledger has one writer.
//! - A worker hangs if it finishes nothing for [`HANG`], or [`HANG_ON_DISK`], in which nobody was stopped.
//!
//! Deliberately absent: any use of the database while workers live.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perilune_harness::bank::Random;

use crate::heartbeats::Heartbeats;
use crate::shared::Found;
use crate::worker::Work;
use crate::{shared, signal, worker};

/// Nobody may take longer for one operation, unless somebody is stopped.
const HANG: Duration = Duration::from_secs(1);
/// Nobody may take longer for one operation that waits for the disk: of a shared machine it may be the slowest part.
const HANG_ON_DISK: Duration = Duration::from_secs(5);
/// The storm's own pauses beyond this are the machine's: they count for nobody.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// How long workers may take to end when told to.
const END: Duration = Duration::from_secs(20);

/// What is asked for.
pub(crate) struct Plan {
    pub(crate) dir: PathBuf,
    pub(crate) processes: usize,
    pub(crate) time: Duration,
    pub(crate) work: Work,
    pub(crate) seed: u64,
}

/// What has come of it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    /// Times that all were killed at once and the whole database was checked.
    pub(crate) calms: u64,
    pub(crate) operations: u64,
    pub(crate) checkpoints: u64,
    /// How long opening took with all dead.
    pub(crate) reopened: Vec<Duration>,
    pub(crate) failures: Vec<String>,
}

struct Worker {
    child: Child,
    beats: u64,
    /// Without a beat for so long.
    idle: Duration,
    /// It has been killed and is not gone yet.
    is_dying: bool,
    lives: u64,
}

struct Storm<'a> {
    plan: &'a Plan,
    heartbeats: Heartbeats,
    workers: Vec<Worker>,
    random: Random,
    stopped: Option<(usize, Instant)>,
    outcome: Outcome,
}

/// Runs the plan.
pub(crate) fn run(plan: &Plan) -> io::Result<Outcome> {
    let heartbeats = Heartbeats::create(&shared::heartbeats_path(&plan.dir), plan.processes)?;
    let random = Random::new(plan.seed);
    let outcome = Outcome::default();
    let mut storm = Storm { plan, heartbeats, workers: Vec::new(), random, stopped: None, outcome };
    let begun = Instant::now();
    let result = storm.rage(begun);
    storm.kill_all();
    result?;
    for number in 0..plan.processes {
        storm.outcome.operations += storm.heartbeats.beats(number)?;
    }
    storm.outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(storm.outcome)
}

impl Storm<'_> {
    fn rage(&mut self, begun: Instant) -> io::Result<()> {
        let end = begun + self.plan.time;
        self.start_all()?;
        let (mut shown, mut last) = (begun, begun);
        let mut next_kill = begun + self.millis(2, 12);
        let mut next_stop = begun + self.millis(200, 2_000);
        let mut next_calm = begun + self.millis(2_000, 6_000);
        while self.outcome.failures.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
            let now = Instant::now();
            self.look(now - last)?;
            last = now;
            if now >= end {
                return self.end();
            }
            if now >= next_kill {
                self.kill_one()?;
                next_kill = now + self.millis(2, 12);
            }
            if now >= next_stop && self.stopped.is_none() {
                self.stop_one(now)?;
                next_stop = now + self.millis(500, 3_000);
            }
            self.resume(now)?;
            if now >= next_calm {
                self.calm()?;
                last = Instant::now();
                next_calm = last + self.millis(2_000, 8_000);
            }
            if now - shown > Duration::from_millis(500) {
                self.show(now - begun)?;
                shown = now;
            }
        }
        Ok(())
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.random.below(most - least))
    }

    fn start(&self, number: usize, life: u64) -> io::Result<Child> {
        let seed = self.plan.seed ^ (life << 16 | number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Command::new(std::env::current_exe()?)
            .arg("--worker")
            .arg(number.to_string())
            .arg("--seed")
            .arg(seed.to_string())
            .args(["--level", &self.plan.work.level.to_string()])
            .args(["--checkpoints", &self.plan.work.checkpoints.to_string()])
            .arg("--dir")
            .arg(&self.plan.dir)
            .stdin(Stdio::null())
            .spawn()
    }

    fn start_all(&mut self) -> io::Result<()> {
        let lives: Vec<u64> = self.workers.drain(..).map(|worker| worker.lives).collect();
        for number in 0..self.plan.processes {
            let lives = lives.get(number).map_or(0, |lives| lives + 1);
            let (child, beats) = (self.start(number, lives)?, self.heartbeats.beats(number)?);
            self.workers.push(Worker { child, beats, idle: Duration::ZERO, is_dying: false, lives });
        }
        Ok(())
    }

    /// Looks at every worker: is it gone, does its heart beat?
    fn look(&mut self, passed: Duration) -> io::Result<()> {
        let hang = if self.plan.work.waits_for_disk() { HANG_ON_DISK } else { HANG };
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            if let Some(status) = worker.child.try_wait()? {
                // Also one that was killed may have been in trouble before.
                let is_dying = worker.is_dying;
                let trouble = self.trouble(number);
                if trouble.is_ok() || !is_dying {
                    let why = trouble.unwrap_or_else(|_| format!("ended with {status}"));
                    self.outcome.failures.push(format!("worker {number}: {why}"));
                    return Ok(());
                }
                self.rise(number)?;
                continue;
            }
            let beats = self.heartbeats.beats(number)?;
            if beats != worker.beats || worker.is_dying || self.stopped.is_some() {
                worker.idle = Duration::ZERO;
            } else {
                worker.idle += passed.min(PAUSE_MAX);
            }
            worker.beats = beats;
            if worker.idle > hang {
                let pid = worker.child.id();
                self.outcome.failures.push(format!("worker {number} hangs:\n{}", self.stacks(pid)));
                return Ok(());
            }
        }
        Ok(())
    }

    /// What a worker said was wrong.
    fn trouble(&self, number: usize) -> io::Result<String> {
        std::fs::read_to_string(worker::trouble_path(&self.plan.dir, number))
    }

    /// Starts the successor of a worker that is gone.
    fn rise(&mut self, number: usize) -> io::Result<()> {
        let lives = self.workers[number].lives + 1;
        let child = self.start(number, lives)?;
        let worker = &mut self.workers[number];
        worker.beats = self.heartbeats.beats(number)?;
        (worker.child, worker.idle) = (child, Duration::ZERO);
        (worker.is_dying, worker.lives) = (false, lives);
        Ok(())
    }

    fn kill_one(&mut self) -> io::Result<()> {
        let number = self.random.below(self.workers.len() as u64) as usize;
        let worker = &mut self.workers[number];
        if worker.is_dying {
            return Ok(());
        }
        worker.child.kill()?;
        worker.is_dying = true;
        self.outcome.kills += 1;
        if self.stopped.is_some_and(|(stopped, _)| stopped == number) {
            self.stopped = None;
        }
        Ok(())
    }

    fn stop_one(&mut self, now: Instant) -> io::Result<()> {
        let number = self.random.below(self.workers.len() as u64) as usize;
        let time = self.millis(10, 1_000);
        if !self.workers[number].is_dying {
            signal::stop(&self.workers[number].child)?;
            self.outcome.stops += 1;
            self.stopped = Some((number, now + time));
        }
        Ok(())
    }

    fn resume(&mut self, now: Instant) -> io::Result<()> {
        match self.stopped {
            Some((number, until)) if now >= until => {
                self.stopped = None;
                signal::resume(&self.workers[number].child)
            }
            _ => Ok(()),
        }
    }

    fn kill_all(&mut self) {
        for worker in &mut self.workers {
            // Whoever has ended already cannot be killed.
            let _ = worker.child.kill();
        }
        for worker in &mut self.workers {
            let _ = worker.child.wait();
            worker.is_dying = true;
        }
        self.stopped = None;
    }

    /// Kills all at once, checks everything, and starts again.
    fn calm(&mut self) -> io::Result<()> {
        self.outcome.kills += self.workers.len() as u64;
        self.kill_all();
        for number in 0..self.workers.len() {
            if let Ok(why) = self.trouble(number) {
                self.outcome.failures.push(format!("worker {number}: {why}"));
                return Ok(());
            }
        }
        self.outcome.calms += 1;
        if let Some(found) = self.check() {
            self.outcome.reopened.push(found.opened);
        }
        self.start_all()
    }

    fn check(&mut self) -> Option<Found> {
        let plan = self.plan;
        match shared::check(&plan.dir, plan.processes) {
            Ok(found) => {
                self.outcome.checkpoints = found.checkpoints;
                Some(found)
            }
            Err(why) => {
                self.outcome.failures.push(format!("with nobody left: {why}"));
                None
            }
        }
    }

    /// Tells all workers to end, waits until they have, and checks everything.
    fn end(&mut self) -> io::Result<()> {
        if let Some((number, _)) = self.stopped.take() {
            signal::resume(&self.workers[number].child)?;
        }
        self.heartbeats.order_end()?;
        let until = Instant::now() + END;
        for number in 0..self.workers.len() {
            loop {
                let worker = &mut self.workers[number];
                match worker.child.try_wait()? {
                    Some(status) if worker.is_dying || status.success() => break,
                    Some(_) => return self.look(Duration::ZERO),
                    None if Instant::now() > until => {
                        let pid = worker.child.id();
                        let why = format!("worker {number} does not end:\n{}", self.stacks(pid));
                        self.outcome.failures.push(why);
                        return Ok(());
                    }
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        }
        self.check();
        let Plan { work, time, .. } = self.plan;
        // One in ten of those that were due: a check takes its time, and so does a disk.
        let due = time.as_millis() as u64 / work.checkpoints.max(1) / 10;
        if work.checkpoints > 0 && self.outcome.checkpoints < due {
            let found = self.outcome.checkpoints;
            self.outcome.failures.push(format!("only {found} checkpoints, where {due} are the least"));
        }
        Ok(())
    }

    /// Where the threads of a process are, if a debugger is at hand.
    fn stacks(&self, pid: u32) -> String {
        let debugger = Command::new("gdb")
            .args(["-p", &pid.to_string(), "-batch", "-ex", "thread apply all backtrace 24"])
            .stdin(Stdio::null())
            .output();
        match debugger {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => format!("no stacks, as gdb does not run: {error}"),
        }
    }

    fn show(&self, time: Duration) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        let (done, all) = (time.as_secs_f64(), self.plan.time.as_secs_f64());
        let filled = (done / all * 30.0).min(30.0) as usize;
        print!("\r[{:<30}] {done:>5.1} of {all} s, {} kills ", "#".repeat(filled), self.outcome.kills);
        io::stdout().flush()
    }
}
