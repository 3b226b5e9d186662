//! Known bugs that can be switched on, to show that the instruments find them.

/// One bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A commit does not check that the reads still hold.
    BlindCommits,
    /// A read does not check that earlier ones still hold: bodies see halves of two states.
    BlindReads,
    /// Reads of neighbours and descendants are not checked.
    MissedPhantoms,
    /// The removal of a prefix leaves what is below it.
    KeptDescendants,
    /// A rollback does not release the locks of its level.
    KeptLocks,
    /// A rolled-back message is posted all the same.
    KeptPosts,
}
