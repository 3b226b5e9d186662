//! How a transaction is to run: may it write, for how long, and what does its commit wait for?
//!
//! Example: `TransactionOptions { durability: Some(Durability::Fsync), ..TransactionOptions::default() }` for a payment in
//! a database whose other commits need not be on disk at once.
//!
//! Invariant: options of the outermost level hold for all levels.

use std::str::FromStr;
use std::time::Duration;

use crate::{Error, Result};

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

/// How the first try of a transaction is made, where a back end has more than one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTry {
    /// As whoever runs it thinks best: by a closure as a one-shot transaction, by hand as a whole one.
    #[default]
    Any,
    /// As a one-shot transaction, which goes on as a whole one where it is asked for more than that can do. It costs a
    /// fraction, but a write of others to a neighbour of what it has read is a conflict; the second try is a whole one.
    OneShot,
    /// As a whole one: for those whose reads are to be kept ([`crate::ReadSets`]), or where a conflict is dear.
    Whole,
}

/// After so many failed tries a transaction asks for exclusive mode, or gives up ([`TransactionOptions::never_exclusive`]).
pub const TRIES_BEFORE_EXCLUSIVE: u32 = 3;

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
    /// Ask for the right to publish alone at the first try, where a back end has such a right, and not only when
    /// tries have failed: for programs that cannot run a transaction again. It lasts a limited time, so that a
    /// long transaction may conflict all the same. Back ends without it ([`crate::Limits::exclusive_mode`]) refuse it, but
    /// for what only reads, which nobody has to be kept from.
    pub exclusive: bool,
    /// Never ask for that right, so that nobody is kept from committing: after [`TRIES_BEFORE_EXCLUSIVE`] failed tries the
    /// transaction fails with `Conflict`, and where it reads or writes more pages than it can beside others, with
    /// `LimitReached`. What to do then, and when, is up to whoever runs it. Not together with `exclusive`.
    pub never_exclusive: bool,
    /// How the first try is made.
    pub first_try: FirstTry,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions {
            read_only: false,
            timeout: Duration::from_secs(10),
            durability: None,
            exclusive: false,
            never_exclusive: false,
            first_try: FirstTry::Any,
        }
    }
}

impl TransactionOptions {
    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<()> {
        if self.exclusive && self.never_exclusive {
            return Err(Error::Invalid(
                "a transaction that asks for exclusive mode cannot do without it: give one of the two options"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Whether a transaction that has failed so often is to fail for good, rather than to ask for exclusive mode.
    #[must_use]
    pub fn gives_up_after(&self, failures: u32) -> bool {
        self.never_exclusive && failures >= TRIES_BEFORE_EXCLUSIVE
    }
}
