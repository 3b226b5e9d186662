//! What a loop does when a watch of its own rings: for clients that wait for keys, and for those that keep what they read.

use perilune_resp::Replies;

use super::Worker;
use crate::commands::tracking::{NO_TARGET, UNHEARD};
use crate::connection::Connection;
use crate::invalidation::{self, published, pushed, redirected, Names, Notice, Place, Tracking};
use crate::loop_state::LoopState;
use crate::mailbox::Letter;
use crate::tracking::{notice, Told};
use crate::waits;
use perilune_net::seat::Seat;

/// Whether a command of a client runs elsewhere: then it is not to be told anything.
fn is_away(connections: &[Option<Connection>], seat: Seat) -> bool {
    let connection = connections.get(seat.token).and_then(Option::as_ref);
    connection.is_some_and(|each| each.client.id == seat.client && each.client.is_away())
}

impl Worker {
    /// The watch with this token has rung.
    pub(super) fn ring(&mut self, token: usize) {
        let LoopState { session, waits, tracker, .. } = &mut self.loop_state;
        if token < waits::FIRST {
            tracker.rung(session, token);
        } else if let Some((database, key)) = waits.rung(session, token) {
            // What fails is tried again at the next touch.
            let _ = self.loop_state.serve_key(database, &key);
        }
    }

    /// Tells clients of what they keep and is not so any more.
    pub(super) fn tell_changes(&mut self) {
        let LoopState { session, tracker, .. } = &mut self.loop_state;
        let connections = &self.connections;
        let changed = tracker.changed(session, |seat| is_away(connections, seat));
        self.loop_state.tracker.count(&self.loop_state.server.figures);
        self.loop_state.audience.count(&self.loop_state.server.figures.tracked_prefixes);
        self.tell_all(changed);
        self.tell_broadcasts();
    }

    /// Tells those who want to be told of all keys what has changed in this round.
    pub(super) fn tell_broadcasts(&mut self) {
        let connections = &self.connections;
        let told = self.loop_state.audience.tell(|seat| is_away(connections, seat));
        self.tell_all(told);
    }

    fn tell_all(&mut self, told: Told) {
        for (names, seats) in told {
            for seat in seats {
                self.tell(seat, &names);
            }
        }
        self.serve_given();
    }

    /// Tells a client, or the one to which it redirects, of what it keeps and is not so any more.
    fn tell(&mut self, seat: Seat, names: &Names) {
        let Some(connection) = self.at(seat) else { return };
        let protocol = connection.client.protocol;
        let Some(target) = connection.client.tracking.as_ref().map(|tracking| tracking.target) else {
            return;
        };
        let Some(target) = target else {
            let frame = pushed(names, protocol);
            if !frame.is_empty() {
                self.push(seat, &frame);
            }
            return;
        };
        let from = Place { server: self.loop_state.server.number, seat };
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
        let LoopState { server, session, thread, notices, .. } = &mut self.loop_state;
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
        if connection.client.tracking.as_ref().is_some_and(|now| redirected(Some(now)) != target) {
            return;
        }
        connection.client.broken_redirect = target;
        let frame = invalidation::broken(target, connection.client.protocol);
        if !frame.is_empty() {
            self.push(seat, &frame);
        }
    }

    /// A client may track from now on, if the one to which it redirects is anywhere.
    pub(super) fn take_target(
        &mut self,
        seat: Seat,
        ticket: u64,
        (place, is_complete): (Option<Place>, bool),
    ) {
        let Some(connection) = self.at(seat) else { return };
        let Some(parked) = connection.client.parked.as_mut().filter(|parked| parked.ticket == ticket) else {
            return;
        };
        let (tracking, is_found) = (parked.tracking.take(), place.is_some() || !parked.redirects);
        let broadcasts = tracking.as_ref().and_then(|tracking| tracking.prefixes.clone());
        let mut reply = Vec::new();
        let mut replies = Replies::new(&mut reply, connection.client.protocol);
        match tracking {
            Some(tracking) if is_found && (is_complete || broadcasts.is_none()) => {
                let no_loop = tracking.no_loop;
                connection.client.tracking = Some(Tracking { target: place, ..tracking });
                connection.client.broken_redirect = 0;
                self.loop_state.tracker.enter(seat);
                if let Some(prefixes) = &broadcasts {
                    self.loop_state.audience.enter(seat, prefixes, no_loop);
                }
                replies.simple("OK");
            }
            _ => {
                self.loop_state.audience.give_up(seat);
                self.loop_state.clear_audience();
                replies.error(if is_found { UNHEARD } else { NO_TARGET });
            }
        }
        if let Some(parked) = self.at(seat).and_then(|connection| connection.answer(ticket, reply)) {
            self.loop_state.leave(&parked);
            self.give(seat.token);
        }
    }
}
