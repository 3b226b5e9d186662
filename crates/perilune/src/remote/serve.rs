//! The server's half of the wire: each request as one operation of a session.
//!
//! Invariants
//! - Keys, values and numbers of a client are checked here before they are written or looked for: bytes that
//!   name no node are refused.
//! - Each request appends exactly one reply, or none and [`Served::Waits`].
//! - A request that would have to wait says so, unless it may: event loops do not wait.
//! - What is behind the client's fence is refused where it is named, and passed over by walks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use perilune_key::{KeyError, ValueRef};
use perilune_remote::wire::{FAMILY, VERSION};
use perilune_resp::{Arguments, Replies};
use perilune_store::{
    Bulk, Durability, Error as StoreError, KeptReads, Limits, LockOwner, Session as StoreSession,
    TransactionOptions, WatchId,
};

use super::fence::{self, Fence};
use super::see::{self, See};
use super::{codes, commit, messages, pages, services};
use crate::limits::{REMOTE_LOCK_OWNERS, SUBSCRIPTS};
use crate::{Error, ErrorCode, LockOwners, NodeRef, Result, Session};

/// What a server remembers of a client: its limits, what it does not reach, who holds its locks, and its watches.
#[derive(Clone, Debug)]
pub struct Peer {
    limits: Limits,
    fence: Option<Arc<Fence>>,
    owners: BTreeMap<u64, LockOwner>,
    pub(super) watches: Vec<WatchId>,
    /// What the client's open transaction has read so far, as the engine notes it.
    pub(super) read: Option<KeptReads>,
}

/// What is to become of a request that would have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It waits, and this thread with it, for a second at most: who wants to wait longer asks again.
    Here,
    /// [`Served::Waits`].
    Elsewhere,
    /// It is answered as if its time were over; the client asks again.
    Never,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A reply was appended.
    Answered,
    /// Nothing was: it has to wait. Call again with the same arguments where that is allowed.
    Waits,
}

impl Peer {
    /// A client of a database with these limits, of a server that takes arguments of so many bytes.
    #[must_use]
    pub fn new(limits: &Limits, argument_bytes: usize) -> Peer {
        let value_bytes = limits.value_bytes.min(argument_bytes);
        let limits = Limits { value_bytes, ..limits.clone() };
        Peer { limits, fence: None, owners: BTreeMap::new(), watches: Vec::new(), read: None }
    }

    /// What the client does not reach from now on.
    pub fn set_fence(&mut self, fence: Option<Arc<Fence>>) {
        self.fence = fence;
    }

