//! Places of members in the order of a sorted set, by counting on the side where there is less to count.
//!
//! The tree keeps no counts but those of its leaves, so a rank is counted, a leaf at a time; and how many members there
//! are is known. Two counts that take turns, one towards each end, find a rank in about three times what there is to the nearer
//! end. How many lie between two members is counted from both of them inwards or outwards, whichever ends first.
//!
//! Deliberately absent: counts in inner pages, which each ZADD would have to keep, and each program that writes by node.

use std::ops::Bound;

use perilune::{Cursor, Node, NodeRef, Session};

use super::{Scored, SortedSet};
use crate::failure::Result;

/// So many members are counted in the first turn, twice as many in each that follows.
const FIRST_TURN: u64 = 512;

/// A count from a place of the order to one of its ends.
struct Steps {
    cursor: Cursor,
    backwards: bool,
    count: i64,
}

impl Steps {
    /// Steps from `place`, which does not count, or from the far end.
    fn from(order: &Node, place: Option<&Node>, backwards: bool) -> Steps {
        let mut cursor = Cursor::subtree(order).without_values();
        match place {
            Some(place) if backwards => cursor.seek(place),
            Some(place) => cursor.seek_past(place),
            None => {}
        }
        Steps { cursor, backwards, count: 0 }
    }

    /// Steps on by so many members; false if the end came before.
    fn go(&mut self, session: &mut Session, members: u64) -> Result<bool> {
        let found = if self.backwards {
            self.cursor.skip_back(session, members)?
        } else {
            self.cursor.skip(session, members)?
        };
        self.count += found as i64;
        Ok(found == members)
    }
}

impl SortedSet {
    /// How many members lie before `scored`, which is one of `count`.
    pub(crate) fn rank(&self, session: &mut Session, scored: &Scored, count: i64) -> Result<i64> {
        let place = self.place(scored.score, &scored.member)?;
        let mut before = Steps::from(self.order(), Some(&place), true);
        let mut behind = Steps::from(self.order(), Some(&place), false);
        let mut turn = FIRST_TURN;
        loop {
            if !before.go(session, turn)? {
                return Ok(before.count);
            }
            if !behind.go(session, turn)? {
                return Ok(count - 1 - behind.count);
            }
            turn *= 2;
        }
    }

    /// How many members there are from `first` to `last`, both included, of `count` in all.
    pub(crate) fn between(
        &self,
        session: &mut Session,
        first: &Scored,
        last: &Scored,
        count: i64,
    ) -> Result<i64> {
        let (low, high) = (self.place(first.score, &first.member)?, self.place(last.score, &last.member)?);
        if low.encoded() >= high.encoded() {
            return Ok(i64::from(low.encoded() == high.encoded()));
        }
        let mut inside = Steps::from(self.order(), None, false);
        inside.cursor.bound(Bound::Excluded(NodeRef::from(&low)), Bound::Excluded(NodeRef::from(&high)));
        let mut before = Steps::from(self.order(), Some(&low), true);
        let mut behind = Steps::from(self.order(), Some(&high), false);
        let (mut is_before, mut is_behind) = (true, true);
        let mut turn = FIRST_TURN;
        loop {
            if !inside.go(session, turn)? {
                return Ok(2 + inside.count);
            }
            is_before = is_before && before.go(session, turn)?;
            is_behind = is_behind && behind.go(session, turn)?;
            if !is_before && !is_behind {
                return Ok(count - before.count - behind.count);
            }
            turn *= 2;
        }
    }

    /// The member that has `skip` others between it and `from`, or the end that the walk begins at.
    pub(crate) fn nth(
        &mut self,
        session: &mut Session,
        from: Option<&Scored>,
        skip: i64,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        let Ok(members @ 1..) = u64::try_from(skip) else { return self.step(session, from, backwards) };
        let from = from.map(|from| self.place(from.score, &from.member)).transpose()?;
        let mut steps = Steps::from(self.order(), from.as_ref(), backwards);
        if !steps.go(session, members)? {
            return Ok(None);
        }
        let place = steps.cursor.node()?;
        self.beyond(session, &place, backwards)
    }
}
