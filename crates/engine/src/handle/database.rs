//! A database, attached to by this process.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use perilune_disk::{Disk, RealDisk};
use perilune_shm::platform;
use perilune_store::{Error, Figure, Limits, LockReport, ProcessReport, Reports, Result, Snapshots, Store};

use super::facilities::Facilities;
use super::{report, Session};
use crate::backup::{self, BackupKind, BackupReport};
use crate::checkpoint;
use crate::compact::{self, CompactReport};
use crate::image::layout::control;
use crate::limits::{DYING, PAGE, TRANSACTION_DEPTH, UPDATE_BYTES, USER_KEY_MAX, VALUE_MAX};
use crate::lock;
use crate::log;
use crate::open::{Attachment, OpenOptions};
use crate::recover::RecoveryReport;
use crate::repair::sessions_high;
use crate::salvage::{self, SalvageReport};
use crate::session::{Seat, COUNTERS};
use crate::verify::{self, VerifyReport};

/// The limits of this back end.
static LIMITS: Limits = Limits {
    key_bytes: USER_KEY_MAX,
    value_bytes: VALUE_MAX,
    update_bytes: UPDATE_BYTES,
    transaction_depth: TRANSACTION_DEPTH,
    transaction_bytes: None,
    transaction_operations: None,
    transaction_time: None,
    exclusive_mode: true,
    shared_owners: true,
};

/// A handle of a database; clones are the same database. The last one dropped detaches the process.
#[derive(Clone)]
pub struct Database {
    // NB: dropped in this order: the warden ends before the process detaches.
    pub(super) facilities: Arc<Facilities>,
    pub(super) attachment: Arc<Attachment>,
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
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Syncs of the log and of the file.
    pub fsyncs: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Milliseconds since the last checkpoint; 0 if there was none yet.
    pub checkpoint_age_ms: u64,
    /// Bytes of log that a recovery would read now.
    pub replay_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of it that hold nothing, roughly.
    pub free_bytes: u64,
    /// The generation being written.
    pub generation: u64,
    /// The generation of the last checkpoint.
    pub durable_generation: u64,
    /// Snapshots being held, one being written included.
    pub snapshots: u64,
    /// Bytes of pages that are kept for snapshots alone.
    pub snapshot_bytes: u64,
    /// Bytes of pages that are kept for the last checkpoint alone.
    pub checkpoint_bytes: u64,
    /// What commits of this process wait for: a `Durability` as a number.
    pub durability: u64,
    /// Whether nothing can be written: 0 no, 1 a sync has failed, 2 the database was removed or replaced.
    pub writes_stopped: u64,
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

    /// As [`Database::open`], on the given disk.
    ///
    /// # Errors
    /// As [`Database::open`].
    #[cfg(any(test, feature = "instrument"))]
    #[doc(hidden)]
    pub fn open_on(
        path: &Path,
        options: &OpenOptions,
        disk: Arc<dyn perilune_disk::Disk>,
    ) -> Result<Database> {
        let attachment = Attachment::open_on(path, options, disk)?;
        Ok(Database { facilities: Facilities::new(&attachment)?, attachment })
    }

