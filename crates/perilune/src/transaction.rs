//! Transactions: a closure that is run, and run again, until what it saw and wrote is one state.
//!
//! Invariants
//! - A level that ends in an error leaves nothing behind, neither in the database nor in local trees.
//! - A restart (asked for or forced by a conflict) always reaches the outermost level, also when a
//!   body in between swallows it: `Session::rerun` remembers it.
//! - No error and no panic that rests on halves of two states escapes: before either does, what the
//!   body read is validated, and the body runs again if that fails.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::Duration;

use perilune_store::{
    Bounds, Deferral, Error as StoreError, Facets, KeptReads, Optimistic, ReadSets, Result as StoreResult,
    Transactions,
};

use crate::{Error, Result, Session, TransactionOptions};

/// How a body failed for good.
enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl Session {
    /// Runs `body` as a transaction: serializable, and run again by itself on conflict.
    ///
    /// The body works with the same methods of the session; its reads see its own writes. `Ok`
    /// commits, any error rolls back and is returned ([`Error::Rollback`] exists for that alone).
    /// The body may run several times, so it should have no effect outside the session. Local nodes
    /// take part: what a failed run wrote to them is taken back.
    ///
    /// Called inside a transaction, it is a nested level: an error rolls back that level only, and
    /// the body around it may go on. [`Error::Restart`] always restarts the outermost level.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-tx-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Error};
    ///
    /// let (from, to) = (node!("^account", "ann")?, node!("^account", "ben")?);
    /// session.set(&from, 100)?;
    /// session.transaction(|t| {
    ///     let balance = t.get_int(&from)?.unwrap_or(0);
    ///     if balance < 30 {
    ///         return Err(Error::Rollback);
    ///     }
    ///     t.increment(&from, -30)?;
    ///     t.increment(&to, 30)?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(session.get_int(&to)?, Some(30));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The body's; `TransactionTimeout` when its time limit (10 s) is reached; a commit's own.
    ///
    /// # Panics
    /// With the body's panic, after the rollback.
    pub fn transaction<R>(&mut self, body: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
        self.transaction_with(&TransactionOptions::default(), body)
    }

    /// Runs `body` as a transaction with `options`: read-only, time limit, durability. A nested level
    /// takes those of the outermost one instead. A read-only transaction may write local nodes.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    ///
    /// # Panics
    /// As [`Session::transaction`].
    pub fn transaction_with<R>(
        &mut self,
        options: &TransactionOptions,
        mut body: impl FnMut(&mut Session) -> Result<R>,
    ) -> Result<R> {
        let outermost = self.depth() == 0;
        let mut failure = None;
        let result = perilune_store::transact(&mut Runner(self), options, |runner| {
            failure = None;
            let session = &mut *runner.0;
            let outcome = catch_unwind(AssertUnwindSafe(|| body(session)));
            if session.rerun {
                return Err(StoreError::Restart);
            }
            match outcome {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(Error::Conflict)) => Err(StoreError::Conflict),
                Ok(Err(Error::Restart)) => Err(StoreError::Restart),
                Ok(Err(error)) => {
                    failure = Some(Failure::Error(error));
                    Err(failed())
                }
                Err(panic) => {
                    failure = Some(Failure::Panic(panic));
                    Err(failed())
                }
            }
        });
        match result {
            Ok(result) => Ok(result),
            Err(error) if error.is_retry() => {
                self.rerun = !outermost;
                Err(error.into())
            }
            Err(StoreError::Refused(why)) if why.is_empty() => match failure {
                Some(Failure::Error(error)) => Err(error),
                Some(Failure::Panic(panic)) => resume_unwind(panic),
                None => Err(Error::Store(StoreError::Refused(why))),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Runs `body` once as a transaction that reads and writes few nodes, at a fraction of what
    /// [`Session::transaction`] costs. `None`: it has done nothing; run the same as a transaction. So it is when
    /// `body` does much, removes what it has written, removes trees, takes locks or posts; when others are at the same
    /// nodes; and inside a transaction.
    ///
    /// `body` may see halves of two states, as long as it ends ([`Session::validate`] tells): what it answers then does
    /// not count, nor does its error. It must not write local nodes, which are not taken back.
    ///
    /// # Errors
    /// The body's; else as [`Session::set`].
    pub fn attempt<R>(&mut self, body: impl FnOnce(&mut Session) -> Result<R>) -> Result<Option<R>> {
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

    /// Ends an attempt; only a back end that has begun one is asked.
    fn end_attempt(&mut self, keep: bool) -> Result<bool> {
        Ok(self.trees.database.optimistic().map_or(Ok(false), |optimistic| optimistic.end_attempt(keep))?)
    }

    /// Whether the last [`Session::attempt`] came to nothing because others were at the same nodes, and not for what it
    /// did: then another one may do better, and costs less than a transaction.
    #[inline]
    #[must_use]
    pub fn has_met(&self) -> bool {
        self.depth() == 0 && self.trees.database.file().is_some_and(Optimistic::was_disturbed)
    }

    /// Has the server of the database run `program` as one transaction, in one round trip; the answer is what it says.
    /// For bindings: the program is in a form that they and the server agree on (docs/format/wire.md, RUN).
    ///
    /// # Errors
    /// `Invalid` for a database in a file, inside a transaction and with a commit hook; `CommitUnknown` when the
    /// connection is lost before the answer; `CannotOpen` with what the server says when it does not run it; else as
    /// [`Session::transaction`].
    pub fn run_at_server(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>> {
        Ok(self.trees.database.run(options, program)?)
    }

    /// From now on (or, with false, no longer) what this session writes frees space on the whole, and may use the pages
    /// and the part of the log that are kept for that when the disk is full. What only removes may do so anyhow.
    #[inline]
    pub fn free_up(&mut self, frees: bool) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.free_up(frees);
        }
    }

    /// Changes how long each wait for a page that another process holds and does not give back may take, until the
    /// operation answers `Busy`; see [`crate::OpenOptions::wait_limit`]. It says nothing of a database behind a server, whose
    /// own limit holds.
    #[inline]
    pub fn set_wait_limit(&mut self, limit: Duration) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.set_wait_limit(limit);
        }
    }

    /// How long each such wait may take.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        self.trees.database.file().map_or(Duration::MAX, Bounds::wait_limit)
    }

    /// From now on (or, with false, no longer) what this session writes does not wait until it is durable: the
    /// next [`Session::settle`] waits for all of it at once, with one sync. Others see it meanwhile, as they do
    /// while a commit waits. For servers, which answer many at once; at durability `periodic` and `none`, where
    /// nothing waits, it changes nothing.
    pub fn defer(&mut self, deferring: bool) {
        if let Some(deferral) = self.trees.database.deferral() {
            deferral.defer(deferring);
        }
    }

    /// Whether something has been written that [`Session::settle`] has to wait for.
    #[inline]
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.trees.database.file().is_some_and(Deferral::is_unsettled)
    }

    /// Waits until all that was written since [`Session::defer`] is as durable as it was to be. Not inside a
    /// transaction.
    ///
    /// # Errors
    /// `NotDurable`: it has happened, but is not on disk. It is told once, for all of it.
    pub fn settle(&mut self) -> Result<()> {
        Ok(self.trees.database.deferral().map_or(Ok(()), Deferral::settle)?)
    }

    /// Opens a level of transaction by hand, for bindings that cannot pass a closure; use
    /// [`Session::transaction`] where you can. Each level ends in [`Session::commit`] or
    /// [`Session::rollback`]. After `Conflict` or `Restart`: roll all levels back, call
    /// [`Session::retry`] and begin again; after any other failure of the body: [`Session::validate`]
    /// (it may rest on halves of two states), roll back, [`Session::give_up`].
    ///
    /// # Errors
    /// `LimitReached` beyond [`crate::Limits::transaction_depth`]; `Forked`.
    pub fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        if self.depth() == 0 {
            self.rerun = false;
        }
        Ok(self.trees.begin(options)?)
    }

    /// Ends the innermost level: a nested one is merged into the one around it, the outermost is
    /// validated and applied. After any error the level is gone.
    ///
    /// # Errors
    /// `Conflict`; `Restart` if a nested level asked for it; `TransactionState` when none is open; else
    /// as [`Session::set`].
    pub fn commit(&mut self) -> Result<()> {
        if self.rerun && self.depth() > 0 {
            self.trees.rollback()?;
            return Err(Error::Restart);
        }
        Ok(self.trees.commit()?)
    }

    /// Drops the innermost level and what it wrote; locks taken in it are released.
    ///
    /// # Errors
    /// `TransactionState` when none is open.
    pub fn rollback(&mut self) -> Result<()> {
        Ok(self.trees.rollback()?)
    }

    /// Prepares the next try of a transaction run by hand, with all levels rolled back: backs off.
    ///
    /// # Errors
    /// `TransactionTimeout` when the tries have reached their time limit.
    pub fn retry(&mut self) -> Result<()> {
        Ok(self.trees.database.retry()?)
    }

    /// Ends the tries of a transaction run by hand that has failed for good.
    pub fn give_up(&mut self) {
        self.trees.database.give_up();
    }

    /// Bytes of memory that the writes of the open transaction take, about; 0 for a database behind a server.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.trees.database.file().map_or(0, Bounds::pending_bytes)
    }

    /// From now on, in whatever transaction, a write that would make these more than so many is refused: it is
    /// `LimitReached`, and the transaction goes on without it.
    pub fn limit_pending(&mut self, bytes: usize) {
        if let Some(bounds) = self.trees.database.bounds() {
            bounds.limit_pending(bytes);
        }
    }

    /// Checks that all the open transaction has read is still one state.
    ///
    /// # Errors
    /// `Conflict` when it is not.
    pub fn validate(&mut self) -> Result<()> {
        Ok(self.trees.database.validate()?)
    }

    /// What the open transaction has read so far, its own writes and local nodes aside, for later transactions to rest on
    /// ([`Session::rest_on`]), of any session of the database. Call it at the transaction's end, which no longer remembers what
    /// it has read. `None` if not all of that is noted, as in transactions that read very much, or of a database behind a server.
    pub fn keep_reads(&mut self) -> Option<KeptReads> {
        self.trees.database.read_sets()?.keep_reads()
    }

    /// Whether all that `kept` holds is still so. Then the open transaction rests on it as on what it has read itself: it commits only
    /// at a moment at which that is so, too. Where nobody has written near it, this costs a look at each of its pages.
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what was kept of another database; `Conflict`: run it again.
    pub fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool> {
        match self.trees.database.read_sets() {
            Some(read_sets) => Ok(read_sets.rest_on(kept)?),
            None => Err(Error::invalid("this database keeps nothing that was read")),
        }
    }

    /// How many levels of transaction are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.trees.database.depth()
    }

    /// How often the open transaction has been run again; 0 in its first run.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.trees.database.restarts()
    }

    /// Runs `body` so that all it reads is one state: in a read-only transaction, or in the open one.
    /// What is local changes by this session alone and needs none.
    pub(crate) fn at_one_moment<R>(
        &mut self,
        local: bool,
        mut body: impl FnMut(&mut Session) -> Result<R>,
    ) -> Result<R> {
        if local || self.depth() > 0 {
            return body(self);
        }
        self.transaction_with(&TransactionOptions { read_only: true, ..TransactionOptions::default() }, body)
    }
}

