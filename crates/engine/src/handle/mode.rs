//! What an operation of a session works on: told once, in one place, for all of them.
//!
//! One `get` reads the present, an open transaction, a one-shot transaction or a snapshot. A session finds out which by
//! [`Session::mode_to_read`] or [`Session::mode_to_write`], and each operation is a match over [`Mode`]:
//!
//! ```text
//! let Scene { access, mode, .. } = self.mode_to_read()?;
//! match mode {
//!     Mode::Present | Mode::Hooked => access.get(...),
//!     Mode::Transaction(running) => access.txn_get(&mut running.txn, ...),
//!     ...
//! ```
//!
//! Invariants
//! - A session is in one mode at a time; a snapshot's is so for all of its life, also inside a transaction, which has nothing
//!   to read or write there.
//! - Who asks to write in a mode that cannot is refused here.
//! - A transaction's clock is looked at here.

use perilune_store::{Error, Result};

use super::{Running, Session};
use crate::access::Access;
use crate::snapshot::Snapshot;
use crate::txn::OneShot;

/// What an operation works on.
pub(super) enum Mode<'a> {
    /// The database as it is now: each operation by itself.
    Present,
    /// As `Present`, but a write is a transaction, since a hook is to see it.
    Hooked,
    /// The open transaction.
    Transaction(&'a mut Running),
    /// The open one-shot transaction, which may be the beginning of a whole one.
    OneShot(&'a mut OneShot),
    /// A generation that is kept, in which nothing can be written.
    Snapshot(&'a Snapshot),
}

/// A mode, and what an operation needs beside it.
pub(super) struct Scene<'a> {
    pub(super) access: &'a Access,
    pub(super) mode: Mode<'a>,
    /// Memory: no operation relies on what it holds.
    pub(super) scratch: &'a mut Vec<u8>,
}

impl Session {
    /// The mode for an operation that reads.
    ///
    /// # Errors
    /// `Forked`; `TransactionTimeout`.
    #[inline(always)]
    pub(super) fn mode_to_read(&mut self) -> Result<Scene<'_>> {
        self.here()?;
        let Session { access, running, one_shot, snapshot, hook, scratch, .. } = self;
        let mode = match (snapshot, one_shot.is_open(), running) {
            (Some(snapshot), ..) => Mode::Snapshot(snapshot),
            (_, true, running) => {
                if let Some(running) = running {
                    running.tick()?;
                }
                Mode::OneShot(one_shot)
            }
            (.., Some(running)) => {
                running.tick()?;
                Mode::Transaction(running)
            }
            _ if hook.is_some() => Mode::Hooked,
            _ => Mode::Present,
        };
        Ok(Scene { access, mode, scratch })
    }

    /// The mode for an operation that writes.
    ///
    /// # Errors
    /// `ReadOnly`; else as of [`Session::mode_to_read`].
    #[inline(always)]
    pub(super) fn mode_to_write(&mut self) -> Result<Scene<'_>> {
        self.here_to_write()?;
        match &self.running {
            Some(running) if running.options.read_only => Err(Error::ReadOnly),
            _ => self.mode_to_read(),
        }
    }

    /// Whether no transaction of any kind is open.
    #[inline(always)]
    pub(super) fn is_present(&self) -> bool {
        self.running.is_none() && !self.one_shot.is_open()
    }
}
