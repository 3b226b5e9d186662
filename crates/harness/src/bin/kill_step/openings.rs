//! Killing processes that create, open, recover and close a database, and take checkpoints and snapshots.
//!
//! The witness opens a copy of all files as they are: the copy has locks of its own, so that the child
//! in it is dead. A look costs milliseconds, and most instructions of an opening change nothing that
//! survives it; so the witness looks whenever the words have changed that say who is attached and what
//! counts (meta, the head of `-shm`, the process table, the first sessions' heads) or the directory has,
//! and besides every [`BETWEEN`] instructions.
//!
//! Where a checkpoint is written the machine crashes, too: the witness opens the copy once more, without its
//! `-shm` and with garbage in every page that the last checkpoint does not need, and finds the records as they
//! were at the checkpoint before or at this one.
//!
//! Deliberately absent: threads of the child. They run free.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use perilune_engine::instrument::{rehome, WATCHED_BYTES};
use perilune_engine::{checkpoint_pages, Database, OpenOptions};
use perilune_store::{Error, Result, Session, Store};

use crate::play::{broken, Pace, Report, SECONDS_MAX};
use crate::scene::Directory;
use crate::touch::Touch;
use crate::tracee::{self, Step, Tracee};

/// Instructions between two looks where nothing watched changes.
const BETWEEN: u64 = 400;
/// Records in the database.
const RECORDS: u32 = 50;

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

fn options() -> OpenOptions {
    OpenOptions { max_size: 64 << 20, ..OpenOptions::default() }
}

fn key(index: u32) -> Vec<u8> {
    format!("node{index:04}").into_bytes()
}

/// The records' values of a version; some are long.
fn value(index: u32, version: u32) -> Vec<u8> {
    let words = if index == 7 { 5000 } else { 2 };
    [index, version].into_iter().cycle().take(words).flat_map(u32::to_le_bytes).collect()
}

fn fill(database: &Database, version: u32) -> Result<()> {
    let mut session = database.session()?;
    (0..RECORDS).try_for_each(|index| session.set(&key(index), &value(index, version)))
}

/// The version that all records have.
fn version(database: &Database) -> Result<u32> {
    let report = database.verify()?;
    if report.records < u64::from(RECORDS) {
        return Err(Error::Internal(format!("only {} records are left", report.records)));
    }
    let mut session = database.session()?;
    let (mut found, mut first) = (Vec::new(), None);
    for index in 0..RECORDS {
        session.get(&key(index), &mut found)?;
        let version = found.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        if found != value(index, version) || *first.get_or_insert(version) != version {
            return Err(Error::Internal(format!("record {index} is lost, or of another moment")));
        }
    }
    Ok(first.unwrap_or(0))
}

/// Plays one of them.
pub(crate) fn play(name: &str, pace: &Pace) -> Report {
    Report::of(|report| {
        let directory = Directory::new().map_err(broken)?;
        let path = directory.path().join("x.db");
        let copies = Directory::new().map_err(broken)?;
        if name != "create" {
            let database = Database::open(&path, &options())?;
            fill(&database, 1)?;
            database.close()?;
        }
        if name == "recover" {
            let database = Database::open(&path, &options())?;
            fill(&database, 2)?;
            let open = copies.path().join("x.db");
            fs::copy(&path, &open).map_err(broken)?;
            drop(database);
            fs::copy(&open, &path).map_err(broken)?;
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
                let database = Database::open(&path, &options()).expect("the database opens");
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
                (None, _) => std::mem::forget(Database::open(&path, &options()).expect("the database opens")),
            }
        });
        let mut witness = Witness::of(name, directory.path(), copies.path());
        watch(&mut child.map_err(broken)?, &mut witness, pace, report).map_err(broken)?;
        if writes_checkpoint(name) && witness.durable != 2 {
            report.problem("the checkpoint is not there at its end".to_owned());
        }
        drop(other);
        Ok(())
    })
}

/// A process that has opened the database and stands still; dead once dropped.
fn elsewhere(path: &Path) -> Result<Tracee> {
    let opened = || {
        std::mem::forget(Database::open(path, &options()).expect("the database opens"));
        || {}
    };
    Tracee::start_with(opened).map_err(broken)
}

fn writes_checkpoint(name: &str) -> bool {
    name.starts_with("checkpoint")
}

/// Fills every page with garbage that the last checkpoint does not need.
fn garble(path: &Path) -> std::io::Result<()> {
    let durable = checkpoint_pages(path).map_err(std::io::Error::other)?;
    let file = File::options().write(true).open(path)?;
    let garbage = vec![0xa5; durable.page_bytes as usize];
    for page in 0..file.metadata()?.len() / durable.page_bytes {
        if !durable.data.contains(&page) && !durable.directory.contains(&page) {
            file.write_all_at(&garbage, page * durable.page_bytes)?;
        }
    }
    Ok(())
}

