//! What clients leave unread: `client-output-buffer-limit`.
//!
//! Invariant: who is beyond a soft limit stands in the worker's list `slow`, and is looked at in each round.

use super::Worker;
use crate::client_list::Holds;
use crate::connection::Connection;
use perilune_net::journal::Level;
use perilune_net::seat::Seat;

impl Worker {
    /// Gives bytes to a client, or cuts it off if it lets too many wait.
    pub(super) fn push(&mut self, seat: Seat, bytes: &[u8]) {
        let Some(connection) = self.at(seat) else { return };
        connection.push(bytes);
        if self.is_within(seat.token) {
            self.give(seat.token);
        }
    }

    /// Whether a connection leaves no more unread than client-output-buffer-limit allows: else it is cut off.
    pub(super) fn is_within(&mut self, token: usize) -> bool {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return false };
        let class = connection.client.output_class();
        let (server, was_slow) = (&self.loop_state.server, connection.is_slow());
        if connection.is_within(server.live.output_limit(class)) {
            if connection.is_slow() && !was_slow {
                self.slow.push(token);
            }
            return true;
        }
        self.cut_off(token);
        false
    }

    /// Ends a connection that takes too much memory: what waits for it is not sent.
    pub(super) fn cut_off(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let Holds { input, output, .. } = connection.holds();
        let (unread, unrun) = (output.to_string(), input.to_string());
        let details =
            [("addr", &*connection.client.address), ("unread_bytes", &*unread), ("unrun_bytes", &*unrun)];
        self.loop_state.server.note_some(Level::Warning, "client cut off", &details);
        connection.discard();
        self.end(token);
    }

    /// Cuts off who has been beyond a soft limit for too long.
    pub(super) fn end_slow(&mut self) {
        let slow = std::mem::take(&mut self.slow);
        for token in slow {
            let is_slow = |connection: &Connection| connection.is_slow();
            let still = self.connections.get(token).and_then(Option::as_ref).is_some_and(is_slow);
            if still && self.is_within(token) {
                self.slow.push(token);
            }
        }
    }
}
