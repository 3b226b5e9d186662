//! One thread's access to the trees: attempts repeated until they succeed, waiting for the living and
//! repairing the dead in between.
//!
//! Invariants
//! - No latch is held while waiting, and none is left when a function here returns or panics.
//! - Each operation is atomic: its effect is that of one published record.
//!
//! Deliberately absent: transactions; processes and threads, which `handle` knows.

use std::ops::Range;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Change, Entries, Error, Presence, Result, Scan, Span};

use crate::control::{holds_lease, take_lease, wait_lease, Lease};
use crate::error::{Attempt, Stop};
use crate::image::layout::control;
use crate::limits::{
    ATTEMPT_LEAST, HEIGHT_MAX, INLINE_MAX, LEASE_WAIT, RECORD_INLINE_MAX, RUN_ROOM, SINGLE_RECORD_MAX,
};
use crate::log;
use crate::repair::{self, Patience};
use crate::session::{lease_session, Counter, Limit, Seat, Whom};
use crate::tree::{
    self, Action, Draft, Fingers, Groups, Merge, Neighbour, Outcome, Progress, Read, Seen, Visit, Wanted,
    Which,
};

/// Rounds after which a reader that is overtaken again and again asks for exclusive mode for one try.
const STARVED: u32 = 400;

/// A seat and the fingers of the thread that sits on it.
pub(crate) struct Access {
    pub(crate) seat: Seat,
    pub(crate) fingers: Fingers,
}

/// An operation under way; ends when dropped, by repair of the own session if the thread panics.
pub(crate) struct Operation<'a>(&'a Seat);

impl Drop for Operation<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            // NB: nobody else can do it, however long that takes.
            self.0.set_limit(Limit::of(Duration::MAX));
            // Its error is the panic's: the caller learns of that one.
            let _ = repair::session(self.0);
        } else {
            self.0.leave();
        }
    }
}

impl Access {
    pub(crate) fn new(seat: Seat) -> Access {
        Access { seat, fingers: Fingers::default() }
    }