fn watch(
    child: &mut Tracee,
    witness: &mut Witness<'_>,
    pace: &Pace,
    report: &mut Report,
) -> std::io::Result<()> {
    // NB: the child's other threads run free and change the files.
    let mut touch = Touch::new(child, None)?;
    let mut before = Vec::new();
    loop {
        touch.before(child)?;
        let step = child.step()?;
        if let Step::Broken(status) = step {
            report.problem(format!("the child broke: {status}"));
            return Ok(());
        }
        touch.after()?;
        report.instructions += 1;
        let due = report.instructions % (BETWEEN * pace.every) == 0 || step == Step::Over;
        let mut changed = false;
        if touch.take_changed()? {
            let now = witness.watched();
            changed = now != before;
            before = now;
        }
        if due || changed {
            report.points += 1;
            report.looks += 1;
            tracee::expect_progress(SECONDS_MAX);
            if let Err(error) = witness.look() {
                report.problem(format!("killed after instruction {}: {error}", report.instructions));
            }
        }
        if step == Step::Over {
            return Ok(());
        }
    }
}

/// Looks at copies.
struct Witness<'a> {
    from: &'a Path,
    to: &'a Path,
    /// The version of all records; None: there are none.
    wanted: Option<u32>,
    /// Whether the machine crashes, too.
    crashes: bool,
    /// The version that has been there after a crash; no later look finds an earlier one.
    durable: u32,
}

impl<'a> Witness<'a> {
    fn of(name: &str, from: &'a Path, to: &'a Path) -> Witness<'a> {
        let wanted = match name {
            "create" => None,
            "detach" | "snapshot" => Some(2),
            _ if writes_checkpoint(name) => Some(2),
            _ => Some(1),
        };
        let crashes = writes_checkpoint(name) || name == "recover" || name == "detach";
        Witness { from, to, wanted, crashes, durable: 1 }
    }

    /// The bytes and lengths that say who is attached and what counts.
    fn watched(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(WATCHED_BYTES + 64);
        for name in ["x.db", "x.db-shm", "x.db-new"] {
            let Ok(file) = File::open(self.from.join(name)) else { continue };
            bytes.extend(name.bytes());
            let len = file.metadata().map_or(0, |found| found.len());
            bytes.extend(len.to_le_bytes());
            let at = bytes.len();
            let wanted = if name == "x.db-shm" { WATCHED_BYTES } else { 16 << 10 };
            bytes.resize(at + wanted, 0);
            let read = file.read_at(&mut bytes[at..], 0).unwrap_or(0);
            bytes.truncate(at + read);
        }
        bytes
    }

    /// Opens a copy, and finds all records in good order.
    fn look(&mut self) -> Result<()> {
        self.look_at_living()?;
        if self.crashes {
            self.look_after_crash()?;
        }
        Ok(())
    }

    fn look_after_crash(&mut self) -> Result<()> {
        self.copy().map_err(broken)?;
        let path = self.to.join("x.db");
        let _ = fs::remove_file(self.to.join("x.db-shm"));
        garble(&path).map_err(broken)?;
        let database = Database::open(&path, &options())?;
        let found = version(&database)?;
        if found < self.durable || found > 2 {
            return Err(Error::Internal(format!("version {found} after a crash, after {}", self.durable)));
        }
        self.durable = found;
        database.close()
    }

    fn look_at_living(&self) -> Result<()> {
        let original = fs::metadata(self.from.join("x.db")).ok().map(|found| (found.dev(), found.ino()));
        self.copy().map_err(broken)?;
        let path = self.to.join("x.db");
        let shm = self.to.join("x.db-shm");
        if let (Some(original), true) = (original, shm.exists()) {
            rehome(&shm, &path, original)?;
        }
        for _ in 0..2 {
            let database = Database::open(&path, &options())?;
            match self.wanted {
                Some(wanted) if version(&database)? != wanted => {
                    return Err(Error::Internal(format!("the records have not version {wanted}")));
                }
                Some(_) => {}
                None => drop(database.verify()?),
            }
            let mut session = database.session()?;
            session.set(b"witness", b"saw it")?;
            drop(session);
            database.close()?;
        }
        Ok(())
    }

    fn copy(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(self.to)? {
            fs::remove_file(entry?.path())?;
        }
        for entry in fs::read_dir(self.from)? {
            let from = entry?.path();
            let to: PathBuf = self.to.join(from.file_name().unwrap_or_default());
            let source = File::open(&from)?;
            let target = File::create(&to)?;
            let len = source.metadata()?.len();
            target.set_len(len)?;
            let mut bytes = Vec::new();
            for (start, count) in perilune_engine::instrument::data_ranges(&source)? {
                bytes.resize(count.min(len.saturating_sub(start)) as usize, 0);
                source.read_exact_at(&mut bytes, start)?;
                target.write_all_at(&bytes, start)?;
            }
        }
        Ok(())
    }
}
