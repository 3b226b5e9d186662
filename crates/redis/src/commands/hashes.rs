//! Hashes: fields and their values.

use perilune::ValueRef;
use perilune_resp::{Arguments, Many, Protocol, Replies};

use super::pick_some;
use super::scan::scan_elements;
use crate::failure::{refuse, refuse_with, Result};
use crate::keyspace::{text, Entry, Key, Keys, Kind, Names};
use crate::notify;
use crate::numbers::{add_decimals, double_of, drawn, integer, integer_of, lower};
use crate::random;
use crate::refusals::wrong_number;

/// A hash, open.
struct Hash<'n> {
    key: Key<'n>,
    entry: Option<Entry>,
    fields: Names,
    count: i64,
}

impl<'n> Hash<'n> {
    fn open(keys: &mut Keys<'_>, name: &'n [u8]) -> Result<Hash<'n>> {
        let (key, entry) = keys.find(name, Kind::Hash)?;
        let fields = Names::below(key.part(Kind::Hash)?);
        Ok(Hash { key, entry, fields, count: entry.map_or(0, |entry| entry.figure) })
    }

    fn get<'k>(&mut self, keys: &'k mut Keys<'_>, field: &[u8]) -> Result<Option<ValueRef<'k>>> {
        if self.count == 0 {
            return Ok(None);
        }
        self.fields.get(keys.session, field)
    }

    /// Sets a field; true if it is new.
    fn set(&mut self, keys: &mut Keys<'_>, field: &[u8], value: impl perilune::IntoValue) -> Result<bool> {
        let new = self.get(keys, field)?.is_none();
        self.fields.set(keys.session, field, value)?;
        self.count += i64::from(new);
        Ok(new)
    }

    /// Writes down how many fields there are now, and tells what has happened.
    fn close(self, keys: &mut Keys<'_>, event: &'static str) -> Result<()> {
        keys.notify(notify::HASH, event, self.key.name);
        keys.set_count(&self.key, self.entry.as_ref(), Kind::Hash, self.count)
    }
}

/// The fields of a hash that is only read; none if there is none.
fn fields(keys: &mut Keys<'_>, name: &[u8]) -> Result<Option<Names>> {
    let (key, entry) = keys.find(name, Kind::Hash)?;
    match entry {
        Some(entry) if entry.figure > 0 => Ok(Some(Names::below(key.into_part(Kind::Hash)?))),
        _ => Ok(None),
    }
}

/// HSET, HMSET.
pub(crate) fn hset(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let old_form = lower(&arguments[0]) == &b"hmset"[..];
    if arguments.len() % 2 == 1 {
        return refuse_with(wrong_number(if old_form { "hmset" } else { "hset" }));
    }
    let mut hash = Hash::open(keys, &arguments[1])?;
    let mut new = 0;
    for index in (2..arguments.len()).step_by(2) {
        new += i64::from(hash.set(keys, &arguments[index], &arguments[index + 1])?);
    }
    hash.close(keys, "hset")?;
    if old_form {
        replies.simple("OK");
    } else {
        replies.integer(new);
    }
    Ok(())
}

pub(crate) fn hsetnx(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut hash = Hash::open(keys, &arguments[1])?;
    let absent = hash.get(keys, &arguments[2])?.is_none();
    if absent {
        hash.set(keys, &arguments[2], &arguments[3])?;
        hash.close(keys, "hset")?;
    }
    replies.truth(absent);
    Ok(())
}

pub(crate) fn hget(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let found = match fields(keys, &arguments[1])? {
        Some(mut fields) => fields.get(keys.session, &arguments[2])?,
        None => None,
    };
    match found {
        Some(value) => text::reply(value, replies),
        None => replies.null(),
    }
    Ok(())
}

pub(crate) fn hmget(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut hash = Hash::open(keys, &arguments[1])?;
    let fields = arguments.from(2);
    replies.array(fields.len());
    for field in fields.iter() {
        match hash.get(keys, field)? {
            Some(value) => text::reply(value, replies),
            None => replies.null(),
        }
    }
    Ok(())
}

pub(crate) fn hdel(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut hash = Hash::open(keys, &arguments[1])?;
    let mut removed = 0;
    if hash.entry.is_some() {
        for field in arguments.from(2).iter() {
            removed += i64::from(hash.fields.remove(keys.session, field)?);
        }
        hash.count -= removed;
        if removed > 0 {
            hash.close(keys, "hdel")?;
        }
    }
    replies.integer(removed);
    Ok(())
}

pub(crate) fn hlen(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.integer(Hash::open(keys, &arguments[1])?.count);
    Ok(())
}

