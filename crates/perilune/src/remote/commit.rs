//! The commit of a client's transaction: its conditions are tested and its writes are done, as one transaction
//! here.
//!
//! Problem: a client's transaction reads over the network, and others write meanwhile. Idea: the client remembers
//! what it has seen, and sends that as conditions together with all its writes. Only if all conditions are true now
//! are the writes done.
//!
//! Example: the client has read `^account("a")` as 100 and wants to set it to 90. The commit is "`^account("a")` is
//! 100" and "set it to 90". If it is 80 by now, nothing is written, and the client runs its transaction again.

use std::ops::Range;
use std::time::Duration;

use perilune_key::ValueRef;
use perilune_remote::wire;
use perilune_store::{Bulk, Session as StoreSession, TransactionOptions};

use super::fence;
use super::serve::{integer, invalid, place, truth, Peer};
use crate::{Error, Result, Session};

/// One part of a commit.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Is(&'a [u8], Option<&'a [u8]>),
    Has(&'a [u8]),
    Piece {
        of: &'a [u8],
        at: Range<usize>,
        length: usize,
        piece: &'a [u8],
    },
    /// `below`: what is found begins so.
    First {
        from: &'a [u8],
        inclusive: bool,
        end: &'a [u8],
        found: &'a [u8],
        below: bool,
    },
    Last {
        from: &'a [u8],
        begin: &'a [u8],
        found: &'a [u8],
        below: bool,
    },
    Kill(&'a [u8]),
    Set(&'a [u8], &'a [u8]),
    Remove(&'a [u8]),
    Post(&'a [u8], &'a [u8]),
    /// A message that is taken, by its number.
    Take(&'a [u8], u64),
    /// A channel in which nothing is left.
    Empty(&'a [u8]),
}

/// Reads and checks all of them, before anything is done.
pub(super) fn read<'a>(peer: &Peer, mut parts: &[&'a [u8]]) -> Result<Vec<Item<'a>>> {
    let mut items = Vec::new();
    while let Some((tag, rest)) = parts.split_first() {
        let (item, used) = match (*tag, rest) {
            (wire::IS, [key, value, ..]) => (Item::Is(peer.read(key)?, Some(value)), 2),
            (wire::IS_ABSENT, [key, ..]) => (Item::Is(peer.read(key)?, None), 1),
            (wire::HAS, [key, ..]) => (Item::Has(peer.read(key)?), 1),
            (wire::HAS_PIECE, [key, start, end, length, piece, ..]) => {
                let (at, length) = (place(start)?..place(end)?, place(length)?);
                (Item::Piece { of: peer.read(key)?, at, length, piece }, 5)
            }
            (wire::FIRST | wire::FIRST_UNDER, [from, inclusive, end, found, ..]) => {
                let (from, end, below) = (peer.sought(from)?, peer.sought(end)?, *tag == wire::FIRST_UNDER);
                (Item::First { from, inclusive: truth(inclusive)?, end, found, below }, 4)
            }
            (wire::LAST | wire::LAST_UNDER, [from, begin, found, ..]) => {
                let (from, begin, below) =
                    (peer.sought(from)?, peer.sought(begin)?, *tag == wire::LAST_UNDER);
                (Item::Last { from, begin, found, below }, 3)
            }
            (wire::KILL, [key, ..]) => (Item::Kill(peer.node(key)?.encoded()), 1),
            (wire::SET, [key, value, ..]) => {
                ValueRef::decode(value)?;
                (Item::Set(peer.node(key)?.encoded(), value), 2)
            }
            (wire::REMOVE, [key, ..]) => (Item::Remove(peer.node(key)?.encoded()), 1),
            (wire::POST, [channel, body, ..]) => (Item::Post(peer.channel(channel)?, body), 2),
            (wire::TAKE, [channel, number, ..]) => (Item::Take(peer.channel(channel)?, integer(number)?), 2),
            (wire::EMPTY, [channel, ..]) => (Item::Empty(peer.channel(channel)?), 1),
            _ => return Err(invalid("a commit has a part that is unknown or not whole")),
        };
        items.push(item);
        parts = &rest[used..];
    }
    Ok(items)
}

/// Writes, if what was read is true; false if it is not.
pub(super) fn commit(
    session: &mut Session,
    peer: &Peer,
    options: &TransactionOptions,
    parts: &[&[u8]],
) -> Result<bool> {
    let items = read(peer, parts)?;
    let done = session.transaction_with(options, |session| {
        for item in &items {
            if !holds(session, peer, item)? {
                return Err(Error::Rollback);
            }
        }
        items.iter().try_for_each(|item| perform(session, item))
    });
    match done {
        Ok(()) => Ok(true),
        Err(Error::Rollback) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Does what a part says that is no condition. A message that is not to be taken ends all of it.
fn perform(session: &mut Session, item: &Item<'_>) -> Result<()> {
    let mut receive = |channel| session.channel(channel).receive(Some(Duration::ZERO));
    match *item {
        Item::Kill(prefix) => session.trees.database.remove_prefix(prefix)?,
        Item::Set(key, value) => session.trees.database.set(key, value)?,
        Item::Remove(key) => drop(session.trees.database.remove(key)?),
        Item::Post(channel, body) => drop(session.channel(channel).post(body)?),
        Item::Take(channel, number) if receive(channel)?.is_none_or(|found| found.number != number) => {
            return Err(Error::Rollback)
        }
        Item::Empty(channel) if receive(channel)?.is_some() => return Err(Error::Rollback),
        _ => {}
    }
    Ok(())
}

/// Whether a condition is true now; a write is none.
pub(super) fn holds(session: &mut Session, peer: &Peer, item: &Item<'_>) -> Result<bool> {
    let Session { trees, found: key, value, .. } = session;
    let database = &mut trees.database;
    let (is_there, wanted, below) = match *item {
        Item::Is(of, expected) => {
            let is_there = database.get(of, value)?;
            return Ok(is_there.then_some(&value[..]) == expected);
        }
        Item::Piece { of, ref at, length, piece } => {
            let found = database.get_pieces(of, std::slice::from_ref(at), value)?;
            return Ok(found == Some(length) && value == piece);
        }
        Item::Has(key) => return Ok(database.presence(key)?.value),
        Item::First { from, inclusive, end, found, below } => (
            fence::next(database, peer.fence(), fence::bound(from, inclusive), end, key, None)?,
            found,
            below,
        ),
        Item::Last { from, begin, found, below } => {
            (fence::previous(database, peer.fence(), from, begin, key, None)?, found, below)
        }
        _ => return Ok(true),
    };
    Ok(match (is_there, below) {
        (true, true) => key.starts_with(wanted),
        (true, false) => key.as_slice() == wanted,
        (false, below) => !below && wanted.is_empty(),
    })
}
