//! An open transaction behind a server, and the series of its tries.
//!
//! It is what it has written, what it has read, and what it has done besides: locks by level, messages. When its commit
//! meets others all of that goes, and the next try begins with nothing but the time limit that all tries share.
//!
//! Invariant: it is bounded, in bytes and in reads and writes, since all of it travels with the commit.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use perilune_store::{Error, LockOwner, Result, TransactionOptions};

use crate::limits::{TRANSACTION_BYTES, TRANSACTION_READS};
use crate::overlay::Overlay;
use crate::reads::Reads;

/// An open transaction.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) options: TransactionOptions,
    pub(crate) overlay: Overlay,
    pub(crate) reads: Reads,
    /// The server has answered something, and notes what that was.
    pub(crate) has_asked: bool,
    /// What was read is no longer one state.
    pub(crate) is_doomed: bool,
    /// The level in which a lock was taken, by whom, and its name.
    pub(crate) locks: Vec<(usize, LockOwner, Vec<u8>)>,
    pub(crate) messages: Vec<Told>,
}

/// What a transaction has done with a channel.
pub(crate) struct Told {
    /// In which level.
    pub(crate) level: usize,
    pub(crate) channel: Vec<u8>,
    pub(crate) what: Telling,
}

/// See [`Told`].
pub(crate) enum Telling {
    /// Posted this body.
    Posted(Vec<u8>),
    /// Taken the message with this number.
    Taken(String),
    /// Found nothing more.
    Empty,
}

impl Running {
    /// Whether it can still grow.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_doomed {
            return Err(Error::Conflict);
        }
        if self.overlay.bytes() + self.reads.bytes() > TRANSACTION_BYTES {
            let limit = TRANSACTION_BYTES as u64;
            return Err(Error::LimitReached { what: "bytes in one transaction over the wire", limit });
        }
        if self.overlay.len() + self.reads.len() > TRANSACTION_READS {
            let limit = TRANSACTION_READS as u64;
            return Err(Error::LimitReached {
                what: "reads and writes in one transaction over the wire",
                limit,
            });
        }
        Ok(())
    }

    /// Whether its commit has to be told to the server: there is something to be done.
    pub(crate) fn writes(&self) -> bool {
        self.overlay.len() + self.messages.len() > 0
    }

    /// Ends a nested level, whose doings belong to the one around it.
    pub(crate) fn merge(&mut self) {
        let around = self.overlay.depth() - 1;
        self.overlay.merge();
        self.locks.iter_mut().for_each(|lock| lock.0 = lock.0.min(around));
        self.messages.iter_mut().for_each(|told| told.level = told.level.min(around));
    }

    /// Ends a level and forgets what it has done, but for the locks that it has taken, which are answered.
    pub(crate) fn rollback(&mut self) -> Vec<(usize, LockOwner, Vec<u8>)> {
        let depth = self.overlay.depth();
        self.overlay.rollback();
        self.messages.retain(|told| told.level < depth);
        self.locks.extract_if(.., |lock| lock.0 >= depth).collect()
    }
}

/// The tries of one transaction.
pub(crate) struct Series {
    pub(crate) limit: Duration,
    pub(crate) deadline: Instant,
    pub(crate) tries: u32,
    /// It fails where others would ask for exclusive mode.
    pub(crate) gives_up: bool,
}

impl Series {
    pub(crate) fn new(limit: Duration) -> Series {
        Series { limit, deadline: Instant::now() + limit, tries: 0, gives_up: false }
    }

    /// Waits up to 25 ms, the longer the more tries there were, and not as long as whoever it met.
    pub(crate) fn back_off(&self) {
        let most = 100_u64 << self.tries.min(7);
        let chance = RandomState::new().hash_one(self.tries) % most;
        std::thread::sleep(Duration::from_micros(most + chance));
    }
}
