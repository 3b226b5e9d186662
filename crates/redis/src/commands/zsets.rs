//! Sorted sets, but for what combines several of them.

use perilune_resp::{Arguments, Protocol, Replies};

use super::scan::scan_elements;
use super::{count_option, numbered, pick_some};
use crate::failure::{refuse, refuse_with, Result, NOT_FLOAT, SYNTAX};
use crate::keyspace::{text, Entry, Key, Keys, Kind, Scored, SortedSet};
use crate::notify;
use crate::numbers::{double, double_of, drawn, lower, positive};
use crate::random;
use crate::refusals::wrong_number;

/// A sorted set, open.
pub(super) struct Zset<'n> {
    pub(super) key: Key<'n>,
    pub(super) entry: Option<Entry>,
    pub(super) set: SortedSet,
    pub(super) count: i64,
}

impl<'n> Zset<'n> {
    pub(super) fn open(keys: &mut Keys<'_>, name: &'n [u8]) -> Result<Zset<'n>> {
        let (key, entry) = keys.find(name, Kind::Zset)?;
        let set = SortedSet::of(&key)?;
        Ok(Zset { key, entry, set, count: entry.map_or(0, |entry| entry.figure) })
    }

    pub(super) fn score(&mut self, keys: &mut Keys<'_>, member: &[u8]) -> Result<Option<f64>> {
        if self.count == 0 {
            return Ok(None);
        }
        self.set.score(keys.session, member)
    }

    pub(super) fn put(
        &mut self,
        keys: &mut Keys<'_>,
        member: &[u8],
        old: Option<f64>,
        new: f64,
    ) -> Result<()> {
        self.set.put(keys.session, member, old, new)?;
        self.count += i64::from(old.is_none());
        Ok(())
    }

    pub(super) fn remove(&mut self, keys: &mut Keys<'_>, scored: &Scored) -> Result<()> {
        self.set.remove(keys.session, &scored.member, scored.score)?;
        self.count -= 1;
        Ok(())
    }

    /// Writes down how many members there are now.
    pub(super) fn close(&self, keys: &mut Keys<'_>) -> Result<()> {
        keys.set_count(&self.key, self.entry.as_ref(), Kind::Zset, self.count)
    }
}

/// The options of ZADD.
#[derive(Default)]
struct AddOptions {
    if_absent: bool,
    if_present: bool,
    greater: bool,
    less: bool,
    changed: bool,
    increment: bool,
}

impl AddOptions {
    /// The options, and the scores and members behind them.
    fn parse(arguments: Arguments<'_>) -> Result<(AddOptions, Arguments<'_>)> {
        let mut options = AddOptions::default();
        let mut at = 2;
        while let Some(word) = arguments.get(at) {
            match &*lower(word) {
                b"nx" => options.if_absent = true,
                b"xx" => options.if_present = true,
                b"gt" => options.greater = true,
                b"lt" => options.less = true,
                b"ch" => options.changed = true,
                b"incr" => options.increment = true,
                _ => break,
            }
            at += 1;
        }
        let pairs = arguments.from(at);
        if pairs.is_empty() || pairs.len() % 2 == 1 {
            return refuse(SYNTAX);
        }
        if options.if_absent && options.if_present {
            return refuse("ERR XX and NX options at the same time are not compatible");
        }
        if options.greater && options.less || options.if_absent && (options.greater || options.less) {
            return refuse("ERR GT, LT, and/or NX options at the same time are not compatible");
        }
        if options.increment && pairs.len() > 2 {
            return refuse("ERR INCR option supports a single increment-element pair");
        }
        Ok((options, pairs))
    }

    /// The score that a member gets; none if it stays as it is.
    fn score(&self, old: Option<f64>, given: f64) -> Result<Option<f64>> {
        let Some(old) = old else { return Ok((!self.if_present).then_some(given)) };
        if self.if_absent {
            return Ok(None);
        }
        let new = if self.increment { old + given } else { given };
        if new.is_nan() {
            return refuse("ERR resulting score is not a number (NaN)");
        }
        let kept = self.greater && new <= old || self.less && new >= old;
        Ok((!kept).then_some(new))
    }
}

