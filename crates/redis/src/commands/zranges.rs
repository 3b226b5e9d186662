//! Ranges of sorted sets: by rank, by score, by the bytes of members.

use perilune_resp::{Arguments, Replies};

use super::zsets::{reply, Zset};
use crate::failure::{refuse, Result, SYNTAX};
use crate::keyspace::{Edge, Keys, Scored};
use crate::notify;
use crate::numbers::{double_of, integer, lower, span};

/// Which members.
#[derive(Clone, Debug)]
enum Range {
    /// From the first to the last rank, counted from the end that the walk begins at.
    Rank(i64, i64),
    Score(Edge, Edge),
    Bytes(Bound, Bound),
}

/// An end of a range of bytes.
#[derive(Clone, Debug)]
enum Bound {
    Lowest,
    Highest,
    At { member: Vec<u8>, included: bool },
}

/// Where to begin in a range, and how many.
type Limit = (i64, i64);

const ALL: Limit = (0, -1);

fn edge(argument: &[u8]) -> Result<Edge> {
    let (included, number) = match argument {
        [b'(', number @ ..] => (false, number),
        number => (true, number),
    };
    match double_of(number) {
        Some(score) => Ok(Edge { score, included }),
        None => refuse("ERR min or max is not a float"),
    }
}

fn bound(argument: &[u8]) -> Result<Bound> {
    match argument {
        b"-" => Ok(Bound::Lowest),
        b"+" => Ok(Bound::Highest),
        [b'[', member @ ..] => Ok(Bound::At { member: member.to_vec(), included: true }),
        [b'(', member @ ..] => Ok(Bound::At { member: member.to_vec(), included: false }),
        _ => refuse("ERR min or max not valid string range item"),
    }
}

impl Range {
    fn scores(from: &[u8], to: &[u8]) -> Result<Range> {
        Ok(Range::Score(edge(from)?, edge(to)?))
    }

    fn bytes(from: &[u8], to: &[u8]) -> Result<Range> {
        Ok(Range::Bytes(bound(from)?, bound(to)?))
    }

    fn ranks(from: &[u8], to: &[u8]) -> Result<Range> {
        Ok(Range::Rank(integer(from)?, integer(to)?))
    }

    /// The members in the range, in the order of the walk.
    fn find(
        &self,
        keys: &mut Keys<'_>,
        zset: &mut Zset<'_>,
        backwards: bool,
        limit: Limit,
    ) -> Result<Vec<Scored>> {
        let (mut skip, mut left) = (limit.0, limit.1);
        if skip < 0 || zset.entry.is_none() {
            return Ok(Vec::new());
        }
        let mut at = if let Range::Rank(first, last) = self {
            let (start, end) = span(*first, *last, zset.count);
            keys.patience.bear(end - start)?;
            if zset.count - end < start {
                // The other end is nearer.
                let mut found = gather(keys, zset, !backwards, zset.count - end, end - start)?;
                found.reverse();
                return Ok(found);
            }
            return gather(keys, zset, backwards, start, end - start);
        } else {
            self.enter(keys, zset, backwards)?
        };
        let is_unbroken = skip > 0 && self.is_unbroken(keys, zset)?;
        let (mut found, mut walk) = (Vec::new(), None);
        while let Some(scored) = at {
            if left == 0 || self.is_behind(&scored, backwards) {
                break;
            }
            let inside = !self.is_before(&scored, backwards);
            if inside && skip > 0 {
                let passed = if is_unbroken { skip } else { 1 };
                at = zset.set.nth(keys.session, Some(&scored), passed - 1, backwards)?;
                (skip, walk) = (skip - passed, None);
                continue;
            }
            let mut ahead = walk.map_or_else(|| zset.set.walk(Some(&scored), backwards), Ok)?;
            at = ahead.next(keys.session, &mut zset.set)?;
            walk = Some(ahead);
            if inside {
                found.push(scored);
                left -= 1;
                keys.patience.bear(found.len() as i64)?;
            }
        }
        Ok(found)
    }

    /// Whether all members between two of the range are in it.
    fn is_unbroken(&self, keys: &mut Keys<'_>, zset: &mut Zset<'_>) -> Result<bool> {
        Ok(!matches!(self, Range::Bytes(..)) || one_score(keys, zset)?.is_some())
    }

    /// Where a walk begins that is to meet all members of the range: at the first of them, or not far before it. None if
    /// there is none.
    fn enter(&self, keys: &mut Keys<'_>, zset: &mut Zset<'_>, backwards: bool) -> Result<Option<Scored>> {
        let (low, high) = match self {
            Range::Rank(..) => return zset.set.step(keys.session, None, backwards),
            Range::Score(low, high) => {
                return zset.set.enter(keys.session, if backwards { high } else { low }, backwards)
            }
            Range::Bytes(Bound::Highest, _) | Range::Bytes(_, Bound::Lowest) => return Ok(None),
            Range::Bytes(low, high) => (low, high),
        };
        let Some(end) = zset.set.step(keys.session, None, backwards)? else { return Ok(None) };
        let Bound::At { member, .. } = (if backwards { high } else { low }) else { return Ok(Some(end)) };
        // Only members of one score are in the order of their bytes.
        match one_score(keys, zset)? {
            Some(score) => zset.set.enter_at(keys.session, score, member, backwards),
            None => Ok(Some(end)),
        }
    }

