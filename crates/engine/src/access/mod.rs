//! One thread's operations on the trees: attempts repeated until they succeed.
//!
//! An attempt (`tree`) never waits. It ends early when it meets a page that somebody holds, a page that must be
//! copied or split first, or exclusive mode of somebody else. Here that is dealt with: the thread waits for a
//! holder who lives, repairs one who is dead, copies or splits, and tries again. A reader that writers overtake
//! again and again asks for exclusive mode for one try.
//!
//! Example: a set finds no room in its leaf and gets `Stop::Split`. The leaf is split, and the next attempt
//! succeeds.
//!
//! Invariants
//! - No latch is held while waiting, and none is left when a function here returns or panics.
//! - Each operation is atomic: its effect is that of one published record.
//!
//! Deliberately absent: transactions (`txn`); databases and sessions as users hold them (`handle`).

mod reads;
mod writes;

use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Error, Result};

use crate::control::{holds_lease, take_lease, wait_lease, Lease};
use crate::error::{Attempt, Stop};
use crate::image::layout::control;
use crate::limits::{ATTEMPT_LEAST, HEIGHT_MAX, LEASE_WAIT};
use crate::repair::{self, Patience};
use crate::session::{lease_session, Limit, Seat, Whom};
use crate::tree::{self, Beside, Copied, Fingers, Merge, Reader, Which};

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
    ///
    /// # Errors
    /// The attempt's; `Conflict` in a transaction that is never to be in exclusive mode, and would have to be.
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
            if starved && !self.seat.limit().may_be_alone {
                return Err(Error::Conflict);
            }
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

    /// Who reads that tree with this session, without a latch.
    #[inline(always)]
    fn reader(&self, which: Which) -> Reader<'_> {
        Reader { image: &self.seat.image, fingers: &self.fingers, which, me: 0 }
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
            Stop::Split => tree::split(&self.seat, which, key, 0, Beside::Nothing).err(),
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
            // The tree may be damaged. A reader finds that out also in a busy database: it takes exclusive mode for a try.
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
        self.copy_path_telling(key, |_| ())
    }

    /// As [`Access::copy_path`]; each page that is copied is told of.
    pub(crate) fn copy_path_telling(&self, key: &[u8], mut tell: impl FnMut(Copied)) -> Attempt<()> {
        while let Some(copied) = tree::copy_one(&self.seat, key, 0)? {
            tell(copied);
        }
        Ok(())
    }

    /// Merges the sparse leaf at `key` with a neighbour, and so on upwards; gives up when in doubt.
    /// Answers whether any pages were merged.
    #[cold]
    pub(crate) fn tidy(&self, which: Which, key: &[u8]) -> bool {
        // NB: the room that a full disk keeps for removals is too little to be spent on merges.
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
