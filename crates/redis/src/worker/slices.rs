//! What is done in slices, one each round of the loop: the rest of commands about many subscriptions, and what those leave
//! behind who have gone.
//!
//! Invariants
//! - A slice takes less than a millisecond or so, however much there is: [`SUBSCRIBED_AT_ONCE`] names.
//! - The token of a connection that has gone is free when nothing published can go there any more.
//!
//! Killed between two slices: what the tree still says of this server counts for nothing, and is swept with it
//! (`subscribers::forget`).

use std::mem::take;

use perilune_resp::Replies;

use super::Worker;
use crate::client::Client;
use crate::commands::pubsub::{change, leave_some, Change};
use crate::connection::{self, Connection};
use crate::leftovers::{Leftovers, Work};
use crate::limits::SUBSCRIBED_AT_ONCE;
use crate::loop_state::LoopState;
use perilune_net::elsewhere::drop_elsewhere;

/// Whether that was the last of it.
fn is_done(
    connection: &mut Connection,
    rest: &mut Leftovers,
    loop_state: &mut LoopState,
) -> perilune::Result<bool> {
    let client: &mut Client = &mut connection.client;
    let mut told = Vec::new();
    let mut replies = Replies::new(&mut told, client.protocol);
    let (effects, mut changes) = (&mut loop_state.effects, Vec::new());
    let is_done = match &mut rest.work {
        Work::Names { topic, word, is_in, names, next } => {
            let names = names.as_arguments().from(*next);
            let wanted = Change { topic: *topic, word, is_in: *is_in };
            change(client, effects, wanted, names.first(SUBSCRIBED_AT_ONCE), &mut replies);
            *next += SUBSCRIBED_AT_ONCE;
            names.len() <= SUBSCRIBED_AT_ONCE
        }
        Work::All { topic, word } => {
            !leave_some(client, effects, *topic, word, SUBSCRIBED_AT_ONCE, &mut replies)
        }
        Work::Pending(pending, _) => {
            let (some, left) = pending.next(SUBSCRIBED_AT_ONCE);
            (changes, _) = (some, left.map(drop_elsewhere));
            pending.is_over()
        }
    };
    changes.append(&mut effects.subscriptions);
    connection.push(&told);
    loop_state.subscribe(connection.client.seat.token, &changes)?;
    Ok(is_done)
}

/// Does the next slice of those that are parked, and of those that have gone.
pub(super) fn do_slices(worker: &mut Worker) {
    if let Some(token) = worker.service.chores.parked.pop_front() {
        go_on(worker, token);
    }
    if let Some((token, mut pending)) = worker.service.chores.gone.pop_front() {
        let (changes, left) = pending.next(SUBSCRIBED_AT_ONCE);
        if let Some(left) = left {
            drop_elsewhere(left);
        }
        // What is not noted now is when the next one comes or goes, or this server does.
        let _ = worker.service.subscribe(token, &changes);
        if pending.is_over() {
            worker.free(token);
        } else {
            worker.service.chores.gone.push_back((token, pending));
        }
    }
}

fn go_on(worker: &mut Worker, token: usize) {
    let Some((service, connection)) = worker.split(token) else { return };
    // NB: another connection may have the token by now, with a rest of its own that is known as well: then it has two
    // slices in some round.
    let Some(mut rest) = connection.client.rest.take() else { return };
    match is_done(connection, &mut rest, service) {
        Ok(false) => {
            connection.client.rest = Some(rest);
            service.chores.parked.push_back(token);
        }
        Ok(true) => {
            let reply = match rest.work {
                Work::Pending(_, reply) => reply,
                Work::Names { .. } | Work::All { .. } => Vec::new(),
            };
            if let Some(ticket) = connection.client.parked.as_ref().map(|parked| parked.ticket) {
                connection::answer(connection, ticket, reply);
            }
        }
        // The tree does not say what the client has just been told.
        Err(_) => {
            connection.client.closing = true;
            connection.client.parked = None;
            let pending = rest.into_pending();
            if !pending.is_over() {
                connection.client.rest = Some(Leftovers::new(Work::Pending(pending, Vec::new())));
            }
        }
    }
    if worker.is_within(token) {
        worker.serve(token);
    }
}

/// What a client that ends was subscribed to, it is no longer; false: that takes further rounds.
pub(super) fn leave_topics(service: &mut LoopState, token: usize, client: &mut Client) -> bool {
    let rest = client.rest.take().map(|rest| rest.into_pending()).unwrap_or_default();
    let mut pending = rest.and_leaving(take(&mut client.topics));
    if pending.is_over() {
        return true;
    }
    if !pending.is_short(SUBSCRIBED_AT_ONCE) {
        service.chores.gone.push_back((token, pending));
        return false;
    }
    let mut changes = Vec::new();
    while !pending.is_over() {
        changes.append(&mut pending.next(usize::MAX).0);
    }
    let _ = service.subscribe(token, &changes);
    true
}
