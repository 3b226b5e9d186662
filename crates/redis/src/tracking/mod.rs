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
//!   what the client has read, or the key counts as changed. So one that is changed back is no matter.
//! - A comparison begins after the touch that it is for was taken: what comes meanwhile touches again.
//! - FLUSHALL and FLUSHDB count at `^redis("flushed")`: when that has grown, all keys count as changed.
//! - A client is not told of a key while a command of it runs elsewhere: the notice would come before the reply.
//! - What cannot be remembered, or told, ends the connection, and with it what the client keeps.
//!
//! Deliberately absent: names of keys that nobody has read, of which no watch tells: for BCAST commands tell of what they
//! change ([`broadcast`]). And which keys a script reads: those that it declares are remembered, in its client's database.

pub(crate) mod audience;
pub(crate) mod broadcast;
pub(crate) mod notice;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use perilune::{Node, Session, TransactionOptions, WatchId, WatchScope};
use perilune_resp::{parse_integer, Arguments};

use crate::client::Client;
use crate::command::{self, statements, LONG, QUEUED, READ, WRITE};
use crate::figures::Figures;
use crate::invalidation::Names;
use crate::limits::{TRACKED_AT_ONCE, TRACKED_KEYS};
use crate::name::NAME;
use crate::watched::{digest, Digest};
use perilune_net::clock::clock;
use perilune_net::event_loop::OWN_TOKENS;
use perilune_net::seat::Seat;

/// The tokens of these watches begin here, one for each database.
pub(crate) const FIRST: usize = OWN_TOKENS;

/// Between two comparisons of all keys passes so many times what the first of them took.
const REST: u32 = 4;

type Name = (i64, Vec<u8>);

/// Who keeps a key, and as what; none: it counts as changed.
type Keepers = Vec<(Seat, Option<Digest>)>;

/// Clients, with what each is to be told.
pub(crate) type Told = Vec<(Names, Vec<Seat>)>;

