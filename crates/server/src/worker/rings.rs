//! What a loop does when a watch of its own rings: for clients that wait for keys, and for those that keep what they read.

use perilune_resp::{Arguments, Replies};

use super::{Desk, Worker};
use crate::client::Client;
use crate::commands::tracking::{redirected, NO_TARGET};
use crate::mailbox::{Letter, Seat};
use crate::tracking::notice::{self, published, pushed, Names, Notice, Place};
use crate::tracking::Tracking;
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

    /// A client wants to be told from now on, or no longer.
    #[cold]
    pub(crate) fn switch_tracking(&mut self, client: &mut Client) {
        if client.tracking.is_some() {
            self.tracker.enter(client.seat);
        } else {
            client.kept.clear();
            client.own.clear();
            self.tracker.forget(&mut self.session, client.seat);
        }
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
        self.desk.tracker.count(&self.desk.server.figures);
        for (names, seats) in changed {
            for seat in seats {
                self.tell(seat, &names);
            }
        }
        while let Some(token) = self.given.pop() {
            self.serve(token);
        }
    }

    /// Tells a client, or the one to which it redirects, of what it keeps and is not so any more.
    fn tell(&mut self, seat: Seat, names: &Names) {
        let Some(connection) = self.at(seat) else { return };
        let (protocol, tracking) = (connection.client.protocol, connection.client.tracking);
        let Some(tracking) = tracking else { return };
        let Some(target) = tracking.target else {
            let frame = pushed(names, protocol);
            if !frame.is_empty() {
                self.push(seat, &frame);
            }
            return;
        };
        let from = Place { server: self.desk.server.number, seat };
        let notice = Notice { to: target, from, is_broken: false, names: names.clone() };
        match self.send(notice) {
            Ok(true) => {}
            Ok(false) => self.lose_target(seat, target.seat.client),
            // The other one would not be told: with its end the client says that what it keeps may not be so.
            Err(_) => self.end(seat.token),
        }
    }

    /// Sends a notice to wherever its client is; false if its server is dead.
    fn send(&mut self, notice: Notice) -> perilune::Result<bool> {
        let Desk { server, session, thread, notices, .. } = &mut self.desk;
        if notice.to.server != server.number {
            *notices += 1;
            return notice::send(session, (server.number, *thread, *notices), &notice);
        }
        match server.mailboxes.get(notice.to.seat.thread) {
            Some(mailbox) if notice.to.seat.thread == *thread => {
                mailbox.keep(Letter::Notice(Box::new(notice)))
            }
            Some(mailbox) => mailbox.post(Letter::Notice(Box::new(notice))),
            None => {}
        }
        Ok(true)
    }

    /// Takes a notice for a client of this loop.
    pub(super) fn take_notice(&mut self, notice: Notice) {
        let seat = notice.to.seat;
        match self.at(seat) {
            Some(_) if notice.is_broken => self.lose_target(seat, notice.from.seat.client),
            Some(connection) => {
                let client = &connection.client;
                let frame = published(&notice.names, client.protocol, client.topics.is_some());
                if !frame.is_empty() {
                    self.push(seat, &frame);
                }
            }
            // What cannot be sent back now is found out with the next notice, unless that fails as well: then the
            // database takes no writes, so that nothing changes.
            None if !notice.is_broken => drop(self.send(notice.returned())),
            None => {}
        }
    }

    /// The client to which another one redirects has gone.
    fn lose_target(&mut self, seat: Seat, target: i64) {
        let Some(connection) = self.at(seat) else { return };
        // It may have chosen another one meanwhile.
        if connection.client.tracking.is_some_and(|tracking| redirected(Some(&tracking)) != target) {
            return;
        }
        connection.client.broken_redirect = target;
        let frame = notice::broken(target, connection.client.protocol);
        if !frame.is_empty() {
            self.push(seat, &frame);
        }
    }

    /// A client may track from now on, if the one to which it redirects is anywhere.
    pub(super) fn take_target(&mut self, seat: Seat, ticket: u64, place: Option<Place>) {
        let Some(connection) = self.at(seat) else { return };
        let Some(parked) = connection.client.parked.as_mut().filter(|parked| parked.ticket == ticket) else {
            return;
        };
        let mut reply = Vec::new();
        let mut replies = Replies::new(&mut reply, connection.client.protocol);
        match (parked.tracking.take(), place) {
            (Some(tracking), Some(_)) => {
                connection.client.tracking = Some(Tracking { target: place, ..tracking });
                connection.client.broken_redirect = 0;
                self.desk.tracker.enter(seat);
                replies.simple("OK");
            }
            _ => replies.error(NO_TARGET),
        }
        if let Some(parked) = self.at(seat).and_then(|connection| connection.answer(ticket, reply)) {
            self.desk.leave(&parked);
            self.given.push(seat.token);
        }
    }
}
