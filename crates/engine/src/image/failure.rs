//! Which sync has stopped writing, in `-shm`: every process tells its users the same.
//!
//! What if we are killed? The note is made before the flag that stops writing; without that nobody reads it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};

use perilune_store::Error;

use super::layout::control;
use super::Image;

/// Bit of the note: there is one.
const NOTED: u64 = 1 << 63;

impl Image {
    /// Notes what could not be synced: the log's segment in slot `log`, or the database file.
    pub(crate) fn note_failure(&self, log: Option<u32>, source: &io::Error) {
        let file = log.map_or(0, |slot| u64::from(slot) + 1);
        let number = source.raw_os_error().unwrap_or(0) as u32;
        self.control(control::FAILURE).store(NOTED | file << 32 | u64::from(number), Release);
    }

    /// The error of whoever wants to write when writing has stopped.
    #[cold]
    pub(crate) fn stopped(&self) -> Error {
        let note = self.control(control::FAILURE).load(Acquire);
        let path = match (note & !NOTED) >> 32 {
            0 => self.path.clone(),
            slot => log_path(&self.path, slot as u32 - 1),
        };
        let source = match note as u32 as i32 {
            0 => io::Error::other("for a reason that was not told"),
            number => io::Error::from_raw_os_error(number),
        };
        Error::WritesStopped { path, source }
    }
}

/// The file of the log's segment in slot `slot` of the database at `database`.
pub(crate) fn log_path(database: &Path, slot: u32) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-wal.{slot}"));
    PathBuf::from(name)
}
