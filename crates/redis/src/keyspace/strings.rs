//! Strings: where one lies, all of it or pieces of a long one, and putting one in place of whatever a key holds.
//!
//! A string without expiry is the value of the key's own node, so that a GET is one search; one with an expiry, or of a name that
//! is too long for a subscript, lies below it.
//!
//! Invariant: a long string is not read as a whole to look at a part of it, or to change one.

use std::borrow::Cow;
use std::ops::Range;

use perilune::{IntoValue, Node, Serving, ValueRef};

use super::{expiry, text, Entry, Key, Keys, Kind};
use crate::failure::Result;
use crate::limits::{PIECE_BYTES, SHORT_BYTES};
use crate::notify;

/// A string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The whole of a short one.
    Short(Vec<u8>),
    /// How many bytes a long one has.
    Long(usize),
}

impl Held {
    /// How many bytes it has.
    pub(crate) fn length(&self) -> usize {
        match self {
            Held::Short(bytes) => bytes.len(),
            Held::Long(length) => *length,
        }
    }
}

impl Keys<'_> {
    /// The node that holds the string of `entry`.
    pub(super) fn string_node<'k>(key: &'k Key<'_>, entry: &Entry) -> Result<Cow<'k, Node>> {
        if entry.plain {
            Ok(Cow::Borrowed(&key.node))
        } else {
            Ok(Cow::Owned(key.part(Kind::String)?))
        }
    }

    /// The string at `key`; `entry` is one.
    pub(crate) fn string(&mut self, key: &Key<'_>, entry: &Entry) -> Result<ValueRef<'_>> {
        let node = Self::string_node(key, entry)?;
        Ok(self.session.get_ref(&*node)?.unwrap_or(ValueRef::Null))
    }

    /// The string at `key` if it is short, else how many bytes it has; `entry` is one.
    pub(crate) fn held(&mut self, key: &Key<'_>, entry: &Entry) -> Result<Held> {
        let node = Self::string_node(key, entry)?;
        match self.session.get_piece(&*node, 0..SHORT_BYTES) {
            Ok(Some(piece)) if piece.length > piece.bytes.len() => return Ok(Held::Long(piece.length)),
            Ok(Some(piece)) => return Ok(Held::Short(piece.bytes.to_vec())),
            Ok(None) => return Ok(Held::Short(Vec::new())),
            Err(perilune::Error::WrongType { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Held::Short(text::bytes_of(self.string(key, entry)?).into_owned()))
    }

    /// A piece of the long string at `key`.
    pub(crate) fn piece(&mut self, key: &Key<'_>, entry: &Entry, range: Range<usize>) -> Result<&[u8]> {
        let node = Self::string_node(key, entry)?;
        Ok(self.session.get_piece(&*node, range)?.map_or(&[], |piece| piece.bytes))
    }

    /// Writes bytes over a part of the long string at `key`, which grows if need be.
    pub(crate) fn patch(&mut self, key: &Key<'_>, entry: &Entry, offset: usize, bytes: &[u8]) -> Result<()> {
        let node = Self::string_node(key, entry)?;
        self.session.set_piece(&*node, offset, bytes)?;
        Ok(())
    }

    /// Leaves a command that makes a string grow by much to a run aside.
    pub(crate) fn check_growth(&self, from: usize, to: usize) -> Result<()> {
        Ok(self.session.check_read(to.saturating_sub(from))?)
    }

    /// Shows the bytes `range` of the long string at `key` to `look`, piece by piece, until it answers false.
    pub(crate) fn each_piece(
        &mut self,
        key: &Key<'_>,
        entry: &Entry,
        range: Range<usize>,
        mut look: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.session.check_read(range.len())?;
        let mut at = range.start;
        while at < range.end {
            let end = (at + PIECE_BYTES).min(range.end);
            if !look(self.piece(key, entry, at..end)?) {
                break;
            }
            at = end;
        }
        Ok(())
    }

    /// Puts a string at `key`, where `old` lies, in place of whatever that is.
    pub(crate) fn put_string(
        &mut self,
        key: &Key<'_>,
        old: Option<&Entry>,
        value: impl IntoValue,
        expires: Option<i64>,
    ) -> Result<()> {
        if old.is_none() {
            self.notify(notify::NEW, "new", key.name);
        }
        self.write_string(key, old, value, expires)
    }

    pub(super) fn write_string(
        &mut self,
        key: &Key<'_>,
        old: Option<&Entry>,
        value: impl IntoValue,
        expires: Option<i64>,
    ) -> Result<()> {
        if let Some(old) = old.filter(|old| !old.plain) {
            self.erase(key, old)?;
        }
        let Some(expires) = expires else {
            if !key.cut {
                return Ok(self.session.set(&key.node, value)?);
            }
            self.begin(key)?;
            return Ok(self.session.set(&key.part(Kind::String)?, value)?);
        };
        if !key.cut {
            self.session.delete_value(&key.node)?;
        }
        self.begin(key)?;
        self.session.set(&key.part(Kind::String)?, value)?;
        expiry::note(self, key, expires)
    }

    /// Changes the string at `key` and leaves its expiry; where nothing lies it has none.
    pub(crate) fn change_string(
        &mut self,
        key: &Key<'_>,
        old: Option<&Entry>,
        value: impl IntoValue,
    ) -> Result<()> {
        match old {
            None => self.put_string(key, None, value, None),
            Some(entry) => Ok(self.session.set(&*Self::string_node(key, entry)?, value)?),
        }
    }
}
