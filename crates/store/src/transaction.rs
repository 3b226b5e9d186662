//! Transactions: their options, their runner, and the hook that sees their writes.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result, Session};

/// How far a commit must have come before it is reported done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In shared memory: survives the death of all processes, not of the machine.
    None,
    /// On disk within 50 ms: what a new database has unless told otherwise.
    #[default]
    Periodic,
    /// On disk.
    Fsync,
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(Durability::None),
            "periodic" => Ok(Durability::Periodic),
            "fsync" => Ok(Durability::Fsync),
            _ => Err(Error::Invalid(format!("durability is none, periodic or fsync, not `{text}`"))),
        }
    }
}

/// How a transaction is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Refuse writes. Reads are validated all the same; nothing shared is written.
    pub read_only: bool,
    /// Time limit of all tries and waits together; 10 s if not told otherwise.
    pub timeout: Duration,
    /// What the commit waits for; None = the database's level. `Fsync`: until it is on disk, in the log or,
    /// where the database has none, in a checkpoint. Else nothing: how soon it gets there is the
    /// database's affair.
    pub durability: Option<Durability>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions { read_only: false, timeout: Duration::from_secs(10), durability: None }
    }
}

/// What a transaction has read, for others to rest on: [`Session::keep_reads`]. What it is only the store knows.
#[derive(Clone)]
pub struct KeptReads {
    reads: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl KeptReads {
    /// What a store has to keep, and how many bytes it takes.
    #[must_use]
    pub fn new(reads: Arc<dyn Any + Send + Sync>, bytes: usize) -> KeptReads {
        KeptReads { reads, bytes }
    }

    /// What the store has kept.
    #[must_use]
    pub fn reads(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.reads)
    }

    /// Bytes that it took when it was kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for KeptReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptReads").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// One write of a transaction, as a commit hook sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// Every key with this prefix is removed, before the other writes.
    RemovePrefix(&'a [u8]),
    /// The key gets this value.
    Set(&'a [u8], &'a [u8]),
    /// The key's value is removed.
    Remove(&'a [u8]),
}

/// The writes of a transaction about to commit, removals of prefixes first, then by key; and a place
/// to add more.
pub trait Writes {
    /// Calls `visit` for each write.
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>));
    /// Adds a write of `value` at `key`, validated and applied with the rest.
    fn set(&mut self, key: &[u8], value: &[u8]);
    /// Adds the removal of the value at `key`.
    fn remove(&mut self, key: &[u8]);
    /// Reads `key` as the transaction sees it, and makes that part of what is validated.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
}

/// Sees a transaction's writes before validation; its error rolls the transaction back.
pub type CommitHook = Box<dyn FnMut(&mut dyn Writes) -> Result<()> + Send>;

/// Runs `body` as a transaction and again on conflict, until it commits, fails or times out.
///
/// Called inside an open transaction it runs `body` once, as a nested level: an error rolls back that
/// level only, a conflict or restart passes through to the outermost runner.
///
/// # Errors
/// The body's own error (after a check that what it saw was one state), `TransactionTimeout`, or the
/// commit's.
pub fn transact<S: Session + ?Sized, R>(
    session: &mut S,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut S) -> Result<R>,
) -> Result<R> {
    if session.depth() > 0 {
        return nested(session, options, body);
    }
    loop {
        session.begin(options)?;
        let error = match body(session) {
            Ok(result) => match session.commit() {
                Ok(()) => return Ok(result),
                Err(error) => error,
            },
            // It says nothing of what was seen, and looking at that again would be another wait.
            Err(error) if error.is_wait() => error,
            // NB: an error that rests on two halves of different states must not escape.
            Err(error) if !error.is_retry() => match session.validate() {
                Ok(()) => error,
                Err(conflict) => conflict,
            },
            Err(error) => error,
        };
        while session.depth() > 0 {
            session.rollback()?;
        }
        if !error.is_retry() {
            session.give_up();
            return Err(error);
        }
        session.retry()?;
    }
}

fn nested<S: Session + ?Sized, R>(
    session: &mut S,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut S) -> Result<R>,
) -> Result<R> {
    let depth = session.depth();
    session.begin(options)?;
    let result = body(session);
    while session.depth() > depth + 1 {
        session.rollback()?;
    }
    match result {
        Ok(result) => session.commit().map(|()| result),
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}
