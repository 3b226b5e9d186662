//! How a transaction is to run: may it write, for how long, and what does its commit wait for?

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
