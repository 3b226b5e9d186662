//! Whether the commands of a server gather the names of what they change, for clients that are to be told of all keys.

use std::sync::atomic::{fence, AtomicU64, Ordering};

/// Whether a server's commands gather what they change: an odd number, another one each time that it is turned.
#[derive(Debug, Default)]
pub(crate) struct Switch(AtomicU64);

impl Switch {
    /// A loop has turned it on itself when it was asked; others ask again by [`Switch::was_turned_on`].
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Somebody is to be told from now on.
    pub(crate) fn turn_on(&self) {
        let next = |state: u64| Some(if is_on(state) { state + 2 } else { state + 1 });
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        // Pairs with the fence of `was_turned_on`.
        fence(Ordering::SeqCst);
    }

    /// A transaction that began in this state has found nobody. If somebody was announced since then, it stays on.
    pub(crate) fn turn_off(&self, state: u64) {
        let _ = self.0.compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether it was off in this state, and has been turned since: for those who do not hear between two commands, and
    /// have committed something.
    pub(crate) fn was_turned_on(&self, state: u64) -> bool {
        // Either this sees the switch turned, or who is answered behind that sees what was committed.
        fence(Ordering::SeqCst);
        !is_on(state) && self.state() != state
    }
}

/// Whether this is the state of a switch that is on.
#[inline]
pub(crate) fn is_on(state: u64) -> bool {
    state & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_not_turned_off_by_who_has_not_seen_it_turned() {
        let switch = Switch::default();
        let off = switch.state();
        assert!(!is_on(off) && !switch.was_turned_on(off));
        switch.turn_on();
        let first = switch.state();
        assert!(is_on(first) && switch.was_turned_on(off) && !switch.was_turned_on(first));
        switch.turn_on();
        switch.turn_off(first);
        assert!(is_on(switch.state()), "somebody else was announced");
        switch.turn_off(switch.state());
        assert!(!is_on(switch.state()) && switch.was_turned_on(off), "it was on meanwhile");
    }
}
