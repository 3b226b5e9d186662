//! One crash after the other: processes work, all die, the power fails, and what comes back is judged.
//!
//! What the power loss leaves is the database of the next round, as it lies or recovered; after some rounds a
//! new one is begun.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perilune_engine::{instrument, Database};
use perilune_harness::bank::Random;
use perilune_store::Durability;

use crate::history::{self, History};
use crate::judge::{self, Facts, Verdict};
use crate::operations::{self, State, SESSIONS, THREADS};
use crate::power_loss::PowerLoss;
use crate::work::{self, Orders};
use crate::{recording, Canary};

/// Rounds with one database.
const ROUNDS: u64 = 12;
/// For the first acknowledgement, and for all to close.
const PATIENCE: Duration = Duration::from_secs(60);

/// What has come of some rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rounds: u64,
    /// By level: none, periodic, fsync, changing.
    pub(crate) by_level: [u64; 4],
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    /// Rounds that ended before anything was acknowledged, and by closing.
    pub(crate) early: u64,
    pub(crate) closed: u64,
    pub(crate) replayed: u64,
    pub(crate) checkpoints: u64,
    /// Rounds in which the canary could be noticed.
    pub(crate) poisoned: u64,
    /// How old, in milliseconds, what was lost was at level periodic, in each round.
    pub(crate) ages: Vec<u64>,
    pub(crate) failure: Option<String>,
}

/// Rounds one after the other in a directory.
pub(crate) struct Storm {
    dir: PathBuf,
    random: Random,
    canary: Option<Canary>,
    counts: Vec<u64>,
    state: State,
    age: u64,
    /// When the power failed in this round.
    failed_at: u64,
    pub(crate) outcome: Outcome,
}

/// What a round is to be.
struct Round {
    seed: u64,
    processes: usize,
    level: Option<Durability>,
    is_closing: bool,
    is_early: bool,
    delay: Duration,
}

impl Storm {
    pub(crate) fn new(dir: PathBuf, seed: u64, canary: Option<Canary>) -> io::Result<Storm> {
        fs::create_dir_all(&dir)?;
        let (counts, state, outcome) = (vec![0; SESSIONS], State::new(), Outcome::default());
        Ok(Storm { dir, random: Random::new(seed), canary, counts, state, age: 0, failed_at: 0, outcome })
    }

    /// One round; what is wrong is in the outcome.
    pub(crate) fn round(&mut self) -> io::Result<()> {
        let (run, start) = (self.dir.join("run"), self.dir.join("start"));
        if self.age == 0 {
            self.begin(&run)?;
        }
        self.age = (self.age + 1) % ROUNDS;
        copy_database(&run, &start)?;
        let round = self.choose();
        let acknowledged = self.work(&run, &round);
        if let Err(why) = acknowledged {
            self.outcome.failure = Some(why);
            return Ok(());
        }
        self.outcome.rounds += 1;
        self.outcome.by_level[round.level.map_or(3, |level| level as usize)] += 1;
        self.outcome.closed += u64::from(round.is_closing);
        if let Err(why) = self.crash(&run, &start, &round) {
            self.outcome.failure = Some(why);
        }
        Ok(())
    }

    /// A new database.
    fn begin(&mut self, run: &Path) -> io::Result<()> {
        remove(run)?;
        fs::create_dir_all(run)?;
        let database =
            Database::open(&operations::database_path(run), &work::options(Some(Durability::None)));
        database.and_then(Database::close).map_err(|error| io::Error::other(error.to_string()))?;
        self.counts = vec![0; SESSIONS];
        self.state.clear();
        Ok(())
    }

    fn choose(&mut self) -> Round {
        let random = &mut self.random;
        let level = match (self.canary, random.below(8)) {
            (Some(Canary::UnsyncedLog | Canary::LostBatch), _) => Some(Durability::Fsync),
            (_, 0 | 1) => Some(Durability::None),
            (_, 2..=4) => Some(Durability::Periodic),
            (_, 5 | 6) => Some(Durability::Fsync),
            _ => None,
        };
        Round {
            seed: random.below(u64::MAX),
            processes: 1 + random.below((SESSIONS / THREADS) as u64) as usize,
            level,
            is_closing: self.canary.is_none() && random.below(12) == 0,
            is_early: self.canary.is_none() && random.below(10) == 0,
            delay: Duration::from_micros(random.below(100_000)),
        }
    }

