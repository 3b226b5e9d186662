//! Steps, and what is read ahead of them: entries come a leaf at a time, and a step goes to the next of those that were read.
//!
//! Problem: a search for each entry costs several times what it takes to look at it; but most loops are short, and one that
//! writes where it walks makes what was read ahead useless. Idea: the first steps read one entry each; from then on eight
//! times as many at once, up to 1,024, as long as all of them were of use.
//!
//! Invariants
//! - Each step answers what is there at that moment: entries that were read are used only while their leaf is as it was.

use perilune_store::{Origin, Scan};

use super::{copy, Cursor, Over, Place};
use crate::{Result, Session};

/// How far is read ahead: little at first, since most loops are short.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) backwards: bool,
    /// How many entries are asked for at once.
    most: usize,
    /// How many of them were stepped to.
    pub(super) stepped: usize,
    /// How many times more only a single entry is asked for, since others would be read in vain.
    singles: u8,
    /// How many entries are asked for at the first step; 0: one.
    expected: usize,
}

/// How many entries are read together at most. Each time that all of them were wanted, [`AHEAD_GROWTH`] times as many are
/// read the next time.
const AHEAD_MOST: usize = 1024;
const AHEAD_GROWTH: usize = 8;

/// How many entries are read one by one after reading ahead was in vain: at writes, and over children with much below them.
const SINGLES: u8 = 16;

/// What has come of what was read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The walk begins, anew or the other way.
    Begun,
    /// All was of use.
    Used,
    /// Something was written there, or it all lay below one child.
    Vain,
}

impl Ahead {
    /// Has so many entries read at the first step.
    pub(super) fn expect(&mut self, entries: usize) {
        self.expected = entries.min(AHEAD_MOST);
    }

    /// Decides how many entries to ask for.
    fn decide(&mut self, backwards: bool, outcome: Outcome) {
        match outcome {
            // NB: whoever wants two entries would pay more for the memory of many than for a second search.
            Outcome::Begun => {
                let (expected, singles) = (self.expected, u8::from(self.expected <= 1));
                *self = Ahead { backwards, most: expected.max(1), singles, expected, ..Ahead::default() };
            }
            Outcome::Vain => (self.most, self.singles) = (1, SINGLES),
            Outcome::Used if self.singles > 0 => self.singles -= 1,
            Outcome::Used => self.most = (self.most * AHEAD_GROWTH).min(AHEAD_MOST),
        }
        self.stepped = 0;
    }
}

impl Cursor {
    /// Steps to the next entry; false at the end, behind which the cursor then stands.
    ///
    /// # Errors
    /// As [`Session::get`]; the cursor has not moved.
    #[inline]
    pub fn next(&mut self, session: &mut Session) -> Result<bool> {
        if !self.ahead.backwards && self.advance(session) {
            return self.arrive();
        }
        self.read(session, false)
    }

    /// Steps to the previous entry; false at the beginning, before which the cursor then stands.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    #[inline]
    pub fn previous(&mut self, session: &mut Session) -> Result<bool> {
        let is_there = if self.ahead.backwards && self.advance(session) {
            self.arrive()?
        } else {
            self.read(session, true)?
        };
        // The last key of a child's subtree is what was found; the child's own value lies elsewhere.
        if is_there && !self.has_value && matches!(self.over, Over::Children(_)) {
            self.find_own_value(session)?;
        }
        Ok(is_there)
    }

    /// Steps to the next of the entries that were read together, if they are as they were and there is one.
    #[inline]
    fn advance(&mut self, session: &Session) -> bool {
        if self.place != Place::At || !session.trees.are_current(self.local, &self.entries) {
            return false;
        }
        match &self.over {
            Over::Valued => self.entries.advance(),
            Over::Children(_) => self.entries.advance_past(self.length),
        }
    }

