//! The storm: stops workers, watches how long the others take, lets the stopped go on, and checks.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use perilune_engine::Database;
use perilune_harness::bank::Random;
use perilune_shm::platform::monotonic_nanos;
use perilune_shm::stopped::is_stopped;
use perilune_store::{Reports, Store};

use crate::progress::Progress;
use crate::signal;
use crate::worker::{bank, options, BANKS};

/// How long any operation may take.
pub(crate) const LIMIT: Duration = Duration::from_millis(300);
/// How much longer it may seem to, where more processes want to run than there are processors.
const SLACK: Duration = Duration::from_millis(1_500);
/// How long one is stopped that holds a page: who waits for it without a limit is found.
const LONG_STOP: Duration = Duration::from_millis(2_500);
/// How many may be stopped so for long at once.
const LONG_AT_ONCE: usize = 3;
/// How long nobody is, between: then all do what they do, and stops find it as it is.
const QUIET: Duration = Duration::from_secs(2);
/// How long workers may take to end.
const ENDING: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) dir: PathBuf,
    pub(crate) processes: usize,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    pub(crate) canary: bool,
    /// Who waits for a stopped one lets it go on until its operation is complete.
    pub(crate) wakes: bool,
}

impl Plan {
    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join("storm.db")
    }

    pub(crate) fn progress(&self) -> PathBuf {
        self.dir.join("progress")
    }
}

/// What was done, and found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) stops: u64,
    pub(crate) caught: u64,
    /// Stops while nobody was stopped for long, and how many of them found a page held.
    pub(crate) quiet_stops: u64,
    pub(crate) quiet_caught: u64,
    pub(crate) operations: u64,
    pub(crate) refusals: u64,
    pub(crate) latest_ms: u64,
    pub(crate) failures: Vec<String>,
}

/// A worker, and since when it runs or is stopped.
struct Worker {
    child: Child,
    /// When it goes on, if it is stopped, and when it was.
    stopped_until: Option<Instant>,
    stopped_at: u64,
    /// It is stopped for long, with a page held.
    is_long: bool,
    /// How long all its stops have lasted, in nanoseconds.
    stops: u64,
    /// The operation that it is at, by when it began, and how long its stops had lasted then.
    operation: (u64, u64),
    /// The operation that was told to take too long.
    told: u64,
}

pub(crate) fn run(plan: &Plan) -> Result<Outcome, String> {
    let text = |error: perilune_store::Error| error.to_string();
    let database = Database::open(&plan.database(), &options(plan, LIMIT)).map_err(text)?;
    let mut session = database.session().map_err(text)?;
    (0..BANKS).try_for_each(|number| bank(number).open(&mut session)).map_err(text)?;
    drop(session);
    let progress = Progress::create(&plan.progress(), plan.processes).map_err(|error| error.to_string())?;
    let workers: Result<Vec<Worker>, String> =
        (0..plan.processes).map(|number| start(plan, number)).collect();
    let mut storm = Storm {
        progress,
        workers: workers?,
        random: Random::new(plan.seed),
        outcome: Outcome::default(),
        quiet_since: Instant::now(),
        database,
    };
    let begun = Instant::now();
    while begun.elapsed() < plan.time && (!plan.canary || storm.outcome.failures.is_empty()) {
        storm.step()?;
    }
    storm.outcome.seconds = begun.elapsed().as_secs_f64();
    storm.end()
}

fn start(plan: &Plan, number: usize) -> Result<Worker, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("--worker").arg(number.to_string()).arg("--dir").arg(Path::new(&plan.dir));
    command.args(["--seed", &plan.seed.to_string(), "--processes", &plan.processes.to_string()]);
    let yes = |truth| if truth { "yes" } else { "no" };
    command.args(["--canary", yes(plan.canary), "--wake", yes(plan.wakes)]);
    let child = command.spawn().map_err(|error| error.to_string())?;
    let worker = Worker {
        child,
        stopped_until: None,
        stopped_at: 0,
        is_long: false,
        stops: 0,
        operation: (0, 0),
        told: 0,
    };
    Ok(worker)
}

struct Storm {
    progress: Progress,
    workers: Vec<Worker>,
    random: Random,
    outcome: Outcome,
    /// Since when nobody is stopped for long.
    quiet_since: Instant,
    database: Database,
}

