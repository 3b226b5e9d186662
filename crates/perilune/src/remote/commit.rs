//! The commit of a client's transaction: are its conditions true, and then its writes, as one transaction.

use std::ops::Range;

use perilune_key::ValueRef;
use perilune_store::{Bulk, Session as StoreSession, TransactionOptions};

use super::fence;
use super::reads;
use super::serve::{invalid, place, truth, Peer};
use crate::{Result, Session};

/// One part of a commit.
#[derive(Debug)]
enum Item<'a> {
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
}

/// Reads and checks all of them, before anything is done.
fn read<'a>(peer: &Peer, mut parts: &[&'a [u8]]) -> Result<Vec<Item<'a>>> {
    let mut items = Vec::new();
    while let Some((tag, rest)) = parts.split_first() {
        let (item, used) = match (*tag, rest) {
            (reads::IS, [key, value, ..]) => (Item::Is(peer.read(key)?, Some(value)), 2),
            (reads::IS_ABSENT, [key, ..]) => (Item::Is(peer.read(key)?, None), 1),
            (reads::HAS, [key, ..]) => (Item::Has(peer.read(key)?), 1),
            (reads::HAS_PIECE, [key, start, end, length, piece, ..]) => {
                let (at, length) = (place(start)?..place(end)?, place(length)?);
                (Item::Piece { of: peer.read(key)?, at, length, piece }, 5)
            }
            (reads::FIRST | reads::FIRST_UNDER, [from, inclusive, end, found, ..]) => {
                let (from, end, below) = (peer.sought(from)?, peer.sought(end)?, *tag == reads::FIRST_UNDER);
                (Item::First { from, inclusive: truth(inclusive)?, end, found, below }, 4)
            }
            (reads::LAST | reads::LAST_UNDER, [from, begin, found, ..]) => {
                let (from, begin, below) =
                    (peer.sought(from)?, peer.sought(begin)?, *tag == reads::LAST_UNDER);
                (Item::Last { from, begin, found, below }, 3)
            }
            (reads::KILL, [key, ..]) => (Item::Kill(peer.node(key)?.encoded()), 1),
            (reads::SET, [key, value, ..]) => {
                ValueRef::decode(value)?;
                (Item::Set(peer.node(key)?.encoded(), value), 2)
            }
            (reads::REMOVE, [key, ..]) => (Item::Remove(peer.node(key)?.encoded()), 1),
            (reads::POST, [channel, body, ..]) => (Item::Post(peer.channel(channel)?, body), 2),
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
    session.transaction_with(options, |session| {
        for item in &items {
            if !holds(session, peer, item)? {
                return Ok(false);
            }
        }
        for item in &items {
            match *item {
                Item::Kill(prefix) => session.trees.database.remove_prefix(prefix)?,
                Item::Set(key, value) => session.trees.database.set(key, value)?,
                Item::Remove(key) => drop(session.trees.database.remove(key)?),
                Item::Post(channel, body) => drop(session.post(channel, body)?),
                Item::Is(..) | Item::Has(_) | Item::Piece { .. } | Item::First { .. } | Item::Last { .. } => {
                }
            }
        }
        Ok(true)
    })
}

/// Whether a condition is true now; a write is none.
fn holds(session: &mut Session, peer: &Peer, item: &Item<'_>) -> Result<bool> {
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
        Item::First { from, inclusive, end, found, below } => {
            (fence::next(database, peer.fence(), (from, inclusive, end), key, None)?, found, below)
        }
        Item::Last { from, begin, found, below } => {
            (fence::previous(database, peer.fence(), (from, begin), key, None)?, found, below)
        }
        _ => return Ok(true),
    };
    Ok(match (is_there, below) {
        (true, true) => key.starts_with(wanted),
        (true, false) => key.as_slice() == wanted,
        (false, below) => !below && wanted.is_empty(),
    })
}
