//! What a transaction has written over parts of long values, level by level.
//!
//! Invariants
//! - A level either patches a key or sets it. A set drops the patches of that level; a patch of a value that the
//!   level has set changes that value in memory.
//! - Patches of an outer level come before those of an inner one.

use std::collections::BTreeMap;
use std::ops::Range;

use perilune_store::{Error, Result};

use super::overlay::Lookup;
use super::Transaction;
use crate::access::Access;
use crate::limits::{INLINE_MAX, VALUE_MAX};
use crate::session::patch::{apply_to_bytes, decode, encode, Patch};
use crate::tree::Which;

/// The patches of each level, by key, as the log has them.
#[derive(Default)]
pub(super) struct Patches {
    levels: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Patches {
    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(BTreeMap::is_empty)
    }

    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }

    /// Notes a patch at level `depth`, counted from 1.
    fn add(&mut self, depth: usize, key: &[u8], patch: Patch<'_>) {
        if self.levels.len() < depth {
            self.levels.resize_with(depth, BTreeMap::new);
        }
        let own = &mut self.levels[depth - 1];
        match own.get_mut(key) {
            Some(patches) => encode([patch], patches),
            None => {
                let mut patches = Vec::new();
                encode([patch], &mut patches);
                own.insert(key.to_vec(), patches);
            }
        }
    }

    /// Forgets those of level `depth` and of what lies inside it.
    pub(super) fn drop_level(&mut self, depth: usize) {
        self.levels.truncate(depth - 1);
    }

    /// Forgets those of level `depth` whose key is one that `is_written` otherwise.
    pub(super) fn forget(&mut self, depth: usize, is_written: impl Fn(&[u8]) -> bool) {
        if let Some(own) = self.levels.get_mut(depth - 1) {
            own.retain(|key, _| !is_written(key));
        }
    }

    /// Makes those of level `depth`, the innermost, part of the one around it.
    pub(super) fn merge_level(&mut self, depth: usize) {
        if self.levels.len() < depth {
            return;
        }
        let Some(inner) = self.levels.pop() else { return };
        let Some(outer) = self.levels.last_mut() else { return };
        for (key, patches) in inner {
            outer.entry(key).or_default().extend_from_slice(&patches);
        }
    }

    /// Those of `key`, of all levels; None if there are none.
    fn of(&self, key: &[u8]) -> Option<Vec<Patch<'_>>> {
        let mut all: Option<Vec<Patch<'_>>> = None;
        for patches in self.levels.iter().filter_map(|level| level.get(key)) {
            all.get_or_insert_default().extend(decode(patches).unwrap_or_default());
        }
        all
    }

    /// Those of the outermost level, in the order of keys.
    pub(super) fn outermost(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.levels.iter().take(1).flatten().map(|(key, patches)| (&key[..], &patches[..]))
    }

    /// Writes those of `key` over what has been copied of its value, which may be a part of it if it is not `whole`.
    pub(super) fn apply(&self, key: &[u8], value: &mut Vec<u8>, whole: bool) {
        let Some(patches) = self.of(key) else { return };
        let most = if whole { usize::MAX } else { value.len() };
        for Patch { offset, bytes } in patches {
            let end = (offset + bytes.len()).min(most);
            if offset < end {
                apply_to_bytes(&[Patch { offset, bytes: &bytes[..end - offset] }], value);
            }
        }
    }

    /// Makes pieces of a value of `len` bytes those of the patched one, and answers how many bytes that has.
    pub(super) fn apply_to_pieces(
        &self,
        key: &[u8],
        len: usize,
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> usize {
        let Some(patches) = self.of(key) else { return len };
        let length = patches.iter().map(|patch| patch.offset + patch.bytes.len()).max().unwrap_or(0).max(len);
        let (base, mut rest) = (std::mem::take(out), 0);
        for piece in pieces {
            let (start, end) = (piece.start.min(length), piece.end.min(length));
            let known = end.min(len).saturating_sub(start);
            let from = out.len();
            out.extend_from_slice(&base[rest..rest + known]);
            rest += known;
            out.resize(from + end.saturating_sub(start), 0);
            for Patch { offset, bytes } in &patches {
                let (first, last) = (start.max(*offset), end.min(offset + bytes.len()));
                if first < last {
                    out[from + first - start..from + last - start]
                        .copy_from_slice(&bytes[first - offset..last - offset]);
                }
            }
        }
        length
    }
}

impl Access {
    /// Writes bytes over a part of the value that the transaction sees at `key`, and answers how many bytes it has then; None
    /// when there is none. `scratch` is overwritten.
    ///
    /// # Errors
    /// `Conflict`; `ValueTooLong`.
    pub(crate) fn txn_patch(
        &self,
        txn: &mut Transaction,
        key: &[u8],
        patch: Patch<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let Some(len) = self.txn_pieces(txn, key, &[], scratch)? else { return Ok(None) };
        let length = patch.offset.saturating_add(patch.bytes.len()).max(len);
        if length > VALUE_MAX {
            return Err(Error::ValueTooLong { bytes: length, limit: VALUE_MAX });
        }
        let is_own = !matches!(txn.overlay.lookup(Which::Main, key), Lookup::Unknown);
        if len <= INLINE_MAX || is_own {
            self.txn_get(txn, Which::Main, key, scratch)?;
            apply_to_bytes(std::slice::from_ref(&patch), scratch);
            txn.set(Which::Main, key, scratch);
        } else if !patch.bytes.is_empty() {
            let depth = txn.overlay.depth();
            txn.overlay.patches.add(depth, key, patch);
        }
        Ok(Some(length))
    }

    /// Turns patches into values, for who is to see all that a transaction writes.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_settle_patches(&self, txn: &mut Transaction) -> Result<()> {
        let keys: Vec<Vec<u8>> = txn.overlay.patches.outermost().map(|(key, _)| key.to_vec()).collect();
        let mut value = Vec::new();
        for key in keys {
            self.txn_get(txn, Which::Main, &key, &mut value)?;
            txn.set(Which::Main, &key, &value);
        }
        Ok(())
    }
}
