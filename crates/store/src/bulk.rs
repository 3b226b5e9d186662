//! Operations on much at once: parts of long values, runs of writes, counts. Steps of the core could do each of them; a back
//! end that can do it in less time does.
//!
//! Invariant: no method has a default. A back end without a faster way says so by naming the function that takes the steps:
//! [`entry_by_step`], [`count_by_entries`], [`copy_pieces`], [`put_piece`], [`page_by_steps`].

use std::ops::Range;

use crate::{Entries, Error, Origin, Page, Result, Scan, Session, Span};

/// What a session does with much at once.
pub trait Bulk: Session {
    /// Copies pieces of the value at `key` into `out` (replacing what it held): the bytes of each range as far as there are
    /// such, one piece behind the other. Answers how many bytes the whole value has; None when there is none. All that is of
    /// one moment, and takes time in proportion to the pieces, if the store can help it.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn get_pieces(&mut self, key: &[u8], pieces: &[Range<usize>], out: &mut Vec<u8>)
        -> Result<Option<usize>>;

    /// Writes `bytes` over the value at `key` from `offset` on, and answers how many bytes it has then; None when there is no
    /// value: nothing was written. A shorter value grows, with zeros up to `offset`. Takes time in proportion to the piece, if
    /// the store can help it.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>>;

    /// As [`Session::next_within`], but of a value that is longer than [`crate::Limits::update_bytes`] only the first so many bytes
    /// are copied.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn preview_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool>;

    /// Reads the entries that `scan` asks for into `out`, as many of them as lie in one place of the store, all of one moment,
    /// and steps to the first one; false when there is none. In a transaction all of them count as read.
    ///
    /// # Errors
    /// As [`Session::get`]; `out` may hold anything.
    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool>;

    /// Whether reading these entries now would answer the same.
    fn are_current(&self, entries: &Entries) -> bool;

    /// Writes each value at its key, one pair after another: as many calls of [`Session::set`], which a
    /// back end may make faster where keys ascend. What lies together may appear at once.
    ///
    /// # Errors
    /// As [`Session::set`]; the pairs before the one that failed are written.
    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()>;

    /// Counts the keys of `span`. If there are `span.most` of them or more, the last one counted is copied into
    /// `key`; else `key` may hold anything. Outside of a transaction the answer is that of one moment only if the
    /// store does not count by steps.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64>;

    /// About how many keys lie from `low` on and before `high`, now, without reading them: for whoever plans how to read. It counts
    /// as no read of a transaction, and knows nothing of what that has written. None: this store cannot tell without reading.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn estimate(&mut self, low: &[u8], high: &[u8]) -> Result<Option<u64>>;

    /// Counts from the low end of `span` how many groups its keys are of, where `group` says how many bytes a key begins
    /// with that only its group begins with. If there are `span.most` groups or more, the first key of the last one counted is
    /// copied into `key`; else `key` may hold anything. None: this store, or this transaction, has no faster way than steps.
    /// The answer is not that of one moment: what is there all the time is counted. `group` may be asked about any bytes.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn count_groups(
        &mut self,
        span: &Span<'_>,
        group: &dyn Fn(&[u8]) -> usize,
        key: &mut Vec<u8>,
    ) -> Result<Option<u64>>;
}

/// Replaces `out` by pieces of `value`, as [`Bulk::get_pieces`] does.
pub fn copy_pieces(value: &[u8], pieces: &[Range<usize>], out: &mut Vec<u8>) {
    out.clear();
    for piece in pieces {
        let end = piece.end.min(value.len());
        out.extend_from_slice(&value[piece.start.min(end)..end]);
    }
}

/// Writes `bytes` over a part of `value`, as [`Bulk::set_piece`] does, and answers how many bytes that has then.
///
/// # Errors
/// `ValueTooLong` beyond `limit`.
pub fn put_piece(value: &mut Vec<u8>, offset: usize, bytes: &[u8], limit: usize) -> Result<usize> {
    let end = offset.saturating_add(bytes.len());
    if end > limit {
        return Err(Error::ValueTooLong { bytes: end, limit });
    }
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(bytes);
    Ok(value.len())
}