    /// Bytes of memory that are kept for the client: what its open transaction has read.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.read.as_ref().map_or(0, KeptReads::bytes)
    }

    pub(super) fn fence(&self) -> Option<&Fence> {
        self.fence.as_deref()
    }

    /// Releases the client's locks and ends its watches: its connection has ended. `session` is the one that
    /// has served it.
    pub fn end(&mut self, session: &mut Session) {
        for watch in std::mem::take(&mut self.watches) {
            session.unwatch(watch);
        }
        for (_, owner) in std::mem::take(&mut self.owners) {
            // Those that cannot be released go with the process.
            let _ = session.unlock_all(owner);
        }
    }

    pub(super) fn owner(&mut self, session: &mut Session, number: &[u8]) -> Result<LockOwner> {
        let number = integer(number)?;
        if let Some(owner) = self.owners.get(&number) {
            return Ok(*owner);
        }
        if self.owners.len() >= REMOTE_LOCK_OWNERS {
            let limit = REMOTE_LOCK_OWNERS as u64;
            return Err(StoreError::LimitReached { what: "owners of locks of one connection", limit }.into());
        }
        let owner = session.new_lock_owner();
        self.owners.insert(number, owner);
        Ok(owner)
    }

    /// One of the client's watches.
    pub(super) fn watch(&self, id: &[u8]) -> Result<WatchId> {
        let id = WatchId(integer(id)?);
        let known = self.watches.contains(&id).then_some(id);
        known.ok_or_else(|| {
            invalid("there is no such watch: it went with a connection that was lost; watch again")
        })
    }

    /// Bytes to look for: any, within the limit.
    pub(super) fn sought<'k>(&self, key: &'k [u8]) -> Result<&'k [u8]> {
        // One byte more: where a search behind a subtree begins.
        if key.len() > self.limits.key_bytes + 1 {
            return Err(KeyError::KeyTooLong { limit: self.limits.key_bytes }.into());
        }
        Ok(key)
    }

    /// Bytes to read at, as [`Peer::sought`], that the client reaches.
    pub(super) fn read<'k>(&self, key: &'k [u8]) -> Result<&'k [u8]> {
        fence::check_key(self.fence(), self.sought(key)?)?;
        Ok(key)
    }

    /// A node of the database that the client reaches.
    pub(super) fn node<'k>(&self, key: &'k [u8]) -> Result<NodeRef<'k>> {
        fence::check_key(self.fence(), self.valid(key)?)?;
        Ok(NodeRef::from_encoded(key, false))
    }

    fn valid<'k>(&self, key: &'k [u8]) -> Result<&'k [u8]> {
        let depth = perilune_key::validate(self.sought(key)?).map_err(|_| invalid("a key is none"))?;
        if depth > SUBSCRIPTS {
            return Err(KeyError::TooManySubscripts.into());
        }
        Ok(key)
    }

    /// The node of a lock's name.
    pub(super) fn locked<'k>(&self, name: &'k [u8]) -> Result<NodeRef<'k>> {
        let node = NodeRef::of_lock(name);
        self.valid(node.encoded())?;
        if !node.is_local() {
            fence::check_key(self.fence(), node.encoded())?;
        }
        Ok(node)
    }

    /// The name of a channel that the client reaches.
    pub(super) fn channel<'n>(&self, name: &'n [u8]) -> Result<&'n [u8]> {
        fence::check_channel(self.fence(), name)?;
        Ok(name)
    }
}

/// Runs one request of the family, whose name is the first argument, and appends its reply.
///
/// A client's watches belong to the session: use the same one each time. Its locks do not: a request that takes
/// some can wait with another session of the process.
///
/// # Errors
/// A conflict inside an open transaction, for whoever runs that again; `Busy` where the request may not wait; what reads too much for a
/// session with [`crate::Serving::limit_reads`]; all else is a reply.
pub fn serve(
    session: &mut Session,
    peer: &mut Peer,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
    waiting: Waiting,
) -> Result<Served> {
    let start = replies.position();
    match run(session, peer, arguments, replies, waiting) {
        Err(error) if error.is_retry() && session.depth() > 0 || error.is_long_read() => Err(error),
        // Nothing has happened, and whoever has others to serve asks again.
        Err(error) if error.code() == ErrorCode::Busy && !matches!(waiting, Waiting::Here) => {
            replies.rewind(start);
            Err(error)
        }
        Err(error) => {
            replies.rewind(start);
            replies.error(&codes::line_of(&error));
            Ok(Served::Answered)
        }
        served => served,
    }
}

