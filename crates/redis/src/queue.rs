//! Clients that wait for keys, over all servers, in the order in which they came.
//!
//! `^redis("blocked",db,key,ticket)` holds the server that a waiting client has; tickets ascend. What the
//! client wants lies at `^redis("server",server,"waiting",ticket)`. Who brings a key into being, or is woken by
//! a change of its nodes, serves those that wait for it: takes for each what it wants, in the same transaction.
//! A client of this server gets its reply by letter; for one of another server it is put at
//! `^redis("server",server,"served",ticket,piece)`, and that server is told.
//!
//! Invariants
//! - A client is in the queues of all its keys or of none, and its reply exists from the transaction on that
//!   takes it out of them: nothing is taken for a client that has been taken out, by its timeout for example.
//! - Nothing is taken for a client of a dead server.
//!
//! What if we are killed? Before the commit nothing has happened. After it a client of ours is gone with us, as
//! one whose reply was lost; one of another server has its reply in the tree, and its server the message.

use std::ops::Bound;
use std::sync::Arc;

use perilune::{Cursor, Node, NodeRef, RangeEnds, Session, ValueRef};
use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Progress, Protocol, Replies, RequestParser};

use crate::effects::Effects;
use crate::failure::{text_of, Result};
use crate::keyspace::{Keys, Kind};
use crate::limits::KEY_BYTES;
use crate::mailbox::Letter;
use crate::name;
use crate::name::NAME;
use crate::peers;
use crate::redis::Redis;
use crate::server::Server;
use perilune_net::clock::clock;
use perilune_net::seat::Seat;

/// What a client waits for. Which commands wait, and how each takes what it wants, the commands say.
pub(crate) trait Wanted<'a>: Sized {
    /// Read from the arguments of a command.
    ///
    /// # Errors
    /// They are not as they have to be.
    fn parse(arguments: Arguments<'a>) -> Result<Self>;
    /// The keys that it waits for.
    fn keys(&self) -> Arguments<'a>;
    /// What its keys have to hold.
    fn kind(&self) -> Kind;
    /// Takes it from the first key that has it, or from the one named `only`, and answers; false if none has.
    ///
    /// # Errors
    /// What the database says.
    fn attempt(&self, keys: &mut Keys<'_>, only: Option<&[u8]>, replies: &mut Replies<'_>) -> Result<bool>;
}

/// What the clients of this server can wait for.
pub(crate) trait Waits {
    type Wanted<'a>: Wanted<'a>;
}

/// Bytes of a reply that lie at one node.
const PIECE: usize = 64 << 20;

fn tickets() -> Result<Node> {
    Ok(Node::new(NAME)?.with("blocked")?)
}

/// The queue of a key.
fn queue(database: i64, key: &[u8]) -> Result<Node> {
    Ok(tickets()?.with(database)?.with(&*name::subscript(key, KEY_BYTES))?)
}

fn waiting(server: i64) -> Result<Node> {
    Ok(peers::place(server)?.with("waiting")?)
}

fn served(server: i64) -> Result<Node> {
    Ok(peers::place(server)?.with("served")?)
}

/// Who waits, and how it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) seat: Seat,
    /// The ticket that its connection is parked on, of no meaning elsewhere.
    pub(crate) parking: u64,
    pub(crate) protocol: Protocol,
    pub(crate) database: i64,
}

impl Waiter {
    fn words(&self) -> [String; 6] {
        [
            self.seat.thread.to_string(),
            self.seat.token.to_string(),
            self.seat.client.to_string(),
            self.parking.to_string(),
            self.protocol.number().to_string(),
            self.database.to_string(),
        ]
    }

    fn of(words: Arguments<'_>) -> Option<Waiter> {
        let number = |index: usize| words.get(index).and_then(parse_integer);
        Some(Waiter {
            seat: Seat { thread: number(0)? as usize, token: number(1)? as usize, client: number(2)? },
            parking: number(3)? as u64,
            protocol: if number(4)? == 3 { Protocol::Resp3 } else { Protocol::Resp2 },
            database: number(5)?,
        })
    }

