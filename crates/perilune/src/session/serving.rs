//! What a program needs of a session that serves many clients with it, beside what users call: transactions tried once, one wait
//! for the disk for many replies, and bounds on time, reads and memory.
//!
//! Example: an event loop runs a command by [`Serving::attempt`], and only if that comes to nothing as a transaction; it
//! defers the wait for the disk, runs what else has arrived, and waits once ([`Serving::settle`]) before it sends the replies.
//!
//! Invariant: a bound holds until it is changed, in whatever transaction.

use std::time::Duration;

use perilune_store::{Bounds, Deferral, KeptReads, Optimistic, ReadSets};

use crate::{Error, Result, Session};

/// Bytes of a buffer that a session keeps for the next value.
const BUFFER_BYTES: usize = 1 << 20;

/// A session as a server uses it.
pub trait Serving {
    /// Runs `body` as a one-shot transaction: one that is tried once, reads and writes little, and costs a fraction of what
    /// [`Session::transaction`] does. `None`: it has done nothing; run the same as a transaction. So it is when
    /// `body` does much, removes what it has written, removes trees, takes locks or posts; when others are at the same
    /// nodes; and inside a transaction.
    ///
    /// `body` may see halves of two states, as long as it ends ([`crate::Levels::validate`] tells): what it answers then does
    /// not count, nor does its error. It must not write local nodes, which are not taken back.
    ///
    /// # Errors
    /// The body's; else as [`Session::set`].
    fn attempt<R>(&mut self, body: impl FnOnce(&mut Session) -> Result<R>) -> Result<Option<R>>;

    /// Whether the last [`Serving::attempt`] came to nothing because others were at the same nodes, and not for what it
    /// did: then another one may do better, and costs less than a transaction.
    #[must_use]
    fn was_disturbed(&self) -> bool;

    /// What the open transaction has read so far, its own writes and local nodes aside, for later transactions to rest on
    /// ([`Serving::rest_on`]), of any session of the database. Call it at the transaction's end, which no longer remembers what
    /// it has read. `None` if not all of that is noted, as in transactions that read very much, or of a database behind a server.
    fn keep_reads(&mut self) -> Option<KeptReads>;

    /// Whether all that `kept` holds is still so. Then the open transaction rests on it as on what it has read itself: it commits only
    /// at a moment at which that is so, too. Where nobody has written near it, this costs a look at each of its pages.
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what was kept of another database; `Conflict`: run it again.
    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool>;

    /// From now on (or, with false, no longer) what this session writes does not wait until it is durable: the
    /// next [`Serving::settle`] waits for all of it at once, with one sync. Others see it meanwhile, as they do
    /// while a commit waits. For servers, which answer many at once; at durability `periodic` and `none`, where
    /// nothing waits, it changes nothing.
    fn defer(&mut self, deferring: bool);

    /// Whether something has been written that [`Serving::settle`] has to wait for.
    #[must_use]
    fn is_unsettled(&self) -> bool;

    /// Waits until all that was written since [`Serving::defer`] is as durable as it was to be. Not inside a
    /// transaction.
    ///
    /// # Errors
    /// `NotDurable`: it has happened, but is not on disk. It is told once, for all of it.
    fn settle(&mut self) -> Result<()>;

    /// Changes how long each wait for a page that another process holds and does not give back may take, until the
    /// operation answers `Busy`; see [`crate::OpenOptions::wait_limit`]. It says nothing of a database behind a server, whose
    /// own limit holds.
    fn set_wait_limit(&mut self, limit: Duration);

    /// How long each such wait may take.
    #[must_use]
    fn wait_limit(&self) -> Duration;

    /// From now on an operation on nodes of the database that would read more bytes of one long value than these is refused,
    /// in no time ([`Error::is_long_read`]); 0: none is. For a thread that others wait for: what is refused is left to
    /// another one.
    fn limit_reads(&mut self, bytes: usize);

    /// Refuses as [`Serving::limit_reads`] has it, for who is about to read so many bytes piece by piece.
    ///
    /// # Errors
    /// A long read.
    fn check_read(&self, bytes: usize) -> Result<()>;

