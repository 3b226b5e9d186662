//! CLIENT PAUSE: until when commands are held back, and how many clients are.
//!
//! Example: `CLIENT PAUSE 1000 WRITE` lets what only reads go on; a client that writes is parked until the second is over,
//! or somebody says CLIENT UNPAUSE.
//!
//! Invariant: the last one that was begun holds. While there is none, a command pays one load.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use perilune_net::clock::clock;

/// A pause under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    /// In milliseconds since 1970.
    pub(crate) until: i64,
    /// All commands, not just those that write.
    pub(crate) all: bool,
}

/// The pause of a server; asked before each command, so that without one it costs one load.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// 0: there is none.
    until: AtomicI64,
    all: AtomicBool,
    /// Clients that it holds back.
    clients: AtomicUsize,
}

impl Pause {
    /// Holds commands back for no less than so many milliseconds from now on; 0 ends that.
    pub(crate) fn begin(&self, time: u64, all: bool) {
        self.all.store(all, Ordering::Relaxed);
        // NB: one more, since part of the millisecond that the clock shows is over.
        let until = if time == 0 { 0 } else { clock().saturating_add_unsigned(time).saturating_add(1) };
        self.until.store(until, Ordering::Release);
    }

    /// Whether commands are held back.
    #[inline]
    pub(crate) fn state(&self) -> Option<Paused> {
        match self.until.load(Ordering::Acquire) {
            0 => None,
            until if until <= clock() => {
                let _ = self.until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Relaxed);
                None
            }
            until => Some(Paused { until, all: self.all.load(Ordering::Relaxed) }),
        }
    }

    /// One more client is held back.
    pub(crate) fn hold_client(&self) {
        self.clients.fetch_add(1, Ordering::Relaxed);
    }

    /// A client is held back no longer.
    pub(crate) fn let_client_go(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// Clients that are held back.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_by_itself_and_when_it_is_told_to() {
        let pause = Pause::default();
        assert_eq!(pause.state(), None);
        pause.begin(1_000_000, false);
        assert!(pause.state().is_some_and(|paused| paused.until > clock() && !paused.all));
        pause.begin(1_000_000, true);
        assert!(pause.state().is_some_and(|paused| paused.all));
        pause.begin(0, true);
        assert_eq!(pause.state(), None);
        pause.begin(1, true);
        while pause.state().is_some() {
            std::hint::spin_loop();
        }
        assert_eq!(pause.until.load(Ordering::Relaxed), 0);
    }
}
