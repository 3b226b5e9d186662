//! Who is not served any longer: clients that leave too much unread, and those that are idle.
//!
//! Invariant: who is beyond a soft limit stands in the loop's list `slow`, and is looked at in each round.

use std::time::{Duration, Instant};

use super::{EventLoop, Service};
use crate::connection::Connection;
use crate::protocol::{Client, Waits};
use crate::seat::Seat;

impl<S: Service> EventLoop<S> {
    /// Gives bytes to a client, or cuts it off if it lets too many wait.
    pub fn push(&mut self, seat: Seat, bytes: &[u8]) {
        let Some(connection) = self.at(seat) else { return };
        connection.push(bytes);
        if self.is_within(seat.token) {
            self.give(seat.token);
        }
    }

    /// Whether a connection leaves no more unread than it may: else it is cut off.
    pub fn is_within(&mut self, token: usize) -> bool {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return false };
        let was_slow = connection.is_slow();
        if connection.is_within(self.service.unread(&connection.client)) {
            if connection.is_slow() && !was_slow {
                self.slow.push(token);
            }
            return true;
        }
        self.cut_off(token);
        false
    }

    /// Ends a connection that takes too much memory: what waits for it is not sent.
    pub fn cut_off(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        self.service.cuts_off(&connection.client, connection.holds());
        connection.discard();
        self.end(token);
    }

    /// Cuts off who has been beyond a soft limit for too long.
    pub(super) fn end_slow(&mut self) {
        let slow = std::mem::take(&mut self.slow);
        for token in slow {
            let is_slow = |connection: &Connection<S>| connection.is_slow();
            let still = self.connections.get(token).and_then(Option::as_ref).is_some_and(is_slow);
            if still && self.is_within(token) {
                self.slow.push(token);
            }
        }
    }

    /// Ends connections that have been idle for too long; who waits is not.
    pub(super) fn end_idle(&mut self) {
        if !self.slow.is_empty() {
            self.end_slow();
        }
        let most = self.service.idle_seconds();
        if most == 0 || self.second.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.second = Instant::now();
        self.seconds += 1;
        let mut idle = Vec::new();
        for (token, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            let waits = connection.client.waits() != Waits::No || S::may_idle(&connection.client);
            if !waits && self.seconds - connection.served > most {
                idle.push(token);
            }
        }
        self.end_all(idle);
    }
}
