//! Strings, but for their bits.

use perilune::Conditional;
use perilune_resp::{Arguments, Replies};

use super::expiry::{deadline, Unit};
use crate::failure::{self, refuse, refuse_with, Result, SYNTAX, TOO_LONG, WRONG_TYPE};
use crate::keyspace::{text, Entry, Held, Key, Keys, Kind};
use crate::limits::VALUE_BYTES;
use crate::notify;
use crate::numbers::{from_end, integer, lower};
use crate::refusals::wrong_number;

/// The bytes of the string at `key`; none if nothing lies there.
pub(crate) fn load(keys: &mut Keys<'_>, key: &Key<'_>, entry: Option<&Entry>) -> Result<Vec<u8>> {
    match entry {
        None => Ok(Vec::new()),
        Some(entry) => Ok(text::bytes_of(keys.string(key, entry)?).into_owned()),
    }
}

/// As [`Keys::held`], of what may not be there.
pub(crate) fn held(keys: &mut Keys<'_>, key: &Key<'_>, entry: Option<&Entry>) -> Result<Held> {
    entry.map_or_else(|| Ok(Held::Short(Vec::new())), |entry| keys.held(key, entry))
}

/// Refuses strings that would be too long.
pub(crate) fn check_length(bytes: usize) -> Result<()> {
    if bytes > VALUE_BYTES {
        return refuse(TOO_LONG);
    }
    Ok(())
}

fn reply_string(
    keys: &mut Keys<'_>,
    key: &Key<'_>,
    entry: Option<&Entry>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match entry {
        Some(entry) => text::reply(keys.string(key, entry)?, replies),
        None => replies.null(),
    }
    Ok(())
}

/// Answers where one operation says it all: a string without expiry, or nothing at all.
pub(crate) fn get_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let key = keys.key(&arguments[1])?;
    if key.is_cut() {
        return Ok(false);
    }
    if let Some(value) = keys.session.get_ref(&key.node)? {
        text::reply(value, replies);
        keys.effects.looks.note(true);
        return Ok(true);
    }
    if notify::wants(keys.effects.notify, notify::MISSED) {
        return Ok(false);
    }
    let nothing = keys.session.data(&key.node)? == perilune::Data::Nothing;
    if nothing {
        replies.null();
        keys.effects.looks.note(false);
    }
    Ok(nothing)
}

pub(crate) fn get(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    reply_string(keys, &key, entry.as_ref(), replies)
}

/// The options of SET.
#[derive(Default)]
struct SetOptions {
    if_absent: bool,
    if_present: bool,
    get: bool,
    keep: bool,
    expires: Option<i64>,
}

impl SetOptions {
    fn parse(arguments: Arguments<'_>, now: i64) -> Result<SetOptions> {
        let mut options = SetOptions::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let timed = options.keep || options.expires.is_some();
            match &*lower(word) {
                b"nx" if !options.if_present => options.if_absent = true,
                b"xx" if !options.if_absent => options.if_present = true,
                b"get" => options.get = true,
                b"keepttl" if options.expires.is_none() => options.keep = true,
                option if !timed => match (Unit::of_option(option), words.next()) {
                    (Some(unit), Some(time)) => options.expires = Some(deadline(time, unit, now, "set")?),
                    _ => return refuse(SYNTAX),
                },
                _ => return refuse(SYNTAX),
            }
        }
        Ok(options)
    }
}

/// SET without options, by one operation: where the key is a string without expiry, or nothing.
pub(crate) fn set_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    if arguments.len() != 3 {
        return Ok(false);
    }
    let key = keys.key(&arguments[1])?;
    let done = !key.is_cut() && keys.session.set_unless_parent(&key.node, &arguments[2])?;
    if done {
        replies.simple("OK");
    }
    Ok(done)
}

/// Several SET without options, by one operation: where the keys are strings without expiry, or nothing.
pub(crate) fn set_together(
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    replies: &mut Replies<'_>,
) -> Result<usize> {
    let plain = requests.iter().take_while(|arguments| arguments.len() == 3).count();
    if plain < 2 {
        return Ok(0);
    }
    let pairs = requests[..plain].iter().map(|arguments| (&arguments[1], &arguments[2]));
    let Some(mut batch) = keys.batch(pairs)? else { return Ok(0) };
    match failure::told(keys.session.set_all_unless_parents(&mut batch), plain, replies)? {
        Some(true) => (0..plain).for_each(|_| replies.simple("OK")),
        Some(false) => return Ok(0),
        None => {}
    }
    Ok(plain)
}

