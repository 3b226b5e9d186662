//! What all sessions of a store behind a server have in common: where it is, what it takes, how it was opened.
//!
//! Invariant: it does not change once the store is open.

use std::sync::Arc;
use std::time::Duration;

use perilune_store::Limits;

use crate::address::Address;

/// How a database behind a server is opened.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Nothing is written, and no lock taken.
    pub read_only: bool,
    /// Each write waits for the disk, unless its transaction says otherwise.
    pub fsync: bool,
    /// For connecting, and for each answer.
    pub timeout: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions { read_only: false, fsync: false, timeout: Duration::from_secs(10) }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) address: Arc<Address>,
    pub(crate) limits: Limits,
    pub(crate) options: RemoteOptions,
}
