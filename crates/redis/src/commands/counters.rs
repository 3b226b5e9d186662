//! Strings as numbers: INCR, DECRBY, INCRBYFLOAT and the like.
//!
//! Invariant: what is no number, or would be beyond 64 bits, is refused, and nothing changes.

use perilune::Conditional;
use perilune_resp::{Arguments, Replies};

use super::strings::load;
use crate::failure::{refuse, Result};
use crate::keyspace::{Keys, Kind};
use crate::notify;
use crate::numbers::{add_decimals, integer, integer_of};

fn add(keys: &mut Keys<'_>, name: &[u8], by: i64, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(name, Kind::String)?;
    let old = match &entry {
        None => 0,
        Some(entry) => match integer_of(keys.string(&key, entry)?) {
            Some(integer) => integer,
            None => return refuse(crate::failure::NOT_INTEGER),
        },
    };
    let Some(sum) = old.checked_add(by) else {
        return refuse("ERR increment or decrement would overflow");
    };
    keys.change_string(&key, entry.as_ref(), sum)?;
    keys.notify(notify::STRING, "incrby", key.name);
    replies.integer(sum);
    Ok(())
}

/// Adds to a string by one operation: where the key is an integer without expiry, or nothing.
fn add_quick(keys: &mut Keys<'_>, name: &[u8], by: i64, replies: &mut Replies<'_>) -> Result<bool> {
    let key = keys.key(name)?;
    if key.is_cut() {
        return Ok(false);
    }
    let sum = keys.session.revise_integer_unless_parent(&key.node, |old| match old {
        None => Some(by),
        Some(old) => integer_of(old)?.checked_add(by),
    })?;
    if let Some(sum) = sum {
        replies.integer(sum);
    }
    Ok(sum.is_some())
}

pub(crate) fn incr_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    add_quick(keys, &arguments[1], 1, replies)
}

pub(crate) fn decr_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    add_quick(keys, &arguments[1], -1, replies)
}

pub(crate) fn incrby_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    add_quick(keys, &arguments[1], integer(&arguments[2])?, replies)
}

pub(crate) fn incr(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    add(keys, &arguments[1], 1, replies)
}

pub(crate) fn decr(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    add(keys, &arguments[1], -1, replies)
}

pub(crate) fn incrby(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    add(keys, &arguments[1], integer(&arguments[2])?, replies)
}

pub(crate) fn decrby(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    match integer(&arguments[2])?.checked_neg() {
        Some(by) => add(keys, &arguments[1], by, replies),
        None => refuse("ERR decrement would overflow"),
    }
}

pub(crate) fn incrbyfloat(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let old = match &entry {
        None => b"0".to_vec(),
        entry => load(keys, &key, entry.as_ref())?,
    };
    let sum = add_decimals(&old, &arguments[2])?;
    keys.change_string(&key, entry.as_ref(), &sum)?;
    keys.notify(notify::STRING, "incrbyfloat", key.name);
    replies.bulk(sum.as_bytes());
    Ok(())
}
