//! Keys, whatever they hold.

use perilune::{Cursor, Node};
use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, Result, NO_KEY, SYNTAX};
use crate::keyspace::{databases, expiries, readdress, tell_expired, Keys};
use crate::name::NAME;
use crate::notify;
use crate::numbers::{integer, lower};
use crate::pattern;
use crate::random;

/// DEL, UNLINK: the latter is no different, since nothing waits for memory to be given back.
pub(crate) fn del(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut removed = 0;
    for name in arguments.from(1).iter() {
        let key = keys.key(name)?;
        if let Some(entry) = keys.open(&key)? {
            keys.erase(&key, &entry)?;
            keys.notify(notify::GENERIC, "del", name);
            removed += 1;
        }
    }
    replies.integer(removed);
    Ok(())
}

/// EXISTS, TOUCH.
pub(crate) fn exists(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut there = 0;
    for name in arguments.from(1).iter() {
        let key = keys.key(name)?;
        there += i64::from(keys.open(&key)?.is_some());
    }
    replies.integer(there);
    Ok(())
}

pub(crate) fn kind(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    replies.simple(keys.open(&key)?.map_or("none", |entry| entry.kind.name()));
    Ok(())
}

pub(crate) fn keys(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mark = replies.begin_array();
    let mut count = 0;
    let mut walk = keys.walk()?;
    let mut walked = 0;
    while let Some(name) = walk.next(keys)? {
        walked += 1;
        keys.patience.bear(walked)?;
        if pattern::matches(&arguments[1], name) {
            replies.bulk(name);
            count += 1;
            if replies.is_full() {
                break;
            }
        }
    }
    replies.end_array(mark, count);
    Ok(())
}

/// KEYS and DBSIZE without a transaction: one over so many leaves would keep all writers waiting. What is there
/// all the time is found; what comes or goes meanwhile may be.
pub(crate) fn keys_quick(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    if arguments.len() == 1 {
        dbsize(keys, arguments, replies)?;
    } else {
        self::keys(keys, arguments, replies)?;
    }
    Ok(true)
}

pub(crate) fn dbsize(
    keys: &mut Keys<'_>,
    _arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    // Expired ones that have not been swept count, as in Redis.
    let mut cursor = Cursor::children(&keys.root()?).without_values();
    replies.integer(cursor.skip(keys.session, u64::MAX)? as i64);
    Ok(())
}

/// Picks tried before all keys are walked through, for one that has not expired.
const PICKS: usize = 16;

/// Any key, in a few searches; where most have expired, by a walk.
pub(crate) fn randomkey(
    keys: &mut Keys<'_>,
    _arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    for _ in 0..PICKS {
        let Some(name) = keys.pick()? else { break };
        let key = keys.key(&name)?;
        if keys.open(&key)?.is_some() {
            replies.bulk(&name);
            return Ok(());
        }
    }
    let (mut walk, mut chosen, mut seen) = (keys.walk()?, None, 0);
    while let Some(name) = walk.next(keys)? {
        seen += 1;
        if random::below(seen) == 0 {
            chosen = Some(name.to_vec());
        }
    }
    replies.bulk_or_null(chosen.as_deref());
    Ok(())
}

/// RENAME, RENAMENX.
pub(crate) fn rename(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let only_absent = lower(&arguments[0]) == &b"renamenx"[..];
    let (from, to) = (keys.key(&arguments[1])?, keys.key(&arguments[2])?);
    let Some(entry) = keys.open(&from)? else { return refuse(NO_KEY) };
    let target = keys.open(&to)?;
    let wanted = !only_absent || target.is_none();
    if wanted && from.node != to.node {
        keys.copy(&from, &entry, &to, target.as_ref())?;
        keys.erase(&from, &entry)?;
        keys.notify(notify::GENERIC, "rename_from", from.name);
        keys.notify(notify::GENERIC, "rename_to", to.name);
    }
    if only_absent {
        replies.truth(wanted);
    } else {
        replies.simple("OK");
    }
    Ok(())
}

fn database(keys: &Keys<'_>, argument: &[u8]) -> Result<i64> {
    match integer(argument)? {
        number if (0..keys.effects.databases()).contains(&number) => Ok(number),
        _ => refuse("ERR DB index is out of range"),
    }
}

