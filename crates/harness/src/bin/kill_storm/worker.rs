//! A worker: random work until it is killed or told to end.
//!
//! It ends by itself only for an order to end, when the storm has ended, or because something is wrong;
//! then it says so in a file.

use std::fmt;
use std::fs;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::appends::Journal;
use perilune_harness::bank::Random;
use perilune_harness::counters::{promised_increment, Ledger, Way};
use perilune_store::{Durability, Error, LockOwner, Locks as _, Result, Store};

use crate::heartbeats::Heartbeats;
use crate::shared::{self, Shared};
use crate::{values, waiting};

/// The durability level of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Of all.
    Of(Durability),
    /// Each life of a worker asks for another.
    Changing,
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Level, String> {
        match text {
            "changing" => Ok(Level::Changing),
            _ => text.parse().map(Level::Of).map_err(|error: Error| format!("{error}; or changing")),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Of(Durability::None) => "none",
            Level::Of(Durability::Periodic) => "periodic",
            Level::Of(Durability::Fsync) => "fsync",
            Level::Changing => "changing",
        })
    }
}

/// How workers work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) level: Level,
    /// Milliseconds from one checkpoint of some worker to the next; 0: none are asked for.
    pub(crate) checkpoints: u64,
}

impl Work {
    /// Whether an operation may have to wait for the disk.
    pub(crate) fn waits_for_disk(self) -> bool {
        self.checkpoints > 0 || self.level != Level::Of(Durability::None)
    }

    fn options(self, random: &mut Random) -> OpenOptions {
        let level = match self.level {
            Level::Of(level) => level,
            Level::Changing => {
                [Durability::None, Durability::Periodic, Durability::Fsync][random.below(3) as usize]
            }
        };
        OpenOptions { durability: Some(level), ..shared::options() }
    }
}

/// What one life of a worker works with.
struct Worker {
    shared: Shared,
    session: Session,
    random: Random,
    owner: LockOwner,
    counters: Vec<Ledger>,
    locked: Vec<Ledger>,
    journal: Journal,
}

/// Where worker `number` says what went wrong.
pub(crate) fn trouble_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("trouble-{number}"))
}

/// Works in `dir` as worker `number`; the answer is what went wrong.
pub(crate) fn run(dir: &Path, number: usize, seed: u64, work: Work) -> std::result::Result<(), String> {
    let path = trouble_path(dir, number);
    // At once: the worker may be killed while the panic unwinds.
    std::panic::set_hook(Box::new(move |panic| {
        // What cannot be written is told by the exit code.
        let _ = fs::write(&path, panic.to_string());
        let stack = std::backtrace::Backtrace::force_capture();
        let _ = fs::write(&path, format!("{panic}\n{stack}"));
    }));
    let outcome = work_on(dir, number, seed, work);
    if let Err(trouble) = &outcome {
        // Should this fail too, the exit code alone tells.
        let _ = fs::write(trouble_path(dir, number), trouble);
    }
    outcome
}

fn work_on(dir: &Path, number: usize, seed: u64, work: Work) -> std::result::Result<(), String> {
    let io = |error: std::io::Error| format!("the worker's files: {error}");
    let heartbeats = Heartbeats::open(&shared::heartbeats_path(dir)).map_err(io)?;
    let mut count = heartbeats.beats(number).map_err(io)?;
    let opened = |error: Error| format!("opening: {error}");
    let mut random = Random::new(seed);
    let options = work.options(&mut random);
    let database = Database::open(&shared::database_path(dir), &options).map_err(opened)?;
    let mut worker =
        Worker::new(&database, dir, number, random).map_err(|error| format!("starting: {error}"))?;
    let storm = parent_id();
    while !heartbeats.is_over().map_err(io)? && parent_id() == storm {
        count += 1;
        heartbeats.beat(number, count).map_err(io)?;
        if work.checkpoints > 0 && heartbeats.is_time(work.checkpoints).map_err(io)? {
            database.checkpoint().map_err(|error| format!("checkpoint: {error}"))?;
        }
        worker.step().map_err(|(work, error)| format!("{work}: {error}"))?;
    }
    drop(worker);
    database.close().map_err(|error| format!("closing: {error}"))
}

impl Worker {
    fn new(database: &Database, dir: &Path, number: usize, random: Random) -> Result<Worker> {
        let io = |source| Error::Io { action: "open", place: dir.to_path_buf().into(), source };
        let mut session = database.session()?;
        let owner = session.new_lock_owner();
        let counters = shared::WAYS.map(|way| Ledger::open(&shared::counter_ledger(dir, way, number)));
        let locked = (0..waiting::LOCKS).map(|name| Ledger::open(&waiting::ledger_path(dir, name, number)));
        Ok(Worker {
            shared: Shared::new(),
            session,
            random,
            owner,
            counters: counters.into_iter().collect::<std::io::Result<_>>().map_err(io)?,
            locked: locked.collect::<std::io::Result<_>>().map_err(io)?,
            journal: Journal::open(&shared::journal_path(dir, number), number as u32).map_err(io)?,
        })
    }

    /// One operation, named in its error.
    fn step(&mut self) -> std::result::Result<(), (&'static str, Error)> {
        let choice = self.random.below(100);
        let Worker { shared, session, random, owner, locked, journal, .. } = self;
        let (name, result) = match choice {
            0..=15 => ("transfer", shared.bank.transfer(session, random)),
            16..=17 => ("sum", shared.bank.check(session).and_then(|sum| sum.map_err(Error::Internal))),
            18..=37 => ("increment", self.increment(choice)),
            38..=43 => ("append", journal.append(&shared.lists, session, random)),
            44..=58 => ("set", values::set(session, random)),
            59..=63 => ("remove", values::remove(session, random)),
            64..=65 => ("remove_prefix", values::remove_prefix(session, random)),
            66..=74 => ("get", values::get(session, random)),
            75..=79 => ("walk", values::walk(session, random)),
            80 => ("write the field", values::write_field(session, random)),
            81 => ("read the field", values::read_field(session)),
            82..=86 => {
                let name = random.below(waiting::LOCKS);
                let ledger = &mut locked[name as usize];
                ("locked increment", waiting::locked_increment(session, *owner, name, ledger))
            }
            87..=88 => ("tangle of locks", waiting::tangle(session, *owner, random)),
            89..=93 => ("post", waiting::post(session, random)),
            94..=98 => ("take", waiting::take(session).map(drop)),
            _ => ("watch", waiting::watch(session, &shared::counter_key(Way::Update))),
        };
        result.map_err(|error| (name, error))
    }

    fn increment(&mut self, choice: u64) -> Result<()> {
        let way = match choice {
            18..=27 => 0,
            28..=32 => 1,
            _ => 2,
        };
        let key = shared::counter_key(shared::WAYS[way]);
        promised_increment(&mut self.session, &key, shared::WAYS[way], &mut self.counters[way])
    }
}