    /// Steps by reading entries.
    fn read(&mut self, session: &mut Session, backwards: bool) -> Result<bool> {
        let end = if backwards { Place::BeforeFirst } else { Place::AfterLast };
        if self.place == end {
            return Ok(false);
        }
        let (is_at, left) = (self.place == Place::At, self.entries.ahead());
        let outcome = if !is_at || self.ahead.backwards != backwards {
            Outcome::Begun
        } else if left > 0
            && (self.ahead.stepped <= 1 || !session.trees.are_current(self.local, &self.entries))
        {
            Outcome::Vain
        } else {
            Outcome::Used
        };
        self.ahead.decide(backwards, outcome);
        // NB: a single entry comes from a back end that reads no more at once, and from there the walk goes on as ever: a server
        // reads ahead of walks by itself, and knows one by how its steps follow each other.
        let is_on = outcome == Outcome::Used && left == 0;
        if is_on && self.ahead.most > 1 && *self.entries.origin() != Origin::default() {
            // What lies right beside the last one that was read: perhaps below the same child.
            copy(self.entries.key(), &mut self.seek);
            if !self.ask(session, false, *self.entries.origin())? {
                self.place = end;
                return Ok(false);
            }
            if self.is_past_child() {
                return self.take();
            }
        }
        let inclusive = self.aim(backwards);
        if !self.ask(session, inclusive, Origin::default())? {
            self.place = end;
            return Ok(false);
        }
        self.take()
    }

    /// Has entries read from the key sought on, and whether there are any.
    fn ask(&mut self, session: &mut Session, inclusive: bool, after: Origin) -> Result<bool> {
        let Ahead { backwards, most, .. } = self.ahead;
        let bound = if backwards { &self.low } else { &self.high };
        let scan =
            Scan { from: &self.seek, inclusive, bound, backwards, values: self.with_values, most, after };
        Ok(session.trees.entries_at(self.local, &scan, self.granularity, &mut self.spare)?)
    }

    /// Makes the key sought that from which the next step leads, and tells whether it counts itself.
    fn aim(&mut self, backwards: bool) -> bool {
        let (key, inclusive) = match self.place {
            Place::At => (&self.entries.key()[..self.length], matches!(self.over, Over::Children(_))),
            Place::Before => (&self.key[..], true),
            Place::Fresh if backwards => (&self.high[..], true),
            Place::Fresh | Place::BeforeFirst => (&self.low[..], true),
            Place::AfterLast => (&self.high[..], true),
        };
        copy(key, &mut self.seek);
        if self.place == Place::At && inclusive && !backwards {
            self.seek.push(0xFF);
        }
        inclusive
    }

    /// Steps through what was just read to the first entry that does not lie below the child of before.
    fn is_past_child(&mut self) -> bool {
        if matches!(self.over, Over::Valued) {
            return true;
        }
        let child = &self.entries.key()[..self.length];
        while self.spare.key().starts_with(child) {
            if !self.spare.advance() {
                return false;
            }
        }
        true
    }

    /// Makes what was just read the entries that it goes through.
    pub(super) fn take(&mut self) -> Result<bool> {
        std::mem::swap(&mut self.entries, &mut self.spare);
        self.arrive()
    }

    /// Finds the value of a child that was come to by a key below it.
    fn find_own_value(&mut self, session: &mut Session) -> Result<()> {
        let child = &self.entries.key()[..self.length];
        self.has_value = session.trees.own_value(self.local, child, &mut self.own, self.with_values)?;
        self.is_own = self.has_value;
        Ok(())
    }

    /// Makes the key at which the entries stand, or the child on the way to it, the entry; true.
    #[inline]
    fn arrive(&mut self) -> Result<bool> {
        let key = self.entries.key();
        let length = match &self.over {
            Over::Valued => Ok(key.len()),
            Over::Children(parent) => {
                let codes = key.get(parent.len()..).unwrap_or(&[]);
                perilune_key::code_len(codes).map(|length| parent.len() + length)
            }
        };
        // NB: what has no length is damaged; then all of it is the entry, and an error.
        self.length = *length.as_ref().unwrap_or(&key.len());
        self.has_value = self.length == key.len();
        self.is_own = false;
        self.ahead.stepped += 1;
        self.place = Place::At;
        length?;
        Ok(true)
    }
}
