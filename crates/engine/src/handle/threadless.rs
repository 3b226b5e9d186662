//! Handles without threads, for test instruments that single-step: nothing happens but what the caller does.
//!
//! Deliberately absent: anything that a library would need.

use std::path::Path;

use perilune_store::Result;

use super::facilities::Facilities;
use super::{Database, Session};
use crate::limits::{RECORD_INLINE_MAX, RING};
use crate::log;
use crate::open::{Attachment, OpenOptions};

impl Database {
    /// As [`Database::open`], but nobody flushes, takes checkpoints, or looks after the dead.
    ///
    /// # Errors
    /// As [`Database::open`].
    #[doc(hidden)]
    pub fn open_threadless(path: &Path, options: &OpenOptions) -> Result<Database> {
        let attachment = Attachment::open(path, options)?;
        Ok(Database { facilities: Facilities::threadless(&attachment)?, attachment })
    }

    /// Makes durable what was committed before the call, as the thread that flushes would.
    ///
    /// # Errors
    /// `NotDurable`.
    #[doc(hidden)]
    pub fn flush(&self) -> Result<()> {
        log::sync(self.attachment.image()?)
    }

    /// Bytes left in the segment in which the log goes on; None before the first batch.
    ///
    /// # Errors
    /// In a forked child, as [`Database::open`].
    #[doc(hidden)]
    pub fn log_room(&self) -> Result<Option<u64>> {
        Ok(log::room(self.attachment.image()?))
    }
}

impl Session {
    /// Bytes left in the session's ring beyond what a transaction may need, and those until it wraps.
    #[doc(hidden)]
    #[must_use]
    pub fn ring_room(&self) -> (usize, usize) {
        let seat = &self.access.seat;
        let left = RING - (seat.head() - seat.tail()) as usize;
        (left.saturating_sub(RECORD_INLINE_MAX), RING - seat.head() as usize % RING)
    }
}
