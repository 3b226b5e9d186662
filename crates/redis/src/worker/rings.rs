//! What a loop does when a watch of its own rings: for clients that wait for keys, and for those that keep what they read.

use perilune_resp::Replies;

use super::Worker;
use crate::commands::tracking::{NO_TARGET, UNHEARD};
use crate::connection::{self, Connection};
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

/// The watch with this token has rung.
pub(super) fn ring(worker: &mut Worker, token: usize) {
    let LoopState { session, waits, tracker, .. } = &mut worker.service;
    if token < waits::FIRST {
        tracker.rung(session, token);
    } else if let Some((database, key)) = waits.rung(session, token) {
        // What fails is tried again at the next touch.
        let _ = worker.service.serve_key(database, &key);
    }
}

/// Tells clients of what they keep and is not so any more.
pub(super) fn tell_changes(worker: &mut Worker) {
    let (service, connections) = worker.parts();
    let LoopState { session, tracker, .. } = service;
    let changed = tracker.changed(session, |seat| is_away(connections, seat));
    let figures = service.server.measures().figures();
    service.tracker.count(figures);
    service.audience.count(&figures.tracked_prefixes);
    tell_all(worker, changed);
    tell_broadcasts(worker);
}

/// Tells those who want to be told of all keys what has changed in this round.
pub(super) fn tell_broadcasts(worker: &mut Worker) {
    let (service, connections) = worker.parts();
    let told = service.audience.tell(|seat| is_away(connections, seat));
    tell_all(worker, told);
}

fn tell_all(worker: &mut Worker, told: Told) {
    for (names, seats) in told {
        for seat in seats {
            tell(worker, seat, &names);
        }
    }
    worker.serve_given();
}

/// Tells a client, or the one to which it redirects, of what it keeps and is not so any more.
fn tell(worker: &mut Worker, seat: Seat, names: &Names) {
    let Some(connection) = worker.at(seat) else { return };
    let protocol = connection.client.protocol;
    let Some(target) = connection.client.tracking.as_ref().map(|tracking| tracking.target) else {
        return;
    };
    let Some(target) = target else {
        let frame = pushed(names, protocol);
        if !frame.is_empty() {
            worker.push(seat, &frame);
        }
        return;
    };
    let from = Place { server: worker.service.server.number(), seat };
    let notice = Notice { to: target, from, is_broken: false, names: names.clone() };
    match send(worker, notice) {
        Ok(true) => {}
        Ok(false) => lose_target(worker, seat, target.seat.client),
        // The other one would not be told: with its end the client says that what it keeps may not be so.
        Err(_) => worker.end(seat.token),
    }
}

/// Sends a notice to wherever its client is; false if its server is dead.
fn send(worker: &mut Worker, notice: Notice) -> perilune::Result<bool> {
    let LoopState { server, session, thread, notices, .. } = &mut worker.service;
    if notice.to.server != server.number() {
        *notices += 1;
        return notice::send(session, server.number(), *thread, *notices, &notice);
    }
    match server.crew().mailboxes().get(notice.to.seat.thread) {
        Some(mailbox) if notice.to.seat.thread == *thread => mailbox.keep(Letter::Notice(Box::new(notice))),
        Some(mailbox) => mailbox.post(Letter::Notice(Box::new(notice))),
        None => {}
    }
    Ok(true)
}

/// Takes a notice for a client of this loop.
pub(super) fn take_notice(worker: &mut Worker, notice: Notice) {
    let seat = notice.to.seat;
    match worker.at(seat) {
        Some(_) if notice.is_broken => lose_target(worker, seat, notice.from.seat.client),
        Some(connection) => {
            let client = &connection.client;
            let frame = published(&notice.names, client.protocol, client.topics.is_some());
            if !frame.is_empty() {
                worker.push(seat, &frame);
            }
        }
        // What cannot be sent back now is found out with the next notice, unless that fails as well: then the
        // database takes no writes, so that nothing changes.
        None if !notice.is_broken => drop(send(worker, notice.returned())),
        None => {}
    }
}

/// The client to which another one redirects has gone.
fn lose_target(worker: &mut Worker, seat: Seat, target: i64) {
    let Some(connection) = worker.at(seat) else { return };
    // It may have chosen another one meanwhile.
    if connection.client.tracking.as_ref().is_some_and(|now| redirected(Some(now)) != target) {
        return;
    }
    connection.client.broken_redirect = target;
    let frame = invalidation::broken(target, connection.client.protocol);
    if !frame.is_empty() {
        worker.push(seat, &frame);
    }
}

/// A client may track from now on, if the one to which it redirects is anywhere.
pub(super) fn take_target(
    worker: &mut Worker,
    seat: Seat,
    ticket: u64,
    place: Option<Place>,
    is_complete: bool,
) {
    let Some(connection) = worker.at(seat) else { return };
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
            worker.service.tracker.enter(seat);
            if let Some(prefixes) = &broadcasts {
                worker.service.audience.enter(seat, prefixes, no_loop);
            }
            replies.simple("OK");
        }
        _ => {
            worker.service.audience.give_up(seat);
            worker.service.clear_audience();
            replies.error(if is_found { UNHEARD } else { NO_TARGET });
        }
    }
    if let Some(parked) = worker.at(seat).and_then(|connection| connection::answer(connection, ticket, reply))
    {
        worker.service.leave(&parked);
        worker.give(seat.token);
    }
}