    /// With words behind it, as it is kept in the tree.
    fn record<'a>(&self, words: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut all = ArgumentsBuf::default();
        self.words().iter().for_each(|word| all.push(word.as_bytes()));
        words.for_each(|word| all.push(word));
        let mut record = Vec::new();
        all.write_request(&mut record);
        record
    }
}

/// How many words of a record are about the waiter.
const WAITER: usize = 6;

/// Puts a client into the queues of the keys that its command names, and answers its ticket.
pub(crate) fn enter(
    session: &mut Session,
    home: i64,
    waiter: &Waiter,
    arguments: Arguments<'_>,
    keys: Arguments<'_>,
) -> Result<i64> {
    let ticket = session.increment(&tickets()?, 1)?.as_i64().unwrap_or(0);
    for key in keys.iter() {
        let place = queue(waiter.database, key)?.with(ticket)?;
        session.set(&place, home)?;
    }
    session.set(&waiting(home)?.with(ticket)?, waiter.record(arguments.iter()).as_slice())?;
    Ok(ticket)
}

/// Takes a client of this server out of all queues; false if it has been served already.
pub(crate) fn cancel(session: &mut Session, home: i64, ticket: i64) -> perilune::Result<bool> {
    session.transaction(|session| Ok(leave(session, home, ticket)?))
}

fn leave(session: &mut Session, server: i64, ticket: i64) -> Result<bool> {
    let place = waiting(server)?.with(ticket)?;
    let Some(record) = record_at(session, &place)? else { return Ok(false) };
    let mut parser = RequestParser::default();
    if let Ok(Progress::Complete { .. }) = parser.parse(&record, true) {
        let words = parser.arguments(&record);
        if let (Some(waiter), Ok(wanted)) =
            (Waiter::of(words), <Redis as Waits>::Wanted::parse(words.from(WAITER)))
        {
            for key in wanted.keys().iter() {
                session.delete_value(&queue(waiter.database, key)?.with(ticket)?)?;
            }
        }
    }
    session.delete_value(&place)?;
    Ok(true)
}

fn record_at(session: &mut Session, place: &Node) -> Result<Option<Vec<u8>>> {
    Ok(session.get_ref(place)?.and_then(|value| match value {
        ValueRef::String(bytes) => Some(bytes.to_vec()),
        _ => None,
    }))
}

/// Serves the clients that wait for a key, in the open transaction, as far as it goes.
pub(crate) fn serve(session: &mut Session, effects: &mut Effects, database: i64, key: &[u8]) -> Result<()> {
    let place = queue(database, key)?;
    let mut last: Option<Node> = None;
    loop {
        let from = match &last {
            None => Bound::Excluded(NodeRef::from(&place)),
            Some(node) => Bound::Excluded(NodeRef::from(node)),
        };
        let Some((entry, server)) = session.first_entry(&place, from)? else { return Ok(()) };
        let (entry, server) = (entry.to_node()?, server.as_i64().unwrap_or(0));
        let ticket = entry.last()?.and_then(|ticket| ticket.as_i64()).unwrap_or(0);
        let Some(kind) = kind_of(session, effects, database, key)? else { return Ok(()) };
        match serve_one(session, effects, server, ticket, (key, kind))? {
            Outcome::Absent => {
                session.delete_value(&entry)?;
            }
            Outcome::Served | Outcome::Waits => {}
        }
        last = Some(entry);
    }
}

enum Outcome {
    Served,
    /// What is there is nothing for it.
    Waits,
    /// Nobody waits there any more.
    Absent,
}

fn kind_of(session: &mut Session, effects: &mut Effects, database: i64, key: &[u8]) -> Result<Option<Kind>> {
    let mut keys = Keys::new(session, effects, database, clock(), true);
    let key = keys.key(key)?;
    Ok(keys.open(&key)?.map(|entry| entry.kind))
}

