//! Transactions: serializable, optimistic, with private writes and exclusive mode for the starving.
//!
//! The body runs without latches; its writes go to a private overlay that its later reads see, its
//! reads are noted by leaf and stay one state from read to read, so no body ever sees a state that
//! never was. The commit latches the leaves to be written in key order, checks the reads once more,
//! publishes one record, applies it, releases.
//!
//! Invariants
//! - Nothing shared is written before the commit; a transaction that writes nothing writes nothing.
//! - Latches are waited for only in (tree, key) order, and only here.
//! - After an error of any kind no latch, page or lease is left.
//!
//! What if we are killed? Before the record is published: nothing has happened. After: repair applies
//! the whole record again. The lease of the dead is taken by whoever waits for it.

mod bare;
mod commit;
mod conditional;
mod count;
mod entries;
mod kept;
mod latched;
#[cfg(test)]
mod latched_tests;
mod memo;
#[cfg(test)]
mod model_tests;
mod neighbours;
mod one_shot;
#[cfg(test)]
mod one_shot_tests;
mod overlay;
mod patches;
mod places;
mod probed;
mod reads;
mod room;
#[cfg(test)]
mod room_tests;
mod spread;
#[cfg(test)]
mod tests;
mod writes;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_store::{copy_pieces, Error, Result, TransactionOptions};

use crate::access::Access;
use crate::control::{take_lease, Lease};
use crate::limits::{LEASE_WAIT_READING, READ_LEAVES_MAX, READ_LEAVES_NOTED, TRIES_BEFORE_LEASE};
use crate::session::{Counter, Limit};
use crate::tree::{Seen, Which};
use kept::Kept;
use memo::Memo;
pub(crate) use one_shot::OneShot;
use overlay::{Lookup, Overlay};
pub(crate) use probed::ProbedDraft;
use reads::{digest, piece_digest, Ask, Reads};

/// A transaction under way.
pub(crate) struct Transaction {
    pub(crate) overlay: Overlay,
    reads: Reads,
    /// What others have read that it rests on.
    kept: Vec<Arc<Kept>>,
    memo: Memo,
    lease: Option<Lease>,
    /// What was read is no longer one state; only a rollback is left.
    doomed: bool,
    /// So much has been read in exclusive mode that it is no longer noted.
    unnoted: bool,
    /// How often exclusive mode has been asked for because of many reads.
    class: u64,
    visited: Vec<Seen>,
}

impl Transaction {
    pub(crate) fn new() -> Transaction {
        Transaction {
            overlay: Overlay::new(),
            reads: Reads::default(),
            kept: Vec::new(),
            memo: Memo::default(),
            lease: None,
            doomed: false,
            unnoted: false,
            class: 0,
            visited: Vec::new(),
        }
    }

    /// Gives it exclusive mode for as long as that lasts.
    pub(crate) fn with_lease(lease: Option<Lease>) -> Transaction {
        Transaction { lease, ..Transaction::new() }
    }

    /// Makes it as new, keeping its memory.
    pub(crate) fn reset(&mut self, lease: Option<Lease>) {
        self.overlay.clear();
        self.reads.clear();
        self.kept.clear();
        self.memo.clear();
        self.visited.clear();
        self.lease = lease;
        self.doomed = false;
        self.unnoted = false;
        self.class = 0;
    }

    /// Gives exclusive mode back (before a wait).
    pub(crate) fn drop_lease(&mut self) {
        self.lease = None;
    }