pub(crate) fn zadd(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (options, pairs) = AddOptions::parse(arguments)?;
    let scores = pairs.iter().step_by(2).map(double).collect::<Result<Vec<_>>>()?;
    let mut zset = Zset::open(keys, &arguments[1])?;
    let (mut added, mut updated, mut last) = (0, 0, None);
    for (score, member) in scores.into_iter().zip(pairs.iter().skip(1).step_by(2)) {
        let old = zset.score(keys, member)?;
        last = options.score(old, score)?;
        if let Some(new) = last {
            if old != Some(new) {
                zset.put(keys, member, old, new)?;
                added += i64::from(old.is_none());
                updated += i64::from(old.is_some());
            }
        }
    }
    zset.close(keys)?;
    if added + updated > 0 {
        keys.notify(notify::ZSET, if options.increment { "zincr" } else { "zadd" }, zset.key.name);
    }
    match (options.increment, last) {
        (true, Some(score)) => replies.double(score),
        (true, None) => replies.null(),
        (false, _) => replies.integer(if options.changed { added + updated } else { added }),
    }
    Ok(())
}

pub(crate) fn zincrby(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let by = double(&arguments[2])?;
    let mut zset = Zset::open(keys, &arguments[1])?;
    let old = zset.score(keys, &arguments[3])?;
    let new = old.map_or(by, |old| old + by);
    if new.is_nan() {
        return refuse("ERR resulting score is not a number (NaN)");
    }
    zset.put(keys, &arguments[3], old, new)?;
    zset.close(keys)?;
    keys.notify(notify::ZSET, "zincr", zset.key.name);
    replies.double(new);
    Ok(())
}

pub(crate) fn zrem(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut zset = Zset::open(keys, &arguments[1])?;
    let before = zset.count;
    for member in arguments.from(2).iter() {
        if let Some(score) = zset.score(keys, member)? {
            zset.remove(keys, &Scored { member: member.to_vec(), score })?;
        }
    }
    if before > zset.count {
        keys.notify(notify::ZSET, "zrem", zset.key.name);
    }
    zset.close(keys)?;
    replies.integer(before - zset.count);
    Ok(())
}

pub(crate) fn zcard(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.integer(Zset::open(keys, &arguments[1])?.count);
    Ok(())
}

pub(crate) fn zscore(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut zset = Zset::open(keys, &arguments[1])?;
    match zset.score(keys, &arguments[2])? {
        Some(score) => replies.double(score),
        None => replies.null(),
    }
    Ok(())
}

pub(crate) fn zmscore(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut zset = Zset::open(keys, &arguments[1])?;
    replies.array(arguments.len() - 2);
    for member in arguments.from(2).iter() {
        match zset.score(keys, member)? {
            Some(score) => replies.double(score),
            None => replies.null(),
        }
    }
    Ok(())
}

/// ZRANK, ZREVRANK: by counting to the nearer end.
pub(crate) fn zrank(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let backwards = lower(&arguments[0]) == &b"zrevrank"[..];
    let mut zset = Zset::open(keys, &arguments[1])?;
    let Some(score) = zset.score(keys, &arguments[2])? else {
        replies.null();
        return Ok(());
    };
    let scored = Scored { member: arguments[2].to_vec(), score };
    let rank = zset.set.rank(keys.session, &scored, zset.count)?;
    replies.integer(if backwards { zset.count - 1 - rank } else { rank });
    Ok(())
}

/// Replies members, and their scores where they are wanted: in RESP3 as pairs.
pub(super) fn reply(found: &[Scored], with_scores: bool, replies: &mut Replies<'_>) {
    let nested = with_scores && replies.protocol() == Protocol::Resp3;
    replies.array(if with_scores && !nested { 2 * found.len() } else { found.len() });
    for scored in found {
        if nested {
            replies.array(2);
        }
        replies.bulk(&scored.member);
        if with_scores {
            replies.double(scored.score);
        }
    }
}

/// Takes up to `count` members off an end.
fn take(keys: &mut Keys<'_>, zset: &mut Zset<'_>, highest: bool, count: usize) -> Result<Vec<Scored>> {
    let mut taken = Vec::new();
    while zset.entry.is_some() && taken.len() < count {
        let Some(scored) = zset.set.step(keys.session, None, highest)? else { break };
        zset.remove(keys, &scored)?;
        taken.push(scored);
    }
    if !taken.is_empty() {
        keys.notify(notify::ZSET, if highest { "zpopmax" } else { "zpopmin" }, zset.key.name);
    }
    zset.close(keys)?;
    Ok(taken)
}

