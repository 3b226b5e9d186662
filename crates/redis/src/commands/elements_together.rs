//! Elements of one key in requests that have arrived together, as one operation: HSET, SADD and pushes; a push
//! alone is one of one request.
//!
//! Invariants
//! - What each request is answered, and what is there afterwards, is as if they had run one after another.
//! - A function that looks at nodes may run several times: what it has noted is noted anew.

use perilune::{Conditional, NodeRef, Probe, ProbeResult, Probed};
use perilune_resp::{Arguments, Replies};

use crate::failure::{self, Result};
use crate::keyspace::element::{Element, ELEMENT, HEAD};
use crate::keyspace::{Keys, Kind};

/// Elements that one operation adds to a list: as many as the database changes so.
const PUSHED: usize = 16;
/// Elements that one operation puts into a hash or set.
const PUT: usize = 16;

/// HSET to one hash: the first requests that are that, of up to [`PUT`] fields in all.
pub(crate) fn hset_together(
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    replies: &mut Replies<'_>,
) -> Result<usize> {
    put_together(keys, requests, Kind::Hash, replies, |probed, at, node, value| {
        probed.set(at, node, value);
    })
}

/// SADD to one set: the first requests that are that, of up to [`PUT`] members in all.
pub(crate) fn sadd_together(
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    replies: &mut Replies<'_>,
) -> Result<usize> {
    put_together(keys, requests, Kind::Set, replies, |probed, at, node, _| {
        if probed.found(at) == ProbeResult::Nothing {
            probed.set(at, node, true);
        }
    })
}

/// An element that a request puts into a hash or set.
struct Put<'a> {
    element: Element,
    request: usize,
    /// Of a field.
    value: &'a [u8],
}

/// The elements that the first requests put into the hash or set of the first, as many as one operation can put there; and
/// how many requests these are.
fn puts<'a>(keys: &Keys<'_>, requests: &[Arguments<'a>], kind: Kind) -> Result<(Vec<Put<'a>>, usize)> {
    let (mut puts, mut ran) = (Vec::with_capacity(PUT), 0);
    let step = if kind == Kind::Hash { 2 } else { 1 };
    for arguments in requests.iter().take_while(|arguments| arguments[1] == requests[0][1]) {
        let (before, words) = (puts.len(), arguments.len() - 2);
        if words % step > 0 || before + words / step > PUT {
            break;
        }
        for at in (2..arguments.len()).step_by(step) {
            let Some(element) = Element::of(keys, &arguments[1], kind, &arguments[at])? else {
                puts.truncate(before);
                return Ok((puts, ran));
            };
            let value = arguments.get(at + step - 1).unwrap_or_default();
            puts.push(Put { element, request: ran, value });
        }
        ran += 1;
    }
    Ok((puts, ran))
}

/// Puts the elements of the first requests into one hash or set, the last of those with one name by `set`; replies how many
/// were new in each.
fn put_together(
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    kind: Kind,
    replies: &mut Replies<'_>,
    set: impl Fn(&mut Probed<'_>, usize, NodeRef<'_>, &[u8]),
) -> Result<usize> {
    let (mut elements, ran) = puts(keys, requests, kind)?;
    // What is written ascends; of those with one name the last is written, and the first may be new.
    elements.sort_by(|one, other| one.element.node().encoded().cmp(other.element.node().encoded()));
    let is_same =
        |one: &Put<'_>, other: &Put<'_>| one.element.node().encoded() == other.element.node().encoded();
    let groups = || elements.chunk_by(is_same);
    let Some(Put { element: head, .. }) = elements.first() else { return Ok(0) };
    let mut probes = Vec::with_capacity(1 + elements.len());
    probes.push(Probe::first(head.key()));
    probes.extend(groups().map(|group| Probe::at(group[0].element.node())));
    let mut new = [0; PUT];
    let done = keys.session.change_probed(&probes, |probed| {
        let mut put = || {
            let count = head.count(probed)?;
            new = [0; PUT];
            for (probe, group) in (ELEMENT..).zip(groups()) {
                match probed.found(probe) {
                    ProbeResult::Record => {}
                    ProbeResult::Nothing => new[group[0].request] += 1,
                    ProbeResult::Unknown => return None,
                }
            }
            let added: i64 = new.iter().sum();
            if added > 0 {
                probed.set(HEAD, head.part(), count.checked_add(added)?);
            }
            for (probe, group) in (ELEMENT..).zip(groups()) {
                let Put { element, value, .. } = &group[group.len() - 1];
                set(probed, probe, element.node(), value);
            }
            Some(())
        };
        put().is_some()
    });
    match failure::told(done, ran, replies)? {
        Some(true) => new[..ran].iter().for_each(|new| replies.integer(*new)),
        Some(false) => return Ok(0),
        None => {}
    }
    Ok(ran)
}

/// As [`push`], of several requests: those of the first list.
pub(crate) fn push_together(
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    replies: &mut Replies<'_>,
) -> Result<usize> {
    let Some(first) = requests.first() else { return Ok(0) };
    let (mut pushed, mut ran) = (0, 0);
    for arguments in requests.iter().take_while(|arguments| arguments[1] == first[1]) {
        if pushed + arguments.len() - 2 > PUSHED {
            break;
        }
        pushed += arguments.len() - 2;
        ran += 1;
    }
    let Some(list) = Element::part_of(keys, &first[1], Kind::List)?.filter(|_| ran > 0) else { return Ok(0) };
    let elements = || requests[..ran].iter().flat_map(|arguments| arguments.from(2).iter());
    let is_left = first[0].first().is_some_and(|letter| letter.eq_ignore_ascii_case(&b'l'));
    let mut place = list.at(0)?;
    let (mut length, count) = (0, pushed as i64);
    let done = keys.session.change_probed(&[Probe::first(list.key()), Probe::last(list.part())], |probed| {
        let mut push = || {
            let (first, last) = ends(probed, &list)?;
            length = last.checked_sub(first)?.checked_add(1)?;
            length.checked_add(count)?;
            // Each one goes to the left of the one before, or to its right; what is written ascends.
            let start = if is_left { first.checked_sub(count)? } else { last.checked_add(1)? };
            start.checked_add(count)?;
            let mut set = |index: i64, element: &[u8]| {
                place.go(start + index).ok()?;
                probed.set(if is_left { HEAD } else { ELEMENT }, place.node(), element);
                Some(())
            };
            match is_left {
                true => (0..).zip(elements().rev()).try_for_each(|(index, element)| set(index, element)),
                false => (0..).zip(elements()).try_for_each(|(index, element)| set(index, element)),
            }
        };
        push().is_some()
    });
    match failure::told(done, ran, replies)? {
        Some(true) => {}
        Some(false) => return Ok(0),
        None => return Ok(ran),
    }
    for arguments in &requests[..ran] {
        length += arguments.len() as i64 - 2;
        replies.integer(length);
    }
    Ok(ran)
}

/// The first index of a list and the last one, where `probes` look.
fn ends(probed: &mut Probed<'_>, list: &Element) -> Option<(i64, i64)> {
    let (first, last) = (list.index(probed, HEAD)?, list.index(probed, ELEMENT)?);
    (first <= last).then_some((first, last))
}

/// LPUSH, RPUSH, LPUSHX, RPUSHX to a list that is there.
pub(crate) fn push(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<bool> {
    Ok(push_together(keys, &[arguments], replies)? == 1)
}
