//! The keys of a database, one after the other, in the order of the tree.

use perilune::{Cursor, Node, Session, ValueRef};

use super::entry::{entry, EXPIRY};
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
        whole_name(self.session, &root.child(&place)?)
    }

    /// All keys of this database.
    pub(crate) fn walk(&self) -> Result<KeyWalk> {
        Ok(KeyWalk { cursor: Cursor::children(&self.root()?).looking_below(), name: Vec::new() })
    }
}

/// The name of the key at this node; none of a cut one that is gone.
pub(crate) fn whole_name(session: &mut Session, place: &Node) -> Result<Option<Vec<u8>>> {
    let Some(subscript) = place.last()? else { return Ok(None) };
    let text = subscript.to_text();
    if !name::is_cut(&text, KEY_BYTES) {
        return Ok(Some(text.into_owned()));
    }
    Ok(session.get_ref(place)?.map(|whole| super::text::bytes_of(whole).into_owned()))
}

/// What a cursor over keys stands at.
enum Found {
    Key(Kind),
    Expired,
}

/// What lies at the key that a cursor has stepped to, if that was read together with it.
fn kind_of(cursor: &Cursor, now: i64) -> Option<Found> {
    let value_of = |value| ValueRef::decode(value).ok();
    // The whole name of a cut one is no part of what the key holds.
    let mut below = cursor.below().filter(|(codes, _)| !codes.is_empty());
    let (codes, value) = below.next()?;
    if let Some(Entry { kind, .. }) = entry(codes, value_of(value)) {
        return Some(Found::Key(kind));
    }
    let expires = value_of(value).filter(|_| codes == EXPIRY)?.as_i64().unwrap_or(0);
    if expires <= now {
        return Some(Found::Expired);
    }
    let (codes, value) = below.next()?;
    entry(codes, value_of(value)).map(|entry| Found::Key(entry.kind))
}

impl KeyWalk {
    /// Goes behind the key whose subscript is `place`.
    pub(crate) fn seek_past(&mut self, keys: &Keys<'_>, place: &[u8]) -> Result<()> {
        self.cursor.seek_past(&keys.root()?.with(place)?);
        Ok(())
    }

    /// Writes down the subscript of the key that the last step found.
    pub(crate) fn note_place(&self, place: &mut Vec<u8>) -> Result<()> {
        place.clear();
        place.extend_from_slice(&self.cursor.subscript()?.to_text());
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
            match kind_of(&self.cursor, keys.now) {
                Some(Found::Key(kind)) => return Ok(Some(kind)),
                Some(Found::Expired) if !keys.writes => continue,
                _ => {}
            }
            let key = keys.key(&self.name)?;
            // NB: not `open`: nobody has asked for this key by name, and whether it is there counts nowhere.
            if let Some(Entry { kind, .. }) = keys.look_up(&key)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }
}