    /// Lets processes work and ends them; what went wrong meanwhile.
    fn work(&mut self, run: &Path, round: &Round) -> Result<(), String> {
        let mut children = Vec::new();
        let checkpoint_every = [0, 5, 30][self.random.below(3) as usize];
        for process in 0..round.processes {
            let orders = Orders {
                dir: run.to_path_buf(),
                process,
                seed: round.seed,
                threads: 1 + self.random.below(THREADS as u64) as usize,
                begin: self.counts[process * THREADS..][..THREADS].to_vec(),
                level: round.level,
                checkpoint_every: if process == 0 { checkpoint_every } else { 0 },
                is_restless: round.level.is_none() || self.random.below(6) == 0,
                sync_max: [0, 200, 3_000][self.random.below(3) as usize],
                canary: self.canary,
            };
            children.push(start(&orders).map_err(|error| format!("starting a process: {error}"))?);
        }
        let ended = wait(&mut children, run, round);
        // The power is gone for all at once; from here on nobody is attached who could flush.
        self.failed_at = judge::now();
        for child in &mut children {
            // Whoever has ended already cannot be killed.
            let _ = child.kill();
        }
        for child in &mut children {
            let _ = child.wait();
        }
        ended?;
        for process in 0..round.processes {
            if let Ok(why) = fs::read_to_string(operations::trouble_path(run, process)) {
                return Err(format!("process {process}: {why}"));
            }
        }
        Ok(())
    }

    /// Fails the power, and judges what is left.
    fn crash(&mut self, run: &Path, start: &Path, round: &Round) -> Result<(), String> {
        let io = |error: io::Error| format!("the simulator's files: {error}");
        let recordings: Vec<PathBuf> =
            (0..round.processes).map(|process| operations::recording_path(run, process)).collect();
        let recordings: Vec<PathBuf> =
            recordings.into_iter().filter(|recording| recording.exists()).collect();
        let power_loss = PowerLoss::new(recording::read(&recordings).map_err(io)?);
        let (after, check) = (self.dir.join("after"), self.dir.join("check"));
        remove(&after).map_err(io)?;
        power_loss.crash(start, run, &after, &mut self.random).map_err(io)?;
        let histories = (0..SESSIONS).map(|session| History::read(&history::path(run, session)));
        let checkpoints = (0..round.processes)
            .map(|process| history::checkpoints(&history::checkpoints_path(run, process)));
        let checkpoints = checkpoints.collect::<io::Result<Vec<_>>>().map_err(io)?.concat();
        let facts = Facts {
            seed: round.seed,
            begin: self.counts.clone(),
            before: std::mem::take(&mut self.state),
            histories: histories.collect::<io::Result<_>>().map_err(io)?,
            checkpoint: checkpoints.iter().copied().max(),
            logged: power_loss.logged(),
            is_closed: round.is_closing,
            ended: self.failed_at,
        };
        if self.canary == Some(Canary::LostBatch) && power_loss.lose_batch(&after).map_err(io)? {
            self.outcome.poisoned += 1;
        }
        copy_database(&after, &check).map_err(io)?;
        self.leave_shm(run, &check).map_err(io)?;
        let (verdict, state) = self.recover(&check, &facts)?;
        if round.level == Some(Durability::Periodic) && !round.is_closing {
            self.outcome.ages.push(verdict.age / 1_000_000);
        }
        self.outcome.acknowledged += verdict.acknowledged;
        self.outcome.lost += verdict.lost;
        self.outcome.early += u64::from(verdict.acknowledged == 0);
        self.outcome.checkpoints += checkpoints.len() as u64;
        (self.counts, self.state) = (verdict.counts, state);
        // The next round finds it as it lies, or as it was recovered and closed.
        let next = if self.random.below(2) == 0 { &after } else { &check };
        copy_database(next, run).map_err(io)
    }

    /// What a power loss may leave of `-shm`: nothing, something of before the machine was started, anything.
    fn leave_shm(&mut self, run: &Path, into: &Path) -> io::Result<()> {
        let name = format!("{}-shm", operations::DATABASE);
        let mut bytes = match (self.random.below(3), File::open(run.join(&name))) {
            (0, _) | (_, Err(_)) => return Ok(()),
            (1, Ok(shm)) => {
                let mut bytes = vec![0; 1 << 16];
                let count = shm.read_at(&mut bytes, 0)?;
                bytes.truncate(count);
                bytes
            }
            (_, Ok(_)) => (0..1 << 16).map(|_| self.random.below(256) as u8).collect(),
        };
        if let Some(boot_id) = bytes.get_mut(instrument::BOOT_ID..instrument::BOOT_ID + 16) {
            boot_id.fill(0x5A);
        }
        let file = File::create(into.join(&name))?;
        file.write_all_at(&bytes, 0)?;
        file.set_len(fs::metadata(run.join(&name))?.len())
    }

