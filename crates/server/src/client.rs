//! What the server remembers of a client between its commands.

use std::time::Instant;

use perilune_resp::{ArgumentsBuf, Protocol};

use crate::table::Command;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Unique over all servers of the database.
    pub(crate) id: i64,
    pub(crate) address: String,
    pub(crate) name: Vec<u8>,
    pub(crate) protocol: Protocol,
    /// The number given to SELECT.
    pub(crate) database: i64,
    pub(crate) authenticated: bool,
    pub(crate) since: Instant,
    /// Between MULTI and EXEC.
    pub(crate) queue: Option<Queue>,
    pub(crate) watched: Vec<Watched>,
    /// No further command is read, and the connection ends when its replies are sent.
    pub(crate) closing: bool,
}

/// Commands behind MULTI.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<(&'static Command, ArgumentsBuf)>,
    pub(crate) bytes: usize,
    /// One of them could not be queued: EXEC refuses.
    pub(crate) failed: bool,
}

/// A key that must be at EXEC what it was at WATCH.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) database: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) digest: [u8; 32],
}

impl Client {
    pub(crate) fn new(id: i64, address: String, authenticated: bool) -> Client {
        Client {
            id,
            address,
            name: Vec::new(),
            protocol: Protocol::Resp2,
            database: 0,
            authenticated,
            since: Instant::now(),
            queue: None,
            watched: Vec::new(),
            closing: false,
        }
    }

    /// As if it had just connected, but for its number.
    pub(crate) fn reset(&mut self, authenticated: bool) {
        self.name.clear();
        self.protocol = Protocol::Resp2;
        self.database = 0;
        self.authenticated = authenticated;
        self.queue = None;
        self.watched.clear();
    }
}
