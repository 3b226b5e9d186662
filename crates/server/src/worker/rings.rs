//! What a loop does when a watch of its own rings: for clients that wait for keys, and for those that keep what they read.

use perilune_resp::Arguments;

use super::{Desk, Worker};
use crate::client::Client;
use crate::tracking::notice;
use crate::waits;

impl Desk {
    /// Remembers what a client is about to read, if it wants to be told of changes.
    #[cold]
    pub(crate) fn remember(&mut self, client: &mut Client, arguments: Arguments<'_>) {
        if self.tracker.remember(&mut self.session, client, arguments).is_err() {
            // It could miss a change of what it keeps.
            client.closing = true;
        }
    }

    /// A client no longer wants to be told.
    #[cold]
    pub(crate) fn forget(&mut self, client: &mut Client) {
        client.kept.clear();
        self.tracker.forget(&mut self.session, client.seat);
    }
}

impl Worker {
    /// The watch with this token has rung.
    pub(super) fn ring(&mut self, token: usize) {
        let Desk { session, waits, tracker, .. } = &mut self.desk;
        if token < waits::FIRST {
            tracker.rung(session, token);
        } else if let Some((database, key)) = waits.rung(session, token) {
            // What fails is tried again at the next touch.
            let _ = self.desk.serve_key(database, &key);
        }
    }

    /// Tells clients of what they keep and is not so any more.
    pub(super) fn tell_changes(&mut self) {
        let Desk { session, tracker, .. } = &mut self.desk;
        let connections = &self.connections;
        let changed = tracker.changed(session, |seat| {
            let connection = connections.get(seat.token).and_then(Option::as_ref);
            connection.is_some_and(|each| each.client.id == seat.client && each.client.is_away())
        });
        for (key, seats) in changed {
            for seat in seats {
                let Some(connection) = self.at(seat) else { continue };
                let frame = notice(&key, connection.client.protocol);
                if connection.client.tracking.is_some() && !frame.is_empty() {
                    self.push(seat, &frame);
                }
            }
        }
        while let Some(token) = self.given.pop() {
            self.serve(token);
        }
    }
}
