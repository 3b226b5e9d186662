//! Commands of lists; what a list is, is in `keyspace`.
//!
//! Invariant: a list without elements is gone.

use perilune::key::decode_int;
use perilune::{Neighbour, Steps};
use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, refuse_with, Result, INDEX_RANGE, NO_KEY, SYNTAX};
use crate::keyspace::{text, Keys, Kind, List, Side};
use crate::notify;
use crate::numbers::{from_end, integer, lower, positive, span};
use crate::refusals::wrong_number;

/// LPUSH, RPUSH, LPUSHX, RPUSHX.
pub(crate) fn push(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let name = lower(&arguments[0]);
    let side = if name.first() == Some(&b'l') { Side::Left } else { Side::Right };
    let mut list = List::open(keys, &arguments[1])?;
    if list.entry.is_some() || name.last() != Some(&b'x') {
        for element in arguments.from(2).iter() {
            list.push(keys, side, element)?;
        }
        keys.notify(notify::LIST, side.pushed(), list.key.name);
    }
    replies.integer(list.length());
    Ok(())
}

/// LPOP, RPOP.
pub(crate) fn pop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (side, name) =
        if lower(&arguments[0]) == &b"lpop"[..] { (Side::Left, "lpop") } else { (Side::Right, "rpop") };
    if arguments.len() > 3 {
        return refuse_with(wrong_number(name));
    }
    let count = match arguments.get(2) {
        None => None,
        Some(count) => Some(positive(count, "ERR value is out of range, must be positive")?),
    };
    let Some(count) = count else { return pop_one(keys, &arguments[1], side, replies) };
    let mut list = List::open(keys, &arguments[1])?;
    match list.entry {
        None => replies.null_array(),
        Some(_) => pop_many(keys, &mut list, side, count, replies)?,
    }
    Ok(())
}

/// Pops the element at one end, and looks no farther than whether it is the last one.
fn pop_one(keys: &mut Keys<'_>, name: &[u8], side: Side, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(name, Kind::List)?;
    let Some(entry) = entry else {
        replies.null();
        return Ok(());
    };
    let mut node = key.part(Kind::List)?;
    let (root, first) = (node.encoded().len(), entry.figure);
    let index = match side {
        Side::Left => first,
        Side::Right => {
            let last = keys.session.neighbour(Neighbour::LastChild, &node)?;
            last.and_then(|last| decode_int(&last.encoded()[root..])).unwrap_or(first)
        }
    };
    node.push(index)?;
    let element = keys.session.get_ref(&node)?.map(text::bytes_of);
    replies.bulk(&element.unwrap_or_default());
    let is_last = match side {
        Side::Left => keys.session.neighbour(Neighbour::SiblingAfter, &node)?.is_none(),
        Side::Right => index == first,
    };
    // NB: asked before the element is removed: a one-shot transaction does not look behind its own removals.
    let is_all = is_last && keys.is_all(&key, &entry, &node)?;
    keys.session.delete_value(&node)?;
    keys.notify(notify::LIST, side.popped(), key.name);
    match (is_last, is_all) {
        (true, true) => keys.tell_gone(&key),
        (true, false) => keys.empty(&key, &entry)?,
        (false, _) => {}
    }
    Ok(())
}

fn pop_many(
    keys: &mut Keys<'_>,
    list: &mut List<'_>,
    side: Side,
    count: usize,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let count = count.min(usize::try_from(list.length()).unwrap_or(0));
    replies.array(count);
    for _ in 0..count {
        replies.bulk(&list.pop(keys.session, side)?);
    }
    if count > 0 {
        keys.notify(notify::LIST, side.popped(), list.key.name);
    }
    list.close(keys)
}

pub(crate) fn llen(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.integer(List::open(keys, &arguments[1])?.length());
    Ok(())
}