/// A brief transaction, which ends in any case.
struct Attempt<'a>(&'a mut Session);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nothing was written; the panic says why.
            let _ = self.0.end_attempt(false);
        }
    }
}

/// Stands for the failure kept beside the runner. An empty text allocates nothing.
fn failed() -> StoreError {
    StoreError::Refused(String::new())
}

/// A session as the storage's transaction runner sees it: levels of both kinds of trees.
struct Runner<'a>(&'a mut Session);

impl Transactions for Runner<'_> {
    fn begin(&mut self, options: &TransactionOptions) -> StoreResult<()> {
        if self.depth() == 0 {
            self.0.rerun = false;
        }
        self.0.trees.begin(options)
    }

    fn commit(&mut self) -> StoreResult<()> {
        self.0.trees.commit()
    }

    fn rollback(&mut self) -> StoreResult<()> {
        self.0.trees.rollback()
    }

    fn depth(&self) -> usize {
        self.0.trees.database.depth()
    }

    fn validate(&mut self) -> StoreResult<()> {
        self.0.trees.database.validate()
    }

    fn retry(&mut self) -> StoreResult<()> {
        self.0.trees.database.retry()
    }

    fn give_up(&mut self) {
        self.0.trees.database.give_up();
    }

    fn restarts(&self) -> u32 {
        self.0.trees.database.restarts()
    }
}
