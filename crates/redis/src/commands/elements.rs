//! What is done with one element of a hash, list, set or sorted set by one operation of the database: no transaction.
//!
//! Invariants
//! - The key exists, is of the right kind, does not expire and still exists afterwards; else the command's own handler is
//!   asked, and whatever is refused is refused there.
//! - What is replied is what the handler would reply.
//! - A function that looks at nodes may run several times: what it has replied is taken back first.

use perilune::{Conditional, IntoValue, Probe, ProbeResult, Probed, ValueRef};
use perilune_resp::{Arguments, Replies};

use super::elements_together::{hset_together, sadd_together};
use crate::failure::Result;
use crate::keyspace::element::{Element, ELEMENT, HEAD};
use crate::keyspace::{text, Keys, Kind};
use crate::numbers::{double_of, integer, integer_of};

/// Sets the value of an element; true if it is new. None: what is there does not allow it.
#[inline]
fn put(probed: &mut Probed<'_>, element: &Element, value: impl IntoValue) -> Option<bool> {
    let count = element.count(probed)?;
    let is_new = match probed.found(ELEMENT) {
        ProbeResult::Record => false,
        ProbeResult::Nothing => true,
        ProbeResult::Unknown => return None,
    };
    if is_new {
        probed.set(HEAD, element.part(), count.checked_add(1)?);
    }
    probed.set(ELEMENT, element.node(), value);
    Some(is_new)
}

/// Removes an element that is not the last one; false if it is not there.
#[inline]
fn take(probed: &mut Probed<'_>, element: &Element) -> Option<bool> {
    let count = element.count(probed)?;
    match probed.found(ELEMENT) {
        ProbeResult::Record if count > 1 => {
            probed.set(HEAD, element.part(), count - 1);
            probed.remove(ELEMENT, element.node());
            Some(true)
        }
        ProbeResult::Nothing => Some(false),
        _ => None,
    }
}

/// Looks at the key called by the first argument and its element called by the second, and replies the number that `change`
/// answers.
#[inline]
fn on_element(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    replies: &mut Replies<'_>,
    mut change: impl FnMut(&mut Probed<'_>, &Element) -> Option<i64>,
) -> Result<bool> {
    let Some(element) = Element::of(keys, &arguments[1], kind, &arguments[2])? else { return Ok(false) };
    let mut answer = 0;
    let done = keys.session.change_probed(&element.probes(), |probed| {
        let changed = change(probed, &element);
        answer = changed.unwrap_or_default();
        changed.is_some()
    })?;
    if done {
        replies.integer(answer);
    }
    Ok(done)
}

/// Looks at the same two without keeping others out, and has `reply` reply; none: it cannot.
#[inline]
fn see_element(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    replies: &mut Replies<'_>,
    reply: impl Fn(&mut Probed<'_>, &mut Replies<'_>) -> Option<()>,
) -> Result<bool> {
    let Some(element) = Element::of(keys, &arguments[1], kind, &arguments[2])? else { return Ok(false) };
    let start = replies.position();
    let done = keys.session.look_probed(&element.probes(), |probed| {
        replies.rewind(start);
        element.count(probed).and_then(|_| reply(probed, replies)).is_some()
    })?;
    if done {
        keys.effects.looks.note(true);
    } else {
        replies.rewind(start);
    }
    Ok(done)
}

pub(crate) fn hget(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    see_element(keys, arguments, Kind::Hash, replies, |probed, replies| {
        match probed.found(ELEMENT) {
            ProbeResult::Record => text::reply(probed.value(ELEMENT)?, replies),
            _ => replies.null(),
        }
        Some(())
    })
}

/// HEXISTS, SISMEMBER.
fn exists(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    see_element(keys, arguments, kind, replies, |probed, replies| {
        replies.truth(probed.found(ELEMENT) == ProbeResult::Record);
        Some(())
    })
}

pub(crate) fn hexists(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    exists(keys, arguments, Kind::Hash, replies)
}

pub(crate) fn sismember(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    exists(keys, arguments, Kind::Set, replies)
}

pub(crate) fn zscore(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    see_element(keys, arguments, Kind::Zset, replies, |probed, replies| {
        match probed.found(ELEMENT) {
            ProbeResult::Record => replies.double(probed.value(ELEMENT).and_then(score)?),
            _ => replies.null(),
        }
        Some(())
    })
}

/// HSET of one field or some.
pub(crate) fn hset(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    if arguments.len() != 4 {
        return Ok(hset_together(keys, &[arguments], replies)? == 1);
    }
    on_element(keys, arguments, Kind::Hash, replies, |probed, field| {
        put(probed, field, &arguments[3]).map(i64::from)
    })
}

pub(crate) fn hsetnx(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    on_element(keys, arguments, Kind::Hash, replies, |probed, field| {
        if probed.found(ELEMENT) == ProbeResult::Record {
            return field.count(probed).map(|_| 0);
        }
        put(probed, field, &arguments[3]).map(i64::from)
    })
}

pub(crate) fn hincrby(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let Ok(by) = integer(&arguments[3]) else { return Ok(false) };
    on_element(keys, arguments, Kind::Hash, replies, |probed, field| {
        let old = match probed.found(ELEMENT) {
            ProbeResult::Record => probed.value(ELEMENT).and_then(integer_of)?,
            _ => 0,
        };
        let sum = old.checked_add(by)?;
        put(probed, field, sum).map(|_| sum)
    })
}

/// HDEL, SREM of one element.
fn remove(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    if arguments.len() != 3 {
        return Ok(false);
    }
    on_element(keys, arguments, kind, replies, |probed, element| take(probed, element).map(i64::from))
}

pub(crate) fn hdel(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    remove(keys, arguments, Kind::Hash, replies)
}

pub(crate) fn srem(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    remove(keys, arguments, Kind::Set, replies)
}

/// SADD of one member.
pub(crate) fn sadd(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    if arguments.len() != 3 {
        return Ok(sadd_together(keys, &[arguments], replies)? == 1);
    }
    on_element(keys, arguments, Kind::Set, replies, |probed, member| {
        if probed.found(ELEMENT) == ProbeResult::Record {
            return member.count(probed).map(|_| 0);
        }
        put(probed, member, true).map(i64::from)
    })
}

/// LPOP, RPOP of one element that is not the last one.
pub(crate) fn pop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    if arguments.len() != 2 {
        return Ok(false);
    }
    let Some(list) = Element::part_of(keys, &arguments[1], Kind::List)? else { return Ok(false) };
    let mut place = list.at(0)?;
    let is_left = arguments[0].first().is_some_and(|letter| letter.eq_ignore_ascii_case(&b'l'));
    let start = replies.position();
    let probes = [Probe::first(list.key()), Probe::last(list.part())];
    let (probes, side) = if is_left { (&probes[..1], HEAD) } else { (&probes[..], ELEMENT) };
    let done = keys.session.change_probed(probes, |probed| {
        replies.rewind(start);
        let mut pop = || {
            let first = list.index(probed, HEAD)?;
            let index = if is_left { first } else { list.index(probed, ELEMENT)? };
            if !is_left && index <= first {
                return None;
            }
            text::reply(probed.value(side)?, replies);
            place.go(index).ok()?;
            probed.remove(side, place.node());
            let stays = !is_left
                || probed.step(HEAD) == ProbeResult::Record && list.index(probed, HEAD)? == first + 1;
            stays.then_some(())
        };
        pop().is_some()
    })?;
    if !done {
        replies.rewind(start);
    }
    Ok(done)
}

