//! Sets: members, each a node whose value is true.

use std::collections::BTreeSet;

use perilune_resp::{Arguments, Many, Replies};

use super::pick_some;
use super::scan::scan_elements;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::keyspace::{Entry, Key, Keys, Kind, Names};
use crate::notify;
use crate::numbers::{drawn, lower, positive};
use crate::random;
use crate::refusals::wrong_number;

type Members = BTreeSet<Vec<u8>>;

/// A set, open.
pub(super) struct Set<'n> {
    key: Key<'n>,
    entry: Option<Entry>,
    members: Names,
    count: i64,
}

impl<'n> Set<'n> {
    pub(super) fn open(keys: &mut Keys<'_>, name: &'n [u8]) -> Result<Set<'n>> {
        let (key, entry) = keys.find(name, Kind::Set)?;
        let members = Names::below(key.part(Kind::Set)?);
        Ok(Set { key, entry, members, count: entry.map_or(0, |entry| entry.figure) })
    }

    pub(super) fn has(&mut self, keys: &mut Keys<'_>, member: &[u8]) -> Result<bool> {
        Ok(self.entry.is_some() && self.members.get(keys.session, member)?.is_some())
    }

    /// Adds a member; true if it is new.
    fn add(&mut self, keys: &mut Keys<'_>, member: &[u8]) -> Result<bool> {
        if self.members.get(keys.session, member)?.is_some() {
            return Ok(false);
        }
        self.members.set(keys.session, member, true)?;
        self.count += 1;
        Ok(true)
    }

    /// Removes a member; true if it was there.
    fn remove(&mut self, keys: &mut Keys<'_>, member: &[u8]) -> Result<bool> {
        let there = self.entry.is_some() && self.members.remove(keys.session, member)?;
        self.count -= i64::from(there);
        Ok(there)
    }

    /// Members by chance: `count` different ones, or with a negative count so many of any.
    fn choose(&mut self, keys: &mut Keys<'_>, count: i64) -> Result<Vec<Vec<u8>>> {
        let total = self.count();
        if let Some(few) = pick_some(keys, (count, total), |keys| self.pick(keys))? {
            return Ok(few);
        }
        let all = self.all(keys)?;
        let chosen = random::choose(all.len(), count).into_iter();
        Ok(chosen.filter_map(|index| all.get(index).cloned()).collect())
    }

    /// Any member, in a few searches.
    fn pick(&mut self, keys: &mut Keys<'_>) -> Result<Option<Vec<u8>>> {
        if self.entry.is_none() {
            return Ok(None);
        }
        self.members.pick(keys.session)
    }

    /// Writes down how many members there are now.
    fn close(self, keys: &mut Keys<'_>) -> Result<()> {
        keys.set_count(&self.key, self.entry.as_ref(), Kind::Set, self.count)
    }

    /// How many members there are.
    pub(super) fn count(&self) -> i64 {
        self.count
    }

    pub(super) fn all(&mut self, keys: &mut Keys<'_>) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        if self.entry.is_some() {
            self.members.each_name(keys.session, self.count, |member| {
                all.push(member.to_vec());
                true
            })?;
        }
        Ok(all)
    }
}

pub(crate) fn sadd(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut set = Set::open(keys, &arguments[1])?;
    let mut new = 0;
    for member in arguments.from(2).iter() {
        new += i64::from(set.add(keys, member)?);
    }
    if new > 0 {
        keys.notify(notify::SET, "sadd", &arguments[1]);
    }
    set.close(keys)?;
    replies.integer(new);
    Ok(())
}

pub(crate) fn srem(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut set = Set::open(keys, &arguments[1])?;
    let mut removed = 0;
    for member in arguments.from(2).iter() {
        removed += i64::from(set.remove(keys, member)?);
    }
    if removed > 0 {
        keys.notify(notify::SET, "srem", &arguments[1]);
    }
    set.close(keys)?;
    replies.integer(removed);
    Ok(())
}

pub(crate) fn scard(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.integer(Set::open(keys, &arguments[1])?.count);
    Ok(())
}

pub(crate) fn sismember(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut set = Set::open(keys, &arguments[1])?;
    replies.truth(set.has(keys, &arguments[2])?);
    Ok(())
}

pub(crate) fn smismember(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut set = Set::open(keys, &arguments[1])?;
    replies.array(arguments.len() - 2);
    for member in arguments.from(2).iter() {
        replies.truth(set.has(keys, member)?);
    }
    Ok(())
}

pub(crate) fn smembers(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut set = Set::open(keys, &arguments[1])?;
    let begun = replies.begin(Many::Set, usize::try_from(set.count).unwrap_or(0));
    let mut count = 0;
    if set.entry.is_some() {
        count = set.members.each_name(keys.session, set.count, |member| {
            replies.bulk(member);
            !replies.is_full()
        })?;
    }
    replies.end(begun, count);
    Ok(())
}

fn reply_set<'m>(members: impl ExactSizeIterator<Item = &'m Vec<u8>>, replies: &mut Replies<'_>) {
    replies.set(members.len());
    for member in members {
        replies.bulk(member);
    }
}