    /// The image, for tests.
    #[cfg(test)]
    pub(super) fn image(&self) -> Arc<crate::image::Image> {
        self.attachment.image().unwrap().clone()
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

    /// What was done to recover the database when this process opened it; None if nothing had to be.
    #[must_use]
    pub fn recovery(&self) -> Option<&RecoveryReport> {
        self.attachment.recovery()
    }

    /// Takes a checkpoint without stopping anybody: everything committed before the call survives a crash
    /// of the machine. False if nothing has changed since the last one.
    ///
    /// # Errors
    /// `ReadOnly`; `WritesStopped` after a failed sync; `Replaced`; `NoSpace`, `Io`: the checkpoint before still
    /// counts.
    pub fn checkpoint(&self) -> Result<bool> {
        let image = self.attachment.image()?;
        if image.read_only {
            return Err(Error::ReadOnly);
        }
        checkpoint::take(image, self.attachment.disk(), 0)
    }

    /// A session that reads the database as it is now: everything committed before the call, nothing after.
    /// It blocks nobody and waits for nobody, writes nothing (`ReadOnly`), and keeps the pages it needs until
    /// it is dropped or its process ends. A forked child's copy answers `Forked`.
    ///
    /// # Errors
    /// `ReadOnly` if the database is open for reading only; `LimitReached` at 255 snapshots.
    pub fn snapshot(&self) -> Result<Session> {
        Session::at_snapshot(self.attachment.clone(), &self.facilities)
    }

    /// Copies the database as it is now to `dest`, while others read and write; see `backup`.
    ///
    /// # Errors
    /// `ReadOnly`; `LimitReached` at 255 snapshots; `CannotOpen` if `dest` is in use or the database itself, or
    /// cannot be brought up to date; `NotADatabase` if it is another file; `Corrupt` with the damaged page;
    /// `NoSpace`, `Io`. `dest` is then what it was.
    pub fn backup(
        &self,
        dest: &Path,
        kind: BackupKind,
        options: &OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        backup::backup(self.attachment.image()?, self.attachment.disk(), dest, kind, options, progress)
    }

    /// Writes the database at `path`, which nobody has open, anew without the space that nothing uses.
    /// `progress` is told pages done and pages in all.
    ///
    /// # Errors
    /// As [`Database::open`]; `CannotOpen` if somebody has it open; `Corrupt` with the first damaged page. The
    /// file is then what it was.
    pub fn compact(
        path: &Path,
        options: &OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport> {
        perilune_disk::limit_files(platform::file_limit);
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        compact::compact(path, options, &disk, progress)
    }

    /// Copies every node of the last checkpoint of `path` that can be read, and what its log holds, into a new
    /// database at `new`.
    /// `progress` is told pages done and pages in all.
    ///
    /// # Errors
    /// `CannotOpen` if somebody has it open, or `new` exists; `NotADatabase`, `NoSpace`, `Io`. Damage is none.
    pub fn salvage(
        path: &Path,
        new: &Path,
        options: &OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        perilune_disk::limit_files(platform::file_limit);
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        salvage::salvage(path, new, options, &disk, progress)
    }

    /// Verifies the whole structure, once what dead processes left half done is repaired, and compares the
    /// pages of the last checkpoint with their sums. No user may be writing meanwhile; what repairs and wardens do is
    /// waited for.
    ///
    /// # Errors
    /// `Corrupt`, naming the first page that breaks a rule, and the rule.
    pub fn verify(&self) -> Result<VerifyReport> {
        let image = self.attachment.image()?;
        // First: it names all damaged pages.
        let checkpoint_pages = verify::sums(image, self.attachment.disk())?;
        let report = verify::settled(image, &mut || platform::sleep(DYING / 100))?;
        Ok(VerifyReport { checkpoint_pages, ..report })
    }

    /// What was found damaged since the first opening in this boot of the machine, or is, and has cost nothing, as there
    /// are two of it: a text each.
    ///
    /// # Errors
    /// `Io`.
    pub fn mended(&self) -> Result<Vec<String>> {
        verify::mended(self.attachment.image()?, self.attachment.disk())
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
        let kept = image.kept();
        let count = |word| image.control(word).load(Relaxed);
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
            log_bytes: count(control::LOG_BYTES),
            fsyncs: count(control::LOG_SYNCS) + count(control::FILE_SYNCS),
            checkpoints: count(control::CHECKPOINTS),
            checkpoint_age_ms: checkpoint::age(image).map_or(0, |age| age.as_millis() as u64),
            replay_bytes: log::size(image),
            file_bytes: image.control(control::NPAGES).load(Relaxed) * PAGE as u64,
            free_bytes: report::free_bytes(image),
            generation: image.generation().into(),
            durable_generation: image.control(control::DURABLE_GEN).load(Relaxed),
            snapshots: image.snapshots().count() as u64,
            snapshot_bytes: kept.by_snapshots * PAGE as u64,
            checkpoint_bytes: kept.by_checkpoint * PAGE as u64,
            durability: self.attachment.durability().unwrap_or_else(|| log::level(image)) as u64,
            writes_stopped: report::writes_stopped(image),
        })
    }
}

impl Store for Database {
    type Session = Session;
    type Snapshots = Database;
    type Reports = Database;

    fn session(&self) -> Result<Session> {
        Session::new(self.attachment.clone(), &self.facilities)
    }

    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn snapshots(&self) -> Option<&Database> {
        Some(self)
    }

    fn reports(&self) -> Option<&Database> {
        Some(self)
    }
}

impl Snapshots<Session> for Database {
    fn snapshot(&self) -> Result<Session> {
        Database::snapshot(self)
    }
}

impl Reports for Database {
    fn figures(&self) -> Result<Vec<Figure>> {
        Ok(self.statistics()?.figures())
    }

    fn locks(&self) -> Result<Vec<LockReport>> {
        // Locks end with their owners, and a reader whom nobody has made an `-shm` has no tree of them.
        if self.processes()?.is_empty() {
            return Ok(Vec::new());
        }
        lock::report(&self.session()?.access)
    }

    fn processes(&self) -> Result<Vec<ProcessReport>> {
        Ok(report::processes(self.attachment.image()?))
    }
}
