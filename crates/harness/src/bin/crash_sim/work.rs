//! A process at work: threads that do their sessions' operations, checkpoints at random moments, closing and
//! opening now and then, until it is killed or told to end.

use std::fs::{self, OpenOptions as FileOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::bank::Random;
use perilune_shm::platform::monotonic_nanos;
use perilune_store::{
    transact, Decision, Durability, Error, Result, Session as _, Store, TransactionOptions,
};

use crate::history::{self, Journal, Seen};
use crate::operations::{self, Mark, Operation, State};
use crate::recording::RecordingDisk;
use crate::Canary;

/// What a process is told.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) dir: PathBuf,
    pub(crate) process: usize,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// How many operations of each of its sessions are in the database already.
    pub(crate) begin: Vec<u64>,
    /// Its level; None: changing, each time it opens.
    pub(crate) level: Option<Durability>,
    /// Milliseconds between checkpoints at most; 0: none are asked for.
    pub(crate) checkpoint_every: u64,
    /// Whether it closes and opens now and then.
    pub(crate) is_restless: bool,
    /// Longest sync, in microseconds.
    pub(crate) sync_max: u64,
    pub(crate) canary: Option<Canary>,
}

/// How to open the database.
pub(crate) fn options(level: Option<Durability>) -> OpenOptions {
    let timeout = Duration::from_secs(60);
    OpenOptions { max_size: 1 << 30, durability: level, timeout, ..OpenOptions::default() }
}

/// Works as told; the answer is what went wrong.
pub(crate) fn run(orders: &Orders) -> std::result::Result<(), String> {
    let trouble = operations::trouble_path(&orders.dir, orders.process);
    let place = trouble.clone();
    // At once: the process may be killed while the panic unwinds.
    std::panic::set_hook(Box::new(move |panic| {
        // What cannot be written is told by the exit code.
        let _ = fs::write(&place, panic.to_string());
    }));
    let outcome = work(orders);
    if let Err(why) = &outcome {
        // Should this fail too, the exit code alone tells.
        let _ = fs::write(trouble, why);
    }
    outcome
}

fn work(orders: &Orders) -> std::result::Result<(), String> {
    let mut random = Random::new(orders.seed ^ 0xc0ff_ee00 ^ orders.process as u64);
    let recording = operations::recording_path(&orders.dir, orders.process);
    let seed = random.below(u64::MAX);
    let disk = RecordingDisk::new(&recording, seed, orders.sync_max, orders.canary)
        .map_err(|error| error.to_string())?;
    let mut begin = orders.begin.clone();
    loop {
        let level = orders.level.unwrap_or_else(|| match random.below(3) {
            0 => Durability::None,
            1 => Durability::Periodic,
            _ => Durability::Fsync,
        });
        let path = operations::database_path(&orders.dir);
        let opened = Database::open_on(&path, &options(Some(level)), Arc::new(disk.clone()));
        let database = opened.map_err(|error| format!("opening: {error}"))?;
        stay(&database, orders, level, &mut random, &mut begin)?;
        database.close().map_err(|error| format!("closing: {error}"))?;
        if operations::end_path(&orders.dir).exists() {
            return Ok(());
        }
    }
}

/// Works until it is time to close the database.
fn stay(
    database: &Database,
    orders: &Orders,
    level: Durability,
    random: &mut Random,
    begin: &mut [u64],
) -> std::result::Result<(), String> {
    let stop = AtomicBool::new(false);
    let until = orders.is_restless.then(|| Instant::now() + Duration::from_millis(5 + random.below(60)));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..orders.threads)
            .map(|thread| {
                let (session, begin, stop) =
                    (orders.process * operations::THREADS + thread, begin[thread], &stop);
                scope.spawn(move || Thread::run(database, orders, (session, begin), level, stop))
            })
            .collect();
        let tended = tend(database, orders, random, until);
        stop.store(true, Relaxed);
        for (thread, begin) in threads.into_iter().zip(begin) {
            let ended = thread.join().map_err(|_| "a thread panicked".to_owned())?;
            *begin = ended.map_err(|error| format!("working: {error}"))?;
        }
        tended
    })
}