pub(crate) fn copy(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (here, mut there, mut replace) = (keys.database, keys.database, false);
    let mut words = arguments.from(3).iter();
    while let Some(word) = words.next() {
        match (&*lower(word), words.len()) {
            (b"replace", _) => replace = true,
            (b"db", 1..) => there = database(keys, words.next().unwrap_or_default())?,
            _ => return refuse(SYNTAX),
        }
    }
    if there == here && arguments[1] == arguments[2] {
        return refuse("ERR source and destination objects are the same");
    }
    let done = transfer(keys, &arguments[1], &arguments[2], there, replace, false)?;
    replies.truth(done);
    Ok(())
}

pub(crate) fn shift(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let there = database(keys, &arguments[2])?;
    if there == keys.database {
        return refuse("ERR source and destination objects are the same");
    }
    let done = transfer(keys, &arguments[1], &arguments[1], there, false, true)?;
    replies.truth(done);
    Ok(())
}

/// Copies a key to a database, and removes it here if it is to `leave`.
fn transfer(
    keys: &mut Keys<'_>,
    from: &[u8],
    to: &[u8],
    there: i64,
    replace: bool,
    leave: bool,
) -> Result<bool> {
    let here = keys.database;
    let from = keys.key(from)?;
    let Some(entry) = keys.open(&from)? else { return Ok(false) };
    keys.database = there;
    let to = keys.key(to)?;
    let target = keys.open(&to)?;
    let wanted = target.is_none() || replace;
    if wanted {
        keys.copy(&from, &entry, &to, target.as_ref())?;
        if !leave {
            keys.notify(notify::GENERIC, "copy_to", to.name);
        }
    }
    keys.database = here;
    if wanted && leave {
        keys.erase(&from, &entry)?;
        keys.notify(notify::GENERIC, "move_from", from.name);
        keys.database = there;
        keys.notify(notify::GENERIC, "move_to", to.name);
        keys.database = here;
    }
    Ok(wanted)
}

/// FLUSHDB, FLUSHALL. Of one database the index of expiries is left to be swept, since it is compared with the keys.
pub(crate) fn flush(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    match arguments.get(1).map(lower).as_deref() {
        None | Some(b"sync" | b"async") if arguments.len() <= 2 => {}
        _ => return refuse(SYNTAX),
    }
    let all = lower(&arguments[0]) == &b"flushall"[..];
    // Those that had expired, and had not been swept, have expired, not been flushed.
    if notify::wants(keys.effects.notify, notify::EXPIRED) {
        tell_expired(keys.session, keys.effects, keys.now, (!all).then_some(keys.database))?;
    }
    if !all {
        let root = keys.root()?;
        keys.session.delete_tree(&root)?;
    } else {
        for database in databases(keys.session)? {
            keys.session.delete_tree(&Node::new(NAME)?.with(database)?)?;
        }
        keys.session.delete_tree(&expiries()?)?;
    }
    // Who keeps what it has read is told of this at once, not of each key: `tracking`.
    keys.session.increment(&Node::new(NAME)?.with("flushed")?, 1)?;
    keys.effects.change_all();
    replies.simple("OK");
    Ok(())
}

/// SWAPDB: by copying, so that `^redis(db)` stays what it says; takes as long as there are keys.
pub(crate) fn swap(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let number = |index: usize, refusal| match perilune_resp::parse_integer(&arguments[index]) {
        None => refuse(refusal),
        Some(number) => Ok(number),
    };
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    if [first, second].iter().any(|number| !(0..keys.effects.databases()).contains(number)) {
        return refuse("ERR DB index is out of range");
    }
    if first != second {
        let one = Node::new(NAME)?.with(first)?;
        let other = Node::new(NAME)?.with(second)?;
        let spare = Node::new("redis")?;
        let session = &mut *keys.session;
        session.copy(&one, &spare)?;
        session.copy(&other, &one)?;
        session.copy(&spare, &other)?;
        session.delete_tree(&spare)?;
        readdress(session, first, second)?;
        keys.effects.change_all();
    }
    replies.simple("OK");
    Ok(())
}
