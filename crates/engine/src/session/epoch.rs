//! The epoch of an operation: the control words on which it depends, read together once its latches are held.
//!
//! They are the flush number and the generation that the operation will belong to, the lease, and the flags that
//! may forbid it to write. They may change at any time, so they count only if the publication succeeds: whoever
//! changes one stores it and then freezes the heads of all sessions (`control`). A writer whose publication fails
//! reads the epoch again and checks everything that depends on it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use perilune_store::Durability;

use super::Seat;
use crate::error::{Attempt, Stop};
use crate::image::layout::{control, FLAG_FAILED, FLAG_FULL, FLAG_IDLE, FLAG_LEVEL, FLAG_SPENT};
use crate::image::{wakeup, Image};

/// Number of the flush and generation an operation belongs to, and what may keep it from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) flush: u64,
    pub(crate) generation: u32,
    lease: u64,
    flags: u64,
}

impl Epoch {
    /// Reads the control line: flush first, then the generation, then the rest.
    #[inline(always)]
    pub(crate) fn read(image: &Image) -> Epoch {
        let flush = image.control(control::FLUSH).load(Acquire);
        let generation = image.control(control::GEN).load(Acquire) as u32;
        let lease = image.control(control::LEASE).load(Acquire);
        let flags = image.control(control::FLAGS).load(Relaxed) | image.lost_flag();
        Epoch { flush, generation, lease, flags }
    }

    /// Whether the session of `seat` may write now.
    ///
    /// # Errors
    /// Somebody else's lease, or writing has stopped.
    #[inline(always)]
    pub(crate) fn admits(&self, seat: &Seat) -> Attempt<()> {
        if self.lease | self.flags & (FLAG_FAILED | FLAG_FULL | FLAG_IDLE) == 0 {
            return Ok(());
        }
        self.admits_slowly(seat)
    }

    /// Whether session `id` may write to the volatile tree now, which no disk can keep it from.
    ///
    /// # Errors
    /// Somebody else's lease.
    #[inline(always)]
    pub(crate) fn admits_volatile(&self, id: u16) -> Attempt<()> {
        if self.lease != 0 && lease_session(self.lease) != id {
            return Err(Stop::Lease);
        }
        Ok(())
    }

    #[cold]
    fn admits_slowly(&self, seat: &Seat) -> Attempt<()> {
        let Seat { image, id, .. } = seat;
        if self.flags & FLAG_FAILED != 0 {
            return Err(Stop::Fail(image.stopped()));
        }
        if self.flags & FLAG_FULL != 0 && (self.flags & FLAG_SPENT != 0 || !seat.frees.get()) {
            return Err(Stop::Fail(image.stalled()));
        }
        if self.lease != 0 && lease_session(self.lease) != *id {
            return Err(Stop::Lease);
        }
        if self.flags & FLAG_IDLE != 0 {
            wakeup::ring(image);
        }
        Ok(())
    }
}

/// The durability level in a word of flags.
#[inline(always)]
pub(crate) fn level_of(flags: u64) -> Durability {
    match (flags & FLAG_LEVEL) >> 8 {
        0 => Durability::None,
        1 => Durability::Periodic,
        _ => Durability::Fsync,
    }
}

/// The session in a lease word.
pub(crate) fn lease_session(lease: u64) -> u16 {
    (lease >> 51) as u16
}