    /// How many members are in the range.
    fn count(&self, keys: &mut Keys<'_>, zset: &mut Zset<'_>) -> Result<i64> {
        if zset.entry.is_none() {
            return Ok(0);
        }
        if !self.is_unbroken(keys, zset)? {
            return Ok(self.find(keys, zset, false, ALL)?.len() as i64);
        }
        let Some(first) = self.end(keys, zset, false)? else { return Ok(0) };
        let Some(last) = self.end(keys, zset, true)? else { return Ok(0) };
        zset.set.between(keys.session, &first, &last, zset.count)
    }

    /// The first member in the range, or the last one.
    fn end(&self, keys: &mut Keys<'_>, zset: &mut Zset<'_>, backwards: bool) -> Result<Option<Scored>> {
        let mut at = self.enter(keys, zset, backwards)?;
        while let Some(scored) = at {
            if self.is_behind(&scored, backwards) {
                return Ok(None);
            }
            if !self.is_before(&scored, backwards) {
                return Ok(Some(scored));
            }
            at = zset.set.step(keys.session, Some(&scored), backwards)?;
        }
        Ok(None)
    }

    /// Whether the walk has left the range.
    fn is_behind(&self, scored: &Scored, backwards: bool) -> bool {
        if backwards {
            self.is_below(scored)
        } else {
            self.is_above(scored)
        }
    }

    /// Whether the walk has yet to come into the range.
    fn is_before(&self, scored: &Scored, backwards: bool) -> bool {
        self.is_behind(scored, !backwards)
    }

    fn is_below(&self, scored: &Scored) -> bool {
        match self {
            Range::Rank(..) => false,
            Range::Score(Edge { score, included }, _) => {
                scored.score < *score || scored.score == *score && !included
            }
            Range::Bytes(Bound::Lowest, _) => false,
            Range::Bytes(Bound::Highest, _) => true,
            Range::Bytes(Bound::At { member, included }, _) => {
                scored.member < *member || scored.member == *member && !included
            }
        }
    }

    fn is_above(&self, scored: &Scored) -> bool {
        match self {
            Range::Rank(..) => false,
            Range::Score(_, Edge { score, included }) => {
                scored.score > *score || scored.score == *score && !included
            }
            Range::Bytes(_, Bound::Highest) => false,
            Range::Bytes(_, Bound::Lowest) => true,
            Range::Bytes(_, Bound::At { member, included }) => {
                scored.member > *member || scored.member == *member && !included
            }
        }
    }
}

/// The score that all members have; none if they differ.
fn one_score(keys: &mut Keys<'_>, zset: &mut Zset<'_>) -> Result<Option<f64>> {
    let first = zset.set.step(keys.session, None, false)?;
    let last = zset.set.step(keys.session, None, true)?;
    Ok(first.zip(last).filter(|(first, last)| first.score == last.score).map(|(first, _)| first.score))
}

/// So many members, after `skip` of them from an end.
fn gather(
    keys: &mut Keys<'_>,
    zset: &mut Zset<'_>,
    backwards: bool,
    skip: i64,
    count: i64,
) -> Result<Vec<Scored>> {
    if count <= 0 {
        return Ok(Vec::new());
    }
    let Some(first) = zset.set.nth(keys.session, None, skip, backwards)? else { return Ok(Vec::new()) };
    let (mut walk, mut found) = (zset.set.walk(Some(&first), backwards)?, vec![first]);
    walk.gather(keys.session, &mut zset.set, usize::try_from(count).unwrap_or(usize::MAX), &mut found)?;
    Ok(found)
}

/// What ZRANGE and its kin ask for.
struct Query {
    range: Range,
    backwards: bool,
    limit: Limit,
    with_scores: bool,
}

impl Query {
    /// ZRANGE and ZRANGESTORE, whose range begins at argument `at`.
    fn parse(arguments: Arguments<'_>, at: usize, stores: bool) -> Result<Query> {
        let (mut scores, mut bytes, mut backwards, mut limit, mut with_scores) =
            (false, false, false, None, false);
        let mut index = at + 2;
        while let Some(word) = arguments.get(index) {
            index += 1;
            match (&*lower(word), arguments.get(index), arguments.get(index + 1)) {
                (b"byscore", ..) => scores = true,
                (b"bylex", ..) => bytes = true,
                (b"rev", ..) => backwards = true,
                (b"withscores", ..) if !stores => with_scores = true,
                (b"limit", Some(first), Some(count)) => {
                    limit = Some((integer(first)?, integer(count)?));
                    index += 2;
                }
                _ => return refuse(SYNTAX),
            }
        }
        if scores && bytes {
            return refuse(SYNTAX);
        }
        if limit.is_some() && !scores && !bytes {
            return refuse(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            );
        }
        if with_scores && bytes {
            return refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        }
        let (first, second) = (&arguments[at], &arguments[at + 1]);
        // Backwards the higher end comes first.
        let (low, high) = if backwards { (second, first) } else { (first, second) };
        let range = match (scores, bytes) {
            (true, _) => Range::scores(low, high)?,
            (_, true) => Range::bytes(low, high)?,
            _ => Range::ranks(first, second)?,
        };
        Ok(Query { range, backwards, limit: limit.unwrap_or(ALL), with_scores })
    }