pub(crate) fn smove(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut source = Set::open(keys, &arguments[1])?;
    if source.entry.is_none() {
        replies.integer(0);
        return Ok(());
    }
    let mut target = Set::open(keys, &arguments[2])?;
    if arguments[1] == arguments[2] {
        replies.truth(source.has(keys, &arguments[3])?);
        return Ok(());
    }
    let moved = source.remove(keys, &arguments[3])?;
    if moved {
        keys.notify(notify::SET, "srem", &arguments[1]);
        source.close(keys)?;
        let added = target.add(keys, &arguments[3])?;
        target.close(keys)?;
        if added {
            keys.notify(notify::SET, "sadd", &arguments[2]);
        }
    }
    replies.truth(moved);
    Ok(())
}

pub(crate) fn spop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let count = match (arguments.get(2), arguments.len()) {
        (None, _) => None,
        (Some(count), 3) => Some(positive(count, "ERR value is out of range, must be positive")?),
        _ => return refuse(SYNTAX),
    };
    let mut set = Set::open(keys, &arguments[1])?;
    if count.is_none() {
        let picked = set.pick(keys)?;
        if let Some(member) = &picked {
            set.remove(keys, member)?;
            keys.notify(notify::SET, "spop", &arguments[1]);
            set.close(keys)?;
        }
        replies.bulk_or_null(picked.as_deref());
        return Ok(());
    }
    let wanted = i64::try_from(count.unwrap_or(1)).unwrap_or(i64::MAX);
    let chosen = set.choose(keys, wanted)?;
    for member in &chosen {
        set.remove(keys, member)?;
    }
    if !chosen.is_empty() {
        keys.notify(notify::SET, "spop", &arguments[1]);
    }
    set.close(keys)?;
    reply_set(chosen.iter(), replies);
    Ok(())
}

pub(crate) fn srandmember(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    if arguments.len() > 3 {
        return refuse(SYNTAX);
    }
    let count = arguments.get(2).map(drawn).transpose()?;
    let mut set = Set::open(keys, &arguments[1])?;
    let Some(count) = count else {
        replies.bulk_or_null(set.pick(keys)?.as_deref());
        return Ok(());
    };
    let chosen = set.choose(keys, count)?;
    replies.array(chosen.len());
    for member in &chosen {
        replies.bulk(member);
    }
    Ok(())
}

/// What is done with several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

impl Operation {
    fn of(name: &[u8]) -> Operation {
        match name.get(..4) {
            Some(b"sint") => Operation::Intersection,
            Some(b"suni") => Operation::Union,
            _ => Operation::Difference,
        }
    }
}

fn combine(keys: &mut Keys<'_>, names: Arguments<'_>, operation: Operation) -> Result<Members> {
    let mut result: Option<Members> = None;
    // All are opened, so that one of another kind is refused wherever it stands.
    for name in names.iter() {
        let mut set = Set::open(keys, name)?;
        result = Some(match (result, operation) {
            (None, _) => set.all(keys)?.into_iter().collect(),
            (Some(mut members), Operation::Union) => {
                members.extend(set.all(keys)?);
                members
            }
            (Some(members), _) => {
                let mut kept = Members::new();
                for member in members {
                    if set.has(keys, &member)? == (operation == Operation::Intersection) {
                        kept.insert(member);
                    }
                }
                kept
            }
        });
    }
    Ok(result.unwrap_or_default())
}

/// SINTER, SUNION, SDIFF.
pub(crate) fn combined(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let operation = Operation::of(&lower(&arguments[0]));
    let members = combine(keys, arguments.from(1), operation)?;
    reply_set(members.iter(), replies);
    Ok(())
}

/// SINTERSTORE, SUNIONSTORE, SDIFFSTORE.
pub(crate) fn store(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let operation = Operation::of(&lower(&arguments[0]));
    let members = combine(keys, arguments.from(2), operation)?;
    let target = keys.key(&arguments[1])?;
    if let Some(entry) = keys.open(&target)? {
        if members.is_empty() {
            keys.empty(&target, &entry)?;
        } else {
            keys.erase(&target, &entry)?;
        }
    }
    if !members.is_empty() {
        let event = match operation {
            Operation::Intersection => "sinterstore",
            Operation::Union => "sunionstore",
            Operation::Difference => "sdiffstore",
        };
        keys.notify(notify::SET, event, target.name);
        let mut set = Set::open(keys, &arguments[1])?;
        for member in &members {
            set.add(keys, member)?;
        }
        set.close(keys)?;
    }
    replies.count(members.len());
    Ok(())
}

pub(crate) fn sintercard(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let count = positive(&arguments[1], "ERR numkeys should be greater than 0")?;
    if count == 0 {
        return refuse("ERR numkeys should be greater than 0");
    }
    let rest = arguments.from(2);
    if count > rest.len() {
        return refuse("ERR Number of keys can't be greater than number of args");
    }
    let options = rest.from(count);
    let limit = match (options.get(0).map(lower).as_deref(), options.get(1), options.len()) {
        (None, ..) => 0,
        (Some(b"limit"), Some(limit), 2) => positive(limit, "ERR LIMIT can't be negative")?,
        _ => return refuse(SYNTAX),
    };
    let members = combine(keys, rest.first(count), Operation::Intersection)?.len();
    replies.count(if limit == 0 { members } else { members.min(limit) });
    Ok(())
}

pub(crate) fn sscan(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if arguments.len() < 3 {
        return refuse_with(wrong_number("sscan"));
    }
    scan_elements(keys, arguments, Kind::Set, 1, replies, |member, _, replies| replies.bulk(member))
}