    /// From now on, in whatever transaction, a write that would make these more than so many is refused: it is
    /// `LimitReached`, and the transaction goes on without it.
    fn limit_pending(&mut self, bytes: usize);

    /// Bytes of memory that the writes of the open transaction take, about; 0 for a database behind a server.
    #[must_use]
    fn pending_bytes(&self) -> usize;

    /// From now on (or, with false, no longer) what this session writes frees space on the whole, and may use the pages
    /// and the part of the log that are kept for that when the disk is full. What only removes may do so anyhow.
    fn free_up(&mut self, frees: bool);

    /// Gives back the memory that values of more than 1 MiB have taken in this session's buffers; costs nothing if
    /// there were none. For programs that keep sessions for long.
    fn shrink(&mut self);
}

impl Serving for Session {
    fn attempt<R>(&mut self, body: impl FnOnce(&mut Session) -> Result<R>) -> Result<Option<R>> {
        if self.depth() > 0 {
            return Ok(None);
        }
        let Some(optimistic) = self.trees.database.optimistic() else { return Ok(None) };
        if !optimistic.begin_attempt()? {
            return Ok(None);
        }
        let attempt = Attempt(self);
        let outcome = body(attempt.0);
        let session = &mut *attempt.0;
        let holds = session.end_attempt(outcome.is_ok())?;
        if holds {
            outcome.map(Some)
        } else {
            Ok(None)
        }
    }

    #[inline]
    fn was_disturbed(&self) -> bool {
        self.depth() == 0 && self.trees.database.file().is_some_and(Optimistic::was_disturbed)
    }

    fn keep_reads(&mut self) -> Option<KeptReads> {
        self.trees.database.read_sets()?.keep_reads()
    }

    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool> {
        match self.trees.database.read_sets() {
            Some(read_sets) => Ok(read_sets.rest_on(kept)?),
            None => Err(Error::invalid("this database keeps nothing that was read")),
        }
    }

    fn defer(&mut self, deferring: bool) {
        if let Some(deferral) = self.trees.database.deferral() {
            deferral.defer(deferring);
        }
    }

    #[inline]
    fn is_unsettled(&self) -> bool {
        self.trees.database.file().is_some_and(Deferral::is_unsettled)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.trees.database.deferral().map_or(Ok(()), Deferral::settle)?)
    }

    #[inline]
    fn set_wait_limit(&mut self, limit: Duration) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.set_wait_limit(limit);
        }
    }

    fn wait_limit(&self) -> Duration {
        self.trees.database.file().map_or(Duration::MAX, Bounds::wait_limit)
    }

    fn limit_reads(&mut self, bytes: usize) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.limit_reads(bytes);
        }
    }

    fn check_read(&self, bytes: usize) -> Result<()> {
        if self.trees.database.file().is_some_and(|bounds| bounds.is_beyond(bytes)) {
            return Err(perilune_store::Error::LongRead { bytes }.into());
        }
        Ok(())
    }

    fn limit_pending(&mut self, bytes: usize) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.limit_pending(bytes);
        }
    }

    fn pending_bytes(&self) -> usize {
        self.trees.database.file().map_or(0, Bounds::pending_bytes)
    }

    #[inline]
    fn free_up(&mut self, frees: bool) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.free_up(frees);
        }
    }

    #[inline]
    fn shrink(&mut self) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.shrink(BUFFER_BYTES);
        }
        for buffer in [&mut self.value, &mut self.encoded] {
            if buffer.capacity() > BUFFER_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

impl Session {
    /// Ends an attempt; only a back end that has begun one is asked.
    pub(crate) fn end_attempt(&mut self, keep: bool) -> Result<bool> {
        Ok(self.trees.database.optimistic().map_or(Ok(false), |optimistic| optimistic.end_attempt(keep))?)
    }
}

/// A one-shot transaction, which ends in any case.
struct Attempt<'a>(&'a mut Session);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nothing was written; the panic says why.
            let _ = self.0.end_attempt(false);
        }
    }
}