    /// ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX.
    fn parse_old(arguments: Arguments<'_>) -> Result<Query> {
        let name = lower(&arguments[0]);
        let backwards = name.starts_with(b"zrev");
        let (first, second) = (&arguments[2], &arguments[3]);
        let (low, high) = if backwards { (second, first) } else { (first, second) };
        let (mut limit, mut with_scores, mut index) = (None, false, 4);
        while let Some(word) = arguments.get(index) {
            index += 1;
            match (&*lower(word), arguments.get(index), arguments.get(index + 1)) {
                (b"withscores", ..) if !name.ends_with(b"lex") => with_scores = true,
                (b"limit", Some(first), Some(count)) if !name.ends_with(b"range") => {
                    limit = Some((integer(first)?, integer(count)?));
                    index += 2;
                }
                (b"limit", Some(_), Some(_)) => return refuse(
                    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
                ),
                (b"withscores", ..) => {
                    return refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
                }
                _ => return refuse(SYNTAX),
            }
        }
        let range = if name.ends_with(b"score") {
            Range::scores(low, high)?
        } else if name.ends_with(b"lex") {
            Range::bytes(low, high)?
        } else {
            Range::ranks(first, second)?
        };
        Ok(Query { range, backwards, limit: limit.unwrap_or(ALL), with_scores })
    }

    fn find(&self, keys: &mut Keys<'_>, name: &[u8]) -> Result<Vec<Scored>> {
        let mut zset = Zset::open(keys, name)?;
        self.range.find(keys, &mut zset, self.backwards, self.limit)
    }
}

pub(crate) fn zrange(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let query = Query::parse(arguments, 2, false)?;
    reply(&query.find(keys, &arguments[1])?, query.with_scores, replies);
    Ok(())
}

/// The commands that came before ZRANGE's options.
pub(crate) fn zrange_old(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let query = Query::parse_old(arguments)?;
    reply(&query.find(keys, &arguments[1])?, query.with_scores, replies);
    Ok(())
}

/// Puts `found` in place of what lies at the key called `name`, and tells so.
pub(super) fn replace(keys: &mut Keys<'_>, name: &[u8], found: &[Scored], event: &'static str) -> Result<()> {
    let key = keys.key(name)?;
    let old = keys.open(&key)?;
    if found.is_empty() {
        return old.map_or(Ok(()), |entry| keys.empty(&key, &entry));
    }
    if let Some(entry) = old {
        keys.erase(&key, &entry)?;
    }
    let mut zset = Zset::open(keys, name)?;
    for scored in found {
        zset.put(keys, &scored.member, None, scored.score)?;
    }
    zset.close(keys)?;
    keys.notify(notify::ZSET, event, key.name);
    Ok(())
}

pub(crate) fn zrangestore(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let query = Query::parse(arguments, 3, true)?;
    let found = query.find(keys, &arguments[2])?;
    replace(keys, &arguments[1], &found, "zrangestore")?;
    replies.count(found.len());
    Ok(())
}

/// ZCOUNT, ZLEXCOUNT.
pub(crate) fn zcount(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let range = if lower(&arguments[0]) == &b"zcount"[..] {
        Range::scores(&arguments[2], &arguments[3])?
    } else {
        Range::bytes(&arguments[2], &arguments[3])?
    };
    let mut zset = Zset::open(keys, &arguments[1])?;
    replies.integer(range.count(keys, &mut zset)?);
    Ok(())
}

/// ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.
pub(crate) fn zremrange(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let name = lower(&arguments[0]);
    let range = if name.ends_with(b"score") {
        Range::scores(&arguments[2], &arguments[3])?
    } else if name.ends_with(b"lex") {
        Range::bytes(&arguments[2], &arguments[3])?
    } else {
        Range::ranks(&arguments[2], &arguments[3])?
    };
    let mut zset = Zset::open(keys, &arguments[1])?;
    let found = range.find(keys, &mut zset, false, ALL)?;
    for scored in &found {
        zset.remove(keys, scored)?;
    }
    if !found.is_empty() {
        let event = match &*name {
            b"zremrangebyscore" => "zremrangebyscore",
            b"zremrangebylex" => "zremrangebylex",
            _ => "zremrangebyrank",
        };
        keys.notify(notify::ZSET, event, zset.key.name);
    }
    zset.close(keys)?;
    replies.count(found.len());
    Ok(())
}