pub(crate) fn set(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let options = SetOptions::parse(arguments.from(3), keys.now)?;
    let key = keys.key(&arguments[1])?;
    let entry = keys.open(&key)?;
    if options.get && entry.is_some_and(|entry| entry.kind != Kind::String) {
        return refuse(WRONG_TYPE);
    }
    let start = replies.position();
    if options.get {
        reply_string(keys, &key, entry.as_ref(), replies)?;
    }
    let wanted = if entry.is_some() { !options.if_absent } else { !options.if_present };
    if wanted {
        let kept = entry.filter(|_| options.keep).and_then(|entry| entry.expires);
        keys.put_string(&key, entry.as_ref(), &arguments[2], options.expires.or(kept))?;
        keys.notify(notify::STRING, "set", key.name);
        if options.expires.is_some() {
            keys.notify(notify::GENERIC, "expire", key.name);
        }
    }
    if replies.position() == start {
        if wanted {
            replies.simple("OK");
        } else {
            replies.null();
        }
    }
    Ok(())
}

pub(crate) fn setnx(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    let absent = keys.open(&key)?.is_none();
    if absent {
        keys.put_string(&key, None, &arguments[2], None)?;
        keys.notify(notify::STRING, "set", key.name);
    }
    replies.truth(absent);
    Ok(())
}

pub(crate) fn setex(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (unit, command) = match &*lower(&arguments[0]) {
        b"setex" => (Unit::Seconds, "setex"),
        _ => (Unit::Milliseconds, "psetex"),
    };
    let expires = deadline(&arguments[2], unit, keys.now, command)?;
    let key = keys.key(&arguments[1])?;
    let entry = keys.open(&key)?;
    keys.put_string(&key, entry.as_ref(), &arguments[3], Some(expires))?;
    keys.notify(notify::STRING, "set", key.name);
    keys.notify(notify::GENERIC, "expire", key.name);
    replies.simple("OK");
    Ok(())
}

pub(crate) fn getset(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    reply_string(keys, &key, entry.as_ref(), replies)?;
    keys.put_string(&key, entry.as_ref(), &arguments[2], None)?;
    keys.notify(notify::STRING, "set", key.name);
    Ok(())
}

pub(crate) fn getdel(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    reply_string(keys, &key, entry.as_ref(), replies)?;
    if let Some(entry) = entry {
        keys.erase(&key, &entry)?;
        keys.notify(notify::GENERIC, "del", key.name);
    }
    Ok(())
}

pub(crate) fn getex(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let timed = match (arguments.len(), arguments.get(2), arguments.get(3)) {
        (2, ..) => None,
        (3, Some(word), _) if lower(word) == &b"persist"[..] => Some(None),
        (4, Some(word), Some(time)) => match Unit::of_option(&lower(word)) {
            Some(unit) => Some(Some((unit, time))),
            None => return refuse(SYNTAX),
        },
        _ => return refuse(SYNTAX),
    };
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let Some(entry) = entry else {
        replies.null();
        return Ok(());
    };
    let expires = match timed {
        Some(Some((unit, time))) => Some(deadline(time, unit, keys.now, "getex")?),
        _ => None,
    };
    reply_string(keys, &key, Some(&entry), replies)?;
    let event = match (timed, expires) {
        (_, Some(expires)) if expires <= keys.now => {
            keys.erase(&key, &entry)?;
            "del"
        }
        (_, Some(_)) => {
            keys.set_expiry(&key, &entry, expires)?;
            "expire"
        }
        (Some(None), None) if entry.expires.is_some() => {
            keys.set_expiry(&key, &entry, None)?;
            "persist"
        }
        _ => return Ok(()),
    };
    keys.notify(notify::GENERIC, event, key.name);
    Ok(())
}

pub(crate) fn mget(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let names = arguments.from(1);
    replies.array(names.len());
    for name in names.iter() {
        let key = keys.key(name)?;
        let entry = keys.open(&key)?.filter(|entry| entry.kind == Kind::String);
        reply_string(keys, &key, entry.as_ref(), replies)?;
    }
    Ok(())
}

