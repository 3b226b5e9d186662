//! The keys of a database, one after the other, in the order of the tree.

use perilune::{Cursor, ValueRef};

use super::{name, Entry, Keys, Kind};
use crate::failure::Result;
use crate::limits::KEY_BYTES;

/// Steps through the keys of a database; those that have expired are passed over.
#[derive(Debug)]
pub(crate) struct KeyWalk {
    cursor: Cursor,
    name: Vec<u8>,
}

impl Keys<'_> {
    /// The name of any key, perhaps of one that has expired; none if there is none.
    pub(crate) fn pick(&mut self) -> Result<Option<Vec<u8>>> {
        let root = self.root()?;
        let Some(place) = super::pick(self.session, &root)? else { return Ok(None) };
        let text = place.to_text();
        if !name::is_cut(&text, KEY_BYTES) {
            return Ok(Some(text.into_owned()));
        }
        let whole = self.session.get_ref(&root.child(&*text)?)?;
        Ok(whole.map(|whole| super::text::bytes_of(whole).into_owned()))
    }

    /// All keys of this database.
    pub(crate) fn walk(&self) -> Result<KeyWalk> {
        Ok(KeyWalk { cursor: Cursor::children(&self.root()?), name: Vec::new() })
    }
}

impl KeyWalk {
    /// Goes behind the key called `name`.
    pub(crate) fn seek_past(&mut self, keys: &Keys<'_>, name: &[u8]) -> Result<()> {
        self.cursor.seek_past(&keys.key(name)?.node);
        Ok(())
    }

    /// The next key.
    pub(crate) fn next(&mut self, keys: &mut Keys<'_>) -> Result<Option<&[u8]>> {
        Ok(self.step(keys)?.map(|_| &self.name[..]))
    }

    /// The next key, and what lies there.
    pub(crate) fn next_with_kind(&mut self, keys: &mut Keys<'_>) -> Result<Option<(&[u8], Kind)>> {
        Ok(self.step(keys)?.map(|kind| (&self.name[..], kind)))
    }

    fn step(&mut self, keys: &mut Keys<'_>) -> Result<Option<Kind>> {
        while self.cursor.next(keys.session)? {
            let subscript = self.cursor.subscript()?;
            let text = subscript.to_text();
            self.name.clear();
            if name::is_cut(&text, KEY_BYTES) {
                if let Some(ValueRef::String(whole)) = self.cursor.value()? {
                    self.name.extend_from_slice(whole);
                }
            } else {
                self.name.extend_from_slice(&text);
                if self.cursor.has_value() {
                    return Ok(Some(Kind::String));
                }
            }
            let key = keys.key(&self.name)?;
            if let Some(Entry { kind, .. }) = keys.open(&key)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }
}
