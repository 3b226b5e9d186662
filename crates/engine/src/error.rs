//! How an attempt on shared pages ends early.
//!
//! Attempts hold latches only inside; whoever receives a `Stop` holds none (multi-page commits, which
//! say so, aside) and may wait, repair or change the structure before the next attempt.

use perilune_store::Error;

/// Why an attempt did not come to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody changed what was being read: start again.
    Restart,
    /// Somebody holds this page: wait, and see whether he lives.
    Busy(u32),
    /// Somebody else has exclusive mode: wait for it.
    Lease,
    /// A page on the key's path belongs to the last checkpoint: copy it first.
    Copy,
    /// The leaf is full: split it first.
    Split,
    /// What was prepared is for something that is no longer so: prepare it again.
    Stale,
    /// It cannot be done.
    Fail(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Fail(error)
    }
}

/// The result of one attempt.
pub(crate) type Attempt<T> = std::result::Result<T, Stop>;
