//! Many entries one behind another, as transactions see them.
//!
//! A transaction notes a reading as one question: what stands between where it began and its last key. The digest of the
//! answer says later whether a leaf that others have written to still holds just that; one pass over the copy pays for it.
//!
//! Invariants
//! - What others do outside of that stretch of keys is no conflict.
//! - A reading ends before the first key that the transaction has written itself, and so is of the tree alone. Where it has
//!   removed a prefix, or written over parts of long values, entries are read one by one.
//!
//! Deliberately absent: those single entries (`neighbours`, `one_shot`).

use std::borrow::Cow;

use perilune_store::{Entries, Error, Result, Scan};

use super::reads::{entries_digest, Ask};
use super::Transaction;
use crate::access::Access;
use crate::tree::{side_of, Read, Which};

/// The smallest key above another.
pub(super) fn above(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The keys that a scan may find: from the first on, before the other.
pub(super) fn span_of<'a>(scan: &Scan<'a>) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
    match (scan.backwards, scan.inclusive) {
        (true, _) => (scan.bound.into(), scan.from.into()),
        (false, true) => (scan.from.into(), scan.bound.into()),
        (false, false) => (above(scan.from).into(), scan.bound.into()),
    }
}

impl Transaction {
    /// Where a reading of the tree alone has to end; None if entries are to be read one by one.
    fn bound_of<'a>(&mut self, which: Which, scan: &Scan<'a>) -> Option<Cow<'a, [u8]>> {
        if self.overlay.is_empty() {
            return Some(scan.bound.into());
        }
        let (low, high) = span_of(scan);
        let is_empty = low >= high;
        if is_empty || !self.overlay.patches.is_empty() || self.overlay.removes_within(which, &low, &high) {
            return None;
        }
        self.overlay.arrange(which);
        Some(match self.overlay.written(which, &low, &high, scan.backwards) {
            None => scan.bound.into(),
            Some(own) if scan.backwards => above(own).into(),
            Some(own) => own.to_vec().into(),
        })
    }
}

impl Access {
    /// As [`Access::entries`], as the transaction sees them; where it has no answer, the next entry is to be read by itself.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_entries(
        &self,
        txn: &mut Transaction,
        which: Which,
        scan: &Scan<'_>,
        out: &mut Entries,
    ) -> Result<Read> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        let Some(bound) = txn.bound_of(which, scan) else { return Ok(Read::Single) };
        let scan = Scan { bound: &bound, ..*scan };
        let read = self.visiting(&mut txn.visited, |visited| self.entries(which, &scan, out, visited))?;
        if !matches!(read, Read::Some(..)) {
            return Ok(Read::Single);
        }
        let last = out.last_key();
        let bound = if scan.backwards { Cow::Borrowed(last) } else { above(last).into() };
        let ask = Ask::Entries(side_of(&scan), scan.values);
        txn.noted(self, ask, which, [scan.from, &bound], entries_digest(out))?;
        Ok(read)
    }
}