    /// Whether it had exclusive mode and has lost it to a waiter.
    pub(crate) fn has_lost_lease(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| !lease.is_held())
    }

    pub(crate) fn set(&mut self, which: Which, key: &[u8], value: &[u8]) {
        if !self.overlay.set(which, key, value) {
            self.memo.appears(which, key);
        }
    }

    pub(crate) fn remove(&mut self, which: Which, key: &[u8]) {
        self.overlay.remove(which, key);
        self.memo.goes(which, key);
    }

    pub(crate) fn remove_prefix(&mut self, which: Which, prefix: &[u8]) {
        self.overlay.remove_prefix(which, prefix);
        self.memo.clear();
    }

    /// Takes back what the innermost level has written.
    pub(crate) fn drop_level(&mut self) {
        self.overlay.drop_level();
        self.memo.clear();
    }

    /// Checks that all that was read is one state.
    ///
    /// # Errors
    /// `Conflict` when it is not; the transaction is doomed.
    pub(crate) fn validate(&mut self, access: &Access) -> Result<()> {
        self.validate_holding(access, 0)
    }

    /// Checks that all that was read is one state, while session `me` holds latches (0: none).
    fn validate_holding(&mut self, access: &Access, me: u16) -> Result<()> {
        let alone = self.lease.as_ref().is_some_and(Lease::is_held);
        if self.doomed || self.unnoted && !alone {
            self.doomed = true;
            return Err(Error::Conflict);
        }
        let passed = self.reads.pass(access, me);
        passed.and_then(|()| self.pass_kept(access, me)).inspect_err(|_| self.doomed = true)
    }

    /// Notes a query for a key within a bound; keeps everything read one state.
    fn noted(&mut self, access: &Access, ask: Ask, which: Which, key: [&[u8]; 2], digest: u64) -> Result<()> {
        let alone = self.lease.as_ref().is_some_and(Lease::is_held);
        if self.unnoted || alone && self.reads.leaf_count() > READ_LEAVES_NOTED {
            // Nobody else publishes while the lease lasts; without it, this try has failed.
            self.unnoted = true;
            if alone {
                return Ok(());
            }
            self.doomed = true;
            return Err(Error::Conflict);
        }
        let due = self.reads.note(ask, which, key, digest, &self.visited);
        if alone {
            return Ok(());
        }
        if self.reads.leaf_count() > READ_LEAVES_MAX && !access.seat.image.read_only {
            if !access.seat.limit().may_be_alone {
                let what = "pages read by a transaction that never takes exclusive mode";
                return Err(Error::LimitReached { what, limit: READ_LEAVES_MAX as u64 });
            }
            // Passes over ever more leaves would cost their square: go on alone, longer each time.
            self.class += 1;
            let deadline = Instant::now() + LEASE_WAIT_READING;
            let deadline = access.seat.limit().until.map_or(deadline, |until| until.min(deadline));
            self.lease = take_lease(&access.seat, self.class, deadline)?;
            return self.validate(access);
        }
        if due {
            return self.reads.follow(access).inspect_err(|_| self.doomed = true);
        }
        Ok(())
    }
}

impl Access {
    /// Copies the value that the transaction sees at `key`; false when there is none.
    ///
    /// # Errors
    /// `Conflict`.
    #[inline]
    pub(crate) fn txn_get(
        &self,
        txn: &mut Transaction,
        which: Which,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        match txn.overlay.lookup(which, key) {
            Lookup::Value(value) => {
                value.clone_into(out);
                Ok(true)
            }
            Lookup::Absent(_) => Ok(false),
            Lookup::Unknown => {
                let found = self.visiting(&mut txn.visited, |visited| self.get(which, key, out, visited))?;
                let value: &[u8] = if found { out } else { &[] };
                txn.noted(self, Ask::Value, which, [key, &[]], digest(found, [&[], value]))?;
                if found && which == Which::Main && !txn.overlay.patches.is_empty() {
                    txn.overlay.patches.apply(key, out, true);
                }
                Ok(found)
            }
        }
    }

