//! CLIENT TRACKING: clients that keep what they have read, and are told when it is not so any more.
//!
//! A key that such a client reads is remembered by its loop with a digest of its nodes, as WATCH does, and the database is
//! watched. When that rings, all remembered keys are compared with their digests, some in each round of the loop; of one
//! that has changed its clients are told, once, and it is forgotten. So changes by node, in any process, count like those
//! by commands, and nobody pays anything while nobody tracks.
//!
//! Invariants
//! - A database is watched before a key of it is looked at, and a key is looked at before the command reads it: a change
//!   that the command did not see is found.
//! - The command compares the key with its digest inside its own transaction (`Client::kept`): each digest is that of
//!   what all clients of the key have read, or the key counts as changed. So one that is changed back is no matter.
//! - A comparison begins after the touch that it is for was taken: what comes meanwhile touches again.
//! - A client is not told of a key while a command of it runs elsewhere: the notice would come before the reply.
//! - What cannot be remembered ends the connection, and with it what the client keeps.
//!
//! Deliberately absent: who has changed a key (NOLOOP: its client is told, too), names of keys that nobody has read
//! (BCAST), and which keys a script reads: those that it declares are remembered, in its client's database.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use perilune::{Node, Session, TransactionOptions, WatchId, WatchScope};
use perilune_resp::{parse_integer, Arguments, Protocol, Replies};

use crate::client::Client;
use crate::keyspace::{clock, NAME};
use crate::limits::{TRACKED_AT_ONCE, TRACKED_KEYS};
use crate::mailbox::Seat;
use crate::table::{self, LONG, READ};
use crate::watched::digest;

/// The tokens of these watches begin here, one for each database.
pub(crate) const FIRST: usize = usize::MAX / 4;

/// Between two comparisons of all keys passes so many times what the first of them took.
const REST: u32 = 4;

/// What a client has chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tracking {
    /// Only what it reads behind CLIENT CACHING YES.
    pub(crate) opt_in: bool,
    /// All but what it reads behind CLIENT CACHING NO.
    pub(crate) opt_out: bool,
    /// It has said so of the next command.
    pub(crate) caching: bool,
    /// It need not be told of what it changes itself; it is.
    pub(crate) no_loop: bool,
}

impl Tracking {
    /// Whether the keys of the command that comes are remembered.
    fn wants(self) -> bool {
        if self.opt_in {
            self.caching
        } else {
            !(self.opt_out && self.caching)
        }
    }
}

type Name = (i64, Vec<u8>);
type Digest = [u8; 32];

#[derive(Debug)]
struct Tracked {
    /// None: it counts as changed.
    digest: Option<Digest>,
    seats: Vec<Seat>,
}

/// What the clients of a loop keep.
#[derive(Debug)]
pub(crate) struct Tracker {
    registry: Registry,
    keys: HashMap<Name, Tracked>,
    watches: HashMap<i64, (WatchId, i32)>,
    /// A database was touched since the last comparison began.
    touched: bool,
    /// The rest of the comparison under way, and what it took so far.
    left: VecDeque<Name>,
    took: Duration,
    /// The next one may begin.
    next: Instant,
}

impl Tracker {
    pub(crate) fn new(registry: Registry) -> Tracker {
        Tracker {
            registry,
            keys: HashMap::new(),
            watches: HashMap::new(),
            touched: false,
            left: VecDeque::new(),
            took: Duration::ZERO,
            next: Instant::now(),
        }
    }

