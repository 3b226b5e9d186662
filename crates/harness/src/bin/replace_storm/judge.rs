//! Whether a database that was given another name is what its users have made of it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use perilune_engine::{Database, OpenOptions, Session};
use perilune_store::{Durability, Error, Reports, Session as _, Store};

use crate::{content, worker};

/// A database that has lost its name.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(crate) path: PathBuf,
    /// Whether its log and `-shm` are beside it: all that was acknowledged must be there.
    pub(crate) is_whole: bool,
}

/// What was found.
pub(crate) enum Verdict {
    Good,
    /// Somebody still has it open: to be asked again.
    InUse,
    /// A file without its log, which nobody can open.
    Refused,
    Bad(String),
}

/// Judges a database.
pub(crate) fn judge(dir: &Path, processes: usize, parked: &Parked) -> Verdict {
    match look(dir, processes, parked) {
        Ok(verdict) => verdict,
        Err(problem) => Verdict::Bad(format!("{}: {problem}", parked.path.display())),
    }
}

fn look(dir: &Path, processes: usize, parked: &Parked) -> Result<Verdict, String> {
    let engine = |error: Error| error.to_string();
    let options = OpenOptions { create: false, durability: None, ..worker::options(Durability::None) };
    // NB: before it is opened: what is acknowledged later need not be there.
    let acknowledged = acknowledged(dir, processes)?;
    let database = match Database::open(&parked.path, &options) {
        Ok(database) => database,
        Err(Error::CannotOpen { why, .. }) if why.contains("is in use by") => return Ok(Verdict::InUse),
        Err(Error::CannotOpen { .. }) if !parked.is_whole => return Ok(Verdict::Refused),
        Err(error) => return Err(format!("cannot be opened: {error}")),
    };
    if database.processes().map_err(engine)?.len() > 1 {
        return Ok(Verdict::InUse);
    }
    database.verify().map_err(engine)?;
    let mut session = database.session().map_err(engine)?;
    let (token, _) = content::check(&mut session)?;
    if let (true, Some(token)) = (parked.is_whole, token) {
        missing(&mut session, token, &acknowledged)?;
    }
    drop(session);
    database.close().map_err(engine)?;
    Ok(Verdict::Good)
}

fn missing(session: &mut Session, token: u64, acknowledged: &HashSet<(u64, Vec<u8>)>) -> Result<(), String> {
    let mut value = Vec::new();
    for (_, key) in acknowledged.iter().filter(|(of, _)| *of == token) {
        if !session.get(key, &mut value).map_err(|error| error.to_string())? {
            return Err(format!("`{}` was acknowledged at fsync, and is lost", key.escape_ascii()));
        }
    }
    Ok(())
}

/// What the journals say.
fn acknowledged(dir: &Path, processes: usize) -> Result<HashSet<(u64, Vec<u8>)>, String> {
    let mut found = HashSet::new();
    for number in 0..processes {
        let bytes = fs::read(worker::journal_path(dir, number)).unwrap_or_default();
        let mut rest = &bytes[..];
        while let Some((token, key, behind)) = entry(rest) {
            found.insert((token, key.to_vec()));
            rest = behind;
        }
        if !rest.is_empty() && rest.len() > 4096 {
            return Err(format!("the journal of worker {number} is torn"));
        }
    }
    Ok(found)
}

fn entry(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let token = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let length = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    Some((token, bytes.get(12..12 + length)?, &bytes[12 + length..]))
}
