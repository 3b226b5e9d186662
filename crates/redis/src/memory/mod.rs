//! What a server knows of the memory that the database takes, and of how its keys are used. What follows from it, room for
//! what wants to be written, is `eviction`.
//!
//! What counts is the pages of the file that hold something now: all of the database, nodes of programs too, since
//! that is what an operator has to provide; not what only the last checkpoint or a snapshot keeps, since that goes by
//! itself, and not the memory of servers, since the kernel bounds that.

mod pool;
mod uses;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perilune::Database;

pub(crate) use self::pool::{Candidate, Pool, POOL};
pub(crate) use self::uses::{Rates, Use, Uses, BEGIN};

/// How old a measure may be, and how much longer than the measuring itself took.
const FRESH: Duration = Duration::from_millis(5);
const SPARING: u32 = 20;

/// What a server knows of the database's memory.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes, as measured last.
    used: AtomicU64,
    /// The most that has been measured.
    peak: AtomicU64,
    /// Bytes that commands have brought since.
    pub(crate) brought: AtomicU64,
    /// Why nothing can be written; 0: it can.
    stopped: AtomicU64,
    measured: Mutex<Measured>,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) uses: Uses,
}

/// When it was measured last, and how long that took.
#[derive(Debug)]
struct Measured {
    at: Option<Instant>,
    took: Duration,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            brought: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            measured: Mutex::new(Measured { at: None, took: Duration::ZERO }),
            pool: Mutex::default(),
            uses: Uses::new(),
        }
    }

    /// Bytes of the database that are in use, at most a moment old.
    ///
    /// # Errors
    /// I/O only.
    pub(crate) fn used(&self, database: &Database) -> perilune::Result<u64> {
        // Whoever comes while another measures takes what was measured before.
        if let Ok(mut measured) = self.measured.try_lock() {
            if measured.at.is_none_or(|at| at.elapsed() > FRESH + measured.took * SPARING) {
                let begun = Instant::now();
                let (used, stopped) = measure(database)?;
                self.stopped.store(stopped, Ordering::Relaxed);
                self.used.store(used, Ordering::Relaxed);
                self.peak.fetch_max(used, Ordering::Relaxed);
                self.brought.store(0, Ordering::Relaxed);
                *measured = Measured { at: Some(begun), took: begun.elapsed() };
            }
        }
        Ok(self.used.load(Ordering::Relaxed))
    }

    /// Bytes that are in use, measured now.
    ///
    /// # Errors
    /// The database cannot be measured.
    pub(crate) fn used_now(&self, database: &Database) -> perilune::Result<u64> {
        lock(&self.measured).at = None;
        self.used(database)
    }

    /// Why nothing can be written, as it was when the memory was measured last; 0: it can.
    pub(crate) fn stopped(&self) -> u64 {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The most that this server has seen in use.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// Bytes of pages that hold something now, and why nothing can be written (0: it can).
fn measure(database: &Database) -> perilune::Result<(u64, u64)> {
    let figures = database.stat()?;
    let value =
        |name: &str| figures.iter().find(|figure| figure.name == name).map_or(0, |figure| figure.value);
    let kept = value("free_bytes") + value("checkpoint_bytes") + value("snapshot_bytes");
    Ok((value("file_bytes").saturating_sub(kept), value("writes_stopped")))
}