pub(crate) fn hstrlen(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut hash = Hash::open(keys, &arguments[1])?;
    let length = hash.get(keys, &arguments[2])?.map_or(0, |value| text::bytes_of(value).len());
    replies.count(length);
    Ok(())
}

pub(crate) fn hexists(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut hash = Hash::open(keys, &arguments[1])?;
    replies.truth(hash.get(keys, &arguments[2])?.is_some());
    Ok(())
}

/// HGETALL, HKEYS, HVALS.
pub(crate) fn hgetall(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (names, values) = match &*lower(&arguments[0]) {
        b"hkeys" => (true, false),
        b"hvals" => (false, true),
        _ => (true, true),
    };
    let mut hash = Hash::open(keys, &arguments[1])?;
    let many = if names && values { Many::Map } else { Many::Array };
    let begun = replies.begin(many, usize::try_from(hash.count).unwrap_or(0));
    let mut count = 0;
    if hash.entry.is_some() {
        count = hash.fields.each(keys.session, hash.count, |name, value| {
            if names {
                replies.bulk(name);
            }
            if values {
                text::reply(value, replies);
            }
            !replies.is_full()
        })?;
    }
    replies.end(begun, count);
    Ok(())
}

pub(crate) fn hincrby(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let by = integer(&arguments[3])?;
    let mut hash = Hash::open(keys, &arguments[1])?;
    let old = match hash.get(keys, &arguments[2])? {
        None => 0,
        Some(value) => match integer_of(value) {
            Some(integer) => integer,
            None => return refuse("ERR hash value is not an integer"),
        },
    };
    let Some(sum) = old.checked_add(by) else {
        return refuse("ERR increment or decrement would overflow");
    };
    hash.set(keys, &arguments[2], sum)?;
    hash.close(keys, "hincrby")?;
    replies.integer(sum);
    Ok(())
}

pub(crate) fn hincrbyfloat(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let by = crate::numbers::double(&arguments[3])?;
    if !by.is_finite() {
        return refuse("ERR value is NaN or Infinity");
    }
    let mut hash = Hash::open(keys, &arguments[1])?;
    let old = match hash.get(keys, &arguments[2])? {
        None => b"0".to_vec(),
        Some(value) => text::bytes_of(value).into_owned(),
    };
    if double_of(&old).is_none() {
        return refuse("ERR hash value is not a float");
    }
    let sum = add_decimals(&old, &arguments[3])?;
    hash.set(keys, &arguments[2], &sum)?;
    hash.close(keys, "hincrbyfloat")?;
    replies.bulk(sum.as_bytes());
    Ok(())
}

pub(crate) fn hscan(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    scan_elements(keys, arguments, Kind::Hash, 2, replies, |field, value, replies| {
        replies.bulk(field);
        text::reply(value, replies);
    })
}

pub(crate) fn hrandfield(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let count = arguments.get(2).map(drawn).transpose()?;
    let with_values = match arguments.get(3).map(lower) {
        None => false,
        Some(word) if word == &b"withvalues"[..] && arguments.len() == 4 => true,
        Some(_) => return refuse(crate::failure::SYNTAX),
    };
    if with_values && count.is_some_and(|count| count > i64::MAX / 2) {
        return refuse("ERR value is out of range");
    }
    let mut hash = Hash::open(keys, &arguments[1])?;
    if count.is_none() {
        let field = if hash.entry.is_some() { hash.fields.pick(keys.session)? } else { None };
        replies.bulk_or_null(field.as_deref());
        return Ok(());
    }
    let mut all = Vec::new();
    let asked = count.unwrap_or(1);
    let few = pick_some(keys, (asked, hash.count), |keys| hash.fields.pick(keys.session))?;
    let picked = few.is_some();
    for field in few.unwrap_or_default() {
        let value = hash.get(keys, &field)?.map(|value| text::bytes_of(value).into_owned());
        all.push((field, value.unwrap_or_default()));
    }
    if hash.entry.is_some() && !picked {
        hash.fields.each(keys.session, hash.count, |name, value| {
            all.push((name.to_vec(), text::bytes_of(value).into_owned()));
            true
        })?;
    }
    let chosen = if picked { (0..all.len()).collect() } else { random::choose(all.len(), asked) };
    let nested = with_values && replies.protocol() == Protocol::Resp3;
    replies.array(if with_values && !nested { 2 * chosen.len() } else { chosen.len() });
    for index in chosen {
        let (field, value) = &all[index];
        if nested {
            replies.array(2);
        }
        replies.bulk(field);
        if with_values {
            replies.bulk(value);
        }
    }
    Ok(())
}