/// [`Bulk::entries`] of one entry, for a back end that reads no more at once.
///
/// # Errors
/// As [`Session::get`].
pub fn entry_by_step<S: Session + ?Sized>(
    session: &mut S,
    scan: &Scan<'_>,
    out: &mut Entries,
) -> Result<bool> {
    let (key, value) = out.single();
    let value = scan.values.then_some(value);
    if scan.backwards {
        return session.previous_within(scan.from, scan.bound, key, value);
    }
    session.next_within(scan.from, scan.inclusive, scan.bound, key, value)
}

/// How many entries are read at once to be counted, or for a page.
const READ_AT_ONCE: usize = 1024;

/// [`Bulk::count`] by reading the keys, for a store that keeps nothing it could count faster.
///
/// # Errors
/// As [`Session::get`].
pub fn count_by_entries<S: Bulk + ?Sized>(
    session: &mut S,
    span: &Span<'_>,
    key: &mut Vec<u8>,
) -> Result<u64> {
    let (edge, bound) = if span.backwards { (span.high, span.low) } else { (span.low, span.high) };
    let (mut entries, mut at, mut count) = (Entries::default(), edge.to_vec(), 0);
    // NB: to a search an empty end is none.
    while count < span.most && span.low < span.high {
        let most = usize::try_from(span.most - count).map_or(READ_AT_ONCE, |most| most.min(READ_AT_ONCE));
        let (inclusive, after) = (count == 0, *entries.origin());
        let scan =
            Scan { from: &at, inclusive, bound, backwards: span.backwards, values: false, most, after };
        if !session.entries(&scan, &mut entries)? {
            return Ok(count);
        }
        count += 1 + entries.ahead() as u64;
        while entries.advance() {}
        entries.key().clone_into(&mut at);
    }
    std::mem::swap(key, &mut at);
    Ok(count)
}

/// [`Session::page`] by one reading of entries.
///
/// # Errors
/// As [`Session::get`].
pub fn page_by_entries<S: Bulk + ?Sized>(
    session: &mut S,
    span: &Span<'_>,
    values: bool,
    page: &mut Page,
) -> Result<()> {
    page.clear();
    // NB: to a search an empty end is none.
    if span.low >= span.high {
        page.end();
    }
    if page.is_last() || span.most == 0 {
        return Ok(());
    }
    let (from, bound) = if span.backwards { (span.high, span.low) } else { (span.low, span.high) };
    let most = usize::try_from(span.most).map_or(READ_AT_ONCE, |most| most.min(READ_AT_ONCE));
    let after = Origin::default();
    let scan = Scan { from, inclusive: true, bound, backwards: span.backwards, values, most, after };
    let mut entries = Entries::default();
    if !session.entries(&scan, &mut entries)? {
        page.end();
        return Ok(());
    }
    loop {
        page.push(entries.key(), if values { entries.value() } else { &[] });
        if !entries.advance() {
            return Ok(());
        }
    }
}

/// Entries of a page that is read by steps.
const STEPS: u64 = 64;
/// Bytes behind which such a page ends.
const STEPS_BYTES: usize = 64 << 10;

/// [`Session::page`] by a step for each entry, for a back end that has nothing more at hand. The page is of one moment in a
/// transaction only.
///
/// # Errors
/// As [`Session::get`].
pub fn page_by_steps<S: Session + ?Sized>(
    session: &mut S,
    span: &Span<'_>,
    with_values: bool,
    page: &mut Page,
) -> Result<()> {
    page.clear();
    let mut at = if span.backwards { span.high } else { span.low }.to_vec();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    // NB: to a search an empty end is none.
    if span.low >= span.high {
        page.end();
        return Ok(());
    }
    let mut left = span.most.min(STEPS);
    while left > 0 && page.bytes() < STEPS_BYTES {
        let out = with_values.then_some(&mut value);
        let is_there = if span.backwards {
            session.previous_within(&at, span.low, &mut key, out)?
        } else {
            session.next_within(&at, page.is_empty(), span.high, &mut key, out)?
        };
        if !is_there {
            page.end();
            break;
        }
        page.push(&key, &value);
        left -= 1;
        std::mem::swap(&mut at, &mut key);
    }
    Ok(())
}
