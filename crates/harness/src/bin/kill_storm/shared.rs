//! What all workers of the storm share: the database with its accounts, lists and counters, the files of their
//! promises, and the checks of all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::appends::{self, Journal, Lists};
use perilune_harness::bank::Bank;
use perilune_harness::counters::{self, Ledger, Promises, Way};
use perilune_harness::number;
use perilune_store::{Result, Session as _, Store};

use crate::{values, waiting};

/// The ways in which counters are incremented; each way has a counter, common to all workers.
pub(crate) const WAYS: [Way; 3] = [Way::Update, Way::Transaction, Way::CompareAndSet];

const BANK: &[u8] = b"bank\0";
const LISTS: &[u8] = b"list\0";

/// The data.
pub(crate) struct Shared {
    pub(crate) bank: Bank,
    pub(crate) lists: Lists,
}

impl Shared {
    pub(crate) fn new() -> Shared {
        Shared { bank: Bank::new(BANK, 40, 1_000), lists: Lists::new(LISTS, 12) }
    }
}

pub(crate) fn database_path(dir: &Path) -> PathBuf {
    dir.join("storm.db")
}

pub(crate) fn heartbeats_path(dir: &Path) -> PathBuf {
    dir.join("heartbeats")
}

pub(crate) fn journal_path(dir: &Path, worker: usize) -> PathBuf {
    dir.join(format!("journal-{worker}"))
}

pub(crate) fn counter_ledger(dir: &Path, way: Way, worker: usize) -> PathBuf {
    dir.join(format!("counter-{way:?}-{worker}"))
}

pub(crate) fn counter_key(way: Way) -> Vec<u8> {
    format!("counter\0{way:?}").into_bytes()
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions { max_size: 4 << 30, ..OpenOptions::default() }
}

/// Makes the database with its accounts.
pub(crate) fn create(dir: &Path) -> Result<()> {
    let database = Database::open(&database_path(dir), &options())?;
    Shared::new().bank.open(&mut database.session()?)?;
    database.close()
}

/// What was found at the end of a spell.
pub(crate) struct Found {
    /// How long opening took.
    pub(crate) opened: Duration,
    /// Checkpoints since the database was made, those of closing included.
    pub(crate) checkpoints: u64,
}

/// Opens the database, to which nobody is attached, checks all of it and closes it, with a checkpoint.
pub(crate) fn check(dir: &Path, workers: usize) -> std::result::Result<Found, String> {
    let engine = |error: perilune_store::Error| error.to_string();
    let begin = Instant::now();
    let database = Database::open(&database_path(dir), &options()).map_err(engine)?;
    let opened = begin.elapsed();
    if let Some(recovery) = database.recovery() {
        return Err(format!("the machine has not crashed, and yet: {recovery}"));
    }
    let checkpoints = database.statistics().map_err(engine)?.durable_generation;
    database.verify().map_err(engine)?;
    let mut session = database.session().map_err(engine)?;
    check_content(&mut session, dir, workers)?;
    drop(session);
    database.verify().map_err(engine)?;
    database.close().map_err(engine)?;
    Ok(Found { opened, checkpoints })
}

fn check_content(session: &mut Session, dir: &Path, workers: usize) -> std::result::Result<(), String> {
    let engine = |error: perilune_store::Error| error.to_string();
    let shared = Shared::new();
    shared.bank.check(session).map_err(engine)??;
    for way in WAYS {
        let value = number::get(session, &counter_key(way)).map_err(engine)?;
        let paths = (0..workers).map(|worker| counter_ledger(dir, way, worker));
        counters::check(value, &promises(paths)?).map_err(|why| format!("counter by {way:?}: {why}"))?;
    }
    for name in 0..waiting::LOCKS {
        let value = number::get(session, &waiting::locked_key(name)).map_err(engine)?;
        let paths = (0..workers).map(|worker| waiting::ledger_path(dir, name, worker));
        counters::check(value, &promises(paths)?)
            .map_err(|why| format!("number under lock {name}: {why}"))?;
    }
    waiting::check_messages(session).map_err(engine)??;
    values::read_field(session).map_err(engine)?;
    check_lists(session, &shared.lists, dir, workers)
}

fn promises(paths: impl Iterator<Item = PathBuf>) -> std::result::Result<Vec<Promises>, String> {
    paths
        .filter(|path| path.exists())
        .map(|path| Ledger::open(&path).map(|ledger| ledger.promises()).map_err(|error| error.to_string()))
        .collect()
}

/// Checks the history of the lists and begins a new one: the lists would grow for ever.
fn check_lists(
    session: &mut Session,
    lists: &Lists,
    dir: &Path,
    workers: usize,
) -> std::result::Result<(), String> {
    let engine = |error: perilune_store::Error| error.to_string();
    let io = |error: std::io::Error| error.to_string();
    let mut attempts = Vec::new();
    let journals: Vec<PathBuf> =
        (0..workers).map(|worker| journal_path(dir, worker)).filter(|path| path.exists()).collect();
    for path in &journals {
        attempts.extend(Journal::read(path).map_err(io)?);
    }
    appends::check(&lists.read_all(session).map_err(engine)?, &attempts)?;
    session.remove_prefix(LISTS).map_err(engine)?;
    journals.iter().try_for_each(|path| fs::remove_file(path).map_err(io))
}