/// ZPOPMIN, ZPOPMAX.
pub(crate) fn zpop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (highest, name) =
        if lower(&arguments[0]) == &b"zpopmax"[..] { (true, "zpopmax") } else { (false, "zpopmin") };
    if arguments.len() > 3 {
        return refuse_with(wrong_number(name));
    }
    let count = match arguments.get(2) {
        None => None,
        Some(count) => Some(positive(count, "ERR value is out of range, must be positive")?),
    };
    let mut zset = Zset::open(keys, &arguments[1])?;
    let taken = take(keys, &mut zset, highest, count.unwrap_or(1))?;
    if count.is_some() || replies.protocol() == Protocol::Resp2 {
        reply(&taken, true, replies);
        return Ok(());
    }
    // In RESP3 a single one is no pair inside an array.
    replies.array(2 * taken.len());
    for scored in taken {
        replies.bulk(&scored.member);
        replies.double(scored.score);
    }
    Ok(())
}

pub(crate) fn zmpop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (names, rest) = numbered(arguments, 1)?;
    let highest = match rest.get(0).map(lower).as_deref() {
        Some(b"min") => false,
        Some(b"max") => true,
        _ => return refuse(SYNTAX),
    };
    let count = count_option(rest.from(1))?;
    for name in names.iter() {
        if pop_some(keys, name, highest, count, replies)? {
            return Ok(());
        }
    }
    replies.null_array();
    Ok(())
}

/// Takes members off a sorted set and answers them as ZMPOP does; false if there is none.
pub(super) fn pop_some(
    keys: &mut Keys<'_>,
    name: &[u8],
    highest: bool,
    count: usize,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let mut zset = Zset::open(keys, name)?;
    if zset.entry.is_none() {
        return Ok(false);
    }
    let taken = take(keys, &mut zset, highest, count)?;
    replies.array(2);
    replies.bulk(name);
    replies.array(taken.len());
    for scored in taken {
        replies.array(2);
        replies.bulk(&scored.member);
        replies.double(scored.score);
    }
    Ok(true)
}

/// Takes a member off a sorted set and answers as BZPOPMIN does; false if there is none.
pub(super) fn pop_named(
    keys: &mut Keys<'_>,
    name: &[u8],
    highest: bool,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    let mut zset = Zset::open(keys, name)?;
    if zset.entry.is_none() {
        return Ok(false);
    }
    for scored in take(keys, &mut zset, highest, 1)? {
        replies.array(3);
        replies.bulk(name);
        replies.bulk(&scored.member);
        replies.double(scored.score);
    }
    Ok(true)
}

pub(crate) fn zrandmember(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let count = arguments.get(2).map(drawn).transpose()?;
    let with_scores = match arguments.get(3).map(lower) {
        None => false,
        Some(word) if word == &b"withscores"[..] && arguments.len() == 4 => true,
        Some(_) => return refuse(SYNTAX),
    };
    if with_scores && count.is_some_and(|count| count > i64::MAX / 2) {
        return refuse("ERR value is out of range");
    }
    let mut zset = Zset::open(keys, &arguments[1])?;
    if count.is_none() {
        let member = if zset.entry.is_some() { zset.set.pick(keys.session)? } else { None };
        replies.bulk_or_null(member.as_deref());
        return Ok(());
    }
    let mut all = Vec::new();
    let asked = count.unwrap_or(1);
    if let Some(few) = pick_some(keys, (asked, zset.count), |keys| zset.set.pick(keys.session))? {
        for member in few {
            let score = zset.score(keys, &member)?.unwrap_or(0.0);
            all.push(Scored { member, score });
        }
        reply(&all, with_scores, replies);
        return Ok(());
    }
    zset.set.walk(None, false)?.gather(keys.session, &mut zset.set, usize::MAX, &mut all)?;
    let chosen: Vec<Scored> =
        random::choose(all.len(), asked).into_iter().map(|index| all[index].clone()).collect();
    reply(&chosen, with_scores, replies);
    Ok(())
}

pub(crate) fn zscan(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    scan_elements(keys, arguments, Kind::Zset, 2, replies, |member, value, replies| {
        replies.bulk(member);
        let bytes = text::bytes_of(value);
        match double_of(&bytes) {
            // In both protocols text.
            Some(score) => replies.bulk(perilune_resp::format_double(score).as_bytes()),
            None => replies.error(NOT_FLOAT),
        }
    })
}
