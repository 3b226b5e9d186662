//! The ordered map: a store, and the sessions through which threads use it.

use std::ops::Range;
use std::time::Duration;

use crate::{
    CommitHook, Entries, Error, FewChange, Figure, KeptReads, LockReport, Probe, ProcessReport, Result, Scan,
    TransactionOptions,
};

/// What a back end can take. Read, never assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key at most.
    pub key_bytes: usize,
    /// Bytes of a value at most.
    pub value_bytes: usize,
    /// Bytes of a value that [`Session::update`] shows and writes at most.
    pub update_bytes: usize,
    /// Levels of nested transactions at most.
    pub transaction_depth: usize,
}

/// A store that many threads (and processes) share; cheap to clone.
pub trait Store: Clone + Send + Sync + 'static {
    /// One thread's way in.
    type Session: Session;

    /// Opens a session. A session is used by one thread at a time.
    ///
    /// # Errors
    /// [`crate::Error::LimitReached`] when all sessions are taken.
    fn session(&self) -> Result<Self::Session>;

    /// The back end's limits.
    fn limits(&self) -> &Limits;

    /// Figures about the store, in the order in which they are shown. Sums of what sessions count for
    /// themselves: exact when nothing happens, else of about now.
    ///
    /// # Errors
    /// I/O only.
    fn figures(&self) -> Result<Vec<Figure>> {
        Ok(Vec::new())
    }

    /// Locks that are held, and those waited for, in the order of their names. Each is true by itself.
    ///
    /// # Errors
    /// I/O; [`crate::Error::LimitReached`] when it needs a session and there is none.
    fn locks(&self) -> Result<Vec<LockReport>> {
        Ok(Vec::new())
    }

    /// Processes that have the store open for writing.
    ///
    /// # Errors
    /// I/O only.
    fn processes(&self) -> Result<Vec<ProcessReport>> {
        Ok(Vec::new())
    }
}

/// What lies at a key: nothing, a value, descendants (longer keys that begin with it), or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The key itself has a value.
    pub value: bool,
    /// Some longer key begins with it.
    pub descendants: bool,
}

/// The keys that [`Session::count`] counts: those from `low` on that lie before `high`, from one end, up to a number.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Where it begins; counts itself.
    pub low: &'a [u8],
    /// Where it ends; does not count.
    pub high: &'a [u8],
    /// Whether they are counted from `high` downwards.
    pub backwards: bool,
    /// So many are counted at most.
    pub most: u64,
}

/// What [`Session::update`]'s closure wants done with the value at its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave it as it is.
    Keep,
    /// Write the first so many bytes of the [`UpdateBuffer`].
    Write(usize),
    /// Remove it.
    Remove,
}

/// Where [`Session::update`]'s closure puts the new value.
pub type UpdateBuffer = [u8; 64];

/// A pure function from the value at a key (None: absent) to what is to become of it.
pub type Change<'a> = dyn FnMut(Option<&[u8]>, &mut UpdateBuffer) -> Result<Decision> + 'a;