pub(crate) fn lindex(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut list = List::open(keys, &arguments[1])?;
    if list.entry.is_none() {
        replies.null();
        return Ok(());
    }
    let index = from_end(integer(&arguments[2])?, list.length());
    if (0..list.length()).contains(&index) {
        replies.bulk(&list.get(keys.session, index)?);
    } else {
        replies.null();
    }
    Ok(())
}

pub(crate) fn lset(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut list = List::open(keys, &arguments[1])?;
    if list.entry.is_none() {
        return refuse(NO_KEY);
    }
    let index = from_end(integer(&arguments[2])?, list.length());
    if !(0..list.length()).contains(&index) {
        return refuse(INDEX_RANGE);
    }
    list.put(keys.session, index, &arguments[3])?;
    keys.notify(notify::LIST, "lset", list.key.name);
    replies.simple("OK");
    Ok(())
}

pub(crate) fn lrange(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (start, last) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let mut list = List::open(keys, &arguments[1])?;
    let (start, end) = span(start, last, list.length());
    keys.patience.bear(end - start)?;
    replies.array((end - start) as usize);
    list.each(keys.session, start..end, |element| {
        text::reply(element, replies);
        !replies.is_full()
    })
}

pub(crate) fn ltrim(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (start, last) = (integer(&arguments[2])?, integer(&arguments[3])?);
    let mut list = List::open(keys, &arguments[1])?;
    let (start, end) = span(start, last, list.length());
    if list.entry.is_some() {
        keys.notify(notify::LIST, "ltrim", list.key.name);
    }
    if start == end {
        if let Some(entry) = &list.entry {
            keys.empty(&list.key, entry)?;
        }
    } else {
        list.keep(keys.session, start..end)?;
    }
    replies.simple("OK");
    Ok(())
}

pub(crate) fn linsert(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let behind = match &*lower(&arguments[2]) {
        b"before" => 0,
        b"after" => 1,
        _ => return refuse(SYNTAX),
    };
    let mut list = List::open(keys, &arguments[1])?;
    if list.entry.is_none() {
        replies.integer(0);
        return Ok(());
    }
    let elements = list.elements(keys.session)?;
    let Some(at) = elements.iter().position(|element| *element == arguments[3]) else {
        replies.integer(-1);
        return Ok(());
    };
    keys.notify(notify::LIST, "linsert", list.key.name);
    let at = at + behind;
    if at < elements.len() / 2 {
        // The shorter part makes room.
        list.make_room();
        for (index, element) in elements[..at].iter().enumerate() {
            list.put(keys.session, index as i64, element)?;
        }
        list.put(keys.session, at as i64, &arguments[4])?;
    } else {
        let mut rest = vec![arguments[4].to_vec()];
        rest.extend_from_slice(&elements[at..]);
        list.rewrite(keys, at as i64, &rest)?;
    }
    replies.integer(list.length());
    Ok(())
}

pub(crate) fn lrem(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let count = integer(&arguments[2])?;
    let mut list = List::open(keys, &arguments[1])?;
    let mut elements = list.elements(keys.session)?;
    let most = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let mut removed = 0;
    let mut wanted = |element: &Vec<u8>| {
        let removes = removed < most && *element == arguments[3];
        removed += u64::from(removes);
        removes
    };
    if count < 0 {
        elements.reverse();
        elements.retain(|element| !wanted(element));
        elements.reverse();
    } else {
        elements.retain(|element| !wanted(element));
    }
    if removed > 0 {
        keys.notify(notify::LIST, "lrem", list.key.name);
        list.rewrite(keys, 0, &elements)?;
    }
    replies.integer(removed as i64);
    Ok(())
}

fn rank_option(argument: &[u8]) -> Result<i64> {
    match integer(argument)? {
        0 => refuse(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
             start from the end of the list",
        ),
        i64::MIN => refuse("ERR value is out of range, must be greater than -9223372036854775808"),
        rank => Ok(rank),
    }
}