    fn recover(&mut self, dir: &Path, facts: &Facts) -> Result<(Verdict, State), String> {
        let level = [None, Some(Durability::None), Some(Durability::Periodic), Some(Durability::Fsync)]
            [self.random.below(4) as usize];
        let database = Database::open(&operations::database_path(dir), &work::options(level));
        let database = database.map_err(|error| format!("it does not open after the power loss: {error}"))?;
        self.outcome.replayed += database.recovery().map_or(0, |report| report.records);
        database.verify().map_err(|error| format!("after recovery: {error}"))?;
        let state = work::read_all(&database).map_err(|error| format!("reading all: {error}"))?;
        let report = database.recovery().map_or("nothing to recover".to_owned(), ToString::to_string);
        let verdict = facts
            .judge(&state)
            .map_err(|why| format!("{why}\n({report}; {facts:?})", facts = Brief(facts)))?;
        database.close().map_err(|error| format!("closing after recovery: {error}"))?;
        let again = Database::open(&operations::database_path(dir), &work::options(level));
        let again = again.map_err(|error| format!("opening after recovery: {error}"))?;
        if work::read_all(&again).map_err(|error| format!("reading all again: {error}"))? != state {
            return Err("closed and opened again after recovery, it is another state".to_owned());
        }
        again.close().map_err(|error| format!("closing once more: {error}"))?;
        Ok((verdict, state))
    }
}

/// Facts without the data.
struct Brief<'a>(&'a Facts);

impl std::fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Facts { begin, checkpoint, logged, is_closed, ended, .. } = self.0;
        let tried: Vec<u64> = self.0.histories.iter().map(|history| history.tried).collect();
        write!(f, "begin {begin:?}, tried {tried:?}, checkpoint {checkpoint:?}, {logged:?}, closed {is_closed}, ended {ended}")
    }
}

fn start(orders: &Orders) -> io::Result<Child> {
    let begin: Vec<String> = orders.begin.iter().map(u64::to_string).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--process").arg(orders.process.to_string()).arg("--dir").arg(&orders.dir);
    command.args(["--seed", &orders.seed.to_string(), "--threads", &orders.threads.to_string()]);
    command.args(["--begin", &begin.join(","), "--level", work::level_name(orders.level)]);
    command.args(["--checkpoint-every", &orders.checkpoint_every.to_string()]);
    command.args(["--restless", &u8::from(orders.is_restless).to_string()]);
    command.args(["--sync-max", &orders.sync_max.to_string()]);
    if let Some(canary) = orders.canary {
        command.args(["--canary", canary.name()]);
    }
    command.stdin(Stdio::null()).spawn()
}

/// Waits for the moment in which the power fails.
fn wait(children: &mut [Child], run: &Path, round: &Round) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    let pause = Duration::from_micros(500);
    while !round.is_early && !work::has_begun(run) {
        if Instant::now() > until {
            return Err("nothing was acknowledged for a minute".to_owned());
        }
        if children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None))) {
            break;
        }
        std::thread::sleep(pause);
    }
    std::thread::sleep(if round.is_early { round.delay / 3 } else { round.delay });
    if !round.is_closing {
        // They end only when told to: else it was for trouble.
        return match children.iter_mut().position(|child| !matches!(child.try_wait(), Ok(None))) {
            Some(process) if !operations::trouble_path(run, process).exists() => {
                Err(format!("process {process} ended by itself"))
            }
            _ => Ok(()),
        };
    }
    File::create(operations::end_path(run)).map_err(|error| error.to_string())?;
    let until = Instant::now() + PATIENCE;
    for (process, child) in children.iter_mut().enumerate() {
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() || operations::trouble_path(run, process).exists() => break,
                Some(status) => return Err(format!("process {process} ended with {status}")),
                None if Instant::now() > until => return Err(format!("process {process} does not end")),
                None => std::thread::sleep(pause),
            }
        }
    }
    Ok(())
}

/// Makes `to` hold the database file and the log of `from`, and nothing else.
pub(crate) fn copy_database(from: &Path, to: &Path) -> io::Result<()> {
    remove(to)?;
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let is_log =
            name.to_str().is_some_and(|name| name.starts_with(&format!("{}-wal.", operations::DATABASE)));
        if is_log || name.to_str() == Some(operations::DATABASE) {
            fs::copy(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

/// Removes a directory, if there is one.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
