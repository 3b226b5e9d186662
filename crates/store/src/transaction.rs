//! Levels of transactions by hand. [`crate::transact`] runs them as they are to be run; a binding that cannot pass a closure
//! does the same with these.
//!
//! A series of tries: `begin`, operations, `commit`; after `Conflict` or `Restart` all levels are rolled back, `retry` waits
//! its turn, and `begin` continues the series. It ends with a commit that has happened, or with `give_up`.

use crate::{Result, TransactionOptions};

/// Levels of transactions of a session. While one is open, every operation of its session belongs to it.
pub trait Transactions {
    /// Opens a transaction, or a nested level of the open one (whose `options` are then ignored).
    ///
    /// # Errors
    /// `LimitReached` beyond [`crate::Limits::transaction_depth`].
    fn begin(&mut self, options: &TransactionOptions) -> Result<()>;

    /// Ends the innermost level: a nested one is merged into its parent, the outermost is validated
    /// and applied. After any error the level (for the outermost: the transaction) is gone.
    ///
    /// # Errors
    /// `Conflict`: run it again after [`Transactions::retry`]. Else as [`crate::Session::set`].
    fn commit(&mut self) -> Result<()>;

    /// Drops the innermost level and what it wrote; locks taken in it are released.
    ///
    /// # Errors
    /// `TransactionState` when none is open.
    fn rollback(&mut self) -> Result<()>;

    /// How many levels of transaction are open; in an attempt ([`crate::Optimistic`]) 1.
    fn depth(&self) -> usize;

    /// Checks that all the open transaction has read is still one state.
    ///
    /// # Errors
    /// `Conflict` when it is not.
    fn validate(&mut self) -> Result<()>;

    /// Prepares the next try of a transaction that ended with `Conflict` or `Restart` (all levels are
    /// rolled back): backs off, and from the third failure on asks for exclusive mode. The next
    /// [`Transactions::begin`] continues the same series of tries.
    ///
    /// # Errors
    /// `TransactionTimeout` when the series has reached its time limit; `Conflict` when it is never to ask for that
    /// ([`TransactionOptions::never_exclusive`]): then the series has ended.
    fn retry(&mut self) -> Result<()>;

    /// Ends a series of tries that will not go on (the body failed for good).
    fn give_up(&mut self);

    /// How often the open transaction has been run again (0 in its first run).
    fn restarts(&self) -> u32;
}
