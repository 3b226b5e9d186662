//! A database, attached to by this process.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use perilune_store::{Limits, Result, Store};

use super::facilities::Facilities;
use super::Session;
use crate::image::layout::control;
use crate::limits::{PAGE, TRANSACTION_DEPTH, USER_KEY_MAX, VALUE_MAX};
use crate::open::{Attachment, OpenOptions};
use crate::repair::{dead_processes, sessions_high};
use crate::session::{Seat, COUNTERS};
use crate::verify::{verify, VerifyReport};

/// The limits of this back end.
static LIMITS: Limits = Limits {
    key_bytes: USER_KEY_MAX,
    value_bytes: VALUE_MAX,
    update_bytes: 64,
    transaction_depth: TRANSACTION_DEPTH,
};

/// A handle of a database; clones are the same database. The last one dropped detaches the process.
#[derive(Clone)]
pub struct Database {
    // NB: dropped in this order: the warden ends before the process detaches.
    facilities: Arc<Facilities>,
    attachment: Arc<Attachment>,
}

/// What a database has done since it was opened first on this machine start, and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Single writes.
    pub writes: u64,
    /// Transactions that wrote.
    pub commits: u64,
    /// Transactions that had to run again.
    pub conflicts: u64,
    /// Pages split.
    pub splits: u64,
    /// Pages merged.
    pub merges: u64,
    /// Pages copied on their first touch after a checkpoint.
    pub copies: u64,
    /// Times that exclusive mode was taken.
    pub leases: u64,
    /// Sessions of dead processes repaired.
    pub repairs: u64,
    /// Locks granted.
    pub locks: u64,
    /// Waits for a lock.
    pub lock_waits: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The generation being written.
    pub generation: u64,
}

impl Database {
    /// Opens the database at `path`.
    ///
    /// # Errors
    /// Each says what to do: a missing directory, a foreign file, a newer format, a file system that
    /// is refused, too many processes, a crash of the machine while it was open.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Database> {
        let attachment = Attachment::open(path, options)?;
        Ok(Database { facilities: Facilities::new(&attachment)?, attachment })
    }

    /// Detaches, if this is the last handle; the last process of all takes a checkpoint.
    ///
    /// # Errors
    /// What kept the checkpoint from being taken; nothing is lost as long as the machine runs.
    pub fn close(self) -> Result<()> {
        let Database { facilities, attachment } = self;
        drop(facilities);
        attachment.close()
    }

    /// Verifies the whole structure, once what dead processes left half done is repaired. Nobody may be
    /// writing meanwhile.
    ///
    /// # Errors
    /// `Corrupt`, naming the first page that breaks a rule, and the rule.
    pub fn verify(&self) -> Result<VerifyReport> {
        let image = self.attachment.image()?;
        dead_processes(image)?;
        verify(image)
    }

    /// Counts events and sizes.
    ///
    /// # Errors
    /// In a forked child, as [`Database::open`].
    pub fn statistics(&self) -> Result<Statistics> {
        let image = self.attachment.image()?;
        let mut sums = [0; COUNTERS];
        for id in 1..=sessions_high(image) {
            let seat = Seat::new(image.clone(), id);
            for (sum, count) in sums.iter_mut().zip(seat.counters()) {
                *sum += count;
            }
        }
        let [writes, commits, conflicts, splits, merges, copies, leases, repairs, locks, lock_waits] = sums;
        Ok(Statistics {
            writes,
            commits,
            conflicts,
            splits,
            merges,
            copies,
            leases,
            repairs,
            locks,
            lock_waits,
            file_bytes: image.control(control::NPAGES).load(Relaxed) * PAGE as u64,
            generation: image.generation().into(),
        })
    }
}

impl Store for Database {
    type Session = Session;

    fn session(&self) -> Result<Session> {
        Session::new(self.attachment.clone(), &self.facilities)
    }

    fn limits(&self) -> &Limits {
        &LIMITS
    }
}
