//! A barrier for threads of a test that fails instead of waiting for ever: if one thread has failed, the others say
//! so.

use std::sync::{Condvar, Mutex};

use super::PATIENCE;

/// A barrier whose wait fails after a time, so that one thread's failure ends the test.
pub(super) struct Rendezvous {
    parties: usize,
    /// How many have come in all.
    arrived: Mutex<usize>,
    complete: Condvar,
}

impl Rendezvous {
    pub(super) fn new(parties: usize) -> Self {
        Rendezvous { parties, arrived: Mutex::new(0), complete: Condvar::new() }
    }

    /// Waits until all parties have come here as often as this one.
    pub(super) fn wait(&self) {
        const WHOLE: &str = "no thread panics while it counts";
        let mut arrived = self.arrived.lock().expect(WHOLE);
        *arrived += 1;
        let full = arrived.next_multiple_of(self.parties);
        self.complete.notify_all();
        let (arrived, _) =
            self.complete.wait_timeout_while(arrived, PATIENCE, |arrived| *arrived < full).expect(WHOLE);
        let here = *arrived;
        // NB: a panic must not poison the count that the others still look at.
        drop(arrived);
        assert!(
            here >= full,
            "another thread of this test has not come here within {PATIENCE:?}: see its failure"
        );
    }
}
