//! All that a key holds, as values in memory, and laid out as nodes again: for DUMP, RESTORE, SORT and
//! the import of Redis's dumps.
//!
//! Invariant: what [`Contents::lay`] puts down is what commands would have, with every count right, if
//! no field or member is in it twice ([`Contents::is_sound`]).

use std::ops::Bound;

use perilune::{Cursor, NodeRef, ValueRef};

use super::{expiry, name, score, text, Entry, Key, Keys, Kind, Names, Scored, SortedSet, ORDER};
use crate::failure::Result;
use crate::limits::MEMBER_BYTES;
use crate::notify;

type Bytes = Vec<u8>;

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contents {
    String(Bytes),
    Hash(Vec<(Bytes, Bytes)>),
    List(Vec<Bytes>),
    Set(Vec<Bytes>),
    Zset(Vec<Scored>),
}

/// What is told of each node: where, and its value.
pub(crate) type Put<'p> = dyn FnMut(NodeRef<'_>, ValueRef<'_>) -> Result<()> + 'p;

impl Contents {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Contents::String(_) => Kind::String,
            Contents::Hash(_) => Kind::Hash,
            Contents::List(_) => Kind::List,
            Contents::Set(_) => Kind::Set,
            Contents::Zset(_) => Kind::Zset,
        }
    }

    /// Elements, fields or members; of a string 1.
    pub(crate) fn count(&self) -> usize {
        match self {
            Contents::String(_) => 1,
            Contents::Hash(fields) => fields.len(),
            Contents::List(elements) | Contents::Set(elements) => elements.len(),
            Contents::Zset(members) => members.len(),
        }
    }

    /// Whether there is something in it, nothing twice, and no score that is no number.
    pub(crate) fn is_sound(&self) -> bool {
        let mut names: Vec<&[u8]> = match self {
            Contents::String(_) => return true,
            Contents::List(elements) => return !elements.is_empty(),
            Contents::Hash(fields) => fields.iter().map(|(field, _)| &field[..]).collect(),
            Contents::Set(members) => members.iter().map(|member| &member[..]).collect(),
            Contents::Zset(members) => {
                if members.iter().any(|scored| scored.score.is_nan()) {
                    return false;
                }
                members.iter().map(|scored| &scored.member[..]).collect()
            }
        };
        names.sort_unstable();
        !names.is_empty() && names.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// All that lies at `key`.
    pub(crate) fn read(keys: &mut Keys<'_>, key: &Key<'_>, entry: &Entry) -> Result<Contents> {
        Ok(match entry.kind {
            Kind::String => Contents::String(text::bytes_of(keys.string(key, entry)?).into_owned()),
            Kind::List => {
                let (mut elements, part) = (Vec::new(), key.part(Kind::List)?);
                let from = Bound::Included(entry.figure);
                let mut cursor = Cursor::children(&part).between(from, Bound::<i64>::Unbounded)?;
                // Behind a gap, which only other programs leave, there is no list any more.
                while cursor.next(keys.session)? {
                    let is_next =
                        cursor.integer() == entry.figure.checked_add_unsigned(elements.len() as u64);
                    let Some(value) = cursor.value()?.filter(|_| is_next) else { break };
                    elements.push(text::bytes_of(value).into_owned());
                }
                Contents::List(elements)
            }
            Kind::Hash => {
                let mut fields = Vec::new();
                Names::below(key.part(Kind::Hash)?).each(keys.session, entry.figure, |field, value| {
                    fields.push((field.to_vec(), text::bytes_of(value).into_owned()));
                    true
                })?;
                Contents::Hash(fields)
            }
            Kind::Set => {
                let mut members = Vec::new();
                Names::below(key.part(Kind::Set)?).each_name(keys.session, entry.figure, |member| {
                    members.push(member.to_vec());
                    true
                })?;
                Contents::Set(members)
            }
            Kind::Zset => {
                let (mut set, mut members) = (SortedSet::of(key)?, Vec::new());
                set.walk(None, false)?.gather(keys.session, &mut set, usize::MAX, &mut members)?;
                Contents::Zset(members)
            }
        })
    }

    /// Puts it all at the key called `name`, in place of whatever lies there.
    pub(crate) fn write(&self, keys: &mut Keys<'_>, name: &[u8], expires: Option<i64>) -> Result<()> {
        let key = keys.key(name)?;
        if let Some(old) = keys.open(&key)? {
            keys.erase(&key, &old)?;
        }
        let index = expires.map(|time| expiry::place(keys, &key, time)).transpose()?;
        let session = &mut *keys.session;
        self.lay(&key, expires, &mut |node, value| Ok(session.set(node, value)?))?;
        if let Some(index) = index {
            keys.session.set(&index, true)?;
        }
        keys.ready(name);
        keys.notify(notify::NEW, "new", name);
        Ok(())
    }

    /// Tells `put` of every node below and at `key`, which is empty; not of the index of expiries.
    pub(crate) fn lay(&self, key: &Key<'_>, expires: Option<i64>, put: &mut Put<'_>) -> Result<()> {
        if let (Contents::String(bytes), None, false) = (self, expires, key.cut) {
            return put((&key.node).into(), ValueRef::String(bytes));
        }
        if key.cut {
            put((&key.node).into(), ValueRef::String(key.name))?;
        }
        if let Some(expires) = expires {
            put((&key.expiry()?).into(), ValueRef::Int(expires))?;
        }
        let part = key.part(self.kind())?;
        let count = ValueRef::Int(i64::try_from(self.count()).unwrap_or(i64::MAX));
        match self {
            Contents::String(bytes) => put((&part).into(), ValueRef::String(bytes)),
            Contents::List(elements) => {
                let mut node = part;
                let mark = node.mark();
                for (index, element) in (0_i64..).zip(elements) {
                    node.truncate(mark);
                    node.push(index)?;
                    put((&node).into(), ValueRef::String(element))?;
                }
                Ok(())
            }
            Contents::Hash(fields) => {
                put((&part).into(), count)?;
                fields
                    .iter()
                    .try_for_each(|(field, value)| lay_name(&part, field, ValueRef::String(value), put))
            }
            Contents::Set(members) => {
                put((&part).into(), count)?;
                members.iter().try_for_each(|member| lay_name(&part, member, ValueRef::Bool(true), put))
            }
            Contents::Zset(members) => {
                put((&part).into(), count)?;
                for Scored { member, score } in members {
                    lay_name(&part, member, ValueRef::Double(*score), put)?;
                }
                let order = key.node.child(ORDER)?;
                for Scored { member, score } in members {
                    let place = order.child(&score::place(*score, &name::subscript(member, MEMBER_BYTES)))?;
                    put((&place).into(), ValueRef::Double(*score))?;
                }
                Ok(())
            }
        }
    }
}

/// The node of one name below `part`, or the two of a cut one.
fn lay_name(part: &perilune::Node, name: &[u8], value: ValueRef<'_>, put: &mut Put<'_>) -> Result<()> {
    let place = name::subscript(name, MEMBER_BYTES);
    let node = part.child(&*place)?;
    if matches!(place, std::borrow::Cow::Borrowed(_)) {
        return put((&node).into(), value);
    }
    put((&node).into(), ValueRef::String(name))?;
    put((&node.child("")?).into(), value)
}