    /// Does `body`, whose caller waits so long for others, by waits that do not last much longer.
    pub(crate) fn within<T>(&self, timeout: Option<Duration>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout.max(ATTEMPT_LEAST)));
        let limit = self.seat.limit();
        self.seat.set_limit(limit.until(end));
        let result = body();
        self.seat.set_limit(limit);
        result
    }

    /// Begins an operation that writes.
    #[inline(always)]
    pub(crate) fn operation(&self) -> Operation<'_> {
        self.seat.enter();
        Operation(&self.seat)
    }

    /// Repeats a reading attempt until it succeeds.
    #[inline]
    pub(crate) fn read<T>(&self, mut attempt: impl FnMut() -> Attempt<T>) -> Result<T> {
        match attempt() {
            Ok(result) => Ok(result),
            Err(stop) => self.read_again(stop, attempt),
        }
    }

    #[cold]
    fn read_again<T>(&self, mut stop: Stop, mut attempt: impl FnMut() -> Attempt<T>) -> Result<T> {
        let mut patience = Patience::new();
        let (mut overtaken, mut met) = (0_u32, LatchWord::from_raw(0));
        loop {
            let mut has_moved = true;
            if let Stop::Busy(page) = stop {
                // NB: exclusive mode does not help against one who holds a page and does not go on.
                let word = latch::load(self.seat.image.latch(page));
                has_moved = word != std::mem::replace(&mut met, word);
            }
            patience.wait_for_stop(&self.seat, stop)?;
            overtaken += u32::from(has_moved);
            let starved = has_moved
                && overtaken.is_multiple_of(STARVED)
                && !self.seat.image.read_only
                && !holds_lease(&self.seat);
            let lease = if starved { self.lease_for_reading(&mut patience)? } else { None };
            if lease.is_some() {
                // Nobody else changes anything now: if even this attempt fails, there is damage.
                patience.watch(&self.seat.image);
            }
            match attempt() {
                Ok(result) => return Ok(result),
                Err(again) => stop = again,
            }
        }
    }

    /// Exclusive mode, if it is to be had in time.
    fn lease_for_reading(&self, patience: &mut Patience) -> Result<Option<Lease>> {
        let end = patience.end(&self.seat.limit());
        take_lease(&self.seat, 0, end.unwrap_or_else(|| Instant::now() + LEASE_WAIT))
    }

    /// Copies the value at `key` into `out`; false when there is none.
    ///
    /// # Errors
    /// I/O and damage; `Busy`, as of everything here.
    #[inline]
    pub(crate) fn get(
        &self,
        which: Which,
        key: &[u8],
        out: &mut Vec<u8>,
        visit: &mut impl Visit,
    ) -> Result<bool> {
        self.read(|| tree::get(&self.seat.image, &self.fingers, which, key, 0, out, visit))
    }

    /// Copies pieces of the value at `key` into `out`, and answers how many bytes it has; None when there is none.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn pieces(
        &self,
        which: Which,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
        visit: &mut impl Visit,
    ) -> Result<Option<usize>> {
        let image = &self.seat.image;
        self.read(|| tree::pieces(image, &self.fingers, (which, key), 0, pieces, out, visit))
    }

    /// As [`perilune_store::Bulk::count_groups`].
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn count_groups(
        &self,
        which: Which,
        span: &Span<'_>,
        group: &dyn Fn(&[u8]) -> usize,
        key: &mut Vec<u8>,
    ) -> Result<u64> {
        let mut groups = Groups::new(which, span, group);
        while self.read(|| groups.step(&self.seat.image))? {}
        Ok(groups.end(key))
    }

    /// Whether there is a value at `key`.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn has_value(&self, which: Which, key: &[u8], visit: &mut impl Visit) -> Result<bool> {
        self.read(|| tree::has_value(&self.seat.image, &self.fingers, which, key, 0, visit))
    }

    /// Copies the neighbour of `from` out; false when there is none within `bound` (empty: anywhere).
    ///
    /// # Errors
    /// I/O and damage only.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn neighbour(
        &self,
        which: Which,
        from: &[u8],
        side: Neighbour,
        bound: &[u8],
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
        visit: &mut impl Visit,
    ) -> Result<bool> {
        self.read(|| {
            let value = value.as_mut().map(Wanted::again);
            tree::neighbour(&self.seat.image, &self.fingers, which, from, side, bound, 0, key, value, visit)
        })
    }

    /// Reads the entries of one leaf that `scan` asks for.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn entries(
        &self,
        which: Which,
        scan: &Scan<'_>,
        out: &mut Entries,
        visit: &mut impl Visit,
    ) -> Result<Read> {
        self.read(|| {
            out.clear();
            tree::entries(&self.seat.image, &self.fingers, which, scan, 0, out, visit)
        })
    }

    /// What lies at `key`, as of one moment. `scratch` is overwritten.
    ///
    /// # Errors
    /// I/O and damage only.
    #[inline]
    pub(crate) fn presence(&self, which: Which, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        match self.read(|| tree::presence(&self.seat.image, &self.fingers, which, key, 0))? {
            Some(presence) => Ok(presence),
            None => self.presence_beyond(which, key, scratch),
        }
    }

    /// What lies at `key` where more than one leaf has to tell.
    #[cold]
    fn presence_beyond(&self, which: Which, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        let image = &self.seat.image;
        let mut visited: Vec<Seen> = Vec::new();
        let end = tree::removal_end(key);
        self.read(|| {
            visited.clear();
            let mut seek = |side, scratch: &mut Vec<u8>| {
                tree::neighbour(image, &self.fingers, which, key, side, &end, 0, scratch, None, &mut visited)
            };
            let mut found = seek(Neighbour::AtOrNext, scratch)?;
            let value = found && scratch == key;
            if value {
                found = seek(Neighbour::Next, scratch)?;
            }
            for seen in &visited {
                seen.check(image)?;
            }
            Ok(Presence { value, descendants: found && scratch.starts_with(key) })
        })
    }

    /// Sets a value.
    ///
    /// # Errors
    /// `ValueTooLong`, `NoSpace`, `WritesStopped`.
    #[inline]
    pub(crate) fn set(&self, which: Which, key: &[u8], value: &[u8]) -> Result<Outcome> {
        if value.len() <= INLINE_MAX {
            return self.write(which, key, Action::Set { value, big: false });
        }
        self.set_long(which, key, value)
    }

    #[cold]
    fn set_long(&self, which: Which, key: &[u8], value: &[u8]) -> Result<Outcome> {
        self.make_room(SINGLE_RECORD_MAX)?;
        let _operation = self.operation();
        self.seat.begin_claims();
        let list = tree::place_value(&self.seat, value)?;
        let placed = list.as_ref().map_or(value, |list| list.as_bytes());
        let outcome = self.write_inside(which, key, &mut Action::Set { value: placed, big: list.is_some() });
        if outcome.is_err() {
            self.seat.give_back_runs(tree::placed_runs(&list));
        }
        self.seat.forget_notes();
        outcome
    }

    /// Removes a value.
    ///
    /// # Errors
    /// `NoSpace` (first-touch copies need pages; see `Seat::frees`), `WritesStopped`.
    pub(crate) fn remove(&self, which: Which, key: &[u8]) -> Result<Outcome> {
        self.write(which, key, Action::Remove)
    }

    /// Changes a value by a function of it.
    ///
    /// # Errors
    /// The function's own; else as [`Access::set`].
    #[inline]
    pub(crate) fn update(&self, which: Which, key: &[u8], change: &mut Change<'_>) -> Result<Outcome> {
        // NB: the closure re-borrows `change`, whose own lifetime the action must not prolong.
        self.write(which, key, Action::Update(&mut |current, buffer| change(current, buffer)))
    }

    /// Writes one key.
    ///
    /// # Errors
    /// As [`Access::set`].
    #[inline]
    pub(crate) fn write(&self, which: Which, key: &[u8], mut action: Action<'_>) -> Result<Outcome> {
        self.make_room(SINGLE_RECORD_MAX)?;
        let _operation = self.operation();
        self.write_inside(which, key, &mut action)
    }

    /// Sees to it that a record of `bytes` bytes fits the ring. No operation is under way.
    ///
    /// # Errors
    /// `WritesStopped`, `NoSpace`, `Io`: the log takes nothing now.
    #[inline(always)]
    pub(crate) fn make_room(&self, bytes: usize) -> Result<()> {
        if self.seat.has_room(bytes) {
            return Ok(());
        }
        log::make_room(&self.seat, bytes)
    }

    /// Writes one key inside an operation that has begun, with room in the ring.
    #[inline]
    pub(crate) fn write_inside(&self, which: Which, key: &[u8], action: &mut Action<'_>) -> Result<Outcome> {
        let mut patience = Patience::new();
        let outcome = loop {
            match tree::write(&self.seat, &self.fingers, which, key, action) {
                Ok(outcome) => break outcome,
                Err(stop) => self.overcome(stop, which, key, &mut patience)?,
            }
        };
        if outcome.changed {
            self.seat.count(Counter::Writes);
        }
        if outcome.sparse {
            self.tidy(which, key);
        }
        Ok(outcome)
    }

    /// Sets the pairs one after another, each chunk of them that lies in one leaf at once: fast if they
    /// ascend.
    ///
    /// # Errors
    /// As [`Access::set`]; the pairs before the one that failed are set.
    pub(crate) fn set_run(&self, pairs: &tree::Pairs<'_>) -> Result<()> {
        let mut draft = Draft::default();
        let mut rest = pairs;
        while let Some((key, value)) = rest.first() {
            let run = ascending(rest);
            let mut done = match run {
                0 | 1 => {
                    self.set(Which::Main, key, value)?;
                    1
                }
                _ => 0,
            };
            while done < run {
                match self.set_chunk(&rest[done..run], &mut draft)? {
                    Progress::Done(count) => done += count,
                    _ => {
                        self.set(Which::Main, rest[done].0, rest[done].1)?;
                        done += 1;
                    }
                }
            }
            rest = &rest[done..];
        }
        Ok(())
    }

    /// Sets the first pairs of a run.
    fn set_chunk<'a>(&self, pairs: &tree::Pairs<'a>, draft: &mut Draft<'a>) -> Result<Progress> {
        self.make_room(RUN_ROOM)?;
        draft.room = self.seat.room().min(RECORD_INLINE_MAX);
        let _operation = self.operation();
        let mut patience = Patience::new();
        loop {
            let stop = match tree::write_run(&self.seat, &self.fingers, pairs, draft) {
                Ok(Progress::Part) => {
                    let (before, key) = &draft.cut;
                    let before = (!before.is_empty()).then_some(&before[..]);
                    match tree::split(&self.seat, Which::Main, key, 0, before) {
                        Ok(_) => continue,
                        Err(stop) => stop,
                    }
                }
                Ok(progress) => {
                    if let Progress::Done(count) = progress {
                        self.seat.count_many(Counter::Writes, count);
                        if self.seat.is_filling() {
                            self.seat.image.want_log();
                        }
                    }
                    return Ok(progress);
                }
                Err(stop) => stop,
            };
            // NB: the key to cut at lies in the leaf of the first pair.
            self.overcome(stop, Which::Main, pairs[0].0, &mut patience)?;
        }
    }

    /// Does what a writing attempt on `key` asked for before it can be repeated.
    ///
    /// # Errors
    /// What makes it hopeless.
    #[cold]
    pub(crate) fn overcome(
        &self,
        stop: Stop,
        which: Which,
        key: &[u8],
        patience: &mut Patience,
    ) -> Result<()> {
        let stop = match stop {
            Stop::Copy => self.copy_path(key).err(),
            Stop::Split => tree::split(&self.seat, which, key, 0, None).err(),
            stop => Some(stop),
        };
        match stop {
            None => Ok(()),
            Some(Stop::Copy) => match self.copy_path(key) {
                Err(Stop::Fail(error)) => Err(error),
                Err(_) => patience.wait_again(&self.seat),
                Ok(()) => Ok(()),
            },
            Some(Stop::Fail(error)) => Err(error),
            Some(Stop::Busy(page)) => patience.wait_for_page(&self.seat, page),
            Some(Stop::Lease) => self.wait_for_lease(patience),
            // In a busy database damage shows to a reader, who can keep all others out for a moment.
            Some(_) if patience.is_fruitless() => {
                self.has_value(which, key, &mut ())?;
                patience.wait_again(&self.seat)
            }
            Some(_) => patience.wait_again(&self.seat),
        }
    }

    /// Waits until nobody else has exclusive mode, or the limit is reached.
    fn wait_for_lease(&self, patience: &mut Patience) -> Result<()> {
        let (image, limit) = (&self.seat.image, self.seat.limit());
        let end = patience.end(&limit);
        wait_lease(&self.seat, end.unwrap_or_else(|| Instant::now() + LEASE_WAIT))?;
        let lease = image.control(control::LEASE).load(Acquire);
        if lease == 0 || end.is_none_or(|end| Instant::now() < end) {
            return Ok(());
        }
        Err(limit.error(image, Whom::Session(lease_session(lease)), patience.since()))
    }

    /// Copies what of the path to `key` belongs to an earlier generation.
    pub(crate) fn copy_path(&self, key: &[u8]) -> Attempt<()> {
        while tree::copy_one(&self.seat, key, 0)? {}
        Ok(())
    }

    /// Merges the sparse leaf at `key` with a neighbour, and so on upwards; gives up when in doubt.
    /// Answers whether any pages were merged.
    #[cold]
    pub(crate) fn tidy(&self, which: Which, key: &[u8]) -> bool {
        // NB: what is kept for removals is too little to be spent on this.
        let frees = self.seat.frees.replace(false);
        let mut merged = false;
        for level in 0..HEIGHT_MAX as u8 {
            match tree::merge(&self.seat, which, key, level) {
                Ok(Merge::Done) => merged = true,
                Ok(Merge::OnlyChild) => {}
                _ => break,
            }
        }
        while matches!(tree::lower_root(&self.seat, which), Ok(true)) {}
        self.seat.frees.set(frees);
        merged
    }
}

/// How many of the first pairs ascend strictly and have values that lie inline.
fn ascending(pairs: &tree::Pairs<'_>) -> usize {
    let short = pairs.iter().take_while(|(_, value)| value.len() <= INLINE_MAX).count();
    let fall = pairs[..short].windows(2).position(|two| two[0].0 >= two[1].0);
    fall.map_or(short, |at| at + 1)
}

/// Checks a user's key.
///
/// # Errors
/// `KeyTooLong`; `Invalid` for an empty key or one that begins with 0xFF.
#[inline]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > crate::limits::USER_KEY_MAX {
        return Err(Error::KeyTooLong { bytes: key.len(), limit: crate::limits::USER_KEY_MAX });
    }
    match key.first() {
        None => Err(Error::Invalid("a key has at least one byte".into())),
        Some(0xff) => Err(Error::Invalid("a key may not begin with byte 255".into())),
        Some(_) => Ok(()),
    }
}
