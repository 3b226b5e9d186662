//! The note in `-shm` of what has stopped writing, so that every process tells its users the same.
//!
//! It is either a sync that has failed, which stops writing for good, or a log that cannot be written now, as on a
//! full disk. Example: process A cannot write segment 3 of the log, as the disk is full. Process B, which wants to
//! commit, answers `NoSpace` with the name of that file.
//!
//! What if we are killed? The note is made before the flag that stops writing; without the flag nobody reads it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};

use perilune_store::Error;

use super::layout::control;
use super::Image;
use crate::limits::LOG_SLOTS;

/// Bit of the note: there is one.
const NOTED: u64 = 1 << 63;

/// The disk is full.
const ENOSPC: i32 = 28;
/// Its user's share is.
const EDQUOT: i32 = 122;
/// This process, or the file system, takes no larger file.
const EFBIG: i32 = 27;

impl Image {
    /// Notes what could not be synced: the log's segment in slot `log`, or the database file.
    pub(crate) fn note_failure(&self, log: Option<u32>, source: &io::Error) {
        self.put_failure(log, source.raw_os_error().unwrap_or(0));
    }

    /// Notes what keeps the log from being written.
    pub(crate) fn note_stall(&self, error: &Error) {
        let (place, number) = match error {
            Error::NoSpace { place, is_limited: false } => (Some(place), ENOSPC),
            Error::NoSpace { place, is_limited: true } => (Some(place), EFBIG),
            Error::Io { place, source, .. } => (Some(place), source.raw_os_error().unwrap_or(0)),
            _ => (None, ENOSPC),
        };
        let is_at = |slot: &u32| place.is_some_and(|place| *place == log_path(&self.path, *slot).into());
        self.put_failure((0..LOG_SLOTS as u32).find(is_at), number);
    }

    fn put_failure(&self, log: Option<u32>, number: i32) {
        let file = log.map_or(0, |slot| u64::from(slot) + 1);
        self.control(control::FAILURE).store(NOTED | file << 32 | u64::from(number as u32), Release);
    }

    /// The error of whoever wants to write when writing has stopped for good.
    #[cold]
    pub(crate) fn stopped(&self) -> Error {
        if self.lost_flag() != 0 {
            return self.lose();
        }
        let (path, source) = self.failure();
        Error::WritesStopped { place: path.into(), source, is_final: true }
    }

    /// The error of whoever wants to write while the log cannot be written.
    #[cold]
    pub(crate) fn stalled(&self) -> Error {
        let note = self.control(control::FAILURE).load(Acquire);
        let (path, source) = self.failure();
        if note & NOTED == 0 || is_space(&source) {
            return no_space(path, &source);
        }
        Error::WritesStopped { place: path.into(), source, is_final: false }
    }

    /// What was noted.
    fn failure(&self) -> (PathBuf, io::Error) {
        let note = self.control(control::FAILURE).load(Acquire);
        let path = match (note & !NOTED) >> 32 {
            0 => self.path.clone(),
            slot => log_path(&self.path, slot as u32 - 1),
        };
        let source = match note as u32 as i32 {
            0 => io::Error::other("for a reason that was not told"),
            number => io::Error::from_raw_os_error(number),
        };
        (path, source)
    }
}

/// Whether space is short, on the disk or by a limit of this process.
fn is_space(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(ENOSPC | EDQUOT | EFBIG))
}

fn no_space(path: PathBuf, source: &io::Error) -> Error {
    Error::NoSpace { place: path.into(), is_limited: source.raw_os_error() == Some(EFBIG) }
}

/// An I/O error with its circumstances.
pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { action, place: path.into(), source }
}

/// An I/O error, or that space is short.
pub(crate) fn space_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    if is_space(&source) {
        return no_space(path.into(), &source);
    }
    io_error(action, path, source)
}

/// The file of the log's segment in slot `slot` of the database at `database`.
pub(crate) fn log_path(database: &Path, slot: u32) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-wal.{slot}"));
    PathBuf::from(name)
}
