//! All that a key holds, as values in memory, and laid out as nodes again: for DUMP, RESTORE, SORT and
//! the import of Redis's dumps.
//!
//! Invariant: what [`Contents::lay`] puts down is what commands would have, with every count right, if
//! no field or member is in it twice ([`Contents::is_sound`]).

use perilune::{NodeRef, ValueRef};

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
                let (mut elements, mut index) = (Vec::new(), entry.figure);
                let mut node = key.part(Kind::List)?;
                let part = node.mark();
                loop {
                    node.truncate(part);
                    node.push(index)?;
                    let Some(value) = keys.session.get_ref(&node)? else { break };
                    elements.push(text::bytes_of(value).into_owned());
                    index += 1;
                }
                Contents::List(elements)
            }
            Kind::Hash => {
                let (mut fields, mut walk) = (Vec::new(), Names::below(key.part(Kind::Hash)?).walk());
                while walk.next(keys.session)? {
                    fields.push((walk.name().to_vec(), text::bytes_of(walk.value()?).into_owned()));
                }
                Contents::Hash(fields)
            }
            Kind::Set => {
                let (mut members, mut walk) = (Vec::new(), Names::below(key.part(Kind::Set)?).walk());
                while walk.next(keys.session)? {
                    members.push(walk.name().to_vec());
                }
                Contents::Set(members)
            }
            Kind::Zset => {
                let (mut set, mut members) = (SortedSet::of(key)?, Vec::new());
                while let Some(scored) = set.step(keys.session, members.last(), false)? {
                    members.push(scored);
                }
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