/// Takes checkpoints until it is time to end.
fn tend(
    database: &Database,
    orders: &Orders,
    random: &mut Random,
    until: Option<Instant>,
) -> std::result::Result<(), String> {
    let end = operations::end_path(&orders.dir);
    let path = history::checkpoints_path(&orders.dir, orders.process);
    let journal = FileOptions::new().append(true).create(true).open(path);
    let mut journal = journal.map_err(|error| error.to_string())?;
    while !end.exists() && until.is_none_or(|until| Instant::now() < until) {
        std::thread::sleep(Duration::from_micros(random.below(1_000 * orders.checkpoint_every.max(2))));
        if orders.checkpoint_every > 0 {
            let begun = monotonic_nanos();
            database.checkpoint().map_err(|error| format!("checkpoint: {error}"))?;
            journal.write_all(&begun.to_le_bytes()).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// One session at work.
struct Thread {
    session: Session,
    number: usize,
    private: State,
    journal: Journal,
    level: Durability,
}

impl Thread {
    /// Goes on after operation `begin.1`; answers the last one done.
    fn run(
        database: &Database,
        orders: &Orders,
        begin: (usize, u64),
        level: Durability,
        stop: &AtomicBool,
    ) -> Result<u64> {
        let (number, mut last) = begin;
        let path = history::path(&orders.dir, number);
        let io = |source| Error::Io { action: "journal", place: (&path).into(), source };
        let mut session = database.session()?;
        let private = read_range(&mut session, &operations::prefix(number))?;
        let journal = Journal::open(&path).map_err(io)?;
        let mut thread = Thread { session, number, private, journal, level };
        while !stop.load(Relaxed) {
            let operation = operations::operation(orders.seed, number, last + 1, &thread.private);
            let looked = thread.look(&operation)?;
            thread.journal.tried(last + 1, &looked).map_err(io)?;
            let overwrote = thread.perform(&operation, last + 1)?;
            let (is_durable, is_logged) = (thread.promises(&operation), level != Durability::None);
            thread.journal.done(last + 1, is_durable, is_logged, &overwrote).map_err(io)?;
            operations::apply(&operation, number, &mut thread.private);
            last += 1;
        }
        Ok(last)
    }

    /// Whether the operation, once acknowledged, is on disk.
    fn promises(&self, operation: &Operation) -> bool {
        operation.level.unwrap_or(self.level) == Durability::Fsync
    }

    fn look(&mut self, operation: &Operation) -> Result<Vec<Seen>> {
        let Some(cell) = operation.looks_at else { return Ok(Vec::new()) };
        Ok(vec![(cell, self.mark(cell)?)])
    }

    fn mark(&mut self, cell: u64) -> Result<Mark> {
        let mut value = Vec::new();
        let is_there = self.session.get(&operations::cell_key(cell), &mut value)?;
        Mark::decode(is_there.then_some(&value[..]))
            .ok_or_else(|| Error::Refused(format!("cell {cell} holds {value:?}")))
    }

    fn perform(&mut self, operation: &Operation, number: u64) -> Result<Vec<Seen>> {
        if operation.is_transaction {
            let options = TransactionOptions {
                durability: operation.level,
                timeout: Duration::from_secs(60),
                ..TransactionOptions::default()
            };
            let id = self.number;
            return transact(&mut self.session, &options, |session| {
                transaction(session, operation, id, number)
            });
        }
        let session = &mut self.session;
        for (key, value) in &operation.sets {
            session.set(key, value)?;
        }
        for key in &operation.removes {
            session.remove(key)?;
        }
        if let Some(tree) = &operation.killed {
            session.remove_prefix(tree)?;
        }
        if operation.counts {
            session.update(&operations::counter_key(self.number), &mut |old, buffer| {
                buffer[..8].copy_from_slice(&(operations::count_of(old) + 1).to_le_bytes());
                Ok(Decision::Write(8))
            })?;
        }
        Ok(Vec::new())
    }
}

fn transaction(session: &mut Session, operation: &Operation, id: usize, number: u64) -> Result<Vec<Seen>> {
    let mut overwrote = Vec::new();
    let mut found = Vec::new();
    for &cell in &operation.cells {
        let key = operations::cell_key(cell);
        let is_there = session.get(&key, &mut found)?;
        let seen = Mark::decode(is_there.then_some(&found[..]))
            .ok_or_else(|| Error::Refused(format!("cell {cell} holds {found:?}")))?;
        let mark = Mark { session: id as u64 + 1, number, count: seen.count + 1 };
        session.set(&key, &mark.encode())?;
        overwrote.push((cell, seen));
    }
    for (key, value) in &operation.sets {
        session.set(key, value)?;
    }
    let key = operations::counter_key(id);
    let is_there = session.get(&key, &mut found)?;
    let count = operations::count_of(is_there.then_some(&found[..])) + 1;
    session.set(&key, &count.to_le_bytes())?;
    Ok(overwrote)
}

/// All keys with a prefix.
pub(crate) fn read_range(session: &mut Session, prefix: &[u8]) -> Result<State> {
    let mut state = State::new();
    let (mut from, mut key, mut value) = (prefix.to_vec(), Vec::new(), Vec::new());
    let mut inclusive = true;
    while session.next(&from, inclusive, &mut key, Some(&mut value))? && key.starts_with(prefix) {
        state.insert(key.clone(), value.clone());
        std::mem::swap(&mut from, &mut key);
        inclusive = false;
    }
    Ok(state)
}

/// All that a database holds.
pub(crate) fn read_all(database: &Database) -> Result<State> {
    read_range(&mut database.session()?, b"")
}

/// Where the files of a level's name are given on the command line.
pub(crate) fn level_name(level: Option<Durability>) -> &'static str {
    match level {
        None => "changing",
        Some(Durability::None) => "none",
        Some(Durability::Periodic) => "periodic",
        Some(Durability::Fsync) => "fsync",
    }
}

/// The inverse of [`level_name`].
pub(crate) fn level_of(name: &str) -> Option<Durability> {
    name.parse().ok()
}

/// Whether anything was acknowledged to any session yet.
pub(crate) fn has_begun(dir: &Path) -> bool {
    (0..operations::SESSIONS).any(|session| {
        fs::metadata(history::path(dir, session)).is_ok_and(|journal| journal.len() >= history::ENTRY * 2)
    })
}