pub(crate) fn lpos(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (mut rank, mut count, mut most) = (1, None, 0);
    for index in (3..arguments.len()).step_by(2) {
        let Some(value) = arguments.get(index + 1) else { return refuse(SYNTAX) };
        match &*lower(&arguments[index]) {
            b"rank" => rank = rank_option(value)?,
            b"count" => count = Some(positive(value, "ERR COUNT can't be negative")?),
            b"maxlen" => most = positive(value, "ERR MAXLEN can't be negative")?,
            _ => return refuse(SYNTAX),
        }
    }
    let mut list = List::open(keys, &arguments[1])?;
    let length = list.length();
    let looked = if most == 0 { length } else { length.min(i64::try_from(most).unwrap_or(i64::MAX)) };
    let (mut passed, mut found) = (0, Vec::new());
    let wanted = match count {
        None => 1,
        Some(0) => usize::MAX,
        Some(count) => count,
    };
    for step in 0..looked {
        let index = if rank > 0 { step } else { length - 1 - step };
        if list.get(keys.session, index)? == arguments[2] {
            passed += 1;
            if passed >= rank.abs() {
                found.push(index);
            }
            if found.len() >= wanted {
                break;
            }
        }
    }
    match count {
        None if found.is_empty() => replies.null(),
        None => replies.integer(found[0]),
        Some(_) => {
            replies.array(found.len());
            for index in found {
                replies.integer(index);
            }
        }
    }
    Ok(())
}

/// LMOVE, RPOPLPUSH.
pub(crate) fn lmove(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (from, to) = match (arguments.get(3), arguments.get(4)) {
        (Some(from), Some(to)) => (Side::parse(from)?, Side::parse(to)?),
        _ => (Side::Right, Side::Left),
    };
    let mut source = List::open(keys, &arguments[1])?;
    if source.entry.is_none() {
        replies.null();
        return Ok(());
    }
    if arguments[1] == arguments[2] {
        let element = source.pop(keys.session, from)?;
        source.push(keys, to, &element)?;
        keys.notify(notify::LIST, to.pushed(), source.key.name);
        keys.notify(notify::LIST, from.popped(), source.key.name);
        replies.bulk(&element);
        return Ok(());
    }
    let mut target = List::open(keys, &arguments[2])?;
    let element = source.pop(keys.session, from)?;
    target.push(keys, to, &element)?;
    keys.notify(notify::LIST, to.pushed(), target.key.name);
    keys.notify(notify::LIST, from.popped(), source.key.name);
    source.close(keys)?;
    replies.bulk(&element);
    Ok(())
}

pub(crate) fn lmpop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (names, rest) = super::numbered(arguments, 1)?;
    let Some(side) = rest.get(0) else { return refuse(SYNTAX) };
    let side = Side::parse(side)?;
    let count = super::count_option(rest.from(1))?;
    for name in names.iter() {
        if pop_some(keys, name, side, count, replies)? {
            return Ok(());
        }
    }
    replies.null_array();
    Ok(())
}

/// Takes elements off a list and answers them as LMPOP does; false if there is none.
pub(super) fn pop_some(
    keys: &mut Keys<'_>,
    name: &[u8],
    side: Side,
    count: usize,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let mut list = List::open(keys, name)?;
    if list.entry.is_none() {
        return Ok(false);
    }
    replies.array(2);
    replies.bulk(name);
    pop_many(keys, &mut list, side, count, replies)?;
    Ok(true)
}

/// Takes an element off a list and answers both names, as BLPOP does; false if there is none.
pub(super) fn pop_named(
    keys: &mut Keys<'_>,
    name: &[u8],
    side: Side,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let mut list = List::open(keys, name)?;
    if list.entry.is_none() {
        return Ok(false);
    }
    replies.array(2);
    replies.bulk(name);
    replies.bulk(&list.pop(keys.session, side)?);
    keys.notify(notify::LIST, side.popped(), name);
    list.close(keys)?;
    Ok(true)
}

/// Whether there is a list.
pub(super) fn has_elements(keys: &mut Keys<'_>, name: &[u8]) -> Result<bool> {
    Ok(List::open(keys, name)?.entry.is_some())
}
