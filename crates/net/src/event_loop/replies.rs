//! When replies leave: together, and where they tell of writes, once those are durable.
//!
//! Invariants
//! - Up to [`SAID`] connections wait for each other, for about a millisecond.
//! - What waits for the disk waits once a round, all of it together.

use std::mem::take;

use super::{EventLoop, Service};
use crate::limits::SAID;

impl<S: Service> EventLoop<S> {
    /// Lets those replies go that need not wait for the disk.
    pub fn speak(&mut self) {
        let mut said = take(&mut self.said);
        for token in said.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let outcome = connection.speak();
            connection.settle(&mut self.lent);
            self.follow(token, outcome);
        }
        self.said = said;
    }

    /// Notes a connection that has something to say.
    #[inline]
    pub(super) fn let_speak(&mut self, token: usize) {
        let now = self.service.tick();
        if self.said.is_empty() {
            self.said_at = now;
        }
        self.said.push(token);
        if self.said.len() >= SAID || self.said_at != now {
            self.speak();
        }
    }

    /// Makes durable what the requests of this round have written, with one wait for all of them, and lets their
    /// replies go.
    pub fn settle(&mut self) {
        if !self.service.is_unsettled() && self.held.is_empty() {
            return;
        }
        let failure = self.service.settle();
        for token in take(&mut self.held) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let outcome = connection.release(failure.as_deref());
            connection.settle(&mut self.lent);
            self.follow(token, outcome);
        }
    }

    /// Whether what a connection has to say waits for the disk.
    pub fn is_held(&self, token: usize) -> bool {
        self.held.contains(&token)
    }

    /// Sends what a connection has to say, before something that takes long.
    pub fn flush(&mut self, token: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(token) {
            connection.flush();
        }
    }
}
