//! Counting: alone, in a transaction, in a one-shot one.
//!
//! Invariants
//! - A count is one query of the read set: what others do within its span is no conflict as long as the answer stays.
//! - What a transaction has written itself it does not ask the tree for: it counts between the keys it has written. Only
//!   where it has removed a prefix, it steps.

use std::borrow::Cow;

use perilune_store::{Error, Result, Span};

use super::overlay::Lookup;
use super::reads::{count_digest, Ask};
use super::Transaction;
use crate::access::Access;
use crate::tree::{self, Visit, Which};

impl Access {
    /// Counts the keys of `span`; the last one is copied into `key` if there are as many as it wants at most.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn count(
        &self,
        which: Which,
        span: &Span<'_>,
        key: &mut Vec<u8>,
        visit: &mut impl Visit,
    ) -> Result<u64> {
        self.read(|| tree::count(&self.seat.image, which, span, 0, key, visit))
    }

    /// Counts the keys of a span as the transaction sees it; None where it has removed a prefix: then its caller steps.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_count(
        &self,
        txn: &mut Transaction,
        which: Which,
        span: &Span<'_>,
        key: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        if txn.overlay.removes_within(which, span.low, span.high) {
            return Ok(None);
        }
        txn.overlay.arrange(which);
        let own = |txn: &Transaction, low: &[u8], high: &[u8]| {
            let own = txn.overlay.written(which, low, high, span.backwards)?;
            Some((own.to_vec(), matches!(txn.overlay.lookup(which, own), Lookup::Value(_))))
        };
        count_around(txn, span, key, own, |txn, span, key| self.tree_count(txn, which, span, key)).map(Some)
    }

    /// Counts in the tree alone.
    fn tree_count(
        &self,
        txn: &mut Transaction,
        which: Which,
        span: &Span<'_>,
        key: &mut Vec<u8>,
    ) -> Result<u64> {
        txn.visited.clear();
        // NB: an attempt that is repeated has told of no leaf.
        let count = self.count(which, span, key, &mut txn.visited)?;
        let ask = Ask::Count { backwards: span.backwards, most: span.most };
        txn.noted(self, ask, which, [span.low, span.high], count_digest(count, span, key))?;
        Ok(count)
    }
}

/// Counts the keys of `span` by counts of the tree between those that are written here: `own` finds the first of them,
/// seen from where the count begins, and whether it has a value.
pub(super) fn count_around<T>(
    state: &mut T,
    span: &Span<'_>,
    key: &mut Vec<u8>,
    own: impl Fn(&T, &[u8], &[u8]) -> Option<(Vec<u8>, bool)>,
    mut count: impl FnMut(&mut T, &Span<'_>, &mut Vec<u8>) -> Result<u64>,
) -> Result<u64> {
    let Span { backwards, most, .. } = *span;
    let (mut low, mut high) = (Cow::Borrowed(span.low), Cow::Borrowed(span.high));
    let mut done = 0;
    while done < most {
        let written = if low < high { own(state, &low, &high) } else { None };
        let Some((written, has_value)) = written else {
            let rest = Span { low: &low, high: &high, backwards, most: most - done };
            return Ok(done + count(state, &rest, key)?);
        };
        // The smallest key above it.
        let above = [&written[..], &[0]].concat();
        let (from, to) = if backwards { (&above[..], &high[..]) } else { (&low[..], &written[..]) };
        done += count(state, &Span { low: from, high: to, backwards, most: most - done }, key)?;
        if done < most && has_value {
            done += 1;
            key.clone_from(&written);
        }
        if backwards {
            high = written.into();
        } else {
            low = above.into();
        }
    }
    Ok(done)
}
