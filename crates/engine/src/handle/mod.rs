//! What users of the engine hold: a [`Database`], and [`Session`]s of it, one per thread.
//!
//! Invariants
//! - A session is used by one thread at a time and owns one seat; dropping it gives the seat back.
//! - After `fork` a child's first use of an inherited handle attaches the child as a new process and
//!   gives the session a seat of its own; a transaction that was open answers `Forked` until it is
//!   rolled back. Nothing of the parent is released.
//! - While a transaction is open all operations of its session belong to it.

#[cfg(test)]
mod answers_tests;
#[cfg(test)]
mod damaged_log_tests;
mod database;
#[cfg(test)]
mod durability_tests;
mod entries;
mod facets;
mod facilities;
#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod full_tests;
mod hook;
mod light;
#[cfg(test)]
mod lost_log_tests;
mod mode;
mod operations;
#[cfg(test)]
mod replaced_tests;
mod report;
#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod stopped_tests;
#[cfg(feature = "instrument")]
mod threadless;
mod transactions;
mod waiting;

pub use database::{Database, Statistics};

use std::sync::Arc;
use std::time::Duration;

use perilune_shm::fork::ForkMark;
use perilune_store::{CommitHook, Durability, Error, Result, TransactionOptions};

use crate::access::Access;
use crate::checkpoint;
use crate::log;
use crate::open::{claim_session, release_session, Attachment};
use crate::pin::{self, Purpose};
use crate::session::{Limit, Seat};
use crate::snapshot::Snapshot;
use crate::txn::{OneShot, ProbedDraft, Series, Transaction};
use crate::watch::SessionWatches;
use facilities::Facilities;
use light::Shots;
use waiting::{LockTaken, Posted};

/// A transaction of the user's, with the levels' bookkeeping.
struct Running {
    txn: Transaction,
    options: TransactionOptions,
    series: Series,
    /// Operations since the clock was looked at.
    operations: u32,
}

/// One thread's access to a database; see [`perilune_store::Session`].
pub struct Session {
    mark: ForkMark,
    /// Which session of the process this is.
    number: u64,
    /// Changes whenever what it would read may, but for what others do.
    moment: u64,
    access: Access,
    running: Option<Box<Running>>,
    /// The memory of the last transaction, for the next.
    spare: Option<Box<Running>>,
    one_shot: OneShot,
    probed: ProbedDraft,
    /// The series of tries that goes on with the next `begin`.
    series: Option<Series>,
    lost_lease: bool,
    /// Which transactions begin as one-shot ones.
    shots: Shots,
    /// The open transaction belongs to the process this one was forked from.
    forked_levels: usize,
    /// How long is waited for a page that another holds, unless a transaction's limit comes first.
    wait_limit: Duration,
    /// What commits wait for if they do not say; None: the database's level.
    durability: Option<Durability>,
    /// Whether commits leave the wait for the disk to `settle`, and whether one has.
    deferring: bool,
    unsettled: bool,
    /// Bytes of memory that the writes of an open transaction may take.
    pending_max: usize,
    hook: Option<CommitHook>,
    /// What is read instead of the present; nothing can be written then.
    snapshot: Option<Box<Snapshot>>,
    scratch: Vec<u8>,
    facilities: Arc<Facilities>,
    watches: SessionWatches,
    /// Locks taken and messages posted inside the open transaction.
    locks_taken: Vec<LockTaken>,
    posted: Vec<Posted>,
    // NB: dropped last: the warden ends before the process detaches, also if a session is the last to go.
    attachment: Arc<Attachment>,
}

impl Session {
    fn new(attachment: Arc<Attachment>, facilities: &Arc<Facilities>) -> Result<Session> {
        let facilities = facilities.here(&attachment)?;
        let image = attachment.image()?.clone();
        // Readers of a database opened read-only have no seat and write nothing.
        let seat = if image.read_only { Seat::new(image, 0) } else { claim_session(&image)? };
        Ok(Session::with_seat(attachment, facilities, seat))
    }

    fn with_seat(attachment: Arc<Attachment>, facilities: Arc<Facilities>, seat: Seat) -> Session {
        Session {
            wait_limit: seat.image.wait_limit,
            durability: attachment.durability(),
            attachment,
            mark: ForkMark::current(),
            number: entries::new_number(),
            moment: 0,
            access: Access::new(seat),
            running: None,
            spare: None,
            one_shot: OneShot::default(),
            probed: ProbedDraft::default(),
            series: None,
            lost_lease: false,
            shots: Shots::default(),
            forked_levels: 0,
            deferring: false,
            unsettled: false,
            pending_max: usize::MAX,
            hook: None,
            snapshot: None,
            scratch: Vec::new(),
            watches: SessionWatches::new(facilities.watches.clone()),
            facilities,
            locks_taken: Vec::new(),
            posted: Vec::new(),
        }
    }

