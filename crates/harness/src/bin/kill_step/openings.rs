//! Killing processes that create, open, recover and close a database, and take checkpoints and snapshots.
//!
//! A look costs milliseconds, and most instructions of an opening change nothing that survives it; so the
//! survivor looks whenever the words have changed that say who is attached and what counts (meta, the head of
//! `-shm`, the process table, the first sessions' heads) or the directory has, and besides every [`BETWEEN`]
//! instructions.
//!
//! Deliberately absent: threads of the child. They run free. Cases in which nothing else may happen meanwhile are in `logs`.

use std::fs;
use std::path::Path;

use perilune_engine::Database;
use perilune_store::{Durability, Result, Session as _};

use crate::records::{self, fill, key};
use crate::run_case::{broken, Pace, Report, SECONDS_MAX};
use crate::setup::Directory;
use crate::stores::Stores;
use crate::survivor::{garble, Expected, Survivor, Versions, DATABASE};
use crate::tracee::{self, Step, Tracee};

/// Instructions between two looks where nothing watched changes.
const BETWEEN: u64 = 400;

/// The names of all cases here.
pub(crate) const NAMES: &[&str] = &[
    "create",
    "attach",
    "attach-second",
    "attach-after-death",
    "detach",
    "checkpoint",
    "checkpoint-after-snapshot",
    "snapshot",
    "recover",
];

fn open(path: &Path) -> Result<Database> {
    Database::open(path, &records::options(None))
}

/// Runs one case.
pub(crate) fn run(name: &str, pace: &Pace) -> Report {
    Report::of(|report| {
        let directory = Directory::new().map_err(broken)?;
        let path = directory.path().join(DATABASE);
        let copies = Directory::new().map_err(broken)?;
        if name != "create" {
            // Without a log, of which `logs` has cases.
            records::create(&path, Some(Durability::None))?;
        }
        if name == "recover" {
            let database = open(&path)?;
            fill(&database, 2)?;
            let opened = copies.path().join(DATABASE);
            fs::copy(&path, &opened).map_err(broken)?;
            drop(database);
            fs::copy(&opened, &path).map_err(broken)?;
            fs::remove_file(directory.path().join("x.db-shm")).map_err(broken)?;
            garble(&path).map_err(broken)?;
        }
        // Another process that has the database open: here and dead, or here and at work.
        let other = match name {
            "attach-second" | "attach-after-death" => Some(elsewhere(&path)?),
            _ => None,
        };
        let other = other.filter(|_| name == "attach-second");
        let child = Tracee::start_with(|| {
            let is_open = name == "detach" || writes_checkpoint(name) || name == "snapshot";
            let opened = is_open.then(|| {
                let database = open(&path).expect("the database opens");
                fill(&database, 2).expect("the database takes writes");
                if name == "checkpoint-after-snapshot" {
                    std::mem::forget(database.snapshot().expect("a snapshot is taken"));
                    fill(&database, 2).expect("the database takes writes");
                }
                database
            });
            let path = path.clone();
            move || match (opened, name) {
                (Some(database), "detach") => database.close().expect("the database closes"),
                (Some(database), "snapshot") => {
                    let mut snapshot = database.snapshot().expect("a snapshot is taken");
                    let mut value = Vec::new();
                    assert!(snapshot.get(&key(7), &mut value).expect("a snapshot can be read"));
                    drop(snapshot);
                    std::mem::forget(database);
                }
                (Some(database), _) => {
                    assert!(database.checkpoint().expect("a checkpoint is taken"));
                    std::mem::forget(database);
                }
                (None, _) => std::mem::forget(open(&path).expect("the database opens")),
            }
        });
        let mut survivor = Survivor::new(directory.path(), copies.path(), expected(name));
        watch(&mut child.map_err(broken)?, &mut survivor, pace, report).map_err(broken)?;
        drop(other);
        Ok(())
    })
}

/// A process that has opened the database and stands still; dead once dropped.
fn elsewhere(path: &Path) -> Result<Tracee> {
    let opened = || {
        std::mem::forget(open(path).expect("the database opens"));
        || {}
    };
    Tracee::start_with(opened).map_err(broken)
}

fn writes_checkpoint(name: &str) -> bool {
    name.starts_with("checkpoint")
}

fn expected(name: &str) -> Expected {
    let one_state = |version| Some((version, version));
    let living: Versions = match name {
        "create" => None,
        "detach" | "snapshot" => one_state(2),
        _ if writes_checkpoint(name) => one_state(2),
        _ => one_state(1),
    };
    let crashed: Versions = match name {
        "recover" => one_state(1),
        "detach" => Some((1, 2)),
        _ if writes_checkpoint(name) => Some((1, 2)),
        _ => None,
    };
    Expected { living, crashed, backup: None }
}

fn watch(
    child: &mut Tracee,
    survivor: &mut Survivor<'_>,
    pace: &Pace,
    report: &mut Report,
) -> std::io::Result<()> {
    // NB: the child's other threads run free and change the files.
    let mut stores = Stores::new(child, None)?;
    let mut before = Vec::new();
    loop {
        stores.before(child)?;
        let step = child.step()?;
        if let Step::Broken(status) = step {
            report.problem(format!("the child broke: {status}"));
            return Ok(());
        }
        stores.after()?;
        report.instructions += 1;
        let due = report.instructions.is_multiple_of(BETWEEN * pace.every) || step == Step::Over;
        let mut changed = false;
        if stores.take_changed()? {
            let now = survivor.watched();
            changed = now != before;
            before = now;
        }
        if due || changed {
            report.points += 1;
            look(survivor, report);
        }
        if step == Step::Over {
            survivor.missing().into_iter().for_each(|problem| report.problem(problem));
            return Ok(());
        }
    }
}

/// Looks at what a kill would have left here.
pub(crate) fn look(survivor: &mut Survivor<'_>, report: &mut Report) {
    report.looks += 1;
    tracee::expect_progress(SECONDS_MAX);
    if let Err(error) = survivor.look() {
        report.problem(format!("killed after instruction {}: {error}", report.instructions));
    }
}
