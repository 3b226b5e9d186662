//! The operations of a session: by themselves, or in its open transaction.

use std::ops::Range;
use std::time::{Duration, Instant};

use perilune_store::{
    count_by_entries, page_by_entries, Added, Addition, Bounds, Bulk, Change, CommitHook, Decision, Entries,
    Error, Page, Presence, Result, Scan, Session as StoreSession, Span, TransactionOptions, Transactions,
    UpdateBuffer,
};

use super::Session;
use crate::access::{check_key, Access};
use crate::limits::{INLINE_MAX, UPDATE_BYTES, USER_KEY_MAX, VALUE_MAX};
use crate::session::patch::Patch;
use crate::tree::{removal_end, Action, Neighbour, Wanted, Which};
use crate::txn::Transaction;

/// How long a single operation that is a transaction inside may take.
const SINGLE: Duration = Duration::from_secs(60);

pub(super) fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > VALUE_MAX {
        return Err(Error::ValueTooLong { bytes: value.len(), limit: VALUE_MAX });
    }
    Ok(())
}

impl Session {
    /// Refuses a write that would make an open transaction take more memory than it may.
    #[inline]
    fn check_pending(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let taken = |session: &Session| session.pending_bytes() + key.len() + value.len();
        if self.pending_max != usize::MAX && taken(self) > self.pending_max {
            let limit = self.pending_max as u64;
            return Err(Error::LimitReached { what: "bytes of the writes of a transaction", limit });
        }
        Ok(())
    }

    /// Runs `write` in the open transaction, or in one of its own.
    fn in_transaction<R>(
        &mut self,
        mut write: impl FnMut(&Access, &mut Transaction, &mut Vec<u8>) -> Result<R>,
    ) -> Result<R> {
        if self.brief.is_open() {
            return self.brief.fail();
        }
        if self.running.is_some() {
            self.tick()?;
            let Session { access, running, scratch, .. } = self;
            if let Some(running) = running {
                if running.options.read_only {
                    return Err(Error::ReadOnly);
                }
                return write(access, &mut running.txn, scratch);
            }
        }
        let Session { access, scratch, hook, .. } = self;
        let result = access.atomically(Instant::now() + SINGLE, |access, txn| {
            let result = write(access, txn, scratch)?;
            super::transactions::call_hook(hook, access, txn)?;
            Ok(result)
        })?;
        self.acknowledge(None)?;
        Ok(result)
    }

    /// Whether a write can go straight to the tree.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.running.is_none() && self.hook.is_none() && !self.brief.is_open()
    }

    fn brief_presence(&mut self, key: &[u8]) -> Result<Presence> {
        let Session { access, brief, scratch, .. } = self;
        let value = brief.get(access, key, scratch)?;
        let end = removal_end(key);
        let descendants = brief.neighbour(access, key, Neighbour::Next, &end, scratch, None)?;
        Ok(Presence { value, descendants })
    }

    pub(super) fn neighbour(
        &mut self,
        from: &[u8],
        side: Neighbour,
        bound: &[u8],
        key: &mut Vec<u8>,
        value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        self.here()?;
        if from.len() > USER_KEY_MAX + 1 {
            return Err(Error::KeyTooLong { bytes: from.len(), limit: USER_KEY_MAX });
        }
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot.neighbour(from, side, key, value)? && side.is_within(key, bound));
        }
        if self.brief.is_open() {
            return self.brief.neighbour(&self.access, from, side, bound, key, value);
        }
        if self.running.is_none() {
            return self.access.neighbour(Which::Main, from, side, bound, key, value, &mut ());
        }
        self.tick()?;
        let Session { access, running, .. } = self;
        match running {
            Some(running) => {
                access.txn_neighbour(&mut running.txn, Which::Main, from, side, bound, key, value)
            }
            None => Ok(false),
        }
    }
}

