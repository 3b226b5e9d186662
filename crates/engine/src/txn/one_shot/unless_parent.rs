//! Writes of a one-shot transaction to one node, if the node is there or nothing lies below it.
//!
//! The server writes elements of collections so: HSET may set a field if it has a value or no other node begins with
//! its key. A read of the key just before has told its place, so the write needs no search.
//!
//! Invariant: where the answer is false, no write is noted.

use perilune_store::{Change, Decision, Result, UpdateBuffer};

use super::OneShot;
use crate::access::Access;
use crate::limits::INLINE_MAX;
use crate::session::record::Kind;
use crate::tree::{Neighbour, Seek};

impl OneShot {
    /// Notes `value` as the key's, if the key has one (this transaction's own writes count) or no key lies between it
    /// and `end`; false: nothing is noted. `scratch`: memory.
    #[inline]
    pub(crate) fn set_unless_parent(
        &mut self,
        access: &Access,
        key: &[u8],
        end: &[u8],
        value: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<bool> {
        if value.len() > INLINE_MAX {
            return Ok(false);
        }
        let has_value = match self.writes.find(key) {
            Ok(own) => self.writes.all()[own].kind == Kind::Set,
            Err(_) => self.places.place_of(key).is_some_and(|(_, place)| place.equal),
        };
        let alone = has_value
            || !self.neighbour(
                access,
                Seek { from: key, side: Neighbour::AtOrNext, bound: end },
                scratch,
                None,
            )?
            || scratch.as_slice() == key;
        if alone {
            self.write(key, Some(value))?;
        }
        Ok(alone)
    }

    /// Notes what `change` makes of the key's value, or of none if no key behind it begins with it; else nothing.
    pub(crate) fn update_unless_parent(
        &mut self,
        access: &Access,
        key: &[u8],
        change: &mut Change<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let found = self.get(access, key, scratch)?;
        let mut buffer: UpdateBuffer = [0; 64];
        let decision = if found {
            change(Some(&scratch[..scratch.len().min(64)]), &mut buffer)?
        } else if self.neighbour(
            access,
            Seek { from: key, side: Neighbour::Next, bound: &[] },
            scratch,
            None,
        )? && scratch.starts_with(key)
        {
            Decision::Keep
        } else {
            change(None, &mut buffer)?
        };
        match decision {
            Decision::Keep => Ok(()),
            Decision::Write(length) => self.write(key, Some(&buffer[..length.min(buffer.len())])),
            Decision::Remove => self.remove(access, key).map(|_| ()),
        }
    }
}
