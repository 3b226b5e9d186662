//! A database at a server: its address, and what the server said of itself.

use std::path::Path;
use std::sync::Arc;

use perilune_store::{
    Absent, Durability, Error, Figure, Limits, LockReport, ProcessReport, Reports, Result, Store,
};

use super::address::Address;
use super::link::Link;
use super::session::RemoteSession;
use crate::limits::{WIRE_TRANSACTION_BYTES, WIRE_TRANSACTION_READS};
use crate::OpenOptions;

/// An open database behind a server; its sessions have a connection each.
#[derive(Clone, Debug)]
pub(crate) struct RemoteDatabase {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: Arc<Address>,
    pub(super) limits: Limits,
    pub(super) read_only: bool,
    /// Each write waits for the disk.
    pub(super) fsync: bool,
    pub(super) timeout: std::time::Duration,
}

impl RemoteDatabase {
    /// Connects once, to learn what the server is.
    pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<RemoteDatabase> {
        let address = Arc::new(Address::parse(path)?);
        let timeout = options.timeout.max(std::time::Duration::from_millis(1));
        let greeting = Link::new(&address, timeout).greet()?;
        Ok(RemoteDatabase {
            shared: Arc::new(Shared {
                address,
                limits: Limits {
                    key_bytes: greeting.key_bytes,
                    value_bytes: greeting.value_bytes,
                    update_bytes: greeting.update_bytes,
                    transaction_depth: greeting.transaction_depth,
                    transaction_bytes: Some(WIRE_TRANSACTION_BYTES),
                    transaction_operations: Some(WIRE_TRANSACTION_READS),
                    transaction_time: None,
                },
                read_only: options.read_only,
                fsync: options.durability == Some(Durability::Fsync),
                timeout,
            }),
        })
    }

    /// The address, without its password.
    pub(crate) fn shown(&self) -> String {
        self.shared.address.shown()
    }

    /// The refusal of what only a file can do.
    pub(crate) fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(Error::Invalid(format!(
            "{what} is for a database in a file, not for {}: do it on the server's machine",
            self.shown()
        )))
    }
}

impl Store for RemoteDatabase {
    type Session = RemoteSession;
    type Snapshots = Absent;
    type Reports = RemoteDatabase;

    fn session(&self) -> Result<RemoteSession> {
        Ok(RemoteSession::new(self))
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn snapshots(&self) -> Option<&Absent> {
        None
    }

    fn reports(&self) -> Option<&RemoteDatabase> {
        Some(self)
    }
}

/// Nothing of itself: what the server does is its own affair, and is asked there.
impl Reports for RemoteDatabase {
    fn figures(&self) -> Result<Vec<Figure>> {
        Ok(Vec::new())
    }

    fn locks(&self) -> Result<Vec<LockReport>> {
        self.refuse("the list of locks")
    }

    fn processes(&self) -> Result<Vec<ProcessReport>> {
        Ok(Vec::new())
    }
}