impl StoreSession for Session {
    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.here()?;
        check_key(key)?;
        if let Some(snapshot) = &self.snapshot {
            return snapshot.get(key, value);
        }
        if self.brief.is_open() {
            return self.brief.get(&self.access, key, value);
        }
        if self.running.is_none() {
            return self.access.get(Which::Main, key, value, &mut ());
        }
        self.tick()?;
        let Session { access, running, .. } = self;
        match running {
            Some(running) => access.txn_get(&mut running.txn, Which::Main, key, value),
            None => Ok(false),
        }
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        self.here()?;
        check_key(key)?;
        if let Some(snapshot) = &self.snapshot {
            return snapshot.presence(key, &mut self.scratch);
        }
        if self.brief.is_open() {
            return self.brief_presence(key);
        }
        if self.running.is_none() {
            return self.access.presence(Which::Main, key, &mut self.scratch);
        }
        self.tick()?;
        let Session { access, running, scratch, .. } = self;
        let Some(running) = running else { return Ok(Presence::default()) };
        let txn = &mut running.txn;
        let value = access.txn_has_value(txn, Which::Main, key)?;
        let end = removal_end(key);
        let next = access.txn_neighbour(txn, Which::Main, key, Neighbour::Next, &end, scratch, None)?;
        Ok(Presence { value, descendants: next && scratch.starts_with(key) })
    }

    #[inline]
    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let side = if inclusive { Neighbour::AtOrNext } else { Neighbour::Next };
        self.neighbour(from, side, end, key, value.map(Wanted::whole))
    }

    #[inline]
    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.neighbour(from, Neighbour::Previous, begin, key, value.map(Wanted::whole))
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        page_by_entries(self, span, with_values, page)
    }

    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.here_to_write()?;
        check_key(key)?;
        check_value(value)?;
        if self.is_plain() {
            self.access.set(Which::Main, key, value)?;
            return self.acknowledge(None);
        }
        if self.brief.is_open() {
            return self.brief.write(key, Some(value));
        }
        self.check_pending(key, value)?;
        self.in_transaction(|_, txn, _| {
            txn.set(Which::Main, key, value);
            Ok(())
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.here_to_write()?;
        check_key(key)?;
        if self.is_plain() {
            let outcome = self.freeing(|session| session.access.remove(Which::Main, key))?;
            self.acknowledge(None)?;
            return Ok(outcome.existed);
        }
        if self.brief.is_open() {
            return self.brief.remove(&self.access, key);
        }
        self.check_pending(key, &[])?;
        self.in_transaction(|access, txn, _| {
            let existed = access.txn_has_value(txn, Which::Main, key)?;
            txn.remove(Which::Main, key);
            Ok(existed)
        })
    }

    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.here_to_write()?;
        check_key(prefix)?;
        self.check_pending(prefix, &[])?;
        self.freeing(|session| {
            session.in_transaction(|_, txn, _| {
                txn.remove_prefix(Which::Main, prefix);
                Ok(())
            })
        })
    }

    #[inline]
    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added> {
        self.update(key, addition.sum).map(|()| Added::Here)
    }

    #[inline]
    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        self.here_to_write()?;
        check_key(key)?;
        if self.is_plain() {
            self.access.update(Which::Main, key, change)?;
            return self.acknowledge(None);
        }
        self.check_pending(key, &[])?;
        self.in_transaction(|access, txn, scratch| {
            let found = access.txn_get(txn, Which::Main, key, scratch)?;
            let mut buffer: UpdateBuffer = [0; 64];
            let shown = scratch.len().min(buffer.len());
            match change(found.then(|| &scratch[..shown]), &mut buffer)? {
                Decision::Keep => {}
                Decision::Write(len) => txn.set(Which::Main, key, &buffer[..len.min(buffer.len())]),
                Decision::Remove => txn.remove(Which::Main, key),
            }
            Ok(())
        })
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.here_to_write()?;
        check_key(key)?;
        check_value(new.unwrap_or(&[]))?;
        let inline = |bytes: Option<&[u8]>| bytes.is_none_or(|bytes| bytes.len() <= INLINE_MAX);
        if self.is_plain() && inline(expected) && inline(new) {
            let swapped = self.access.swap(Which::Main, key, expected, new)?;
            self.acknowledge(None)?;
            return Ok(swapped);
        }
        self.check_pending(key, new.unwrap_or(&[]))?;
        self.in_transaction(|access, txn, scratch| {
            let found = access.txn_get(txn, Which::Main, key, scratch)?;
            if found.then_some(scratch.as_slice()) != expected {
                return Ok(false);
            }
            match new {
                Some(value) => txn.set(Which::Main, key, value),
                None => txn.remove(Which::Main, key),
            }
            Ok(true)
        })
    }

    fn set_commit_hook(&mut self, hook: Option<CommitHook>) {
        self.hook = hook;
    }
}

