//! Counting: alone, in a transaction, in a brief one.
//!
//! Invariants
//! - A count is one query of the read set: what others do within its span is no conflict as long as the answer stays.
//! - Where a transaction has written in the span itself, it counts by steps: its overlay knows no places.

use perilune_store::{Error, Result, Span};

use super::reads::{count_digest, Ask};
use super::Transaction;
use crate::access::Access;
use crate::tree::{self, Neighbour, Visit, Which};

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

    /// The same as the transaction sees it.
    ///
    /// # Errors
    /// `Conflict`.
    pub(crate) fn txn_count(
        &self,
        txn: &mut Transaction,
        which: Which,
        span: &Span<'_>,
        key: &mut Vec<u8>,
    ) -> Result<u64> {
        if txn.doomed {
            return Err(Error::Conflict);
        }
        if txn.overlay.touches(which, span.low, span.high) {
            return self.step_through(txn, which, span, key);
        }
        txn.visited.clear();
        // NB: an attempt that is repeated has told of no leaf.
        let count = self.count(which, span, key, &mut txn.visited)?;
        let ask = Ask::Count { backwards: span.backwards, most: span.most };
        txn.noted(self, ask, which, [span.low, span.high], count_digest(count, span, key))?;
        Ok(count)
    }

    fn step_through(
        &self,
        txn: &mut Transaction,
        which: Which,
        span: &Span<'_>,
        key: &mut Vec<u8>,
    ) -> Result<u64> {
        let (mut side, start, bound) = if span.backwards {
            (Neighbour::Previous, span.high, span.low)
        } else {
            (Neighbour::AtOrNext, span.low, span.high)
        };
        let (mut at, mut found, mut count) = (start.to_vec(), Vec::new(), 0);
        while count < span.most {
            if !self.txn_neighbour(txn, which, &at, side, bound, &mut found, None)? {
                return Ok(count);
            }
            count += 1;
            std::mem::swap(&mut at, &mut found);
            if !span.backwards {
                side = Neighbour::Next;
            }
        }
        std::mem::swap(key, &mut at);
        Ok(count)
    }
}
