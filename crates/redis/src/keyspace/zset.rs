//! Sorted sets: the score of each member, and all members in the order of scores.
//!
//! Invariant: `(key,"zset",member)` holds the score, and `(key,"zset order",place)` the same one, for
//! exactly the same members; `place` is the score's bytes and the member ([`super::score`]).

use std::borrow::Cow;
use std::ops::Bound;

use perilune::key::unescape;
use perilune::{Cursor, Node, NodeRef, PlainSubscript, RangeEnds, Session, ValueRef};

use super::{name, score, Key, Kind, Names, ORDER};
use crate::failure::{refuse, Result};
use crate::limits::MEMBER_BYTES;

/// A member and its score.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) member: Vec<u8>,
    pub(crate) score: f64,
}

/// Where a range of a sorted set begins or ends: at this score, included or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edge {
    pub(crate) score: f64,
    pub(crate) included: bool,
}

/// One sorted set.
#[derive(Debug)]
pub(crate) struct SortedSet {
    scores: Names,
    order: Node,
}

/// Steps through the order of a sorted set: for whoever wants more than a few members.
#[derive(Debug)]
pub(crate) struct OrderWalk {
    cursor: Cursor,
    backwards: bool,
}

impl OrderWalk {
    /// The next member of `set`, whose order it goes through.
    pub(crate) fn next(&mut self, session: &mut Session, set: &mut SortedSet) -> Result<Option<Scored>> {
        let OrderWalk { cursor, backwards } = self;
        while if *backwards { cursor.previous(session)? } else { cursor.next(session)? } {
            if let Some(value) = cursor.value()? {
                let score = number(value)?;
                return set.scored(session, &cursor.subscript()?.to_text(), score).map(Some);
            }
        }
        Ok(None)
    }

    /// Appends the next members of `set` to `found`, until it has so many or there is none.
    pub(crate) fn gather(
        &mut self,
        session: &mut Session,
        set: &mut SortedSet,
        most: usize,
        found: &mut Vec<Scored>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        while found.len() < most {
            let Some(scored) = self.next(session, set)? else { break };
            found.push(scored);
            self.cursor.take_while(session, |child| {
                let place = match child.subscript() {
                    PlainSubscript::Text(place) => place,
                    PlainSubscript::Escaped(place) if unescape(place, &mut bytes) => &bytes,
                    _ => return false,
                };
                let (Some(member), Ok(value)) = (place.get(score::WIDTH..), child.value()) else {
                    return false;
                };
                let (false, Ok(score)) = (name::is_cut(member, MEMBER_BYTES), number(value)) else {
                    return false;
                };
                if found.len() < most {
                    found.push(Scored { member: member.to_vec(), score });
                    return true;
                }
                false
            });
        }
        Ok(())
    }
}

impl SortedSet {
    pub(crate) fn of(key: &Key<'_>) -> Result<SortedSet> {
        Ok(SortedSet { scores: Names::below(key.part(Kind::Zset)?), order: key.node.child(ORDER)? })
    }

    /// Any member, in a few searches.
    pub(crate) fn pick(&mut self, session: &mut Session) -> Result<Option<Vec<u8>>> {
        self.scores.pick(session)
    }

    /// The score of `member`.
    pub(crate) fn score(&mut self, session: &mut Session, member: &[u8]) -> Result<Option<f64>> {
        match self.scores.get(session, member)? {
            None => Ok(None),
            Some(value) => number(value).map(Some),
        }
    }

    /// Gives `member` a score; `old` is the one it has.
    pub(crate) fn put(
        &mut self,
        session: &mut Session,
        member: &[u8],
        old: Option<f64>,
        new: f64,
    ) -> Result<()> {
        if let Some(old) = old {
            let place = self.place(old, member)?;
            session.delete_value(&place)?;
        }
        self.scores.set(session, member, new)?;
        let place = self.place(new, member)?;
        Ok(session.set(&place, new)?)
    }

    /// Removes `member`, which has the score `old`.
    pub(crate) fn remove(&mut self, session: &mut Session, member: &[u8], old: f64) -> Result<()> {
        let place = self.place(old, member)?;
        session.delete_value(&place)?;
        self.scores.remove(session, member)?;
        Ok(())
    }

    /// The member after `from` in the order, or before it when `backwards`; `None` begins at the end that
    /// lies there.
    pub(crate) fn step(
        &mut self,
        session: &mut Session,
        from: Option<&Scored>,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        match from {
            Some(from) => {
                let place = self.place(from.score, &from.member)?;
                self.find(session, Bound::Excluded(NodeRef::from(&place)), backwards)
            }
            None => self.find(session, Bound::Unbounded, backwards),
        }
    }