    /// Remembers what the command reads that a client is about to run.
    ///
    /// # Errors
    /// It cannot be remembered.
    pub(crate) fn remember(
        &mut self,
        session: &mut Session,
        client: &mut Client,
        arguments: Arguments<'_>,
    ) -> perilune::Result<()> {
        let Some(tracking) = client.tracking else { return Ok(()) };
        client.kept.clear();
        let Some(command) = table::find(&arguments[0]) else { return Ok(()) };
        let executes = command.name == "exec";
        if client.queue.is_some() && !executes || matches!(command.name, "client" | "multi") {
            return Ok(());
        }
        if let Some(tracking) = &mut client.tracking {
            tracking.caching = false;
        }
        if !tracking.wants() {
            return Ok(());
        }
        let reads = |command: &table::Command| command.is(READ | LONG);
        let (mut names, mut database) = (Vec::<Name>::new(), client.database);
        let mut add = |command: &table::Command, arguments: Arguments<'_>| {
            if let ("select", Some(chosen)) = (command.name, arguments.get(1).and_then(parse_integer)) {
                database = chosen;
            }
            let places = if reads(command) { command.key_places(arguments) } else { None };
            let keys = places.unwrap_or_default().into_iter().filter_map(|place| arguments.get(place));
            names.extend(keys.map(|key| (database, key.to_vec())));
        };
        match &client.queue {
            Some(queue) => {
                queue.commands.iter().for_each(|(command, words)| add(command, words.as_arguments()))
            }
            None => add(command, arguments),
        }
        for name in names {
            let (database, key) = (name.0, name.1.clone());
            if let Some(digest) = self.add(session, name, client.seat)? {
                client.kept.expect(database, &key, digest);
            }
        }
        Ok(())
    }

    /// What the client's command has read is remembered as something else than what it was.
    pub(crate) fn settle(&mut self, client: &Client) {
        if !client.kept.broken {
            return;
        }
        for (database, key) in client.kept.names() {
            if let Some(known) = self.keys.get_mut(&(database, key.to_vec())) {
                known.digest = None;
                self.touched = true;
            }
        }
    }

    /// Remembers a key for a client: what it held when it was first, unless it counts as changed.
    fn add(&mut self, session: &mut Session, name: Name, seat: Seat) -> perilune::Result<Option<Digest>> {
        if let Some(known) = self.keys.get_mut(&name) {
            if !known.seats.contains(&seat) {
                known.seats.push(seat);
            }
            return Ok(known.digest);
        }
        if self.keys.len() >= TRACKED_KEYS {
            // One for one: its clients are told that it has changed.
            if let Some(known) = self.keys.values_mut().find(|known| known.digest.is_some()) {
                known.digest = None;
                self.touched = true;
            }
        }
        self.watch(session, name.0)?;
        let digest = look(session, &name)?;
        self.keys.insert(name, Tracked { digest: Some(digest), seats: vec![seat] });
        Ok(Some(digest))
    }

    /// Watches a database from now on.
    fn watch(&mut self, session: &mut Session, database: i64) -> perilune::Result<()> {
        if self.watches.contains_key(&database) {
            return Ok(());
        }
        let node = Node::new(NAME)?.with(database)?;
        let watch = session.watch([(&node, WatchScope::Subtree)])?;
        let token = Token(FIRST + database as usize);
        let registered = session.watch_descriptor(watch).and_then(|descriptor| {
            let mut source = SourceFd(&descriptor);
            self.registry.register(&mut source, token, Interest::READABLE).map_err(perilune::Error::other)?;
            Ok(descriptor)
        });
        let descriptor = registered.inspect_err(|_| session.unwatch(watch))?;
        self.watches.insert(database, (watch, descriptor));
        Ok(())
    }

    /// The watch with this token has rung.
    pub(crate) fn rung(&mut self, session: &mut Session, token: usize) {
        if let Some((watch, _)) = self.watches.get(&((token - FIRST) as i64)) {
            // What cannot be asked counts as touched.
            self.touched |= session.wait(*watch, Some(Duration::ZERO)).unwrap_or(true);
        }
    }

    /// How long the loop may sleep, `most` at most.
    pub(crate) fn sleep(&self, most: Duration) -> Duration {
        if !self.left.is_empty() {
            Duration::ZERO
        } else if self.touched {
            self.next.saturating_duration_since(Instant::now()).min(most)
        } else {
            most
        }
    }

    /// Compares some keys, if there are any to compare: those that have changed, with who is to be told of them.
    /// `is_away` says that a client is not to be told now.
    pub(crate) fn changed(
        &mut self,
        session: &mut Session,
        mut is_away: impl FnMut(Seat) -> bool,
    ) -> Vec<(Vec<u8>, Vec<Seat>)> {
        if self.left.is_empty() && !self.touched {
            return Vec::new();
        }
        let begun = Instant::now();
        if self.left.is_empty() {
            if begun < self.next {
                return Vec::new();
            }
            self.touched = false;
            self.took = Duration::ZERO;
            self.left.extend(self.keys.keys().cloned());
        }
        let mut told = Vec::new();
        for name in self.left.drain(..TRACKED_AT_ONCE.min(self.left.len())) {
            let Some(tracked) = self.keys.get_mut(&name) else { continue };
            // A key that cannot be read now counts as changed.
            if tracked.digest.is_some() && look(session, &name).ok() == tracked.digest {
                continue;
            }
            tracked.digest = None;
            let (away, here): (Vec<_>, Vec<_>) = tracked.seats.drain(..).partition(|seat| is_away(*seat));
            tracked.seats = away;
            if tracked.seats.is_empty() {
                self.keys.remove(&name);
            } else {
                self.touched = true;
            }
            told.push((name.1, here));
        }
        self.took += begun.elapsed();
        if self.left.is_empty() {
            self.next = Instant::now() + (self.took * REST).max(Duration::from_millis(1));
            self.unwatch(session);
        }
        told
    }

    /// A client keeps nothing any more.
    pub(crate) fn forget(&mut self, session: &mut Session, seat: Seat) {
        if self.keys.is_empty() {
            return;
        }
        self.keys.retain(|_, tracked| {
            tracked.seats.retain(|other| *other != seat);
            !tracked.seats.is_empty()
        });
        self.unwatch(session);
    }

    /// Ends what is not needed.
    fn unwatch(&mut self, session: &mut Session) {
        if !self.keys.is_empty() {
            return;
        }
        self.left.clear();
        self.touched = false;
        for (_, (watch, descriptor)) in self.watches.drain() {
            // The kernel forgets it in any case when it is closed.
            let _ = self.registry.deregister(&mut SourceFd(&descriptor));
            session.unwatch(watch);
        }
    }
}

/// What a key holds now.
fn look(session: &mut Session, (database, key): &Name) -> perilune::Result<Digest> {
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    session.transaction_with(&options, |session| Ok(digest(session, *database, key, clock())?))
}

/// As a client is told that a key has changed; nothing if it speaks RESP2, which has no words for that.
pub(crate) fn notice(key: &[u8], protocol: Protocol) -> Vec<u8> {
    let mut frame = Vec::new();
    if protocol == Protocol::Resp3 {
        let mut replies = Replies::new(&mut frame, protocol);
        replies.push(2);
        replies.bulk(b"invalidate");
        replies.array(1);
        replies.bulk(key);
    }
    frame
}
