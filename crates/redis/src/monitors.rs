//! The clients of this server that see all it runs.
//!
//! Invariant: while there is none, a command pays one load to know that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use perilune_net::seat::Seat;

/// Who they are; asked before each command, so that without any it costs one load.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    seats: Mutex<Vec<Seat>>,
}

impl Monitors {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn add(&self, seat: Seat) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.push(seat);
        self.count.store(seats.len(), Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, seat: Seat) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.retain(|other| *other != seat);
        self.count.store(seats.len(), Ordering::Relaxed);
    }

    pub(crate) fn all(&self) -> Vec<Seat> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
