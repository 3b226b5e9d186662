//! When keys expire: at the key, and in an index by time, from which they are removed.
//!
//! `^redis(db,key,"")` holds the time; `^redis("expiry",time,db,key)` exists for each. The index may hold
//! more than the keys do (after FLUSHDB), never less: what it says is compared with the key.

use std::ops::Bound;

use perilune::{Cursor, Node, NodeRef, Session, SubscriptBuf};

use super::{Key, Keys, NAME};
use crate::failure::Result;
use crate::limits::SWEPT_AT_ONCE;

fn index() -> Result<Node> {
    Ok(Node::new(NAME)?.with("expiry")?)
}

pub(super) fn place(keys: &Keys<'_>, key: &Key<'_>, expires: i64) -> Result<Node> {
    let mut node = index()?.with(expires)?.with(keys.database)?;
    let subscript = NodeRef::from(&key.node).last()?.unwrap_or_else(|| SubscriptBuf::from_bytes(b""));
    node.push(&subscript)?;
    Ok(node)
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

/// Removes keys that have expired, a few in one transaction; how many entries of the index it took. Fewer
/// than [`SWEPT_AT_ONCE`] mean that none is left.
pub(crate) fn sweep(session: &mut Session, now: i64) -> perilune::Result<usize> {
    session.transaction(|session| sweep_some(session, now).map_err(Into::into))
}

fn sweep_some(session: &mut Session, now: i64) -> Result<usize> {
    let index = index()?;
    let mut swept = 0;
    while swept < SWEPT_AT_ONCE {
        let Some((entry, _)) = session.first_entry(&index, Bound::Unbounded)? else { break };
        let entry = entry.to_node()?;
        let subscripts = entry.subscripts()?;
        let [_, time, database, key] = &subscripts[..] else {
            session.delete_tree(&entry)?;
            continue;
        };
        let expires = time.as_i64().unwrap_or(0);
        if expires > now {
            break;
        }
        session.delete_value(&entry)?;
        swept += 1;
        let node = Node::new(NAME)?.with(database)?.with(key)?;
        let noted = session.get_ref(&node.child("")?)?.and_then(|value| value.as_i64());
        if noted == Some(expires) {
            session.delete_tree(&node)?;
        }
    }
    Ok(swept)
}
