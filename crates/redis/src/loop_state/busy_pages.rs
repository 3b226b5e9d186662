//! A command that meets a page which another process holds (`busy_pages`) is put off, and its connection parked.

use std::time::{Duration, Instant};

use perilune::Serving;
use perilune_resp::Arguments;

use super::LoopState;
use crate::client::Client;
use crate::limits::{HELD_LEAST, HELD_MOST, HELD_SHARE, LOOP_WAIT};

impl LoopState {
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
        self.session.set_wait_limit(self.server.rules().wait_limit());
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
        self.server.commons().pause().hold_client();
        if let Some(until) = parked.until {
            let ticket = parked.ticket;
            self.timers.set(until, client.seat.token, ticket);
        }
    }
}
