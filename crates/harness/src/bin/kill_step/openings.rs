//! Killing processes that create, open and close a database.
//!
//! The witness opens a copy of all files as they are: the copy has locks of its own, so that the child
//! in it is dead. A look costs milliseconds, and most instructions of an opening change nothing that
//! survives it; so the witness looks whenever the words have changed that say who is attached and what
//! counts (meta, the head of `-shm`, the process table, the first sessions' heads) or the directory has,
//! and besides every [`BETWEEN`] instructions.
//!
//! Deliberately absent: threads of the child. They run free.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use perilune_engine::instrument::{rehome, WATCHED_BYTES};
use perilune_engine::{Database, OpenOptions};
use perilune_store::{Error, Result, Session, Store};

use crate::play::{broken, Pace, Report};
use crate::scene::Directory;
use crate::tracee::{self, Step, Tracee};

/// Instructions between two looks where nothing watched changes.
const BETWEEN: u64 = 400;
/// Records in the database.
const RECORDS: u32 = 50;

/// The names of all cases here.
pub(crate) const NAMES: &[&str] = &["create", "attach", "attach-second", "attach-after-death", "detach"];

fn options() -> OpenOptions {
    OpenOptions { max_size: 64 << 20, ..OpenOptions::default() }
}

fn key(index: u32) -> Vec<u8> {
    format!("node{index:04}").into_bytes()
}

fn fill(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    (0..RECORDS).try_for_each(|index| session.set(&key(index), &index.to_le_bytes()))
}

/// Plays one of them.
pub(crate) fn play(name: &str, pace: &Pace) -> Report {
    Report::of(|report| {
        let directory = Directory::new().map_err(broken)?;
        let path = directory.path().join("x.db");
        let copies = Directory::new().map_err(broken)?;
        if name != "create" {
            let database = Database::open(&path, &options())?;
            fill(&database)?;
            database.close()?;
        }
        // Another process that has the database open: here and dead, or here and at work.
        let other = match name {
            "attach-second" | "attach-after-death" => Some(elsewhere(&path)?),
            _ => None,
        };
        let other = other.filter(|_| name == "attach-second");
        let child = Tracee::start_with(|| {
            let opened = (name == "detach").then(|| {
                let database = Database::open(&path, &options()).expect("the database opens");
                fill(&database).expect("the database takes writes");
                database
            });
            let path = path.clone();
            move || match opened {
                Some(database) => database.close().expect("the database closes"),
                None => std::mem::forget(Database::open(&path, &options()).expect("the database opens")),
            }
        });
        let records = if name == "create" { 0 } else { RECORDS };
        let witness = Witness { from: directory.path(), to: copies.path(), records };
        watch(&mut child.map_err(broken)?, &witness, pace, report);
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

fn watch(child: &mut Tracee, witness: &Witness<'_>, pace: &Pace, report: &mut Report) {
    let mut before = Vec::new();
    loop {
        tracee::expect_progress(300);
        let step = match child.step() {
            Ok(Step::Broken(status)) => return report.problem(format!("the child broke: {status}")),
            Ok(step) => step,
            Err(error) => return report.problem(format!("tracing: {error}")),
        };
        report.instructions += 1;
        let due = report.instructions % (BETWEEN * pace.every) == 0 || step == Step::Over;
        let now = witness.watched();
        if due || now != before {
            report.points += 1;
            before = now;
            if let Err(error) = witness.look() {
                report.problem(format!("killed after instruction {}: {error}", report.instructions));
            }
        }
        if step == Step::Over {
            return;
        }
    }
}

/// Looks at copies.
struct Witness<'a> {
    from: &'a Path,
    to: &'a Path,
    records: u32,
}

impl Witness<'_> {
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
    fn look(&self) -> Result<()> {
        let original = fs::metadata(self.from.join("x.db")).ok().map(|found| (found.dev(), found.ino()));
        self.copy().map_err(broken)?;
        let path = self.to.join("x.db");
        let shm = self.to.join("x.db-shm");
        if let (Some(original), true) = (original, shm.exists()) {
            rehome(&shm, &path, original)?;
        }
        for _ in 0..2 {
            let database = Database::open(&path, &options())?;
            let report = database.verify()?;
            if report.records < u64::from(self.records) {
                return Err(Error::Internal(format!("only {} records are left", report.records)));
            }
            let mut session = database.session()?;
            let mut value = Vec::new();
            for index in 0..self.records {
                if !session.get(&key(index), &mut value)? || value != index.to_le_bytes() {
                    return Err(Error::Internal(format!("record {index} is lost")));
                }
            }
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