    /// A session that reads the database as it is now, whatever is written later, and writes nothing.
    fn at_snapshot(attachment: Arc<Attachment>, facilities: &Arc<Facilities>) -> Result<Session> {
        let image = attachment.image()?.clone();
        if image.read_only {
            return Err(Error::ReadOnly);
        }
        let snapshot = Snapshot::new(pin::cut(&image, 0, Purpose::Snapshot)?);
        let facilities = facilities.here(&attachment)?;
        // Reading a snapshot takes no seat.
        let mut session = Session::with_seat(attachment, facilities, Seat::new(image, 0));
        session.snapshot = Some(Box::new(snapshot));
        Ok(session)
    }

    /// Makes sure that the session belongs to this process.
    #[inline(always)]
    fn here(&mut self) -> Result<()> {
        if self.mark.is_same_process() && self.forked_levels == 0 {
            return Ok(());
        }
        self.after_fork()
    }

    #[cold]
    fn after_fork(&mut self) -> Result<()> {
        self.moment += 1;
        if self.snapshot.as_ref().is_some_and(|snapshot| !snapshot.pin().is_ours()) {
            // It goes with its process: the child has to take one of its own.
            self.disown();
            return Err(Error::Forked);
        }
        if !self.mark.is_same_process() {
            let image = self.attachment.image()?.clone();
            let seat = if image.read_only { Seat::new(image, 0) } else { claim_session(&image)? };
            self.access = Access::new(seat);
            self.access.seat.set_limit(Limit::of(self.wait_limit));
            self.facilities = self.facilities.here(&self.attachment)?;
            self.watches = SessionWatches::new(self.facilities.watches.clone());
            self.locks_taken.clear();
            self.posted.clear();
            self.mark = ForkMark::current();
            self.series = None;
            self.disown();
        }
        if self.forked_levels > 0 {
            return Err(Error::Forked);
        }
        Ok(())
    }

    /// Lets go of a transaction that belongs to the process this one was forked from.
    fn disown(&mut self) {
        if let Some(running) = self.running.take() {
            self.one_shot.end();
            self.forked_levels = running.txn.overlay.depth();
            // Its lease, if any, is the parent's: it must not be given back here.
            std::mem::forget(running);
        }
    }

    /// Runs `free`, which frees space and so may use what is kept for that. If that does not suffice, a checkpoint
    /// makes the pages free that were replaced before it, and parts of the log, and `free` runs once more.
    fn freeing<R>(&mut self, mut free: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
        let frees = self.access.seat.frees.replace(true);
        let mut freed = free(self);
        let is_short = matches!(freed, Err(Error::NoSpace { .. } | Error::LimitReached { .. }));
        if is_short && self.is_present() {
            let image = Arc::clone(&self.access.seat.image);
            let taken = checkpoint::take(&image, self.attachment.disk(), 0);
            // NB: lets writers go on if the checkpoint has made a part of the log free.
            if taken.is_ok() && log::tend(&image).is_ok() {
                freed = free(self);
            }
        }
        self.access.seat.frees.set(frees);
        freed
    }

    /// Waits until what this session wrote last is as durable as was asked for, or leaves that to `settle`.
    ///
    /// # Errors
    /// `NotDurable`.
    #[inline(always)]
    fn acknowledge(&mut self, asked: Option<Durability>) -> Result<()> {
        let image = &self.access.seat.image;
        match asked.or(self.durability) {
            None if log::level(image) != Durability::Fsync => Ok(()),
            Some(Durability::None | Durability::Periodic) => Ok(()),
            _ if self.deferring => {
                self.unsettled = true;
                Ok(())
            }
            _ => self.await_durable(),
        }
    }

    #[cold]
    fn await_durable(&self) -> Result<()> {
        let seat = &self.access.seat;
        let has_log = log::level(&seat.image) != Durability::None;
        // NB: unnamed, whoever has begun the log was killed, or is still at it: no recovery would look for it.
        if !has_log || log::is_unnamed(&seat.image) {
            let covered = checkpoint::cover(&seat.image, self.attachment.disk(), seat.generation());
            covered.map_err(|cause| Error::not_durable(&cause))?;
        }
        if !has_log {
            return Ok(());
        }
        log::wait(&seat.image, seat.flush())
    }

    /// Makes sure that this process may write with the session.
    #[inline(always)]
    fn here_to_write(&mut self) -> Result<()> {
        self.here()?;
        // NB: by itself a write changes the word of its leaf, which says enough.
        if !self.is_present() {
            self.moment += 1;
        }
        if self.access.seat.image.read_only || self.snapshot.is_some() {
            return Err(Error::ReadOnly);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.mark.is_same_process() {
            self.disown();
            return;
        }
        if self.running.take().is_some() {
            self.release_locks_of(0);
        }
        if self.access.seat.id != 0 {
            release_session(&self.access.seat);
        }
    }
}
