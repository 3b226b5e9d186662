//! One thread's access to the trees: attempts repeated until they succeed, waiting for the living and
//! repairing the dead in between.
//!
//! Invariants
//! - No latch is held while waiting, and none is left when a function here returns or panics.
//! - Each operation is atomic: its effect is that of one published record.
//!
//! Deliberately absent: transactions; which process or thread this is.

use std::time::{Duration, Instant};

use perilune_store::{Change, Error, Presence, Result};

use crate::control::{holds_lease, take_lease, wait_lease};
use crate::error::{Attempt, Stop};
use crate::limits::{HEIGHT_MAX, INLINE_MAX};
use crate::repair::{self, Patience};
use crate::session::{Counter, Seat};
use crate::tree::{self, Action, Fingers, Merge, Neighbour, Outcome, Seen, Visit, Which};

/// Single operations wait this long for somebody's exclusive mode before they look again.
const LEASE_WAIT: Duration = Duration::from_secs(60);

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
        loop {
            match stop {
                Stop::Fail(error) => return Err(error),
                Stop::Busy(page) => patience.wait_for_page(&self.seat.image, page)?,
                _ => patience.wait(&self.seat.image, || 0)?,
            }
            let starved = patience.rounds().is_multiple_of(STARVED)
                && !self.seat.image.read_only
                && !holds_lease(&self.seat);
            let _lease = if starved { take_lease(&self.seat, 0, Instant::now() + LEASE_WAIT)? } else { None };
            match attempt() {
                Ok(result) => return Ok(result),
                Err(again) => stop = again,
            }
        }
    }

    /// Copies the value at `key` into `out`; false when there is none.
    ///
    /// # Errors
    /// I/O and damage only.
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

    /// Whether there is a value at `key`.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn has_value(&self, which: Which, key: &[u8], visit: &mut impl Visit) -> Result<bool> {
        self.read(|| tree::has_value(&self.seat.image, &self.fingers, which, key, 0, visit))
    }

    /// Copies the neighbour of `from` out; false when there is none.
    ///
    /// # Errors
    /// I/O and damage only.
    #[inline]
    pub(crate) fn neighbour(
        &self,
        which: Which,
        from: &[u8],
        side: Neighbour,
        key: &mut Vec<u8>,
        mut value: Option<&mut Vec<u8>>,
        visit: &mut impl Visit,
    ) -> Result<bool> {
        self.read(|| {
            let value = value.as_deref_mut();
            tree::neighbour(&self.seat.image, &self.fingers, which, from, side, 0, key, value, visit)
        })
    }

    /// What lies at `key`, as of one moment. `scratch` is overwritten.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn presence(&self, which: Which, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        let image = &self.seat.image;
        let mut visited: Vec<Seen> = Vec::new();
        self.read(|| {
            visited.clear();
            let mut seek = |side, scratch: &mut Vec<u8>| {
                tree::neighbour(image, &self.fingers, which, key, side, 0, scratch, None, &mut visited)
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
    /// `NoSpace` (first-touch copies need pages), `WritesStopped`.
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
        let _operation = self.operation();
        self.write_inside(which, key, &mut action)
    }

    /// The same inside an operation.
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
                _ => Ok(()),
            },
            Some(Stop::Fail(error)) => Err(error),
            Some(Stop::Busy(page)) => patience.wait_for_page(&self.seat.image, page),
            Some(Stop::Lease) => wait_lease(&self.seat, Instant::now() + LEASE_WAIT),
            Some(_) => patience.wait(&self.seat.image, || 0),
        }
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
        let mut merged = false;
        for level in 0..HEIGHT_MAX as u8 {
            match tree::merge(&self.seat, which, key, level) {
                Ok(Merge::Done) => merged = true,
                Ok(Merge::OnlyChild) => {}
                _ => break,
            }
        }
        while matches!(tree::lower_root(&self.seat, which), Ok(true)) {}
        merged
    }
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
