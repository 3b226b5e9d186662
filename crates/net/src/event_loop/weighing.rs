//! Clients that take too much together. Each loop counts its own, and cuts off those of its own that
//! are of the largest class of all; one that has none of these wakes the others.
//!
//! Invariants
//! - A loop that has cut off nobody wakes others only when it has counted something new: so that they do not keep each
//!   other awake when nobody may go.
//! - Without a limit a visit pays one load.

use super::{EventLoop, Service};
use crate::connection::Connection;
use crate::weights::Weight;

impl<S: Service> EventLoop<S> {
    /// Counts anew what a connection takes.
    #[inline]
    pub(super) fn weigh(&mut self, token: usize) {
        if self.service.clients_bytes() > 0 {
            self.weigh_one(token);
            self.relieve(true);
        }
    }

    fn weigh_one(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let (bytes, may_go) = S::weigh(connection);
        let weight = Weight::new(bytes, may_go);
        if connection.weight != Some(weight) {
            self.service.crew().weights().change(connection.weight, Some(weight));
            connection.weight = Some(weight);
        }
    }

    /// Follows a change of the limit, and of what clients of other loops take.
    pub(super) fn balance(&mut self) {
        let is_limited = self.service.clients_bytes() > 0;
        if is_limited != self.weighs {
            self.weighs = is_limited;
            for token in 0..self.connections.len() {
                if is_limited {
                    self.weigh_one(token);
                } else if let Some(Some(connection)) = self.connections.get_mut(token) {
                    self.service.crew().weights().change(connection.weight.take(), None);
                }
            }
        }
        if is_limited {
            self.relieve(false);
        }
    }

    /// Cuts off the largest until all take no more than they may.
    fn relieve(&mut self, mut wakes: bool) {
        loop {
            let crew = self.service.crew();
            if crew.weights().total() < self.service.clients_bytes().max(1) {
                return;
            }
            let Some(class) = crew.weights().largest() else { return };
            let is_large =
                |connection: &Connection<S>| connection.weight.is_some_and(|weight| weight.is_of(class));
            let own = |connection: &Option<Connection<S>>| connection.as_ref().is_some_and(is_large);
            let Some(token) = self.connections.iter().position(own) else {
                if wakes {
                    let others =
                        crew.mailboxes().iter().enumerate().filter(|(other, _)| *other != self.thread);
                    others.for_each(|(_, mailbox)| mailbox.wake());
                }
                return;
            };
            self.service.counts_eviction();
            self.cut_off(token);
            wakes = true;
        }
    }
}