fn run(
    session: &mut Session,
    peer: &mut Peer,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
    waiting: Waiting,
) -> Result<Served> {
    let name = arguments.get(0).and_then(|name| name.get(FAMILY.len()..)).unwrap_or(&[]).to_ascii_uppercase();
    let given: Vec<&[u8]> = arguments.from(1).iter().collect();
    messages::check(peer, &name, &given)?;
    if look(session, peer, &name, &given, replies)? {
        return Ok(Served::Answered);
    }
    match (&name[..], &given[..]) {
        (b"SEE", [has_read, count, given @ ..]) => {
            let count = place(count)?;
            if count > given.len() {
                return Err(invalid("a transaction says how many parts its conditions have"));
            }
            let (conditions, asked) = given.split_at(count);
            see::see(session, peer, &See { has_read: truth(has_read)?, conditions, asked }, replies)?;
        }
        (b"PATCH", [key, offset, bytes]) => patch(session, peer.node(key)?, place(offset)?, bytes, replies)?,
        (b"SET", [key, value]) => set(session, peer.node(key)?, value, replies)?,
        (b"INCR", [key, by, truncating]) => {
            let (node, by) = (peer.node(key)?, ValueRef::decode(by)?.as_number()?);
            let sum = if truth(truncating)? {
                session.increment_truncating(node, by)?
            } else {
                session.increment(node, by)?
            };
            let mut encoded = Vec::new();
            ValueRef::from(sum).encode_into(&mut encoded);
            replies.bulk(&encoded);
        }
        (b"DEL", [key]) => replies.truth(session.delete_value(peer.node(key)?)?),
        (b"KILL", [key]) => {
            session.delete_tree(peer.node(key)?)?;
            replies.simple("OK");
        }
        (b"CAS", [key, has_expected, expected, has_new, new]) => {
            let expected = truth(has_expected)?.then(|| ValueRef::decode(expected)).transpose()?;
            let new = truth(has_new)?.then(|| ValueRef::decode(new)).transpose()?;
            replies.truth(session.compare_and_set(peer.node(key)?, expected, new)?);
        }
        (b"COMMIT", [writes, fsync, milliseconds, items @ ..]) => {
            let options = TransactionOptions {
                read_only: !truth(writes)?,
                timeout: duration(milliseconds)?,
                durability: truth(fsync)?.then_some(Durability::Fsync),
                ..TransactionOptions::default()
            };
            peer.read = None;
            // NB: its conditions are the client's: a transaction around it, of EXEC for example, need not run again.
            if commit::commit(session, peer, &options, items)? {
                replies.simple("OK");
            } else {
                replies.error(&codes::line_of(&Error::Conflict));
            }
        }
        (b"HELLO", [version]) => hello(peer, integer(version)?, replies)?,
        _ => return services::run(session, peer, &name, &given, replies, waiting),
    }
    Ok(Served::Answered)
}