/// MSET by one operation: where the keys are strings without expiry, or nothing.
pub(crate) fn mset_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let pairs = arguments.from(1);
    if pairs.len() % 2 == 1 {
        return Ok(false);
    }
    let values = pairs.iter().skip(1).step_by(2);
    let Some(mut batch) = keys.batch(pairs.iter().step_by(2).zip(values))? else { return Ok(false) };
    let done = keys.session.set_all_unless_parents(&mut batch)?;
    if done {
        replies.simple("OK");
    }
    Ok(done)
}

pub(crate) fn mset(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let only_absent = lower(&arguments[0]) == &b"msetnx"[..];
    if arguments.len().is_multiple_of(2) {
        return refuse_with(wrong_number(if only_absent { "msetnx" } else { "mset" }));
    }
    if only_absent {
        for name in arguments.from(1).iter().step_by(2) {
            let key = keys.key(name)?;
            if keys.open(&key)?.is_some() {
                replies.integer(0);
                return Ok(());
            }
        }
    }
    for index in (1..arguments.len()).step_by(2) {
        let key = keys.key(&arguments[index])?;
        let entry = keys.open(&key)?;
        keys.put_string(&key, entry.as_ref(), &arguments[index + 1], None)?;
        keys.notify(notify::STRING, "set", key.name);
    }
    if only_absent {
        replies.integer(1);
    } else {
        replies.simple("OK");
    }
    Ok(())
}

pub(crate) fn append(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let length = match (&entry, held(keys, &key, entry.as_ref())?) {
        (Some(entry), Held::Long(length)) => {
            let end = length.saturating_add(arguments[2].len());
            check_length(end)?;
            if end > length {
                keys.patch(&key, entry, length, &arguments[2])?;
            }
            end
        }
        (_, Held::Long(length)) => length,
        (_, Held::Short(mut bytes)) => {
            check_length(bytes.len().saturating_add(arguments[2].len()))?;
            bytes.extend_from_slice(&arguments[2]);
            keys.change_string(&key, entry.as_ref(), &bytes)?;
            bytes.len()
        }
    };
    keys.notify(notify::STRING, "append", key.name);
    replies.count(length);
    Ok(())
}

pub(crate) fn strlen(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    match entry {
        None => replies.integer(0),
        Some(entry) => replies.count(keys.held(&key, &entry)?.length()),
    }
    Ok(())
}

pub(crate) fn getrange(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (start, last) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let Some(entry) = entry else {
        replies.bulk(b"");
        return Ok(());
    };
    let held = keys.held(&key, &entry)?;
    let length = held.length() as i64;
    // Redis: a range that is wrong before it is cut stays wrong; else the end does not fall below 0.
    if start < 0 && last < 0 && start > last || length == 0 {
        replies.bulk(b"");
        return Ok(());
    }
    let (start, last) = (from_end(start, length).max(0), from_end(last, length).max(0).min(length - 1));
    let range = if start > last { 0..0 } else { start as usize..last as usize + 1 };
    match held {
        Held::Short(bytes) => replies.bulk(&bytes[range]),
        Held::Long(_) => replies.bulk(keys.piece(&key, &entry, range)?),
    }
    Ok(())
}

pub(crate) fn setrange(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Ok(offset) = usize::try_from(integer(&arguments[2])?) else {
        return refuse("ERR offset is out of range");
    };
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let patch = &arguments[3];
    let held = held(keys, &key, entry.as_ref())?;
    let mut length = held.length();
    if !patch.is_empty() {
        let end = offset.saturating_add(patch.len());
        check_length(end)?;
        keys.check_growth(length, end)?;
        length = length.max(end);
        match (&entry, held) {
            (Some(entry), Held::Long(_)) => keys.patch(&key, entry, offset, patch)?,
            (_, Held::Long(_)) => {}
            (_, Held::Short(mut bytes)) => {
                bytes.resize(length, 0);
                bytes[offset..end].copy_from_slice(patch);
                keys.change_string(&key, entry.as_ref(), &bytes)?;
            }
        }
        keys.notify(notify::STRING, "setrange", key.name);
    }
    replies.count(length);
    Ok(())
}
