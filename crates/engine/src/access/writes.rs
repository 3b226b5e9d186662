//! Writing single keys and runs of keys, each with one published record.

use perilune_store::{Change, Result};

use super::Access;
use crate::limits::{INLINE_MAX, RECORD_INLINE_MAX, RUN_ROOM, SINGLE_RECORD_MAX};
use crate::log;
use crate::repair::Patience;
use crate::session::Counter;
use crate::tree::{self, Action, Beside, Draft, Outcome, Progress, Which};

impl Access {
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
                    let beside =
                        if before.is_empty() { Beside::Nothing } else { Beside::Before(&before[..]) };
                    match tree::split(&self.seat, Which::Main, key, 0, beside) {
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
}

/// How many of the first pairs ascend strictly and have values that lie inline.
fn ascending(pairs: &tree::Pairs<'_>) -> usize {
    let short = pairs.iter().take_while(|(_, value)| value.len() <= INLINE_MAX).count();
    let fall = pairs[..short].windows(2).position(|two| two[0].0 >= two[1].0);
    fall.map_or(short, |at| at + 1)
}
