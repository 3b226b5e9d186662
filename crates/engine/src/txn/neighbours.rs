//! The keys beside a key, as a transaction sees them: of the tree and of what it has written itself.
//!
//! Invariant: what is asked of the tree is noted among the reads, within the bound that the caller names, and no further.
//!
//! Deliberately absent: what is remembered of such questions (`memo`), counts (`count`).

use std::borrow::Cow;

use perilune_store::{Error, Result};

use super::overlay::Lookup;
use super::reads::{digest, Ask};
use super::Transaction;
use crate::access::Access;
use crate::limits::UPDATE_BYTES;
use crate::tree::{removal_end, Neighbour, Seek, Wanted, Which};

/// Values from so many bytes on are not remembered.
const MEMO_BYTES: usize = UPDATE_BYTES;

impl Access {
    /// Copies the neighbour of `from` that the transaction sees; false when there is none within `bound`
    /// (empty: anywhere). What lies outside is not read: others may write there.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_neighbour(
        &self,
        txn: &mut Transaction,
        which: Which,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let Seek { from, side, bound } = seek;
        if txn.doomed {
            return Err(Error::Conflict);
        }
        if side == Neighbour::AtOrNext && side.is_within(from, bound) {
            // Nothing is nearer than what it has set there itself, whatever the tree holds.
            if let Lookup::Value(bytes) = txn.overlay.lookup(which, from) {
                if let Some(mut value) = value {
                    value.put(bytes);
                }
                from.clone_into(key);
                return Ok(true);
            }
        }
        if side != Neighbour::AtOrNext {
            return self.nearest(txn, which, seek, key, value);
        }
        if let Some(place) = txn.memo.recall(which, from, bound) {
            let Some(answer) = place.answer() else { return Ok(false) };
            let known = match txn.overlay.lookup(which, answer) {
                Lookup::Value(own) => Some(own),
                _ => place.value(),
            };
            if known.is_some() || value.is_none() {
                answer.clone_into(key);
                if let (Some(mut value), Some(known)) = (value, known) {
                    value.put(known);
                }
                return Ok(true);
            }
        }
        let found = self.nearest(txn, which, seek, key, value.as_mut().map(Wanted::again))?;
        // NB: of a long value it may be a part.
        let value = value.as_ref().map(Wanted::copied).filter(|value| found && value.len() < MEMO_BYTES);
        txn.memo.keep(which, [from, bound], found.then_some(&key[..]), value);
        Ok(found)
    }

    /// The nearest key of the tree and the overlay.
    fn nearest(
        &self,
        txn: &mut Transaction,
        which: Which,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let Seek { from, side, bound } = seek;
        let found = self.tree_neighbour(txn, which, seek, key, value.as_mut().map(Wanted::again))?;
        txn.overlay.arrange(which);
        let own = txn.overlay.neighbour(which, from, side).filter(|own| side.is_within(own, bound));
        let Some(own) = own else { return Ok(found) };
        let nearer = !found
            || match side {
                Neighbour::Previous => own >= key.as_slice(),
                _ => own <= key.as_slice(),
            };
        if nearer {
            own.clone_into(key);
            if let (Some(mut value), Lookup::Value(bytes)) = (value, txn.overlay.lookup(which, key)) {
                value.put(bytes);
            }
        }
        Ok(true)
    }

    /// The nearest key of the tree that the overlay does not hide.
    fn tree_neighbour(
        &self,
        txn: &mut Transaction,
        which: Which,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let Seek { from, mut side, bound } = seek;
        let mut from = Cow::Borrowed(from);
        loop {
            let found = self.visiting(&mut txn.visited, |visited| {
                self.neighbour(
                    which,
                    Seek { from: &from, side, bound },
                    key,
                    value.as_mut().map(Wanted::again),
                    visited,
                )
            })?;
            let no_bytes: &[u8] = &[];
            let (ask, digest) = match &value {
                Some(value) => {
                    let parts = if found { [&key[..], value.copied()] } else { [no_bytes, no_bytes] };
                    (Ask::KeyAndValue(side, value.most()), digest(found, parts))
                }
                None => (Ask::Key(side), digest(found, [if found { key } else { no_bytes }, no_bytes])),
            };
            txn.noted(self, ask, which, [&from, bound], digest)?;
            if !found {
                return Ok(false);
            }
            match txn.overlay.lookup(which, key) {
                Lookup::Unknown => {
                    if let Some(value) = value.filter(|_| !txn.overlay.patches.is_empty()) {
                        let (value, most) = value.parts();
                        txn.overlay.patches.apply(key, value, most == usize::MAX);
                    }
                    return Ok(true);
                }
                Lookup::Value(_) => return Ok(true),
                Lookup::Absent(None) => {
                    from = key.clone().into();
                    side = if side == Neighbour::Previous { side } else { Neighbour::Next };
                }
                Lookup::Absent(Some(prefix)) if side == Neighbour::Previous => from = prefix.to_vec().into(),
                Lookup::Absent(Some(prefix)) => {
                    from = removal_end(prefix).into();
                    side = Neighbour::AtOrNext;
                }
            }
        }
    }
}