/// What the clients of a loop keep.
#[derive(Debug)]
pub(crate) struct Tracker {
    registry: Registry,
    keys: HashMap<Name, Keepers>,
    /// Keepers of all keys.
    items: usize,
    clients: HashSet<Seat>,
    /// FLUSHALLs and FLUSHDBs, as they were counted before the comparison under way.
    flushed: Option<i64>,
    /// What the server's figures have been told: clients, keys, items.
    counted: [u64; 3],
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
            items: 0,
            clients: HashSet::new(),
            flushed: None,
            counted: [0; 3],
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
        let Some(tracking) = &client.tracking else { return Ok(()) };
        let (wants, no_loop) = (tracking.wants(), tracking.no_loop && tracking.prefixes.is_none());
        client.kept.clear();
        client.own.clear();
        let Some(command) = statements::of(arguments) else { return Ok(()) };
        let executes = command.is(QUEUED);
        if client.queue.is_some() && !executes || matches!(command.name, "client" | "multi") {
            return Ok(());
        }
        if let Some(tracking) = &mut client.tracking {
            tracking.caching = false;
        }
        let (read, written) = keys_of(client, command, arguments);
        let own: Vec<_> = written.into_iter().filter(|_| no_loop).collect();
        if wants {
            for name in read {
                let (database, key) = (name.0, name.1.clone());
                let digest = self.add(session, name, client.seat)?;
                if let Some(digest) = digest.filter(|_| !own.contains(&(database, key.clone()))) {
                    client.kept.expect(database, &key, digest);
                }
            }
        }
        for name in own {
            if let Some(known) = self.keeper(&name, client.seat).and_then(|digest| *digest) {
                client.own.add(name.0, &name.1, known);
            }
        }
        Ok(())
    }

    /// As what a client keeps a key.
    fn keeper(&mut self, name: &Name, seat: Seat) -> Option<&mut Option<Digest>> {
        let keepers = self.keys.get_mut(name)?;
        keepers.iter_mut().find(|(other, _)| *other == seat).map(|(_, digest)| digest)
    }

    /// A command has ended: what it has read is remembered as something else than what it was, or it is what it has left.
    pub(crate) fn settle(&mut self, client: &Client) {
        for (database, key, left) in client.own.left() {
            if let Some(digest) = self.keeper(&(database, key.to_vec()), client.seat) {
                *digest = Some(left);
            }
        }
        if !client.kept.broken {
            return;
        }
        for (database, key) in client.kept.names() {
            if let Some(digest) = self.keeper(&(database, key.to_vec()), client.seat) {
                *digest = None;
                self.touched = true;
            }
        }
    }

    /// Remembers a key for a client, and answers as what, unless it counts as changed.
    fn add(&mut self, session: &mut Session, name: Name, seat: Seat) -> perilune::Result<Option<Digest>> {
        if let Some(digest) = self.keeper(&name, seat) {
            return Ok(*digest);
        }
        if self.keys.len() >= TRACKED_KEYS && !self.keys.contains_key(&name) {
            // One for one: its clients are told that it has changed.
            let is_kept = |keepers: &&mut Keepers| keepers.iter().any(|(_, digest)| digest.is_some());
            if let Some(keepers) = self.keys.values_mut().find(is_kept) {
                keepers.iter_mut().for_each(|(_, digest)| *digest = None);
                self.touched = true;
            }
        }
        self.watch(session, name.0)?;
        let digest = look(session, &name)?;
        self.keys.entry(name).or_default().push((seat, Some(digest)));
        self.items += 1;
        Ok(Some(digest))
    }

    /// Watches a database from now on.
    fn watch(&mut self, session: &mut Session, database: i64) -> perilune::Result<()> {
        if self.watches.contains_key(&database) {
            return Ok(());
        }
        if self.flushed.is_none() {
            self.flushed = Some(flushes(session)?);
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

    /// Compares some keys, if there are any to compare: who is to be told what. `is_away` says that a client is not to be
    /// told now.
    pub(crate) fn changed(&mut self, session: &mut Session, mut is_away: impl FnMut(Seat) -> bool) -> Told {
        if self.left.is_empty() && !self.touched {
            return Vec::new();
        }
        let mut told = Vec::new();
        let begun = Instant::now();
        if self.left.is_empty() {
            if begun < self.next {
                return Vec::new();
            }
            self.touched = false;
            self.took = Duration::ZERO;
            told.extend(self.flush(session, &mut is_away));
            self.left.extend(self.keys.keys().cloned());
        }
        for name in self.left.drain(..TRACKED_AT_ONCE.min(self.left.len())) {
            let Some(keepers) = self.keys.get_mut(&name) else { continue };
            // A key that cannot be read now counts as changed.
            let is = look(session, &name).ok();
            let mut here = Vec::new();
            keepers.retain_mut(|(seat, digest)| {
                if digest.is_some() && *digest == is {
                    return true;
                }
                *digest = None;
                let stays = is_away(*seat);
                if stays {
                    self.touched = true;
                } else {
                    here.push(*seat);
                }
                stays
            });
            self.items -= here.len();
            if keepers.is_empty() {
                self.keys.remove(&name);
            }
            if !here.is_empty() {
                told.push((Some(vec![name.1]), here));
            }
        }
        self.took += begun.elapsed();
        if self.left.is_empty() {
            self.next = Instant::now() + (self.took * REST).max(Duration::from_millis(1));
            self.unwatch(session);
        }
        told
    }

    /// If there was a FLUSHALL or FLUSHDB, whoever keeps something is to forget all.
    fn flush(
        &mut self,
        session: &mut Session,
        is_away: &mut impl FnMut(Seat) -> bool,
    ) -> Option<(Names, Vec<Seat>)> {
        // What cannot be read counts as changed.
        let flushed = flushes(session).ok();
        if self.flushed == flushed && flushed.is_some() {
            return None;
        }
        self.flushed = flushed;
        let (mut here, mut items) = (Vec::new(), 0);
        self.keys.retain(|_, keepers| {
            keepers.retain_mut(|(seat, digest)| {
                *digest = None;
                let stays = is_away(*seat);
                if !stays && !here.contains(seat) {
                    here.push(*seat);
                }
                stays
            });
            items += keepers.len();
            !keepers.is_empty()
        });
        self.items = items;
        (!here.is_empty()).then_some((None, here))
    }

    /// A client tracks from now on.
    pub(crate) fn enter(&mut self, seat: Seat) {
        self.clients.insert(seat);
    }

    /// A client keeps nothing any more.
    pub(crate) fn forget(&mut self, session: &mut Session, seat: Seat) {
        if !self.clients.remove(&seat) || self.keys.is_empty() {
            return;
        }
        let mut items = 0;
        self.keys.retain(|_, keepers| {
            keepers.retain(|(other, _)| *other != seat);
            items += keepers.len();
            !keepers.is_empty()
        });
        self.items = items;
        self.unwatch(session);
    }

    /// Tells the server's figures what there is.
    pub(crate) fn count(&mut self, figures: &Figures) {
        let now = [self.clients.len(), self.keys.len(), self.items].map(|count| count as u64);
        if now == self.counted {
            return;
        }
        let figures: [&AtomicU64; 3] =
            [&figures.tracking_clients, &figures.tracked_keys, &figures.tracked_items];
        for ((figure, now), before) in figures.into_iter().zip(now).zip(self.counted) {
            figure.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
        self.counted = now;
    }

    /// Ends what is not needed.
    fn unwatch(&mut self, session: &mut Session) {
        if !self.keys.is_empty() {
            return;
        }
        self.left.clear();
        self.touched = false;
        self.flushed = None;
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

/// How many FLUSHALLs and FLUSHDBs there were.
fn flushes(session: &mut Session) -> perilune::Result<i64> {
    Ok(session.get_ref(&Node::new(NAME)?.with("flushed")?)?.and_then(|count| count.as_i64()).unwrap_or(0))
}

/// The keys that a command reads, with what EXEC runs, and those that it may write.
fn keys_of(
    client: &Client,
    command: &'static command::Command,
    arguments: Arguments<'_>,
) -> (Vec<Name>, Vec<Name>) {
    let (mut read, mut written, mut database) = (Vec::new(), Vec::new(), client.database);
    let mut add = |command: &command::Command, arguments: Arguments<'_>| {
        if let ("select", Some(chosen)) = (command.name, arguments.get(1).and_then(parse_integer)) {
            database = chosen;
        }
        let places = command.is(READ | WRITE | LONG).then(|| command.key_places(arguments)).flatten();
        for key in places.unwrap_or_default().into_iter().filter_map(|place| arguments.get(place)) {
            if command.is(READ | LONG) {
                read.push((database, key.to_vec()));
            }
            if command.is(WRITE | LONG) {
                written.push((database, key.to_vec()));
            }
        }
    };
    match &client.queue {
        Some(queue) => {
            queue.commands.iter().for_each(|(command, words)| add(command, words.as_arguments()));
        }
        None => add(command, arguments),
    }
    (read, written)
}
