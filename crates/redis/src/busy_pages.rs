//! Commands that meet a page which another process holds and does not give back: it may be stopped, in the midst of a change.
//!
//! A loop waits for it about a millisecond. Then the command, which has done nothing, is put off: its request stays where it
//! is, the connection is parked, others are served, and it runs again, until it gets through or the wait limit of the
//! database is over; then its client is told whom it waited for.
//!
//! Why it is not run aside (`aside`), as what takes long is: one that waits needs no thread, there may be any number, and what
//! only a loop can do, as waiting for keys or subscribing, meets such pages as well.
//!
//! Invariants
//! - Nothing of a command that is put off has happened: whatever waits for a page has published nothing, what it has noted and
//!   replied is taken back, and what EXEC took out of the client is put back.
//! - The connection's requests keep their order. EXEC, scripts in place and what runs aside are whole, or nothing.
//!
//! Deliberately absent: what a loop does by itself for clients that wait or track; it waits as other programs do.

use std::time::Instant;

use perilune::{Error, ErrorCode};

use crate::context::Context;

/// Whether nothing but the wait for somebody has failed.
pub(crate) fn is_held(error: &Error) -> bool {
    error.code() == ErrorCode::Busy
}

impl Context<'_> {
    /// Whether the command, which has failed with `error`, runs again later: it has met a page that another holds, in a loop,
    /// and there is time left.
    pub(crate) fn puts_off(&mut self, error: &Error) -> bool {
        if !self.may_park || !is_held(error) {
            return false;
        }
        let since = *self.client.held_since.get_or_insert_with(Instant::now);
        self.client.held = since.elapsed() < self.server.rules().wait_limit();
        self.client.held
    }

    /// What its client is told when there is no time left; none of other errors.
    #[cold]
    pub(crate) fn held_for_long(&self, error: &Error) -> Option<String> {
        let waited = self.client.held_since.filter(|_| is_held(error))?.elapsed().as_secs_f64();
        Some(match error.holder() {
            Some(holder) => format!("BUSY gave up after {waited:.3} s of waiting for {holder}"),
            None => format!("BUSY gave up after {waited:.3} s in which others were faster again and again"),
        })
    }
}
