//! Lists: elements under ascending numbers, which may begin below 0, so that either end grows without moving anything.
//!
//! Example: after RPUSH of a and b, and LPUSH of c, the elements lie at -1, 0 and 1. The first node below the key tells where the
//! list begins, the last one where it ends.
//!
//! Invariant: numbers follow each other without a gap. So how long a list is takes two searches, and an element one.

use std::ops::{Bound, Range};

use perilune::key::{decode_int, KeyMark};
use perilune::{Cursor, Neighbour, Node, PlainSubscript, Session, Steps, ValueRef};

use super::{text, Entry, Key, Keys, Kind};
use crate::failure::{refuse, Result, SYNTAX};
use crate::notify;
use crate::numbers::lower;

/// A list, open.
pub(crate) struct List<'n> {
    pub(crate) key: Key<'n>,
    pub(crate) entry: Option<Entry>,
    /// The node of the list, or of the element that was gone to last.
    node: Node,
    root: KeyMark,
    first: i64,
    /// Behind the last one.
    end: i64,
}

/// Which end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub(crate) fn popped(self) -> &'static str {
        match self {
            Side::Left => "lpop",
            Side::Right => "rpop",
        }
    }

    pub(crate) fn pushed(self) -> &'static str {
        match self {
            Side::Left => "lpush",
            Side::Right => "rpush",
        }
    }

    pub(crate) fn parse(word: &[u8]) -> Result<Side> {
        match &*lower(word) {
            b"left" => Ok(Side::Left),
            b"right" => Ok(Side::Right),
            _ => refuse(SYNTAX),
        }
    }
}

impl<'n> List<'n> {
    pub(crate) fn open(keys: &mut Keys<'_>, name: &'n [u8]) -> Result<List<'n>> {
        let (key, entry) = keys.find(name, Kind::List)?;
        let node = key.part(Kind::List)?;
        let root = node.mark();
        let (mut first, mut end) = (0, 0);
        if let Some(entry) = entry {
            first = entry.figure;
            if let Some(last) = keys.session.neighbour(Neighbour::LastChild, &node)? {
                let index = last.encoded().get(node.encoded().len()..).and_then(decode_int);
                end = index.unwrap_or(first) + 1;
            }
        }
        Ok(List { key, entry, node, root, first, end })
    }

    pub(crate) fn length(&self) -> i64 {
        self.end - self.first
    }

    fn place(&mut self, index: i64) -> Result<&Node> {
        self.node.truncate(self.root);
        self.node.push(index)?;
        Ok(&self.node)
    }

    /// The element `index` places behind the first one.
    pub(crate) fn get(&mut self, session: &mut Session, index: i64) -> Result<Vec<u8>> {
        let place = self.place(self.first + index)?;
        Ok(session.get_ref(place)?.map(|value| text::bytes_of(value).into_owned()).unwrap_or_default())
    }

    pub(crate) fn put(&mut self, session: &mut Session, index: i64, element: &[u8]) -> Result<()> {
        let place = self.place(self.first + index)?;
        Ok(session.set(place, element)?)
    }

    pub(crate) fn push(&mut self, keys: &mut Keys<'_>, side: Side, element: &[u8]) -> Result<()> {
        if self.entry.is_none() && self.length() == 0 {
            keys.begin(&self.key)?;
            keys.ready(self.key.name);
            keys.notify(notify::NEW, "new", self.key.name);
        }
        let index = match side {
            Side::Left => {
                self.first -= 1;
                self.first
            }
            Side::Right => {
                self.end += 1;
                self.end - 1
            }
        };
        Ok(keys.session.set(self.place(index)?, element)?)
    }

    /// Takes an element off a list that has one.
    pub(crate) fn pop(&mut self, session: &mut Session, side: Side) -> Result<Vec<u8>> {
        let index = match side {
            Side::Left => 0,
            Side::Right => self.length() - 1,
        };
        let element = self.get(session, index)?;
        session.delete_value(&self.node)?;
        match side {
            Side::Left => self.first += 1,
            Side::Right => self.end -= 1,
        }
        Ok(element)
    }

    /// Called behind what took elements away: an empty list goes.
    pub(crate) fn close(&self, keys: &mut Keys<'_>) -> Result<()> {
        match &self.entry {
            Some(entry) if self.length() <= 0 => keys.empty(&self.key, entry),
            _ => Ok(()),
        }
    }

    /// Makes room for one element before the first; whoever asks puts the elements that are to be there.
    pub(crate) fn make_room(&mut self) {
        self.first -= 1;
    }

    /// Takes away all elements but some, by their places behind the first.
    pub(crate) fn keep(&mut self, session: &mut Session, kept: Range<i64>) -> Result<()> {
        for index in (0..kept.start).chain(kept.end..self.length()) {
            let place = self.place(self.first + index)?;
            session.delete_value(place)?;
        }
        (self.first, self.end) = (self.first + kept.start, self.first + kept.end);
        Ok(())
    }

    /// All elements.
    pub(crate) fn elements(&mut self, session: &mut Session) -> Result<Vec<Vec<u8>>> {
        let mut elements = Vec::new();
        self.each(session, 0..self.length(), |value| {
            elements.push(text::bytes_of(value).into_owned());
            true
        })?;
        Ok(elements)
    }

    /// Shows the elements at these places behind the first to `take`, until it answers false.
    pub(crate) fn each(
        &mut self,
        session: &mut Session,
        places: Range<i64>,
        mut take: impl FnMut(ValueRef<'_>) -> bool,
    ) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let (mut at, end) = (self.first + places.start, self.first + places.end);
        self.node.truncate(self.root);
        let children = Cursor::children(&self.node).between(Bound::Included(at), Bound::Excluded(end))?;
        let mut cursor = children.expecting(usize::try_from(end - at).unwrap_or(usize::MAX));
        let mut goes_on = true;
        while goes_on && cursor.next(session)? {
            // What lies between two numbers is no element; one that other programs have left out is empty.
            let Some(index) = cursor.integer() else { continue };
            while goes_on && at < index {
                goes_on = take(ValueRef::Null);
                at += 1;
            }
            goes_on = goes_on && take(cursor.value()?.unwrap_or(ValueRef::Null));
            at += 1;
            cursor.take_while(session, |child| {
                if !goes_on || child.subscript() != PlainSubscript::Int(at) {
                    return false;
                }
                let value = match child.string_value() {
                    Some(string) => Ok(ValueRef::String(string)),
                    None => child.value(),
                };
                let Ok(value) = value else { return false };
                goes_on = take(value);
                at += 1;
                true
            });
        }
        while goes_on && at < end {
            goes_on = take(ValueRef::Null);
            at += 1;
        }
        Ok(())
    }

    /// Replaces the elements from `from` on by `elements`, which are all that is to be there.
    pub(crate) fn rewrite(&mut self, keys: &mut Keys<'_>, from: i64, elements: &[Vec<u8>]) -> Result<()> {
        for (index, element) in (from..).zip(elements) {
            self.put(keys.session, index, element)?;
        }
        let length = from + elements.len() as i64;
        for index in length..self.length() {
            let place = self.place(self.first + index)?;
            keys.session.delete_value(place)?;
        }
        self.end = self.first + length;
        self.close(keys)
    }
}
