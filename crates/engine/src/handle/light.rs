//! Transactions that begin as one-shot ones, and go on as whole ones where they are asked for more.
//!
//! Most transactions read and write a handful of keys, which a one-shot transaction does at a third of the price. Which kind
//! it takes nobody knows before the body has run. So the first try begins as a one-shot transaction; where that cannot do
//! what is asked, the whole one takes over what it has read and written, and the operation is done again by that: the body
//! notices nothing. Example: a body sets three keys, then takes a lock; from the lock on its transaction is a whole one.
//!
//! Invariants
//! - What the body reads is one state at each moment, as in a whole transaction.
//! - What was read before the take-over is known by the words of its leaves alone, so a write of others to such a leaf is a
//!   conflict; the next try is whole from the beginning.
//! - Where first tries are disturbed again and again, ever fewer transactions begin so.

use perilune_store::{Durability, Error, FirstTry, Result, TransactionOptions};

use super::Session;
use crate::session::Limit;

/// After so many disturbed first tries in a row one in sixty-four transactions is tried so.
const DISTURBED_MOST: u32 = 6;

/// Which transactions begin as one-shot ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shots {
    /// So many first tries were disturbed in a row, up to a limit.
    disturbed: u32,
    /// So many transactions are still to begin as whole ones.
    left_out: u32,
}

impl Shots {
    /// Whether the next transaction is to begin as a one-shot one.
    fn is_next(&mut self) -> bool {
        let is_next = self.left_out == 0;
        self.left_out -= u32::from(!is_next);
        is_next
    }

    /// Others were in the way.
    fn were_disturbed(&mut self) {
        self.disturbed = (self.disturbed + 1).min(DISTURBED_MOST);
        self.left_out = (1 << self.disturbed) - 1;
    }

    /// Nobody was.
    fn were_good(&mut self) {
        self.disturbed = 0;
    }
}

impl Session {
    /// Whether the transaction that begins, whose try this is, is to be a one-shot one at first.
    pub(super) fn begins_light(&mut self, options: &TransactionOptions, tries: u32) -> bool {
        options.first_try == FirstTry::OneShot
            && tries == 0
            && !options.exclusive
            && self.hook.is_none()
            && self.snapshot.is_none()
            && self.pending_max == usize::MAX
            && self.shots.is_next()
    }

    /// Whether the open transaction is still a one-shot one.
    #[inline]
    pub(super) fn is_light(&self) -> bool {
        self.running.is_some() && self.one_shot.is_open()
    }

    /// Makes the open transaction a whole one if it is still a one-shot one. An attempt fails.
    ///
    /// # Errors
    /// `Conflict`.
    #[cold]
    pub(super) fn take_over(&mut self) -> Result<()> {
        let Session { access, running, one_shot, shots, .. } = self;
        match running {
            Some(running) if one_shot.is_open() => {
                access.hand_over(one_shot, &mut running.txn).inspect_err(|_| shots.were_disturbed())
            }
            None if one_shot.is_open() => one_shot.fail(),
            _ => Ok(()),
        }
    }

    /// Runs an operation, once more as one of a whole transaction if the one-shot one that is open cannot do it.
    #[inline(always)]
    pub(super) fn going_on<R>(&mut self, mut operation: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
        match operation(self) {
            Err(Error::Conflict) => self.go_on(operation),
            answer => answer,
        }
    }

    #[cold]
    #[inline(never)]
    fn go_on<R>(&mut self, mut operation: impl FnMut(&mut Session) -> Result<R>) -> Result<R> {
        if !self.is_light() || self.one_shot.was_disturbed() {
            return Err(Error::Conflict);
        }
        self.take_over()?;
        operation(self)
    }

    /// Commits the open transaction as the one-shot one that it still is; false: it is a whole one now, and nothing was
    /// committed.
    ///
    /// # Errors
    /// `Conflict`; what writing can answer. The transaction is gone then.
    pub(super) fn commit_light(&mut self) -> Result<bool> {
        let is_beyond = self.hook.is_some() || !self.one_shot.is_reading() && self.one_shot.is_removing();
        if is_beyond {
            // What only removes may use what is kept for that; a hook sees an overlay.
            return self.take_over().map(|()| false).inspect_err(|_| self.end_try(true));
        }
        let has_written = !self.one_shot.is_reading();
        let in_time = self.running.as_ref().map_or(Ok(()), |running| running.series.in_time());
        let published = match in_time {
            Ok(()) if has_written => self.access.end_one_shot(&mut self.one_shot, true),
            // What was read is one state: that was looked at with each leaf.
            other => other.map(|()| true),
        };
        match published {
            Ok(true) => {}
            Ok(false) if self.one_shot.was_disturbed() => {
                self.end_try(true);
                return Err(Error::Conflict);
            }
            Ok(false) => return self.take_over().map(|()| false).inspect_err(|_| self.end_try(true)),
            Err(error) => {
                self.end_try(error.is_retry());
                return Err(error);
            }
        }
        self.one_shot.end();
        self.shots.were_good();
        self.access.seat.set_limit(Limit::of(self.wait_limit));
        let asked: Option<Durability> = self.running.as_ref().and_then(|running| running.options.durability);
        self.locks_taken.clear();
        self.spare = self.running.take();
        if has_written {
            self.acknowledge(asked)?;
        }
        Ok(true)
    }

    /// Ends the one-shot part of a try that ends.
    pub(super) fn end_shot(&mut self) {
        if self.one_shot.is_open() {
            self.one_shot.end();
            if self.one_shot.was_disturbed() {
                self.shots.were_disturbed();
            }
        }
    }
}
