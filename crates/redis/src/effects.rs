//! What commands do besides their replies and their nodes, and what happens only if they commit.
//!
//! Example: EXEC of three commands, the second of which fails: what the second has noted is rewound to the mark before it, and the
//! letters of the first and third leave with the commit.
//!
//! Invariant: nothing here has happened while the transaction is open; a level that is taken back takes
//! its effects along ([`Effects::mark`], [`Effects::rewind`]).

use std::sync::atomic::Ordering;
use std::sync::Arc;

use crate::cursors::Cursors;
use crate::invalidation::{self, Change};
use crate::limits::DATABASES;
use crate::mailbox::Letter;
use crate::notify::{self, Event};
use crate::server::Server;
use crate::settings::Name;
use crate::statistics::{Looks, Tally};
use crate::subscriptions;
use perilune_net::crew::Crew;

/// The effects of the commands of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// For event loops of this server, by number.
    pub(crate) letters: Vec<(usize, Letter)>,
    /// Names that the client is subscribed to now, or is no longer.
    pub(crate) subscriptions: Vec<subscriptions::Change>,
    /// What ran inside EXEC or a script.
    pub(crate) tally: Tally,
    /// Keys that commands which only read have found, and have not found.
    pub(crate) looks: Looks,
    pub(crate) events: Vec<Event>,
    /// Keys that have changed, if anybody is to be told of all that do; none: anything has.
    pub(crate) changes: Vec<Option<Change>>,
    /// The state of the server's switch of that, and whether nobody was found to tell.
    pub(crate) broadcast: u64,
    pub(crate) unheard: bool,
    /// The client whose command it is; 0: nobody's.
    pub(crate) client: i64,
    /// Keys that there are now, with their databases, which clients may wait for.
    pub(crate) ready: Vec<(i64, Vec<u8>)>,
    /// Clients of this server wait for keys.
    waited_for: bool,
    /// The number of this server.
    pub(crate) home: i64,
    /// Which events are told of.
    pub(crate) notify: u32,
    /// How many databases there are; 0: as by default.
    databases: i64,
    /// What the server remembers of scans.
    cursors: Option<Arc<Cursors>>,
}

/// How far the effects went at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    letters: usize,
    subscriptions: usize,
    events: usize,
    changes: usize,
    ready: usize,
    looks: Looks,
}

impl Effects {
    /// Takes over what the server's settings are now, before a command.
    pub(crate) fn begin(&mut self, server: &Server) {
        self.home = server.number();
        self.databases = server.rules().databases();
        self.waited_for = server.commons().blocked().load(Ordering::Acquire) > 0;
        self.notify = server.rules().live().number(Name::NotifyKeyspaceEvents) as u32;
        self.broadcast = server.commons().broadcast().state();
        self.unheard = false;
        self.client = 0;
        if self.cursors.is_none() {
            self.cursors = Some(Arc::clone(server.commons().cursors()));
        }
    }

    /// What the server remembers of scans.
    pub(crate) fn cursors(&mut self) -> &Cursors {
        self.cursors.get_or_insert_default()
    }

    /// Whether clients are to be told of all keys that change.
    #[inline]
    pub(crate) fn broadcasts(&self) -> bool {
        invalidation::is_on(self.broadcast)
    }

    /// Whether events of any of `classes` are told of.
    #[inline]
    pub(crate) fn tells(&self, classes: u32) -> bool {
        notify::wants(self.notify, classes)
    }

    /// Whether `commit::finish` has something to do.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.ready.is_empty() || !self.events.is_empty() || !self.changes.is_empty()
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

    /// Posts all letters, for whoever has no loop that does.
    pub(crate) fn post_all(&mut self, crew: &Crew<Letter>) {
        for (thread, letter) in self.letters.drain(..) {
            if let Some(mailbox) = crew.mailboxes().get(thread) {
                mailbox.post(letter);
            }
        }
    }

    /// Sends off what loops are told of changed keys, and nothing else: for who has committed, and goes on for long.
    pub(crate) fn post_changes(&mut self, crew: &Crew<Letter>) {
        let is_change = |(_, letter): &(usize, Letter)| matches!(letter, Letter::Changed(_));
        let (changes, others) = std::mem::take(&mut self.letters).into_iter().partition(is_change);
        self.letters = changes;
        self.post_all(crew);
        self.letters = others;
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            letters: self.letters.len(),
            subscriptions: self.subscriptions.len(),
            events: self.events.len(),
            changes: self.changes.len(),
            ready: self.ready.len(),
            looks: self.looks,
        }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.letters.truncate(mark.letters);
        self.subscriptions.truncate(mark.subscriptions);
        self.events.truncate(mark.events);
        self.changes.truncate(mark.changes);
        self.unheard = false;
        self.ready.truncate(mark.ready);
        self.looks = mark.looks;
    }

    /// Notes that something of `class` has happened to a key.
    #[inline]
    pub(crate) fn notify(&mut self, class: u32, name: &'static str, database: i64, key: &[u8]) {
        if notify::wants(self.notify, class) {
            self.events.push(Event { name, database, key: key.to_vec() });
        }
        if self.broadcasts() {
            self.note_change(class, key);
        }
    }

    #[cold]
    fn note_change(&mut self, class: u32, key: &[u8]) {
        if class != notify::MISSED {
            // What goes by itself nobody knows of.
            let by = if class & (notify::EXPIRED | notify::EVICTED) == 0 { self.client } else { 0 };
            // A command may have several events of its key.
            let is_known = |change: &Change| change.by == by && change.key == key;
            if !matches!(self.changes.last(), Some(Some(change)) if is_known(change)) {
                self.changes.push(Some(Change { by, key: key.to_vec() }));
            }
        }
    }

    /// Notes that any key may have changed.
    pub(crate) fn change_all(&mut self) {
        if self.broadcasts() {
            self.changes.push(None);
        }
    }

    /// Notes that a key is there that may not have been.
    #[inline]
    pub(crate) fn ready(&mut self, database: i64, key: &[u8]) {
        if self.waited_for {
            self.wake(database, key);
        }
    }

    /// Notes that a key is there that may not have been, whether or not anybody is known to wait.
    pub(crate) fn wake(&mut self, database: i64, key: &[u8]) {
        if !self.ready.iter().any(|(other, known)| *other == database && known == key) {
            self.ready.push((database, key.to_vec()));
        }
    }
}
