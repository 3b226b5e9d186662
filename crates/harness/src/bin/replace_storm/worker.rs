//! A process that opens whatever database has the name, over and over, until it is killed or told to end.
//!
//! It ends by itself only for an order to end, when the storm has ended, or because something is wrong; then it says
//! so in a file.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use perilune_engine::{Database, OpenOptions, Session};
use perilune_harness::bank::Random;
use perilune_store::{transact, Durability, Error, Result, Session as _, Store, TransactionOptions};

use crate::content;

type Problem = String;

pub(crate) fn database_directory(dir: &Path) -> PathBuf {
    dir.join("here")
}

pub(crate) fn database_path(dir: &Path) -> PathBuf {
    database_directory(dir).join("x.db")
}

pub(crate) fn options(level: Durability) -> OpenOptions {
    OpenOptions { max_size: 1 << 30, durability: Some(level), ..OpenOptions::default() }
}

pub(crate) fn end_path(dir: &Path) -> PathBuf {
    dir.join("end")
}

pub(crate) fn problem_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("problem-{number}"))
}

/// What was acknowledged at `fsync`: {token u64, bytes u32, key}, one after the other.
pub(crate) fn journal_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("journal-{number}"))
}

/// What was done, a byte each: o opened, w a batch written, a acknowledged on disk, r told, c closed.
pub(crate) fn tally_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("tally-{number}"))
}

/// Says what was wrong.
pub(crate) fn tell(dir: &Path, number: usize, problem: &str) -> ExitCode {
    let _ = fs::write(problem_path(dir, number), problem);
    ExitCode::FAILURE
}

struct Worker<'a> {
    dir: &'a Path,
    number: usize,
    random: Random,
    journal: File,
    tally: File,
}

/// What has become of a life of a database's user.
enum Ended {
    Well,
    /// It was told that the database has gone.
    Told,
}

/// Works until told to end.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn run(dir: &Path, number: usize, seed: u64) -> std::result::Result<(), Problem> {
    let io = |error: std::io::Error| error.to_string();
    let appending = |path: PathBuf| File::options().append(true).create(true).open(path).map_err(io);
    // NB: another one in each life, or a successor would draw the tokens of those before.
    let random = Random::new(seed ^ u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (journal, tally) = (appending(journal_path(dir, number))?, appending(tally_path(dir, number))?);
    let mut worker = Worker { dir, number, random, journal, tally };
    let storm = parent_id();
    while !end_path(dir).exists() && parent_id() == storm {
        worker.use_database()?;
    }
    Ok(())
}

impl Worker<'_> {
    fn use_database(&mut self) -> std::result::Result<(), Problem> {
        let level =
            [Durability::None, Durability::Periodic, Durability::Fsync][self.random.below(3) as usize];
        let database = match Database::open(&database_path(self.dir), &options(level)) {
            Ok(database) => database,
            // It may be exchanged at any moment: refusals that say so, or that files are missing.
            Err(Error::CannotOpen { .. } | Error::Replaced { .. }) => return Ok(()),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(format!("opening: {error}")),
        };
        self.note(b"o")?;
        let used = self.write(&database, level);
        let ended = used.map_err(|problem| format!("{problem} (at level {level:?})"))?;
        match (database.close(), ended) {
            (Ok(()), Ended::Told) => {
                // Somebody may have put it back meanwhile.
                self.note(b"c")
            }
            (Ok(()), Ended::Well) => self.note(b"c"),
            (Err(Error::Replaced { .. }), _) => self.note(b"r"),
            (Err(error), _) => Err(format!("closing: {error}")),
        }
    }

    fn write(&mut self, database: &Database, level: Durability) -> std::result::Result<Ended, Problem> {
        let told = |error: &Error| {
            let is_told = matches!(error, Error::Replaced { .. });
            is_told || matches!(error, Error::NotDurable { why } if why.contains("removed or replaced"))
        };
        let failed = |what: &str, error: Error| match told(&error) {
            true => Ok(Ended::Told),
            false => Err(format!("{what}: {error}")),
        };
        let mut session = match database.session() {
            Ok(session) => session,
            Err(error) => return failed("a session", error),
        };
        let token = match content::token(&mut session, &mut self.random) {
            Ok(token) => token,
            Err(error) => return failed("the token", error),
        };
        let life = self.random.below(1 << 31);
        for round in 0..self.random.below(60) {
            let keys: Vec<Vec<u8>> = (0..1 + self.random.below(4))
                .map(|number| format!("{:02}-{life}-{round}-{number}", self.number).into_bytes())
                .collect();
            if let Err(error) = self.put(&mut session, token, &keys) {
                return failed("writing", error);
            }
            self.note(b"w")?;
            if level == Durability::Fsync {
                self.acknowledge(token, &keys)?;
            }
            let mut value = Vec::new();
            let is_there = session.get(&keys[0], &mut value).map_err(|error| format!("reading: {error}"))?;
            if !is_there || value[..8] != token.to_le_bytes() {
                return Err(format!("`{}` is not what was written", keys[0].escape_ascii()));
            }
            if self.random.below(30) == 0 {
                if let Err(error) = database.checkpoint() {
                    return failed("a checkpoint", error);
                }
            }
        }
        let (found, _) = content::check(&mut session)?;
        if found != Some(token) {
            return Err(format!("the token is {found:x?}, it was {token:x}"));
        }
        Ok(Ended::Well)
    }

    fn put(&mut self, session: &mut Session, token: u64, keys: &[Vec<u8>]) -> Result<()> {
        let bytes = if self.random.below(20) == 0 { 20_000 } else { 20 + self.random.below(600) as usize };
        let mut pairs = keys.iter().map(|key| (key, content::value(token, key, bytes)));
        if let [key] = keys {
            return session.set(key, &content::value(token, key, bytes));
        }
        let pairs: Vec<_> = pairs.by_ref().collect();
        transact(session, &TransactionOptions::default(), |session| {
            pairs.iter().try_for_each(|(key, value)| session.set(key, value))
        })
    }

    fn acknowledge(&mut self, token: u64, keys: &[Vec<u8>]) -> std::result::Result<(), Problem> {
        let mut entries = Vec::new();
        for key in keys {
            entries.extend_from_slice(&token.to_le_bytes());
            entries.extend_from_slice(&(key.len() as u32).to_le_bytes());
            entries.extend_from_slice(key);
        }
        self.journal.write_all(&entries).map_err(|error| error.to_string())?;
        self.note(b"a")
    }

    fn note(&mut self, what: &[u8]) -> std::result::Result<(), Problem> {
        self.tally.write_all(what).map_err(|error| error.to_string())
    }
}
