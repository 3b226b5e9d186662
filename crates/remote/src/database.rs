//! A database at a server: its address, and what the server said of itself.
//!
//! Example: opening `tcp://host` connects once, and learns how long a key may be there. Sessions connect when they are
//! first used.
//!
//! Invariant: opening fails where nothing answers, or what answers is no server of ours.
//!
//! Deliberately absent: snapshots, and figures of the server, which are asked for there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perilune_store::{Absent, Error, Figure, Limits, LockReport, ProcessReport, Reports, Result, Store};

use crate::address::Address;
use crate::limits::{TRANSACTION_BYTES, TRANSACTION_READS};
use crate::link::Link;
use crate::session::RemoteSession;
use crate::shared::{RemoteOptions, Shared};

/// An open database behind a server; its sessions have a connection each.
#[derive(Clone, Debug)]
pub struct RemoteStore {
    shared: Arc<Shared>,
}

impl RemoteStore {
    /// Connects once, to learn what the server is.
    ///
    /// # Errors
    /// `Invalid`, with how an address looks; `Unavailable`; `CannotOpen`, with what the server said.
    pub fn open(address: &Path, options: &RemoteOptions) -> Result<RemoteStore> {
        let address = Arc::new(Address::parse(address)?);
        let timeout = options.timeout.max(Duration::from_millis(1));
        let greeting = Link::new(&address, timeout).greet()?;
        Ok(RemoteStore {
            shared: Arc::new(Shared {
                address,
                limits: Limits {
                    key_bytes: greeting.key_bytes,
                    value_bytes: greeting.value_bytes,
                    update_bytes: greeting.update_bytes,
                    transaction_depth: greeting.transaction_depth,
                    transaction_bytes: Some(TRANSACTION_BYTES),
                    transaction_operations: Some(TRANSACTION_READS),
                    transaction_time: None,
                    exclusive_mode: false,
                    shared_owners: false,
                },
                options: RemoteOptions { timeout, ..options.clone() },
            }),
        })
    }

    /// The address, without its password.
    #[must_use]
    pub fn address(&self) -> String {
        self.shared.address.shown()
    }
}

impl Store for RemoteStore {
    type Session = RemoteSession;
    type Snapshots = Absent;
    type Reports = RemoteStore;

    fn session(&self) -> Result<RemoteSession> {
        Ok(RemoteSession::new(&self.shared))
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn snapshots(&self) -> Option<&Absent> {
        None
    }

    fn reports(&self) -> Option<&RemoteStore> {
        Some(self)
    }
}

/// Nothing of itself: what the server does is its own affair, and is asked there.
impl Reports for RemoteStore {
    fn figures(&self) -> Result<Vec<Figure>> {
        Ok(Vec::new())
    }

    fn locks(&self) -> Result<Vec<LockReport>> {
        Err(Error::Invalid(format!(
            "the list of locks is for a database in a file, not for {}: do it on the server's machine",
            self.address()
        )))
    }

    fn processes(&self) -> Result<Vec<ProcessReport>> {
        Ok(Vec::new())
    }
}
