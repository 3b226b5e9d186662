//! Looks at a copy of all files. Who holds the locks of the original files lives; nobody holds those of the copies,
//! so that whoever opens a copy finds the child dead, and repairs and recovers as after a kill.
//!
//! Where the machine is to crash, too, the copy is opened once more, without its `-shm` and with garbage in every
//! page that the last checkpoint does not need. Versions never go back: no later look finds an earlier one.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use perilune_engine::instrument::{rehome, WATCHED_BYTES};
use perilune_engine::{checkpoint_pages, Database};
use perilune_store::{Error, Result, Session, Store};

use crate::records::{options, version};
use crate::run_case::broken;

/// The name of the database, and that of a copy that an operation makes of it.
pub(crate) const DATABASE: &str = "x.db";
pub(crate) const BACKUP: &str = "y.db";

/// The versions that may be found: the one found last, and the one at the end.
pub(crate) type Versions = Option<(u32, u32)>;

/// What is to be found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// By survivors; None: there are no records yet.
    pub(crate) living: Versions,
    /// After a crash of the machine; None: it does not crash.
    pub(crate) crashed: Versions,
    /// In the backup, once there is one; None: there will be none.
    pub(crate) backup: Versions,
}

/// Looks at copies.
pub(crate) struct Survivor<'a> {
    from: &'a Path,
    to: &'a Path,
    expected: Expected,
}

impl<'a> Survivor<'a> {
    /// Of the files in `from`, with copies in `to`.
    pub(crate) fn new(from: &'a Path, to: &'a Path, expected: Expected) -> Survivor<'a> {
        Survivor { from, to, expected }
    }

    /// What the operation, which is over, has not led to.
    pub(crate) fn missing(&self) -> Option<String> {
        let Expected { living, crashed, backup } = self.expected;
        let is_there = [living, crashed, backup].into_iter().flatten().all(|(found, end)| found == end);
        (!is_there).then(|| format!("at its end it has not come about: {:?}", self.expected))
    }

    /// The bytes, names and lengths that say who is attached and what counts.
    pub(crate) fn watched(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(WATCHED_BYTES + 64);
        let mut names: Vec<_> =
            fs::read_dir(self.from).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let Ok(file) = File::open(self.from.join(&name)) else { continue };
            bytes.extend(name.as_encoded_bytes());
            let len = file.metadata().map_or(0, |found| found.len());
            bytes.extend(len.to_le_bytes());
            let at = bytes.len();
            let wanted = match name.to_str() {
                Some("x.db-shm") => WATCHED_BYTES,
                Some(name) if name.contains("-wal.") => 0,
                _ => 16 << 10,
            };
            bytes.resize(at + wanted, 0);
            let read = file.read_at(&mut bytes[at..], 0).unwrap_or(0);
            bytes.truncate(at + read);
        }
        bytes
    }

    /// Opens a copy, and finds all records in good order.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.look_at_living()?;
        if self.expected.backup.is_some() {
            self.look_at_backup()?;
        }
        if self.expected.crashed.is_some() {
            self.look_after_crash()?;
        }
        Ok(())
    }

    fn look_after_crash(&mut self) -> Result<()> {
        self.copy().map_err(broken)?;
        let path = self.to.join(DATABASE);
        let _ = fs::remove_file(self.to.join("x.db-shm"));
        garble(&path).map_err(broken)?;
        let database = Database::open_threadless(&path, &options(None))?;
        advance(&mut self.expected.crashed, version(&database)?, "after a crash")?;
        database.close()
    }

    fn look_at_living(&mut self) -> Result<()> {
        let original = fs::metadata(self.from.join(DATABASE)).ok().map(|found| (found.dev(), found.ino()));
        self.copy().map_err(broken)?;
        let path = self.to.join(DATABASE);
        let shm = self.to.join("x.db-shm");
        if let (Some((device, inode)), true) = (original, shm.exists()) {
            rehome(&shm, &path, device, inode)?;
        }
        for _ in 0..2 {
            let database = Database::open_threadless(&path, &options(None))?;
            match self.expected.living {
                Some(_) => advance(&mut self.expected.living, version(&database)?, "killed")?,
                None => drop(database.verify()?),
            }
            let mut session = database.session()?;
            session.set(b"survivor", b"saw it")?;
            drop(session);
            database.close()?;
        }
        Ok(())
    }

    fn look_at_backup(&mut self) -> Result<()> {
        self.copy().map_err(broken)?;
        let path = self.to.join(BACKUP);
        if !path.exists() {
            return advance(&mut self.expected.backup, 0, "without a backup");
        }
        let database = Database::open_threadless(&path, &options(None))?;
        advance(&mut self.expected.backup, version(&database)?, "in the backup")?;
        database.close()
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

/// Takes note of the version found, which must lie between the one before and the one at the end.
fn advance(versions: &mut Versions, found: u32, when: &str) -> Result<()> {
    let Some((last, end)) = versions else { return Ok(()) };
    if !(*last..=*end).contains(&found) {
        return Err(Error::Internal(format!("{when}: version {found}, where {last} to {end} may be")));
    }
    *last = found;
    Ok(())
}

/// Fills every page with garbage that the last checkpoint does not need.
pub(crate) fn garble(path: &Path) -> std::io::Result<()> {
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
