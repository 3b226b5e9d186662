//! Places of members in the order of a sorted set, by counting on the side where there is less to count.
//!
//! The tree keeps no counts, so a rank is counted; but how many members there are is known. Two walks that
//! take turns, one towards each end, find a rank in twice the steps to the nearer end. How many lie
//! between two members is counted from both of them inwards or outwards, whichever ends first.
//!
//! Deliberately absent: counts in the tree, which each ZADD would have to keep, and each program that writes by node.

use perilune::{Cursor, Node, Session};

use super::{Scored, SortedSet};
use crate::failure::Result;

/// A walk from a place of the order to one of its ends.
struct Steps {
    cursor: Cursor,
    backwards: bool,
    count: i64,
}

impl Steps {
    /// Steps from `place`, which does not count, or from the far end.
    fn from(order: &Node, place: Option<&Node>, backwards: bool) -> Steps {
        let mut cursor = Cursor::children(order).without_values();
        match place {
            Some(place) if backwards => cursor.seek(place),
            Some(place) => cursor.seek_past(place),
            None => {}
        }
        Steps { cursor, backwards, count: 0 }
    }

    /// Steps on; false at the end.
    fn step(&mut self, session: &mut Session) -> Result<bool> {
        let found =
            if self.backwards { self.cursor.previous(session)? } else { self.cursor.next(session)? };
        self.count += i64::from(found);
        Ok(found)
    }
}

impl SortedSet {
    /// How many members lie before `scored`, which is one of `count`.
    pub(crate) fn rank(&self, session: &mut Session, scored: &Scored, count: i64) -> Result<i64> {
        let place = self.place(scored.score, &scored.member)?;
        let mut before = Steps::from(self.order(), Some(&place), true);
        let mut behind = Steps::from(self.order(), Some(&place), false);
        loop {
            if !before.step(session)? {
                return Ok(before.count);
            }
            if !behind.step(session)? {
                return Ok(count - 1 - behind.count);
            }
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
        let mut inside = Steps::from(self.order(), Some(&low), false);
        let mut before = Steps::from(self.order(), Some(&low), true);
        let mut behind = Steps::from(self.order(), Some(&high), false);
        let (mut is_before, mut is_behind) = (true, true);
        loop {
            // NB: `last` is a member, so this walk meets it unless a program took it away meanwhile.
            if !inside.step(session)? || inside.cursor.node_ref()?.encoded() >= high.encoded() {
                return Ok(1 + inside.count);
            }
            is_before = is_before && before.step(session)?;
            is_behind = is_behind && behind.step(session)?;
            if !is_before && !is_behind {
                return Ok(count - before.count - behind.count);
            }
        }
    }

    /// The member that has `skip` others before it, from the end that the walk begins at.
    pub(crate) fn nth(
        &mut self,
        session: &mut Session,
        skip: i64,
        backwards: bool,
    ) -> Result<Option<Scored>> {
        if skip == 0 {
            return self.step(session, None, backwards);
        }
        let mut steps = Steps::from(self.order(), None, backwards);
        while steps.count < skip {
            if !steps.step(session)? {
                return Ok(None);
            }
        }
        let place = steps.cursor.node()?;
        self.beyond(session, &place, backwards)
    }
}
