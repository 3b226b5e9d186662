//! The file through which the storm sees its workers: an order to end, when a checkpoint was begun last,
//! and a heartbeat for each.
//!
//! Words are written and read by system calls, so a worker that is killed leaves what it wrote, and the
//! storm's eyes need nothing of the engine that is under test.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Word 0 is the order to end, word 1 a time; the others are the workers' counts of finished operations.
pub(crate) struct Heartbeats(File);

/// Words before those of the workers.
const COMMON: u64 = 2;

impl Heartbeats {
    pub(crate) fn create(path: &Path, workers: usize) -> io::Result<Heartbeats> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(8 * (workers as u64 + COMMON))?;
        Ok(Heartbeats(file))
    }

    pub(crate) fn open(path: &Path) -> io::Result<Heartbeats> {
        Ok(Heartbeats(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn word(&self, index: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 8 * index)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Tells all workers to end after the operation they are at.
    pub(crate) fn order_end(&self) -> io::Result<()> {
        self.0.write_all_at(&1_u64.to_le_bytes(), 0)
    }

    /// Whether the order to end has been given.
    pub(crate) fn is_over(&self) -> io::Result<bool> {
        Ok(self.word(0)? != 0)
    }

    /// Whether so many milliseconds have passed since this was last answered with true. Two workers may be
    /// told so at once.
    pub(crate) fn is_time(&self, every: u64) -> io::Result<bool> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        // NB: a clock that was set back only makes it time too soon.
        if now.abs_diff(self.word(1)?) < every {
            return Ok(false);
        }
        self.0.write_all_at(&now.to_le_bytes(), 8).map(|()| true)
    }

    /// How many operations the lives of `worker` have finished.
    pub(crate) fn beats(&self, worker: usize) -> io::Result<u64> {
        self.word(worker as u64 + COMMON)
    }

    /// Notes what [`Heartbeats::beats`] is to answer from now on.
    pub(crate) fn beat(&self, worker: usize, count: u64) -> io::Result<()> {
        self.0.write_all_at(&count.to_le_bytes(), 8 * (worker as u64 + COMMON))
    }
}
