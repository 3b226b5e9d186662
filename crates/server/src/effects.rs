//! What commands do besides their replies and their nodes, and what happens only if they commit.
//!
//! Invariant: nothing here has happened while the transaction is open; a level that is taken back takes
//! its effects along ([`Effects::mark`], [`Effects::rewind`]).

use std::sync::atomic::Ordering;

use perilune::Session;

use crate::failure::Result;
use crate::limits::DATABASES;
use crate::mailbox::Letter;
use crate::notify::{self, Event};
use crate::queue;
use crate::server::Server;
use crate::settings::Name;
use crate::statistics::Tally;
use crate::subscribers::Topic;

/// The effects of the commands of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// For event loops of this server, by number.
    pub(crate) letters: Vec<(usize, Letter)>,
    /// Names that the client is subscribed to now, or is no longer.
    pub(crate) subscriptions: Vec<(Topic, Vec<u8>, bool)>,
    /// What ran inside EXEC or a script.
    pub(crate) tally: Tally,
    events: Vec<Event>,
    /// Keys that there are now, with their databases, which clients may wait for.
    ready: Vec<(i64, Vec<u8>)>,
    /// Clients of this server wait for keys.
    waited_for: bool,
    /// The number of this server.
    pub(crate) home: i64,
    /// Which events are told of.
    pub(crate) notify: u32,
    /// How many databases there are; 0: as by default.
    databases: i64,
}

/// How far the effects went at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    letters: usize,
    subscriptions: usize,
    events: usize,
    ready: usize,
}

impl Effects {
    /// Takes over what the server's settings are now, before a command.
    pub(crate) fn begin(&mut self, server: &Server) {
        self.home = server.number;
        self.databases = server.databases;
        self.waited_for = server.blocked.load(Ordering::Acquire) > 0;
        self.notify = server.live.number(Name::NotifyKeyspaceEvents) as u32;
    }

    /// Whether events of any of `classes` are told of.
    #[inline]
    pub(crate) fn tells(&self, classes: u32) -> bool {
        notify::wants(self.notify, classes)
    }

    /// Whether [`Effects::finish`] has something to do.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.ready.is_empty() || !self.events.is_empty()
    }

    /// How many databases there are.
    pub(crate) fn databases(&self) -> i64 {
        if self.databases == 0 {
            DATABASES
        } else {
            self.databases
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.subscriptions.is_empty()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            letters: self.letters.len(),
            subscriptions: self.subscriptions.len(),
            events: self.events.len(),
            ready: self.ready.len(),
        }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.letters.truncate(mark.letters);
        self.subscriptions.truncate(mark.subscriptions);
        self.events.truncate(mark.events);
        self.ready.truncate(mark.ready);
    }

    /// Notes that something of `class` has happened to a key.
    #[inline]
    pub(crate) fn notify(&mut self, class: u32, name: &'static str, database: i64, key: &[u8]) {
        if notify::wants(self.notify, class) {
            self.events.push(Event { name, database, key: key.to_vec() });
        }
    }

    /// Notes that a key is there that may not have been.
    #[inline]
    pub(crate) fn ready(&mut self, database: i64, key: &[u8]) {
        if self.waited_for {
            self.wake(database, key);
        }
    }

    /// The same whether or not anybody is known to wait.
    pub(crate) fn wake(&mut self, database: i64, key: &[u8]) {
        if !self.ready.iter().any(|(other, known)| *other == database && known == key) {
            self.ready.push((database, key.to_vec()));
        }
    }

    /// Does what belongs into the transaction, at its end.
    pub(crate) fn finish(&mut self, session: &mut Session) -> Result<()> {
        // Serving may bring further keys into being.
        let mut next = 0;
        while let Some((database, key)) = self.ready.get(next).cloned() {
            queue::serve(session, self, database, &key)?;
            next += 1;
        }
        self.ready.clear();
        if self.events.is_empty() {
            return Ok(());
        }
        let events = std::mem::take(&mut self.events);
        notify::send(session, self, &events)
    }
}
