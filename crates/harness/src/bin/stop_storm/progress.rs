//! The memory through which the storm sees its workers: what each is at, since when, and what has come of it.
//!
//! Words of a shared mapping, so that noting costs a worker nanoseconds: it is to be stopped in what it does, not in what it
//! notes. A worker that is stopped leaves what it has noted.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use perilune_shm::platform::monotonic_nanos;
use perilune_shm::region::{Access, Region};

/// Words of a worker: a cache line each.
const WORDS: usize = 8;
const BEGUN: usize = 0;
const LIMIT: usize = 1;
const DONE: usize = 2;
const REFUSED: usize = 3;

/// Word 0 is the order to end.
pub(crate) struct Progress(Region);

/// What a worker is at.
pub(crate) struct At {
    /// When it began, in nanoseconds; 0: nothing.
    pub(crate) begun: u64,
    /// How long it may take, in nanoseconds.
    pub(crate) limit: u64,
}

impl Progress {
    fn map(file: &File, workers: usize) -> io::Result<Progress> {
        let bytes = 8 * WORDS * (workers + 1);
        let pages = bytes.next_multiple_of(platform_page());
        file.set_len(pages as u64)?;
        Region::map(file, pages, Access::ReadWrite).map(Progress)
    }

    pub(crate) fn create(path: &Path, workers: usize) -> io::Result<Progress> {
        Progress::map(
            &File::options().read(true).write(true).create(true).truncate(true).open(path)?,
            workers,
        )
    }

    pub(crate) fn open(path: &Path, workers: usize) -> io::Result<Progress> {
        Progress::map(&File::options().read(true).write(true).open(path)?, workers)
    }

    fn word(&self, worker: usize, word: usize) -> &AtomicU64 {
        self.0.word(8 * (WORDS * (worker + 1) + word))
    }

    /// Tells all workers to end after the operation they are at.
    pub(crate) fn order_end(&self) {
        self.0.word(0).store(1, Release);
    }

    /// Whether the order to end has been given.
    pub(crate) fn is_over(&self) -> bool {
        self.0.word(0).load(Acquire) != 0
    }

    /// A worker begins an operation that may take so many nanoseconds.
    pub(crate) fn begin(&self, worker: usize, limit: u64) {
        self.word(worker, LIMIT).store(limit, Release);
        self.word(worker, BEGUN).store(monotonic_nanos(), Release);
    }

    /// The operation has ended, with a result or at its limit.
    pub(crate) fn end(&self, worker: usize, is_refused: bool) {
        self.word(worker, BEGUN).store(0, Release);
        let count = self.word(worker, if is_refused { REFUSED } else { DONE });
        count.store(count.load(Relaxed) + 1, Release);
    }

    /// What a worker is at.
    pub(crate) fn at(&self, worker: usize) -> At {
        // NB: read in this order. Of an operation that has just begun the limit is its own.
        let begun = self.word(worker, BEGUN).load(Acquire);
        At { begun, limit: self.word(worker, LIMIT).load(Acquire) }
    }

    /// How many operations of a worker have ended with a result, and how many at their limit.
    pub(crate) fn counts(&self, worker: usize) -> (u64, u64) {
        (self.word(worker, DONE).load(Acquire), self.word(worker, REFUSED).load(Acquire))
    }
}

fn platform_page() -> usize {
    perilune_shm::platform::page_size()
}