impl Bulk for Session {
    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        self.read_entries(scan, out)
    }

    #[inline]
    fn are_current(&self, entries: &Entries) -> bool {
        self.holds(entries)
    }

    fn get_pieces(
        &mut self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        self.here()?;
        check_key(key)?;
        if let Some(snapshot) = &self.snapshot {
            return snapshot.pieces(key, pieces, out);
        }
        if self.brief.is_open() {
            return self.brief.pieces(&self.access, key, pieces, out);
        }
        if self.running.is_none() {
            return self.access.pieces(Which::Main, key, pieces, out, &mut ());
        }
        self.tick()?;
        let Session { access, running, .. } = self;
        match running {
            Some(running) => access.txn_pieces(&mut running.txn, key, pieces, out),
            None => Ok(None),
        }
    }

    #[inline]
    fn glance_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let side = if inclusive { Neighbour::AtOrNext } else { Neighbour::Next };
        self.neighbour(from, side, end, key, Some(Wanted::first(value, UPDATE_BYTES)))
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        self.here()?;
        let bytes = span.low.len().max(span.high.len());
        if bytes > USER_KEY_MAX + 1 {
            return Err(Error::KeyTooLong { bytes, limit: USER_KEY_MAX });
        }
        if self.snapshot.is_some() {
            return count_by_entries(self, span, key);
        }
        if self.brief.is_open() {
            return self.brief.count(&self.access, span, key);
        }
        self.tick()?;
        let Session { access, running, .. } = self;
        let counted = match running {
            Some(running) => access.txn_count(&mut running.txn, Which::Main, span, key)?,
            None => Some(access.count(Which::Main, span, key, &mut ())?),
        };
        counted.map_or_else(|| count_by_entries(self, span, key), Ok)
    }

    fn count_groups(
        &mut self,
        span: &Span<'_>,
        group: &dyn Fn(&[u8]) -> usize,
        key: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        self.here()?;
        let bytes = span.low.len().max(span.high.len());
        if bytes > USER_KEY_MAX + 1 {
            return Err(Error::KeyTooLong { bytes, limit: USER_KEY_MAX });
        }
        if span.backwards || self.snapshot.is_some() || self.brief.is_open() || self.running.is_some() {
            return Ok(None);
        }
        self.tick()?;
        self.access.count_groups(Which::Main, span, group, key).map(Some)
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        self.here_to_write()?;
        check_key(key)?;
        self.in_transaction(|access, txn, scratch| {
            access.txn_patch(txn, key, Patch { offset, bytes }, scratch)
        })
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        if !self.is_plain() {
            return pairs.iter().try_for_each(|(key, value)| self.set(key, value));
        }
        self.here_to_write()?;
        // NB: the pairs before one that cannot be set are set.
        let good = |(key, value): &(&[u8], &[u8])| check_key(key).and_then(|()| check_value(value));
        let bad = pairs.iter().position(|pair| good(pair).is_err());
        self.access.set_run(&pairs[..bad.unwrap_or(pairs.len())])?;
        self.acknowledge(None)?;
        bad.map_or(Ok(()), |bad| good(&pairs[bad]))
    }
}

impl Transactions for Session {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        self.begin_level(options)
    }

    fn commit(&mut self) -> Result<()> {
        self.commit_level()
    }

    fn rollback(&mut self) -> Result<()> {
        self.rollback_level()
    }

    fn depth(&self) -> usize {
        if self.brief.is_open() {
            return 1;
        }
        self.running.as_ref().map_or(self.forked_levels, |running| running.txn.overlay.depth())
    }

    fn retry(&mut self) -> Result<()> {
        self.here()?;
        let Some(series) = &mut self.series else { return Ok(()) };
        let lost = std::mem::take(&mut self.lost_lease);
        series.failed(&self.access, lost).inspect_err(|_| self.series = None)
    }

    fn give_up(&mut self) {
        self.series = None;
    }

    fn restarts(&self) -> u32 {
        self.running.as_ref().map_or(0, |running| running.series.tries())
    }

    fn validate(&mut self) -> Result<()> {
        self.here()?;
        if self.brief.is_open() {
            return self.access.validate_brief(&mut self.brief);
        }
        match &mut self.running {
            Some(running) => running.txn.validate(&self.access),
            None => Ok(()),
        }
    }
}

impl Access {
    /// Replaces an inline value by another if it is what is expected; false when it is not.
    ///
    /// # Errors
    /// As [`Access::set`].
    fn swap(&self, which: Which, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let outcome = self.write(which, key, Action::Swap { expected, new })?;
        // NB: swapping nothing for nothing succeeds without a change.
        Ok(outcome.changed || expected.is_none() && new.is_none() && !outcome.existed)
    }
}
