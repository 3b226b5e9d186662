//! Transactions by hand: levels that are begun and ended one by one, for bindings that cannot pass a closure.
//!
//! Example: the Lua module runs a function of its caller between [`Levels::begin`] and [`Levels::commit`], and does after a
//! conflict what [`Session::transaction`] does by itself: it rolls all levels back, calls [`Levels::retry`] and begins again.
//!
//! Invariant: each level ends in one commit or rollback.

use perilune_store::Transactions;

use crate::{Error, Result, Session, TransactionOptions};

/// Levels of transaction, opened and ended by hand.
pub trait Levels {
    /// Opens a level of transaction by hand, for bindings that cannot pass a closure; use
    /// [`Session::transaction`] where you can. Each level ends in [`Levels::commit`] or
    /// [`Levels::rollback`]. After `Conflict` or `Restart`: roll all levels back, call
    /// [`Levels::retry`] and begin again; after any other failure of the body: [`Levels::validate`]
    /// (it may rest on halves of two states), roll back, [`Levels::give_up`].
    ///
    /// # Errors
    /// `LimitReached` beyond [`crate::Limits::transaction_depth`]; `Forked`.
    fn begin(&mut self, options: &TransactionOptions) -> Result<()>;

    /// Ends the innermost level: a nested one is merged into the one around it, the outermost is
    /// validated and applied. After any error the level is gone.
    ///
    /// # Errors
    /// `Conflict`; `Restart` if a nested level asked for it; `TransactionState` when none is open; else
    /// as [`Session::set`].
    fn commit(&mut self) -> Result<()>;

    /// Drops the innermost level and what it wrote; locks taken in it are released.
    ///
    /// # Errors
    /// `TransactionState` when none is open.
    fn rollback(&mut self) -> Result<()>;

    /// Prepares the next try of a transaction run by hand, with all levels rolled back: backs off.
    ///
    /// # Errors
    /// `TransactionTimeout` when the tries have reached their time limit.
    fn retry(&mut self) -> Result<()>;

    /// Ends the tries of a transaction run by hand that has failed for good.
    fn give_up(&mut self);

    /// Checks that all the open transaction has read is still one state.
    ///
    /// # Errors
    /// `Conflict` when it is not.
    fn validate(&mut self) -> Result<()>;

    /// How often the open transaction has been run again; 0 in its first run.
    #[must_use]
    fn restarts(&self) -> u32;

    /// Has the server of the database run `program` as one transaction, in one round trip; the answer is what it says.
    /// For bindings: the program is in a form that they and the server agree on (docs/format/wire.md, RUN).
    ///
    /// # Errors
    /// `Invalid` for a database in a file, inside a transaction and with a commit hook; `CommitUnknown` when the
    /// connection is lost before the answer; `CannotOpen` with what the server says when it does not run it; else as
    /// [`Session::transaction`].
    fn run_at_server(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>>;
}

impl Levels for Session {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        if self.depth() == 0 {
            self.rerun = false;
        }
        Ok(self.trees.begin(options)?)
    }

    fn commit(&mut self) -> Result<()> {
        if self.rerun && self.depth() > 0 {
            self.trees.rollback()?;
            return Err(Error::Restart);
        }
        Ok(self.trees.commit()?)
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.trees.rollback()?)
    }

    fn retry(&mut self) -> Result<()> {
        Ok(self.trees.database.retry()?)
    }

    fn give_up(&mut self) {
        self.trees.database.give_up();
    }

    fn validate(&mut self) -> Result<()> {
        Ok(self.trees.database.validate()?)
    }

    fn restarts(&self) -> u32 {
        self.trees.database.restarts()
    }

    fn run_at_server(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>> {
        Ok(self.trees.database.run(options, program)?)
    }
}
