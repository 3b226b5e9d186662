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

use perilune_store::{Error as StoreError, Result as StoreResult, Transactions};

use crate::{Error, FirstTry, Result, Session, TransactionOptions};

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
    /// The body may run several times, so it should have no effect outside the session. Its first run is
    /// a one-shot transaction, which goes on as a whole one where it does more than that can ([`FirstTry`]). Local nodes
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
        let first_try = match options.first_try {
            FirstTry::Any if !options.exclusive => FirstTry::OneShot,
            other => other,
        };
        let options = &TransactionOptions { first_try, ..options.clone() };
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

    /// How many levels of transaction are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.trees.database.depth()
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