    /// Whether the transaction sees a value at `key`.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_has_value(&self, txn: &mut Transaction, which: Which, key: &[u8]) -> Result<bool> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        match txn.overlay.lookup(which, key) {
            Lookup::Value(_) => Ok(true),
            Lookup::Absent(_) => Ok(false),
            Lookup::Unknown => {
                let found = self.visiting(&mut txn.visited, |visited| self.has_value(which, key, visited))?;
                txn.noted(self, Ask::Existence, which, [key, &[]], digest(found, [&[], &[]]))?;
                Ok(found)
            }
        }
    }

    /// Copies pieces of the value that the transaction sees at `key`, and answers how many bytes it has.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_pieces(
        &self,
        txn: &mut Transaction,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        match txn.overlay.lookup(Which::Main, key) {
            Lookup::Value(value) => {
                copy_pieces(value, pieces, out);
                Ok(Some(value.len()))
            }
            Lookup::Absent(_) => Ok(None),
            Lookup::Unknown => {
                let read = |visited: &mut Fresh<'_>| self.pieces(Which::Main, key, pieces, out, visited);
                let bytes = self.visiting(&mut txn.visited, read)?;
                let mut rest = &out[..];
                // Without any the length is noted alone.
                let nothing = std::slice::from_ref(&(0..0));
                for piece in if pieces.is_empty() { nothing } else { pieces } {
                    let end = piece.end.min(bytes.unwrap_or(0));
                    let (own, behind) = rest.split_at(end.saturating_sub(piece.start).min(rest.len()));
                    rest = behind;
                    let ask = Ask::Piece(piece.start, piece.end);
                    txn.noted(self, ask, Which::Main, [key, &[]], piece_digest(bytes, own))?;
                }
                if txn.overlay.patches.is_empty() {
                    return Ok(bytes);
                }
                Ok(bytes.map(|bytes| txn.overlay.patches.apply_to_pieces(key, bytes, pieces, out)))
            }
        }
    }

    fn visiting<T>(
        &self,
        visited: &mut Vec<Seen>,
        read: impl FnOnce(&mut Fresh<'_>) -> Result<T>,
    ) -> Result<T> {
        visited.clear();
        read(&mut Fresh { visited, image: &self.seat.image })
    }

    /// Runs `body` as a transaction of the engine's own until it commits.
    ///
    /// # Errors
    /// The body's; `TransactionTimeout` after `deadline`; what a commit can answer.
    pub(crate) fn atomically<R>(
        &self,
        deadline: Instant,
        mut body: impl FnMut(&Access, &mut Transaction) -> Result<R>,
    ) -> Result<R> {
        let mut series = Series::new(deadline.saturating_duration_since(Instant::now()));
        loop {
            let mut txn = Transaction::with_lease(series.lease(self)?);
            let result = body(self, &mut txn);
            let lost = txn.has_lost_lease();
            match result.and_then(|result| self.commit(&mut txn, None).map(|_| result)) {
                Ok(result) => return Ok(result),
                Err(error) if error.is_retry() => series.failed(self, lost)?,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Notes the leaves that an attempt visits; an attempt that is repeated forgets the earlier ones.
pub(crate) struct Fresh<'a> {
    visited: &'a mut Vec<Seen>,
    image: &'a crate::image::Image,
}

impl crate::tree::Visit for Fresh<'_> {
    #[inline]
    fn visit(&mut self, leaf: Seen) {
        // A leaf met twice under two words: the earlier visit belonged to a failed attempt.
        if let Some(earlier) = self.visited.iter_mut().find(|seen| seen.number == leaf.number) {
            *earlier = leaf;
        } else {
            self.visited.push(leaf);
        }
        debug_assert!(u64::from(leaf.number) < self.image.npages());
    }
}

/// The tries of one transaction.
#[derive(Clone, Copy)]
pub(crate) struct Series {
    limit: Duration,
    deadline: Instant,
    tries: u32,
    losses: u64,
    /// Exclusive mode from the first try on.
    exclusive: bool,
    /// Never exclusive mode: it fails instead.
    gives_up: bool,
}

impl Series {
    pub(crate) fn new(limit: Duration) -> Series {
        let (deadline, exclusive, gives_up) = (Instant::now() + limit, false, false);
        Series { limit, deadline, tries: 0, losses: 0, exclusive, gives_up }
    }

    /// With exclusive mode as the options say.
    pub(crate) fn with(self, options: &TransactionOptions) -> Series {
        let exclusive = options.exclusive && !options.read_only;
        Series { exclusive, gives_up: options.never_exclusive, ..self }
    }

    /// When the series ends.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long it waits for others whose waits are limited so.
    pub(crate) fn limit_of(&self, limit: Limit) -> Limit {
        let until = limit.until(Some(self.deadline));
        Limit { transaction: Some(self.limit), may_be_alone: !self.gives_up, ..until }
    }

    /// How often it has failed.
    pub(crate) fn tries(&self) -> u32 {
        self.tries
    }

    /// Exclusive mode for the next try, if it is time for it.
    ///
    /// # Errors
    /// `TransactionTimeout`.
    pub(crate) fn lease(&self, access: &Access) -> Result<Option<Lease>> {
        if !self.exclusive && self.tries < TRIES_BEFORE_LEASE || access.seat.image.read_only {
            return Ok(None);
        }
        match take_lease(&access.seat, self.losses, self.deadline)? {
            Some(lease) => Ok(Some(lease)),
            None => Err(self.timeout()),
        }
    }

    /// Notes a failure and backs off for a moment.
    ///
    /// # Errors
    /// `TransactionTimeout` after the deadline; `Conflict` if the next try would need exclusive mode and is not to have it.
    pub(crate) fn failed(&mut self, access: &Access, lost_lease: bool) -> Result<()> {
        access.seat.count(Counter::Conflicts);
        self.tries += 1;
        self.losses += u64::from(lost_lease);
        self.in_time()?;
        if self.gives_up && self.tries >= TRIES_BEFORE_LEASE {
            return Err(Error::Conflict);
        }
        for _ in 0..self.tries.min(6) * 40 {
            perilune_shm::platform::spin_pause();
        }
        if self.tries > 1 {
            perilune_shm::platform::yield_now();
        }
        Ok(())
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// `TransactionTimeout` after the deadline.
    pub(crate) fn in_time(&self) -> Result<()> {
        if Instant::now() >= self.deadline {
            return Err(self.timeout());
        }
        Ok(())
    }

    /// The error at the deadline.
    pub(crate) fn timeout(&self) -> Error {
        Error::TransactionTimeout { limit: self.limit, holder: None }
    }
}