fn serve_one(
    session: &mut Session,
    effects: &mut Effects,
    server: i64,
    ticket: i64,
    (key, kind): (&[u8], Kind),
) -> Result<Outcome> {
    let Some(record) = record_at(session, &waiting(server)?.with(ticket)?)? else {
        return Ok(Outcome::Absent);
    };
    let mut parser = RequestParser::default();
    let Ok(Progress::Complete { .. }) = parser.parse(&record, true) else { return Ok(Outcome::Absent) };
    let words = parser.arguments(&record);
    let (Some(waiter), Ok(wanted)) = (Waiter::of(words), <Redis as Waits>::Wanted::parse(words.from(WAITER)))
    else {
        return Ok(Outcome::Absent);
    };
    if server != effects.home && !peers::is_alive(session, server)? {
        return Ok(Outcome::Absent);
    }
    if wanted.kind() != kind {
        return Ok(Outcome::Waits);
    }
    let mut reply = Vec::new();
    let before = effects.mark();
    let taken = session.transaction(|session| {
        let mut keys = Keys::new(session, effects, waiter.database, clock(), true);
        Ok(wanted.attempt(&mut keys, Some(key), &mut Replies::new(&mut reply, waiter.protocol))?)
    });
    match taken {
        Ok(true) => {}
        Ok(false) => return Ok(Outcome::Waits),
        Err(error) if error.is_retry() => return Err(error.into()),
        Err(error) => {
            effects.rewind(before);
            reply.clear();
            Replies::new(&mut reply, waiter.protocol).error(&text_of(&error));
        }
    }
    leave(session, server, ticket)?;
    if server == effects.home {
        let letter = Letter::Reply { seat: waiter.seat, ticket: waiter.parking, bytes: reply };
        effects.letters.push((waiter.seat.thread, letter));
    } else {
        let place = served(server)?.with(ticket)?;
        let record = waiter.record([&reply[..]].into_iter());
        for (number, piece) in (0_i64..).zip(record.chunks(PIECE)) {
            session.set(&place.child(number)?, piece)?;
        }
        peers::tell(session, server, ["served", &ticket.to_string()])?;
    }
    Ok(Outcome::Served)
}

/// Hands out a reply that another server has put down for a client of this one.
pub(crate) fn deliver(server: &Arc<Server>, session: &mut Session, ticket: i64) -> perilune::Result<()> {
    let record = session.transaction(|session| {
        let place = served(server.number())?.with(ticket)?;
        let mut record = Vec::new();
        for (_, piece) in session.get_tree(&place)? {
            if let ValueRef::String(bytes) = piece.as_ref() {
                record.extend_from_slice(bytes);
            }
        }
        session.delete_tree(&place)?;
        Ok(record)
    })?;
    let mut parser = RequestParser::default();
    let Ok(Progress::Complete { .. }) = parser.parse(&record, true) else { return Ok(()) };
    let words = parser.arguments(&record);
    if let (Some(waiter), Some(reply)) = (Waiter::of(words), words.get(WAITER)) {
        if let Some(mailbox) = server.crew().mailboxes().get(waiter.seat.thread) {
            let bytes = reply.to_vec();
            mailbox.post(Letter::Reply { seat: waiter.seat, ticket: waiter.parking, bytes });
        }
    }
    Ok(())
}

/// Hands out all replies that lie there for clients of this server: after messages were dropped.
pub(crate) fn deliver_all(server: &Arc<Server>, session: &mut Session) -> perilune::Result<()> {
    for ticket in numbers(session, &served(server.number())?)? {
        deliver(server, session, ticket)?;
    }
    Ok(())
}

/// Takes the clients of a dead server out of all queues.
pub(crate) fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    for ticket in numbers(session, &waiting(server)?)? {
        cancel(session, server, ticket)?;
    }
    Ok(())
}

fn numbers(session: &mut Session, place: &Node) -> perilune::Result<Vec<i64>> {
    let mut cursor = Cursor::children(place);
    let mut numbers = Vec::new();
    while cursor.next(session)? {
        numbers.extend(cursor.integer());
    }
    Ok(numbers)
}
