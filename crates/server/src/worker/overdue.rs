//! What happens when time has passed: commands give up waiting, idle connections end.

use std::time::{Duration, Instant};

use super::Worker;
use crate::settings::Name;

impl Worker {
    /// Ends connections that have been idle for longer than `timeout`; who waits for a reply or for messages is not.
    pub(super) fn end_idle(&mut self) {
        if !self.slow.is_empty() {
            self.end_slow();
        }
        let most = self.loop_state.server.live.number(Name::Timeout);
        if most <= 0 || self.second.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.second = Instant::now();
        self.seconds += 1;
        let mut idle = Vec::new();
        for (token, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            let waits = connection.client.parked.is_some() || connection.client.topics.is_some();
            if !waits && self.seconds - connection.served > most as u64 {
                idle.push(token);
            }
        }
        self.end_all(idle);
    }

    pub(super) fn ring_timers(&mut self) {
        while let Some((token, ticket)) = self.loop_state.timers.take_due() {
            self.time_out(token, ticket);
        }
    }

    /// A command has waited long enough.
    pub(super) fn time_out(&mut self, token: usize, ticket: u64) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let Some(parked) = connection.client.parked.as_mut().filter(|parked| parked.ticket == ticket) else {
            return;
        };
        if let Some(number) = parked.asked {
            self.loop_state.server.inquiries.give_up(number);
            return;
        }
        if parked.paused {
            if let Some(parked) = connection.client.parked.take() {
                self.loop_state.leave(&parked);
            }
            self.serve(token);
            return;
        }
        if !self.loop_state.cancel(parked.queued.as_ref()) {
            return;
        }
        let reply = std::mem::take(&mut parked.too_late);
        if let Some(parked) = connection.answer(ticket, reply) {
            self.loop_state.leave(&parked);
        }
        self.serve(token);
    }
}
