//! A map from names of any length to values, below one node: fields of a hash, members of a set.
//!
//! A whole name is the subscript of its value. A cut one is the subscript of the name in full, and its
//! value lies one level below, at `""`.

use std::borrow::Cow;

use perilune::key::{unescape, KeyMark};
use perilune::{Cursor, IntoValue, Node, PlainSubscript, Session, ValueRef};
use perilune_resp::integer_text;

use super::{name, pick};
use crate::failure::Result;
use crate::limits::MEMBER_BYTES;

/// The map below a node.
#[derive(Debug)]
pub(crate) struct Names {
    node: Node,
    root: KeyMark,
}

impl Names {
    pub(crate) fn below(node: Node) -> Names {
        let root = node.mark();
        Names { node, root }
    }

    /// The node of the map itself, which holds how many names there are.
    pub(crate) fn root(&mut self) -> &Node {
        self.node.truncate(self.root);
        &self.node
    }

    /// The value of `name`.
    pub(crate) fn get<'s>(&mut self, session: &'s mut Session, name: &[u8]) -> Result<Option<ValueRef<'s>>> {
        self.go(name, None)?;
        Ok(session.get_ref(&self.node)?)
    }

    /// Sets the value of `name`.
    pub(crate) fn set(&mut self, session: &mut Session, name: &[u8], value: impl IntoValue) -> Result<()> {
        self.go(name, Some(session))?;
        Ok(session.set(&self.node, value)?)
    }

    /// Removes `name`; false if it is not there.
    pub(crate) fn remove(&mut self, session: &mut Session, name: &[u8]) -> Result<bool> {
        self.node.truncate(self.root);
        let place = name::subscript(name, MEMBER_BYTES);
        let cut = matches!(place, Cow::Owned(_));
        self.node.push(&*place)?;
        if !cut {
            return Ok(session.delete_value(&self.node)?);
        }
        let there = session.delete_value(&self.node)?;
        self.node.push("")?;
        session.delete_value(&self.node)?;
        Ok(there)
    }

    /// Any name, in a few searches; none if there is none.
    pub(crate) fn pick(&mut self, session: &mut Session) -> Result<Option<Vec<u8>>> {
        let Some(place) = pick(session, self.root())? else { return Ok(None) };
        let text = place.to_text();
        if !name::is_cut(&text, MEMBER_BYTES) {
            return Ok(Some(text.into_owned()));
        }
        let node = self.root().child(&*text)?;
        Ok(session.get_ref(&node)?.map(|whole| super::text::bytes_of(whole).into_owned()))
    }

    /// All names and values, in the order of the tree, without the memory of where it was.
    pub(crate) fn walk(&mut self) -> Walk {
        Walk { cursor: Cursor::children(self.root()), name: Vec::new(), value: Vec::new(), cut: false }
    }

    /// Shows all names and values to `take`, in the order of the tree, until it answers false; how many were shown.
    /// `count` is how many there are, as far as is known.
    pub(crate) fn each(
        &mut self,
        session: &mut Session,
        count: i64,
        take: impl FnMut(&[u8], ValueRef<'_>) -> bool,
    ) -> Result<usize> {
        self.walk_of(count).each::<true>(session, take)
    }

    /// As [`Names::each`], without looking at values.
    pub(crate) fn each_name(
        &mut self,
        session: &mut Session,
        count: i64,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize> {
        self.walk_of(count).each::<false>(session, |name, _| take(name))
    }

    /// A walk to the end, over so many names as far as is known.
    fn walk_of(&mut self, count: i64) -> Walk {
        let mut walk = self.walk();
        walk.cursor = walk.cursor.expecting(usize::try_from(count).unwrap_or(0));
        walk
    }

    /// Goes to where the value of `name` lies; writes the name down, if it is cut and a session is given.
    fn go(&mut self, name: &[u8], write: Option<&mut Session>) -> Result<()> {
        self.node.truncate(self.root);
        match name::subscript(name, MEMBER_BYTES) {
            Cow::Borrowed(whole) => self.node.push(whole)?,
            Cow::Owned(cut) => {
                self.node.push(&cut)?;
                if let Some(session) = write {
                    session.set(&self.node, name)?;
                }
                self.node.push("")?;
            }
        }
        Ok(())
    }
}

/// Steps through a map.
#[derive(Debug)]
pub(crate) struct Walk {
    cursor: Cursor,
    name: Vec<u8>,
    /// The value of a cut name, encoded.
    value: Vec<u8>,
    cut: bool,
}

impl Walk {
    /// Goes behind the name whose subscript is `place`, so that the next step finds what follows it.
    pub(crate) fn seek_past(&mut self, names: &mut Names, place: &[u8]) -> Result<()> {
        let place = names.root().child(place)?;
        self.cursor.seek_past(&place);
        Ok(())
    }

    /// Writes down the subscript of the name that the last step found.
    pub(crate) fn note_place(&self, place: &mut Vec<u8>) -> Result<()> {
        place.clear();
        place.extend_from_slice(&self.cursor.subscript()?.to_text());
        Ok(())
    }

    /// Steps to the next name; false at the end.
    pub(crate) fn next(&mut self, session: &mut Session) -> Result<bool> {
        if !self.cursor.next(session)? {
            return Ok(false);
        }
        self.name.clear();
        self.value.clear();
        let subscript = self.cursor.subscript()?;
        let text = subscript.to_text();
        self.cut = name::is_cut(&text, MEMBER_BYTES);
        if !self.cut {
            self.name.extend_from_slice(&text);
            return Ok(true);
        }
        if let Some(ValueRef::String(whole)) = self.cursor.value()? {
            self.name.extend_from_slice(whole);
        }
        let below = self.cursor.node()?.with("")?;
        if let Some(value) = session.get_ref(&below)? {
            value.encode_into(&mut self.value);
        }
        Ok(true)
    }

    /// Shows the names that are left, and their values if wanted, to `take` until it answers false; how many were shown.
    fn each<const VALUES: bool>(
        mut self,
        session: &mut Session,
        mut take: impl FnMut(&[u8], ValueRef<'_>) -> bool,
    ) -> Result<usize> {
        let (mut count, mut goes_on) = (0, true);
        while goes_on && self.next(session)? {
            count += 1;
            goes_on = take(self.name(), if VALUES { self.value()? } else { ValueRef::Null });
            // Those that were read together with it are whole names, as a rule, and need no buffer.
            let Walk { cursor, name, .. } = &mut self;
            count += cursor.take_while(session, |child| {
                let mut digits = [0; 20];
                let text = match child.subscript() {
                    PlainSubscript::Text(text) => text,
                    PlainSubscript::Int(int) => integer_text(int, &mut digits),
                    PlainSubscript::Escaped(text) if unescape(text, name) => name,
                    PlainSubscript::Escaped(_) => return false,
                };
                if !goes_on || name::is_cut(text, MEMBER_BYTES) {
                    return false;
                }
                let value = match child.string_value() {
                    _ if !VALUES => Ok(ValueRef::Null),
                    Some(string) => Ok(ValueRef::String(string)),
                    None => child.value(),
                };
                let Ok(value) = value else { return false };
                goes_on = take(text, value);
                true
            });
        }
        Ok(count)
    }

    /// The name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its value; null if it has none.
    pub(crate) fn value(&self) -> Result<ValueRef<'_>> {
        if !self.cut {
            return Ok(self.cursor.value()?.unwrap_or(ValueRef::Null));
        }
        if self.value.is_empty() {
            return Ok(ValueRef::Null);
        }
        Ok(ValueRef::decode(&self.value).map_err(perilune::Error::from)?)
    }
}
