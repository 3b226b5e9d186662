//! How rows are used: what is kept beside them for the columns LRU and LFU, and how it comes there.
//!
//! INSERT, UPDATE and REPLACE stamp the rows that they write, in their own transaction. What a SELECT has found is noted in the
//! process, and written behind it by small transactions of their own ([`Notes`]).
//!
//! Invariants
//! - What a row keeps, and its entries in the indexes of these columns, change in one transaction.
//! - A row that goes takes along what is kept of it.
//! - Stamps are whole multiples of [`QUANTUM`], and never go back.

mod notes;

use std::time::{SystemTime, UNIX_EPOCH};

use perilune::key::KeyBuf;
use perilune::{NodeRef, Session};

pub(crate) use self::notes::{Found, Notes};
use crate::error::Result;
use crate::limits::QUANTUM;
use crate::row::{index_key, push_suffix, root_key, Row};
use crate::schema::{Table, Usage, UsageKind};
use crate::value::Value;

/// The time now, in seconds since 1970, as a stamp has it.
pub(crate) fn stamp_of(seconds: i64) -> i64 {
    seconds - seconds.rem_euclid(QUANTUM)
}

/// The time now, in seconds since 1970.
pub(crate) fn seconds_now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The node that keeps this of the row with this key.
fn place(usage: &Usage, suffix: &[u8]) -> Result<KeyBuf> {
    let mut key = root_key(&usage.root)?;
    push_suffix(&mut key, suffix)?;
    Ok(key)
}

fn kept(session: &mut Session, usage: &Usage, suffix: &[u8]) -> Result<Option<i64>> {
    Ok(session.get_int(NodeRef::from_encoded(place(usage, suffix)?.as_bytes(), false))?)
}

/// What the column at this place says of the row with this key.
pub(crate) fn value(session: &mut Session, table: &Table, column: usize, suffix: &[u8]) -> Result<Value> {
    match table.usage.iter().find(|usage| usage.column == column) {
        Some(usage) => Ok(usage.value(kept(session, usage, suffix)?)),
        None => Ok(Value::Null),
    }
}

/// Puts what is kept of a row into its columns.
pub(crate) fn read(session: &mut Session, table: &Table, suffix: &[u8], row: &mut Row) -> Result<()> {
    for usage in &table.usage {
        row[usage.column] = usage.value(kept(session, usage, suffix)?);
    }
    Ok(())
}

/// What is told of a row that is about to be written: the time, and how often others have found it meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) stamp: i64,
    pub(crate) more: i64,
}

/// Stamps a row that is about to be written, whose key was `old` if it is there.
pub(crate) fn stamp(
    session: &mut Session,
    table: &Table,
    now: Now,
    old: Option<&[u8]>,
    suffix: &[u8],
    row: &mut Row,
) -> Result<()> {
    for usage in &table.usage {
        let before = old.map_or(Ok(None), |old| kept(session, usage, old))?;
        let after = match usage.kind {
            UsageKind::Last => now.stamp.max(before.unwrap_or(now.stamp)),
            UsageKind::Often if old.is_some() => before.unwrap_or(1).saturating_add(1 + now.more),
            UsageKind::Often => 1,
        };
        if let Some(old) = old.filter(|old| *old != suffix) {
            session.delete_value(NodeRef::from_encoded(place(usage, old)?.as_bytes(), false))?;
        }
        // Once is what a row without a node says.
        let is_said = usage.kind == UsageKind::Often && after == 1;
        if !is_said && (before != Some(after) || old != Some(suffix)) {
            session.set(NodeRef::from_encoded(place(usage, suffix)?.as_bytes(), false), after)?;
        }
        row[usage.column] = usage.value(Some(after));
    }
    Ok(())
}

/// Forgets what is kept of a row that goes.
pub(crate) fn forget(session: &mut Session, table: &Table, suffix: &[u8]) -> Result<()> {
    for usage in &table.usage {
        session.delete_value(NodeRef::from_encoded(place(usage, suffix)?.as_bytes(), false))?;
    }
    Ok(())
}

/// Makes what is kept of a row another number, with its entry in the index.
fn change(
    session: &mut Session,
    table: &Table,
    usage: &Usage,
    suffix: &[u8],
    now: (Option<i64>, i64),
) -> Result<()> {
    let (before, after) = now;
    session.set(NodeRef::from_encoded(place(usage, suffix)?.as_bytes(), false), after)?;
    let (from, to) = (usage.value(before), usage.value(Some(after)));
    if from == to {
        return Ok(());
    }
    let is_on = |column: usize| {
        move |index: &&crate::schema::Index| index.columns.iter().any(|(it, _)| *it == column)
    };
    let mut row = vec![Value::Null; table.columns.len()];
    for index in table.indexes.iter().filter(is_on(usage.column)) {
        let (mut former, mut entry) = (root_key(&index.root)?, root_key(&index.root)?);
        row[usage.column] = from.clone();
        index_key(index, &row, suffix, &mut former)?;
        row[usage.column] = to.clone();
        index_key(index, &row, suffix, &mut entry)?;
        session.delete_value(NodeRef::from_encoded(former.as_bytes(), false))?;
        session.set(NodeRef::from_encoded(entry.as_bytes(), false), perilune::ValueRef::Null)?;
    }
    Ok(())
}