/// Runs one request that only looks, if it is one.
pub(super) fn look(
    session: &mut Session,
    peer: &Peer,
    name: &[u8],
    given: &[&[u8]],
    replies: &mut Replies<'_>,
) -> Result<bool> {
    match (name, given) {
        (b"GET", [key]) => get(session, peer, key, replies)?,
        (b"PIECES", [key, places @ ..]) => pieces(session, peer, key, places, replies)?,
        (b"NEXT", [from, inclusive, end, with_value]) => {
            let range = (peer.sought(from)?, truth(inclusive)?, peer.sought(end)?);
            next(session, peer, range, truth(with_value)?, replies)?;
        }
        (b"PREV", [from, begin, with_value]) => {
            let range = (peer.sought(from)?, peer.sought(begin)?);
            previous(session, peer, range, truth(with_value)?, replies)?;
        }
        (b"WALK", given) => pages::walk(session, peer, given, replies)?,
        (b"DATA", [key]) => {
            let data = session.data(NodeRef::from_encoded(peer.read(key)?, false))?;
            replies.integer(data.number().into());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The options that RUN begins with: read-only, fsync, milliseconds.
///
/// # Errors
/// `Invalid` when they are none.
pub fn run_options(given: &[&[u8]]) -> Result<TransactionOptions> {
    let [read_only, fsync, milliseconds] = given else { return Err(invalid("RUN has three options")) };
    Ok(TransactionOptions {
        read_only: truth(read_only)?,
        timeout: duration(milliseconds)?,
        durability: truth(fsync)?.then_some(Durability::Fsync),
        ..TransactionOptions::default()
    })
}

fn hello(peer: &Peer, version: u64, replies: &mut Replies<'_>) -> Result<()> {
    if version != VERSION as u64 {
        return Err(Error::invalid(format!(
            "the server speaks version {VERSION} of the wire, the client version {version}: install the same Perilune on both"
        )));
    }
    replies.array(5);
    replies.integer(VERSION);
    let Limits { key_bytes, value_bytes, update_bytes, transaction_depth, .. } = &peer.limits;
    [key_bytes, value_bytes, update_bytes, transaction_depth]
        .into_iter()
        .for_each(|limit| replies.count(*limit));
    Ok(())
}

fn get(session: &mut Session, peer: &Peer, key: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    let Session { trees, value, .. } = session;
    let found = trees.database.get(peer.read(key)?, value)?;
    replies.bulk_or_null(found.then_some(value));
    Ok(())
}

fn set(session: &mut Session, node: NodeRef<'_>, value: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    ValueRef::decode(value)?;
    session.trees.database.set(node.encoded(), value)?;
    replies.simple("OK");
    Ok(())
}

/// Writes over a part of an encoded value, of a string behind its tag.
fn patch(
    session: &mut Session,
    node: NodeRef<'_>,
    offset: usize,
    bytes: &[u8],
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Some(offset) = offset.checked_sub(1) else { return Err(invalid("a tag is not written over")) };
    let length = session.transaction(|session| match session.get_length(node)? {
        Some(_) => session.set_piece(node, offset, bytes).map(Some),
        None => Ok(None),
    })?;
    match length {
        Some(length) => replies.count(length + 1),
        None => replies.null(),
    }
    Ok(())
}

/// Places of pieces, of which each is two.
fn pieces(
    session: &mut Session,
    peer: &Peer,
    key: &[u8],
    places: &[&[u8]],
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (pairs, []) = places.as_chunks::<2>() else { return Err(invalid("a piece has two places")) };
    let (mut wanted, mut bytes) = (Vec::with_capacity(pairs.len()), 0_usize);
    for [start, end] in pairs {
        let piece = place(start)?..place(end)?;
        bytes = bytes.saturating_add(piece.len().min(peer.limits.value_bytes));
        wanted.push(piece);
    }
    if bytes > peer.limits.value_bytes {
        return Err(invalid("pieces have more bytes than a value may"));
    }
    let Session { trees, value, .. } = session;
    match trees.database.get_pieces(peer.read(key)?, &wanted, value)? {
        Some(length) => {
            replies.array(2);
            replies.count(length);
            replies.bulk(value);
        }
        None => replies.null_array(),
    }
    Ok(())
}

fn next(
    session: &mut Session,
    peer: &Peer,
    range: (&[u8], bool, &[u8]),
    with_value: bool,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Session { trees, found, value, .. } = session;
    let out = with_value.then_some(&mut *value);
    let (from, inclusive, end) = range;
    let from = fence::bound(from, inclusive);
    let is_there = fence::next(&mut trees.database, peer.fence(), from, end, found, out)?;
    pair(is_there, found, with_value.then_some(value), replies);
    Ok(())
}

fn previous(
    session: &mut Session,
    peer: &Peer,
    range: (&[u8], &[u8]),
    with_value: bool,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Session { trees, found, value, .. } = session;
    let out = with_value.then_some(&mut *value);
    let is_there = fence::previous(&mut trees.database, peer.fence(), range.0, range.1, found, out)?;
    pair(is_there, found, with_value.then_some(value), replies);
    Ok(())
}

fn pair(is_there: bool, key: &[u8], value: Option<&mut Vec<u8>>, replies: &mut Replies<'_>) {
    if !is_there {
        return replies.null_array();
    }
    replies.array(1 + usize::from(value.is_some()));
    replies.bulk(key);
    if let Some(value) = value {
        replies.bulk(value);
    }
}

pub(super) fn invalid(why: &str) -> Error {
    Error::invalid(format!("over the wire: {why}"))
}

pub(super) fn truth(text: &[u8]) -> Result<bool> {
    match text {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(invalid("a truth value is 0 or 1")),
    }
}

pub(super) fn integer(text: &[u8]) -> Result<u64> {
    let number = perilune_resp::parse_integer(text).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| invalid("a number is one from 0 on"))
}

pub(super) fn place(text: &[u8]) -> Result<usize> {
    Ok(usize::try_from(integer(text)?).unwrap_or(usize::MAX))
}

pub(super) fn duration(milliseconds: &[u8]) -> Result<Duration> {
    /// Who asks for more asks again.
    const LONGEST: u64 = 24 * 3_600_000;
    Ok(Duration::from_millis(integer(milliseconds)?.min(LONGEST)))
}
