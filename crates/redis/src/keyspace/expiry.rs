//! When keys expire: at the key, and in an index by time, from which they are removed.
//!
//! `^redis(db,key,"")` holds the time; `^redis("expiry",time,db,key)` exists for each. The index may hold
//! more than the keys do (after FLUSHDB), never less: what it says is compared with the key.

use std::ops::Bound;

use perilune::{Cursor, Node, NodeRef, Session, SubscriptBuf};

use super::{whole_name, Key, Keys, NAME};
use crate::effects::Effects;
use crate::failure::Result;
use crate::limits::SWEPT_AT_ONCE;
use crate::notify;

/// The node of the index, below which are times, databases and keys.
pub(crate) fn index() -> Result<Node> {
    Ok(Node::new(NAME)?.with("expiry")?)
}

pub(super) fn place(keys: &Keys<'_>, key: &Key<'_>, expires: i64) -> Result<Node> {
    let mut node = index()?.with(expires)?.with(keys.database)?;
    let subscript = NodeRef::from(&key.node).last()?.unwrap_or_else(|| SubscriptBuf::from_bytes(b""));
    node.push(&subscript)?;
    Ok(node)
}

impl Keys<'_> {
    /// Where the index says that `key` expires.
    pub(crate) fn expiry_place(&self, key: &Key<'_>, expires: i64) -> Result<Node> {
        place(self, key, expires)
    }
}

/// Notes that `key` expires.
pub(super) fn note(keys: &mut Keys<'_>, key: &Key<'_>, expires: i64) -> Result<()> {
    keys.session.set(&key.expiry()?, expires)?;
    let place = place(keys, key, expires)?;
    Ok(keys.session.set(&place, true)?)
}

/// Takes `key` out of the index.
pub(super) fn forget(keys: &mut Keys<'_>, key: &Key<'_>, expires: i64) -> Result<()> {
    let place = place(keys, key, expires)?;
    keys.session.delete_value(&place)?;
    Ok(())
}

/// What the index says of database `first` it says of `second` from now on, and the other way round.
pub(crate) fn readdress(session: &mut Session, first: i64, second: i64) -> Result<()> {
    let mut cursor = Cursor::subtree(&index()?);
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    while cursor.next(session)? {
        let entry = cursor.node()?;
        if let [_, time, database, key] = &entry.subscripts()?[..] {
            let other = match database.as_i64() {
                Some(database) if database == first => second,
                Some(database) if database == second => first,
                _ => continue,
            };
            added.push(index()?.with(time)?.with(other)?.with(key)?);
            removed.push(entry);
        }
    }
    for entry in &removed {
        session.delete_value(entry)?;
    }
    for entry in &added {
        session.set(entry, true)?;
    }
    Ok(())
}

/// The database and the time that an entry of the index is about; none if its key is gone or does not expire then.
pub(crate) fn is_due(session: &mut Session, entry: &Node) -> Result<Option<(i64, i64)>> {
    let subscripts = entry.subscripts()?;
    let [_, time, database, key] = &subscripts[..] else { return Ok(None) };
    let node = Node::new(NAME)?.with(database)?.with(key)?;
    let noted = session.get_ref(&node.child("")?)?.and_then(|value| value.as_i64());
    Ok(database.as_i64().zip(noted).filter(|_| noted == time.as_i64()))
}

/// Tells of the keys that have expired and are still there, of one database or of all.
pub(crate) fn tell_expired(
    session: &mut Session,
    effects: &mut Effects,
    now: i64,
    only: Option<i64>,
) -> Result<()> {
    let mut cursor = Cursor::subtree(&index()?).without_values();
    while cursor.next(session)? {
        let entry = cursor.node()?;
        let subscripts = entry.subscripts()?;
        let [_, time, database, key] = &subscripts[..] else { continue };
        if time.as_i64().is_none_or(|expires| expires > now) {
            break;
        }
        let wanted = only.is_none_or(|only| database.as_i64() == Some(only));
        if let (true, Some((number, _))) = (wanted, is_due(session, &entry)?) {
            let node = Node::new(NAME)?.with(database)?.with(key)?;
            if let Some(name) = whole_name(session, &node)? {
                effects.notify(notify::EXPIRED, "expired", number, &name);
            }
        }
    }
    Ok(())
}

/// Removes keys that have expired, in the open transaction; how many entries of the index it took. Fewer than [`SWEPT_AT_ONCE`]
/// mean that none is left.
pub(crate) fn sweep(session: &mut Session, effects: &mut Effects, now: i64) -> Result<usize> {
    let index = index()?;
    let (mut cursor, mut entries) = (Cursor::subtree(&index).without_values(), Vec::new());
    // NB: what expires later is not even read ahead; others write there all the time.
    let behind = index.child(now.saturating_add(1))?;
    cursor.bound(Bound::Unbounded, Bound::Excluded(NodeRef::from(&behind)));
    // All are read before any is removed, which makes what was read ahead useless.
    while entries.len() < SWEPT_AT_ONCE && cursor.next(session)? {
        entries.push(cursor.node()?);
    }
    for entry in &entries {
        let subscripts = entry.subscripts()?;
        let [_, time, database, key] = &subscripts[..] else {
            session.delete_value(entry)?;
            continue;
        };
        let expires = time.as_i64().unwrap_or(0);
        session.delete_value(entry)?;
        let node = Node::new(NAME)?.with(database)?.with(key)?;
        let noted = session.get_ref(&node.child("")?)?.and_then(|value| value.as_i64());
        if noted == Some(expires) {
            let whole = whole_name(session, &node)?.unwrap_or_default();
            effects.notify(notify::EXPIRED, "expired", database.as_i64().unwrap_or(0), &whole);
            session.delete_tree(&node)?;
        }
    }
    Ok(entries.len())
}