    /// A walk over the members after `from` in the order, or before it when `backwards`; `None` begins at the end that lies
    /// there.
    pub(crate) fn walk(&self, from: Option<&Scored>, backwards: bool) -> Result<OrderWalk> {
        let mut cursor = Cursor::children(&self.order);
        match from.map(|from| self.place(from.score, &from.member)).transpose()? {
            Some(place) if backwards => cursor.seek(&place),
            Some(place) => cursor.seek_past(&place),
            None => {}
        }
        Ok(OrderWalk { cursor, backwards })
    }

    /// The first member inside `edge` going forwards, or the last one going backwards.
    pub(crate) fn enter(
        &mut self,
        session: &mut Session,
        edge: &Edge,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        let Edge { score, included } = *edge;
        // Behind all members of the score is a colon's successor; before all of them nothing.
        let behind = included == backwards;
        let mut place = score::bytes(score).to_vec();
        place.push(if behind { b':' + 1 } else { b':' });
        let place = self.order.child(&place)?;
        let bound = if backwards {
            Bound::Excluded(NodeRef::from(&place))
        } else {
            Bound::Included(NodeRef::from(&place))
        };
        self.find(session, bound, backwards)
    }

    /// The first member of this score that does not sort before `member` going forwards, or the last one that does
    /// not sort behind it going backwards; others, where there is none. Of names that are cut alike, none is left out:
    /// those at the edge have to be compared.
    pub(crate) fn enter_at(
        &mut self,
        session: &mut Session,
        score: f64,
        member: &[u8],
        backwards: bool,
    ) -> Result<Option<Scored>> {
        let subscript = name::subscript(member, MEMBER_BYTES);
        let edge = match &subscript {
            Cow::Borrowed(whole) => score::place(score, whole),
            // In place of the digest what sorts before, or behind, all digests.
            Cow::Owned(cut) => {
                let kept = cut.len().saturating_sub(name::DIGEST_BYTES);
                let mut edge = score::place(score, &cut[..kept]);
                if backwards {
                    edge.resize(edge.len() + name::DIGEST_BYTES + 1, 0xFF);
                }
                edge
            }
        };
        let edge = self.order.child(&edge)?;
        self.find(session, Bound::Included(NodeRef::from(&edge)), backwards)
    }

    /// The member after a place of the order, or before it.
    pub(super) fn beyond(
        &mut self,
        session: &mut Session,
        place: &Node,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        self.find(session, Bound::Excluded(NodeRef::from(place)), backwards)
    }

    /// The node whose children are the places.
    pub(super) fn order(&self) -> &Node {
        &self.order
    }

    pub(super) fn place(&self, score: f64, member: &[u8]) -> Result<Node> {
        Ok(self.order.child(&score::place(score, &name::subscript(member, MEMBER_BYTES)))?)
    }

    fn find(
        &mut self,
        session: &mut Session,
        from: Bound<NodeRef<'_>>,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        let found = if backwards {
            session.last_entry(&self.order, from)?
        } else {
            session.first_entry(&self.order, from)?
        };
        let Some((node, value)) = found else { return Ok(None) };
        let score = number(value)?;
        let Some(place) = node.last()?.map(perilune::Subscript::into_owned) else { return Ok(None) };
        self.scored(session, &place.to_text(), score).map(Some)
    }

    /// The member at a place of the order.
    fn scored(&mut self, session: &mut Session, place: &[u8], score: f64) -> Result<Scored> {
        let member = place.get(score::WIDTH..).unwrap_or(&[]).to_vec();
        if !name::is_cut(&member, MEMBER_BYTES) {
            return Ok(Scored { member, score });
        }
        let whole = self.scores.root().child(&member)?;
        match session.get_ref(&whole)? {
            Some(ValueRef::String(member)) => Ok(Scored { member: member.to_vec(), score }),
            _ => refuse("ERR the nodes of this key are not in the scheme of docs/format/redis.md"),
        }
    }
}

/// A score: ours are doubles, those of other programs any number.
fn number(value: ValueRef<'_>) -> Result<f64> {
    match value {
        ValueRef::Double(score) if !score.is_nan() => Ok(score),
        ValueRef::Int(score) => Ok(score as f64),
        other => match other.as_number() {
            Ok(score) => Ok(score.to_f64()),
            Err(_) => refuse("ERR a score of this sorted set is no number"),
        },
    }
}