/// The score that a probe stands at, as commands of sorted sets read it.
fn score(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Double(score) if !score.is_nan() => Some(score),
        _ => None,
    }
}

/// Gives a member a score that `new` makes of the one it had; what is replied is left to the caller. Answers both.
fn put_score(
    keys: &mut Keys<'_>,
    name: &[u8],
    member: &[u8],
    new: impl Fn(Option<f64>) -> Option<f64>,
) -> Result<Option<(Option<f64>, f64)>> {
    let Some(element) = Element::of(keys, name, Kind::Zset, member)? else { return Ok(None) };
    // The place of the old score is to be looked at, too: so it has to be known before. And mostly nothing changes, if it is
    // the new one.
    let mut old = None;
    let is_seen = keys.session.look_probed(&element.probes(), |probed| {
        let has_score = match probed.found(ELEMENT) {
            ProbeResult::Record => {
                old = probed.value(ELEMENT).and_then(score);
                old.is_some()
            }
            found => {
                old = None;
                found == ProbeResult::Nothing
            }
        };
        has_score && element.count(probed).is_some()
    })?;
    let Some(new) = new(old).filter(|_| is_seen) else { return Ok(None) };
    if old == Some(new) {
        return Ok(Some((old, new)));
    }
    let place = element.place(keys, name, new, member)?;
    let old_place = match old {
        Some(old) => element.place(keys, name, old, member)?,
        None => place.clone(),
    };
    let [head, at] = element.probes();
    let probes = [head, at, Probe::at(&place), Probe::at(&old_place)];
    let is_moved = old.is_some();
    let probes = if is_moved { &probes[..] } else { &probes[..3] };
    let done = keys.session.change_probed(probes, |probed| {
        let mut put = || {
            let count = element.count(probed)?;
            let found = probed.found(ELEMENT) == ProbeResult::Record;
            if found != old.is_some() || found && probed.value(ELEMENT).and_then(score) != old {
                return None;
            }
            if !found {
                probed.set(HEAD, element.part(), count.checked_add(1)?);
            }
            probed.set(ELEMENT, element.node(), new);
            if is_moved && old_place < place {
                probed.remove(3, &old_place);
            }
            probed.set(2, &place, new);
            if is_moved && old_place > place {
                probed.remove(3, &old_place);
            }
            Some(())
        };
        put().is_some()
    })?;
    Ok(done.then_some((old, new)))
}

/// ZADD of one member without options.
pub(crate) fn zadd(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    if arguments.len() != 4 {
        return Ok(false);
    }
    let Some(given) = double_of(&arguments[2]) else { return Ok(false) };
    let done = put_score(keys, &arguments[1], &arguments[3], |_| Some(given))?;
    if let Some((old, _)) = done {
        replies.integer(i64::from(old.is_none()));
    }
    Ok(done.is_some())
}

pub(crate) fn zincrby(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let Some(by) = double_of(&arguments[2]) else { return Ok(false) };
    // What is no number is refused by the handler; and where nothing seems to change the sign of a zero may.
    let sum = |old: Option<f64>| {
        let sum = old.map_or(by, |old| old + by);
        Some(sum).filter(|sum| !sum.is_nan() && old != Some(*sum))
    };
    let done = put_score(keys, &arguments[1], &arguments[3], sum)?;
    if let Some((_, new)) = done {
        replies.double(new);
    }
    Ok(done.is_some())
}