/// One thread's access to a store.
///
/// While a transaction is open ([`Session::begin`]), every operation belongs to it. An operation that
/// answers [`crate::Error::Conflict`] has doomed the open transaction: roll back and run it again, as
/// [`crate::transact`] does.
pub trait Session: Send {
    /// Copies the value at `key` into `value` (replacing what it held); false when there is none.
    ///
    /// # Errors
    /// `Conflict` inside a transaction; `KeyTooLong`; I/O.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Copies pieces of the value at `key` into `out` (replacing what it held): the bytes of each range as far as there are
    /// such, one piece behind the other. Answers how many bytes the whole value has; None when there is none. All that is of
    /// one moment, and takes time in proportion to the pieces, if the store can help it.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn get_pieces(
        &mut self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(None);
        }
        copy_pieces(&value, pieces, out);
        Ok(Some(value.len()))
    }

    /// What lies at `key`.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn presence(&mut self, key: &[u8]) -> Result<Presence>;

    /// Finds the first key after `from` (at or after it, if `inclusive`) and copies it into `key`, and
    /// its value into `value` if that is given; false when there is none. `from` may be any bytes up
    /// to the key limit and one 0xFF more; `key` may not be the buffer that `from` lies in.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn next(
        &mut self,
        from: &[u8],
        inclusive: bool,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool>;

    /// As [`Session::next`], but a key from `end` on is not found. In a transaction nothing from there on
    /// counts as read, if the store can help it: what others write there is no conflict.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        Ok(self.next(from, inclusive, key, value)? && key.as_slice() < end)
    }

    /// As [`Session::next_within`], but of a value that is longer than [`Limits::update_bytes`] only the first so many bytes
    /// are copied.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn glance_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self.next_within(from, inclusive, end, key, Some(value))?;
        value.truncate(std::mem::size_of::<UpdateBuffer>());
        Ok(found)
    }

    /// Finds the last key before `from`, otherwise as [`Session::next`].
    ///
    /// # Errors
    /// As [`Session::get`].
    fn previous(&mut self, from: &[u8], key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> Result<bool>;

    /// As [`Session::previous`], but a key before `begin` is not found, as with [`Session::next_within`].
    ///
    /// # Errors
    /// As [`Session::get`].
    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        Ok(self.previous(from, key, value)? && key.as_slice() >= begin)
    }

    /// Reads the entries that `scan` asks for into `out`, as many of them as lie in one place of the store, all of one moment,
    /// and steps to the first one; false when there is none. In a transaction all of them count as read.
    ///
    /// # Errors
    /// As [`Session::get`]; `out` may hold anything.
    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        let (key, value) = out.single();
        let value = scan.values.then_some(value);
        if scan.backwards {
            return self.previous_within(scan.from, scan.bound, key, value);
        }
        self.next_within(scan.from, scan.inclusive, scan.bound, key, value)
    }

    /// Whether reading these entries now would answer the same.
    #[inline]
    fn are_current(&self, _entries: &Entries) -> bool {
        false
    }

    /// Counts the keys of `span`. If there are as many as are counted at most, the last one counted is copied into
    /// `key`; else `key` may hold anything. Outside of a transaction the answer is that of one moment only if the
    /// store does not count by steps.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        count_by_steps(self, span, key)
    }

    /// Counts from the low end of `span` how many groups its keys are of, where `group` says how many bytes a key begins
    /// with that only its group begins with. If there are as many as are counted at most, the first key of the last one is
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
    ) -> Result<Option<u64>> {
        let _ = (span, group, key);
        Ok(None)
    }

    /// Writes `value` at `key`.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`, `NoSpace`, `ReadOnly`; nothing was written.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes `bytes` over the value at `key` from `offset` on, and answers how many bytes it has then; None when there is no
    /// value: nothing was written. A shorter value grows, with zeros up to `offset`. Takes time in proportion to the piece, if
    /// the store can help it.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>>;

    /// Writes each value at its key, one pair after another: as many calls of [`Session::set`], which a
    /// back end may make faster where keys ascend. What lies together may appear at once.
    ///
    /// # Errors
    /// As [`Session::set`]; the pairs before the one that failed are written.
    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// Removes the value at `key`; true when there was one. Longer keys stay.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn remove(&mut self, key: &[u8]) -> Result<bool>;

    /// Removes every key that begins with `prefix` (itself included).
    ///
    /// # Errors
    /// As [`Session::set`].
    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()>;

    /// Changes the value at `key` by a pure function of it, atomically. The function may run several
    /// times and under the page's latch: it must neither allocate, block, panic nor call the store.
    /// A present value longer than [`Limits::update_bytes`] is shown as its first bytes.
    ///
    /// # Errors
    /// The function's own error, unchanged; else as [`Session::set`].
    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()>;

    /// Replaces the value at `key` by `new` (None removes it) if it is `expected` now (None: absent);
    /// false when it is not.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool>;

    /// Writes `value` at `key` if it has a value, or if no key lies between it and `end`; false: that is
    /// not so, or cannot be told but in a transaction, and nothing was written.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_if_alone(&mut self, _key: &[u8], _end: &[u8], _value: &[u8]) -> Result<bool> {
        Ok(false)
    }

    /// As [`Session::update`], if the key has a value or no key behind it begins with it; `change` is not asked when that is
    /// not so, or cannot be told but in a transaction.
    ///
    /// # Errors
    /// As [`Session::update`].
    fn update_if_alone(&mut self, _key: &[u8], _change: &mut Change<'_>) -> Result<()> {
        Ok(())
    }

    /// Sets all pairs, which ascend, at one moment, if each key has a value or no key behind it begins with it; false: that
    /// is not so, or cannot be told but in a transaction, and nothing was written.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_all_if_alone(&mut self, _pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        Ok(false)
    }

    /// Looks at some probes and writes some keys close to them as `change` says, all at one moment. False: nothing was
    /// written, since `change` said so, or since it takes a transaction: one is open, a key lies elsewhere, there are many, or
    /// a long value, or others were in the way for too long. `change` may run several times while others wait for it: it must
    /// neither block, panic nor use the store, and allocate little. True without anything to write says that what was seen was
    /// one state.
    ///
    /// # Errors
    /// The function's own; else as [`Session::set`].
    fn change_few(&mut self, _probes: &[Probe<'_>], _change: &mut FewChange<'_>) -> Result<bool> {
        Ok(false)
    }

    /// As [`Session::change_few`] where nothing is to be written, and without keeping others out: what `look` sees may be
    /// halves of two states; true says that it was one, and then it has answered true.
    ///
    /// # Errors
    /// The function's own, if it saw one state; I/O.
    fn look_few(&mut self, _probes: &[Probe<'_>], _look: &mut FewChange<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Copies the values at `keys`, in order, as of one moment.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn get_many(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>
    where
        Self: Sized,
    {
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        crate::transact(self, &options, |session| {
            keys.iter()
                .map(|key| {
                    let mut value = Vec::new();
                    Ok(session.get(key, &mut value)?.then_some(value))
                })
                .collect()
        })
    }

    /// Opens a transaction, or a nested level of the open one (whose `options` are then ignored).
    ///
    /// # Errors
    /// `LimitReached` beyond [`Limits::transaction_depth`].
    fn begin(&mut self, options: &TransactionOptions) -> Result<()>;

    /// Ends the innermost level: a nested one is merged into its parent, the outermost is validated
    /// and applied. After any error the level (for the outermost: the transaction) is gone.
    ///
    /// # Errors
    /// `Conflict`: run it again after [`Session::retry`]. Else as [`Session::set`].
    fn commit(&mut self) -> Result<()>;

    /// Drops the innermost level and what it wrote; locks taken in it are released.
    ///
    /// # Errors
    /// `TransactionState` when none is open.
    fn rollback(&mut self) -> Result<()>;

    /// Opens a brief transaction: one try, without levels, locks, messages and removals of prefixes, that
    /// reads and writes little. False: there are none now. What it reads need not be one state until
    /// [`Session::end_brief`] says so; an operation beyond its means answers `Conflict`.
    ///
    /// # Errors
    /// As [`Session::begin`].
    fn begin_brief(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Ends it; with its writes if they are to be kept. False: nothing was written, and what was read may
    /// never have been one state; run it as a transaction.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn end_brief(&mut self, _keep: bool) -> Result<bool> {
        Ok(false)
    }

    /// Whether the last brief transaction has failed because others were at the same keys, and not for what it
    /// asked: then another try may do.
    fn has_met(&self) -> bool {
        false
    }

    /// From now on (or, with false, no longer) what is written frees space on the whole, and may use what the store
    /// keeps for that on a full disk. Removals by themselves may do so anyhow.
    fn free_up(&mut self, _frees: bool) {}

    /// From now on an operation that would read more bytes of a long value than these answers [`crate::Error::LongRead`]
    /// instead, in time that does not depend on the value; 0: none does. For who may not be kept for long.
    fn limit_reads(&mut self, _bytes: usize) {}

    /// Whether there is such a limit, and it lies below `bytes`.
    fn is_beyond(&self, _bytes: usize) -> bool {
        false
    }

    /// Gives back memory of buffers that have more bytes than these.
    fn shrink(&mut self, _bytes: usize) {}

    /// From now on (or, with false, no longer) writes and commits do not wait until they are durable: the next
    /// [`Session::settle`] waits for all of them at once. What waits for nothing is not changed by this.
    fn defer(&mut self, _deferring: bool) {}

    /// Whether something has been written that [`Session::settle`] has to wait for.
    fn is_unsettled(&self) -> bool {
        false
    }

    /// Waits until all that was written since [`Session::defer`] is as durable as it was to be.
    ///
    /// # Errors
    /// `NotDurable`: it has happened, but is not on disk; told once.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// How many levels of transaction are open; in a brief one 1.
    fn depth(&self) -> usize;

    /// Prepares the next try of a transaction that ended with `Conflict` or `Restart` (all levels are
    /// rolled back): backs off, and from the third failure on asks for exclusive mode. The next
    /// [`Session::begin`] continues the same series of tries.
    ///
    /// # Errors
    /// `TransactionTimeout` when the series has reached its time limit.
    fn retry(&mut self) -> Result<()>;

    /// Changes how long each wait for a page that another session holds may take, until it is [`Error::Busy`]. A
    /// transaction's own limit counts beside it. Where nobody holds anything that says nothing.
    ///
    /// [`Error::Busy`]: crate::Error::Busy
    fn set_wait_limit(&mut self, _limit: Duration) {}

    /// What [`Session::set_wait_limit`] has set, or the store's own.
    fn wait_limit(&self) -> Duration {
        Duration::MAX
    }

    /// Ends a series of tries that will not go on (the body failed for good).
    fn give_up(&mut self);

    /// Bytes of memory that the writes of the open transaction take, about; 0 where that is not known.
    fn pending_bytes(&self) -> usize {
        0
    }

    /// From now on, in whatever transaction, a write that would make these more than so many is refused: it is
    /// `LimitReached`, and the transaction goes on without it. Where they are not counted it does nothing.
    fn limit_pending(&mut self, _bytes: usize) {}

    /// How often the open transaction has been run again (0 in its first run).
    fn restarts(&self) -> u32;

    /// Checks that all the open transaction has read is still one state.
    ///
    /// # Errors
    /// `Conflict` when it is not.
    fn validate(&mut self) -> Result<()>;

    /// What the open transaction has read so far, its own writes aside, for other transactions to rest on, of any session of
    /// this store. To be called at its end: it no longer remembers it. None: the store has not noted that, or not all of it.
    fn keep_reads(&mut self) -> Option<KeptReads> {
        None
    }

    /// Whether all that `kept` holds is still so. Then the open transaction rests on it: it commits only at a moment at which that
    /// is so, too; one that writes nothing has been at such a moment. What has changed and changed back between two
    /// such moments counts as unchanged. Where nobody has written near what was read this costs a look at each page of it.
    ///
    /// # Errors
    /// `TransactionState` without a transaction; `Invalid` for what another store has kept; `Conflict`.
    fn rest_on(&mut self, _kept: &[KeptReads]) -> Result<bool> {
        Err(Error::Invalid("this store keeps nothing that was read".into()))
    }

    /// Sets (or with None clears) the function that sees each transaction's writes before they are
    /// validated and may add its own; single writes are then transactions of one. No cost when unset.
    fn set_commit_hook(&mut self, hook: Option<CommitHook>);
}

/// So many keys are read at once to be counted.
const COUNTED_AT_ONCE: usize = 1024;

/// Replaces `out` by pieces of `value`, as [`Session::get_pieces`] does.
pub fn copy_pieces(value: &[u8], pieces: &[Range<usize>], out: &mut Vec<u8>) {
    out.clear();
    for piece in pieces {
        let end = piece.end.min(value.len());
        out.extend_from_slice(&value[piece.start.min(end)..end]);
    }
}

/// Writes `bytes` over a part of `value`, as [`Session::set_piece`] does, and answers how many bytes that has then.
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

/// [`Session::count`] by reading the keys, for a store that keeps nothing it could count faster.
///
/// # Errors
/// As [`Session::get`].
pub fn count_by_steps<S: Session + ?Sized>(
    session: &mut S,
    span: &Span<'_>,
    key: &mut Vec<u8>,
) -> Result<u64> {
    let (edge, bound) = if span.backwards { (span.high, span.low) } else { (span.low, span.high) };
    let (mut entries, mut at, mut count) = (Entries::default(), edge.to_vec(), 0);
    while count < span.most {
        let most =
            usize::try_from(span.most - count).map_or(COUNTED_AT_ONCE, |most| most.min(COUNTED_AT_ONCE));
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