impl Storm {
    /// Stops one more, lets those go on whose time has come, and looks at all.
    fn step(&mut self) -> Result<(), String> {
        let number = self.random.below(self.workers.len() as u64) as usize;
        let long = self.workers.iter().filter(|worker| worker.is_long).count();
        if self.workers[number].stopped_until.is_none() {
            self.stop(number, long)?;
        }
        // Random, so that stops fall anywhere.
        std::thread::sleep(Duration::from_micros(self.random.below(4_000)));
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            if worker.stopped_until.is_some_and(|until| Instant::now() >= until) {
                if worker.is_long {
                    self.quiet_since = Instant::now();
                }
                worker.go_on()?;
            }
            self.judge(number)?;
        }
        Ok(())
    }

    /// Stops a worker; one that holds a page mostly for long, if `long` others and the time since allow it.
    fn stop(&mut self, number: usize, long: usize) -> Result<(), String> {
        let worker = &mut self.workers[number];
        worker.stopped_at = monotonic_nanos();
        signal::stop(&worker.child).map_err(|error| error.to_string())?;
        let pid = worker.child.id();
        let mut has_stopped = false;
        let report = loop {
            let processes = self.database.processes().map_err(|error| error.to_string())?;
            match processes.into_iter().find(|process| process.pid == pid) {
                // NB: what it held was looked at before it was seen to have stopped.
                Some(process) if process.stopped && has_stopped => break Some(process),
                Some(process) if process.stopped => has_stopped = true,
                // It has been told to stop, and has not yet.
                Some(_) if worker.child.try_wait().is_ok_and(|ended| ended.is_none()) => {
                    std::thread::yield_now()
                }
                // It has not come yet, or has ended.
                _ => break None,
            }
        };
        self.outcome.stops += u64::from(report.is_some());
        let is_there = u64::from(report.is_some());
        let is_caught = report.is_some_and(|process| process.pages_held > 0);
        self.outcome.caught += u64::from(is_caught);
        if long == 0 {
            self.outcome.quiet_stops += is_there;
            self.outcome.quiet_caught += u64::from(is_caught);
        }
        let may_be_long = long > 0 || self.quiet_since.elapsed() >= QUIET;
        worker.is_long = is_caught && may_be_long && long < LONG_AT_ONCE;
        let time = match worker.is_long {
            true => LONG_STOP,
            false => Duration::from_micros(self.random.below(1_000)),
        };
        worker.stopped_until = Some(Instant::now() + time);
        worker.note(self.progress.at(number).begun);
        Ok(())
    }

    /// Looks whether a worker that is not stopped has been at its operation for too long.
    fn judge(&mut self, number: usize) -> Result<(), String> {
        let worker = &mut self.workers[number];
        if let Some(status) = worker.child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("worker {number} has ended: {status}"));
        }
        let at = self.progress.at(number);
        if worker.stopped_until.is_some() || at.begun == 0 || at.begun == worker.told {
            return Ok(());
        }
        worker.go_on_for_sure()?;
        // What it was stopped for is not its own.
        worker.note(at.begun);
        let stopped = worker.stops - worker.operation.1;
        let took = monotonic_nanos().saturating_sub(at.begun + stopped);
        let late = Duration::from_nanos(took.saturating_sub(at.limit));
        self.outcome.latest_ms = self.outcome.latest_ms.max(late.as_millis() as u64);
        if late > SLACK {
            worker.told = at.begun;
            let took = Duration::from_nanos(took);
            self.outcome.failures.push(format!("worker {number} waits for {took:.1?}, beyond its limit"));
        }
        Ok(())
    }

    /// Lets all go on and end, and checks what they leave.
    fn end(mut self) -> Result<Outcome, String> {
        let text = |error: perilune_store::Error| error.to_string();
        self.progress.order_end();
        for worker in &mut self.workers {
            worker.go_on()?;
        }
        let until = Instant::now() + ENDING;
        for (number, worker) in self.workers.iter_mut().enumerate() {
            loop {
                match worker.child.try_wait().map_err(|error| error.to_string())? {
                    Some(status) if status.success() => break,
                    Some(status) => {
                        self.outcome.failures.push(format!("worker {number} has failed: {status}"));
                        break;
                    }
                    None if Instant::now() >= until => {
                        self.outcome.failures.push(format!("worker {number} does not end"));
                        let _ = worker.child.kill();
                        let _ = worker.child.wait();
                        break;
                    }
                    None => {
                        worker.go_on_for_sure()?;
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            }
            let (done, refused) = self.progress.counts(number);
            self.outcome.operations += done;
            self.outcome.refusals += refused;
        }
        let mut session = self.database.session().map_err(text)?;
        for number in 0..BANKS {
            if let Err(why) = bank(number).check(&mut session).map_err(text)? {
                self.outcome.failures.push(why);
            }
        }
        drop(session);
        if let Err(error) = self.database.verify() {
            self.outcome.failures.push(error.to_string());
        }
        Ok(self.outcome)
    }
}

impl Worker {
    /// Notes what it is at, as soon as that is seen, and before it is stopped in it.
    fn note(&mut self, begun: u64) {
        if self.operation.0 != begun {
            self.operation = (begun, self.stops);
        }
    }

    fn go_on(&mut self) -> Result<(), String> {
        if self.stopped_until.take().is_some() {
            self.is_long = false;
            self.stops += monotonic_nanos() - self.stopped_at;
            signal::resume(&self.child).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Worker {
    /// Sends SIGCONT again to one that should run. The first may have come just before it stopped itself again after
    /// somebody had let it go on, and then it has no effect.
    fn go_on_for_sure(&self) -> Result<(), String> {
        if is_stopped(self.child.id()) {
            signal::resume(&self.child).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Whatever has become of the storm, none is left behind; one that has ended is not found.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
