//! The commit of a client's transaction: are its conditions true, and then its writes, as one transaction.

use perilune_key::ValueRef;
use perilune_store::{Session as StoreSession, TransactionOptions};

use super::reads;
use super::serve::{invalid, truth, Peer};
use crate::{Result, Session};

/// One part of a commit.
#[derive(Debug)]
enum Item<'a> {
    Is(&'a [u8], Option<&'a [u8]>),
    First { from: &'a [u8], inclusive: bool, end: &'a [u8], found: &'a [u8] },
    Last { from: &'a [u8], begin: &'a [u8], found: &'a [u8] },
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
            (reads::IS, [key, value, ..]) => (Item::Is(peer.sought(key)?, Some(value)), 2),
            (reads::IS_ABSENT, [key, ..]) => (Item::Is(peer.sought(key)?, None), 1),
            (reads::FIRST, [from, inclusive, end, found, ..]) => {
                let (from, end) = (peer.sought(from)?, peer.sought(end)?);
                (Item::First { from, inclusive: truth(inclusive)?, end, found }, 4)
            }
            (reads::LAST, [from, begin, found, ..]) => {
                (Item::Last { from: peer.sought(from)?, begin: peer.sought(begin)?, found }, 3)
            }
            (reads::KILL, [key, ..]) => (Item::Kill(peer.node(key)?.encoded()), 1),
            (reads::SET, [key, value, ..]) => {
                ValueRef::decode(value)?;
                (Item::Set(peer.node(key)?.encoded(), value), 2)
            }
            (reads::REMOVE, [key, ..]) => (Item::Remove(peer.node(key)?.encoded()), 1),
            (reads::POST, [channel, body, ..]) => (Item::Post(channel, body), 2),
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
            if !holds(session, item)? {
                return Ok(false);
            }
        }
        for item in &items {
            match *item {
                Item::Kill(prefix) => session.trees.database.remove_prefix(prefix)?,
                Item::Set(key, value) => session.trees.database.set(key, value)?,
                Item::Remove(key) => drop(session.trees.database.remove(key)?),
                Item::Post(channel, body) => drop(session.post(channel, body)?),
                Item::Is(..) | Item::First { .. } | Item::Last { .. } => {}
            }
        }
        Ok(true)
    })
}

/// Whether a condition is true now; a write is none.
fn holds(session: &mut Session, item: &Item<'_>) -> Result<bool> {
    let Session { trees, found: key, value, .. } = session;
    let database = &mut trees.database;
    let (is_there, wanted) = match *item {
        Item::Is(of, expected) => {
            let is_there = database.get(of, value)?;
            return Ok(is_there.then_some(&value[..]) == expected);
        }
        Item::First { from, inclusive, end: [], found } => {
            (database.next(from, inclusive, key, None)?, found)
        }
        Item::First { from, inclusive, end, found } => {
            (database.next_within(from, inclusive, end, key, None)?, found)
        }
        Item::Last { from, begin, found } => (database.previous_within(from, begin, key, None)?, found),
        _ => return Ok(true),
    };
    Ok(if is_there { key.as_slice() == wanted } else { wanted.is_empty() })
}
