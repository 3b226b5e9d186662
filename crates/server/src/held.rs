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

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use perilune::{Error, ErrorCode};
use perilune_resp::Arguments;

use crate::client::Client;
use crate::gate::Context;
use crate::limits::{HELD_LEAST, HELD_MOST, HELD_SHARE, LOOP_WAIT};
use crate::worker::Desk;

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
        self.client.held = since.elapsed() < self.server.wait_limit;
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

impl Desk {
    /// Runs a command, and waits but shortly for others; false: it is put off, and the connection parked.
    pub(crate) fn run(
        &mut self,
        client: &mut Client,
        arguments: Arguments<'_>,
        output: &mut Vec<u8>,
    ) -> bool {
        let start = output.len();
        self.session.set_wait_limit(LOOP_WAIT);
        self.context(client).execute(arguments, output);
        self.session.set_wait_limit(self.server.wait_limit);
        if !std::mem::take(&mut client.held) {
            return true;
        }
        output.truncate(start);
        let waited = client.held_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.pause(client, (waited / HELD_SHARE).clamp(HELD_LEAST, HELD_MOST));
        false
    }

    /// Parks a client, whose requests go on after so long, or with CLIENT UNPAUSE.
    pub(crate) fn pause(&mut self, client: &mut Client, time: Duration) {
        let parked = client.park();
        parked.until = Instant::now().checked_add(time);
        parked.paused = true;
        self.server.held_back.fetch_add(1, Ordering::Relaxed);
        if let Some(until) = parked.until {
            let ticket = parked.ticket;
            self.timers.set(until, client.seat.token, ticket);
        }
    }
}
