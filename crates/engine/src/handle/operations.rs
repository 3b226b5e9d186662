//! The operations of a session: by themselves, or in its open transaction.

use std::ops::Range;
use std::time::{Duration, Instant};

use perilune_store::{
    count_by_entries, page_by_entries, Added, Addition, Bounds, Bulk, Change, CommitHook, Decision, Entries,
    Error, Page, Presence, Result, Scan, Session as StoreSession, Span, TransactionOptions, Transactions,
    UpdateBuffer,
};

use super::mode::{Mode, Scene};
use super::{Running, Session};
use crate::access::{check_key, Access};
use crate::limits::{INLINE_MAX, UPDATE_BYTES, USER_KEY_MAX, VALUE_MAX};
use crate::session::patch::Patch;
use crate::tree::{removal_end, Action, Neighbour, Seek, Wanted, Which};
use crate::txn::Transaction;

/// How long a single operation that is a transaction inside may take.
const SINGLE: Duration = Duration::from_secs(60);

pub(super) fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > VALUE_MAX {
        return Err(Error::ValueTooLong { bytes: value.len(), limit: VALUE_MAX });
    }
    Ok(())
}

fn check_span(span: &Span<'_>) -> Result<()> {
    let bytes = span.low.len().max(span.high.len());
    if bytes > USER_KEY_MAX + 1 {
        return Err(Error::KeyTooLong { bytes, limit: USER_KEY_MAX });
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
        if self.one_shot.is_open() {
            self.take_over()?;
        }
        let Scene { access, mode, scratch } = self.mode_to_write()?;
        match mode {
            Mode::Transaction(running) => return write(access, &mut running.txn, scratch),
            // It was taken over, above.
            Mode::OneShot(one_shot) => return one_shot.fail(),
            Mode::Snapshot(_) => return Err(Error::ReadOnly),
            Mode::Present | Mode::Hooked => {}
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

    pub(super) fn neighbour(
        &mut self,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        if seek.from.len() > USER_KEY_MAX + 1 {
            return Err(Error::KeyTooLong { bytes: seek.from.len(), limit: USER_KEY_MAX });
        }
        self.going_on(|session| {
            let value = value.as_mut().map(Wanted::again);
            let Scene { access, mode, .. } = session.mode_to_read()?;
            match mode {
                Mode::Present | Mode::Hooked => access.neighbour(Which::Main, seek, key, value, &mut ()),
                Mode::Transaction(running) => {
                    access.txn_neighbour(&mut running.txn, Which::Main, seek, key, value)
                }
                Mode::OneShot(one_shot) => one_shot.neighbour(access, seek, key, value),
                Mode::Snapshot(snapshot) => {
                    let Seek { from, side, bound } = seek;
                    Ok(snapshot.neighbour(from, side, key, value)? && side.is_within(key, bound))
                }
            }
        })
    }
}

impl StoreSession for Session {
    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.going_on(|session| {
            let Scene { access, mode, .. } = session.mode_to_read()?;
            check_key(key)?;
            match mode {
                Mode::Present | Mode::Hooked => access.get(Which::Main, key, value, &mut ()),
                Mode::Transaction(running) => access.txn_get(&mut running.txn, Which::Main, key, value),
                Mode::OneShot(one_shot) => one_shot.get(access, key, value),
                Mode::Snapshot(snapshot) => snapshot.get(key, value),
            }
        })
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        self.going_on(|session| {
            let Scene { access, mode, scratch } = session.mode_to_read()?;
            check_key(key)?;
            let end = removal_end(key);
            let below = Seek { from: key, side: Neighbour::Next, bound: &end };
            match mode {
                Mode::Present | Mode::Hooked => access.presence(Which::Main, key, scratch),
                Mode::Transaction(Running { txn, .. }) => {
                    let value = access.txn_has_value(txn, Which::Main, key)?;
                    let next = access.txn_neighbour(txn, Which::Main, below, scratch, None)?;
                    Ok(Presence { value, descendants: next && scratch.starts_with(key) })
                }
                Mode::OneShot(one_shot) => {
                    let value = one_shot.get(access, key, scratch)?;
                    let descendants = one_shot.neighbour(access, below, scratch, None)?;
                    Ok(Presence { value, descendants })
                }
                Mode::Snapshot(snapshot) => snapshot.presence(key, scratch),
            }
        })
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
        self.neighbour(Seek { from, side, bound: end }, key, value.map(Wanted::whole))
    }

    #[inline]
    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let seek = Seek { from, side: Neighbour::Previous, bound: begin };
        self.neighbour(seek, key, value.map(Wanted::whole))
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        page_by_entries(self, span, with_values, page)
    }

    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.going_on(|session| {
            let Scene { access, mode, .. } = session.mode_to_write()?;
            check_key(key)?;
            check_value(value)?;
            match mode {
                Mode::Present => {
                    access.set(Which::Main, key, value)?;
                    return session.acknowledge(None);
                }
                Mode::OneShot(one_shot) => return one_shot.write(key, Some(value)),
                Mode::Transaction(_) | Mode::Hooked | Mode::Snapshot(_) => {}
            }
            session.check_pending(key, value)?;
            session.in_transaction(|_, txn, _| {
                txn.set(Which::Main, key, value);
                Ok(())
            })
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.going_on(|session| {
            let Scene { access, mode, .. } = session.mode_to_write()?;
            check_key(key)?;
            match mode {
                Mode::Present => {
                    let outcome = session.freeing(|session| session.access.remove(Which::Main, key))?;
                    session.acknowledge(None)?;
                    return Ok(outcome.existed);
                }
                Mode::OneShot(one_shot) => return one_shot.remove(access, key),
                Mode::Transaction(_) | Mode::Hooked | Mode::Snapshot(_) => {}
            }
            session.check_pending(key, &[])?;
            session.in_transaction(|access, txn, _| {
                let existed = access.txn_has_value(txn, Which::Main, key)?;
                txn.remove(Which::Main, key);
                Ok(existed)
            })
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
        self.going_on(|session| {
            let Scene { access, mode, scratch } = session.mode_to_write()?;
            check_key(key)?;
            match mode {
                Mode::Present => {
                    access.update(Which::Main, key, change)?;
                    return session.acknowledge(None);
                }
                Mode::OneShot(one_shot) => return one_shot.update(access, key, change, scratch),
                Mode::Transaction(_) | Mode::Hooked | Mode::Snapshot(_) => {}
            }
            session.check_pending(key, &[])?;
            session.in_transaction(|access, txn, scratch| {
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
        })
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.going_on(|session| {
            let Scene { access, mode, scratch } = session.mode_to_write()?;
            check_key(key)?;
            check_value(new.unwrap_or(&[]))?;
            let inline = |bytes: Option<&[u8]>| bytes.is_none_or(|bytes| bytes.len() <= INLINE_MAX);
            match mode {
                Mode::Present if inline(expected) && inline(new) => {
                    let swapped = access.swap(Which::Main, key, expected, new)?;
                    session.acknowledge(None)?;
                    return Ok(swapped);
                }
                Mode::OneShot(one_shot) => {
                    return one_shot.compare_and_set(access, key, [expected, new], scratch)
                }
                _ => {}
            }
            session.check_pending(key, new.unwrap_or(&[]))?;
            session.in_transaction(|access, txn, scratch| {
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
        self.going_on(|session| {
            let Scene { access, mode, .. } = session.mode_to_read()?;
            check_key(key)?;
            match mode {
                Mode::Present | Mode::Hooked => access.pieces(Which::Main, key, pieces, out, &mut ()),
                Mode::Transaction(running) => access.txn_pieces(&mut running.txn, key, pieces, out),
                Mode::OneShot(one_shot) => one_shot.pieces(access, key, pieces, out),
                Mode::Snapshot(snapshot) => snapshot.pieces(key, pieces, out),
            }
        })
    }

    #[inline]
    fn preview_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let side = if inclusive { Neighbour::AtOrNext } else { Neighbour::Next };
        let seek = Seek { from, side, bound: end };
        self.neighbour(seek, key, Some(Wanted::first(value, UPDATE_BYTES)))
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        self.going_on(|session| {
            check_span(span)?;
            let Scene { access, mode, .. } = session.mode_to_read()?;
            let counted = match mode {
                Mode::Present | Mode::Hooked => Some(access.count(Which::Main, span, key, &mut ())?),
                Mode::Transaction(running) => access.txn_count(&mut running.txn, Which::Main, span, key)?,
                Mode::OneShot(one_shot) => Some(one_shot.count(access, span, key)?),
                Mode::Snapshot(_) => None,
            };
            counted.map_or_else(|| count_by_entries(session, span, key), Ok)
        })
    }

    fn estimate(&mut self, low: &[u8], high: &[u8]) -> Result<Option<u64>> {
        check_span(&Span { low, high, backwards: false, most: 0 })?;
        self.here()?;
        self.access.estimate(low, high).map(Some)
    }

    fn count_groups(
        &mut self,
        span: &Span<'_>,
        group: &dyn Fn(&[u8]) -> usize,
        key: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        check_span(span)?;
        let Scene { access, mode, .. } = self.mode_to_read()?;
        match mode {
            Mode::Present | Mode::Hooked if !span.backwards => {
                access.count_groups(Which::Main, span, group, key).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        check_key(key)?;
        self.in_transaction(|access, txn, scratch| {
            access.txn_patch(txn, key, Patch { offset, bytes }, scratch)
        })
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let Scene { access, mode, .. } = self.mode_to_write()?;
        if !matches!(mode, Mode::Present) {
            return pairs.iter().try_for_each(|(key, value)| self.set(key, value));
        }
        // NB: the pairs before one that cannot be set are set.
        let good = |(key, value): &(&[u8], &[u8])| check_key(key).and_then(|()| check_value(value));
        let bad = pairs.iter().position(|pair| good(pair).is_err());
        access.set_run(&pairs[..bad.unwrap_or(pairs.len())])?;
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
        if self.one_shot.is_open() {
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
        let Session { access, one_shot, running, .. } = self;
        if one_shot.is_open() {
            return access.validate_one_shot(one_shot);
        }
        running.as_mut().map_or(Ok(()), |running| running.txn.validate(access))
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
