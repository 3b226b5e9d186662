//! What is done in slices, one each round of the loop: the rest of commands about many subscriptions, what those leave
//! behind who have gone, and the end of many connections.
//!
//! Invariants
//! - A slice takes less than a millisecond or so, however much there is: [`SUBSCRIBED_AT_ONCE`] names.
//! - The token of a connection that has gone is free when nothing published can go there any more.
//!
//! Killed between two slices: what the tree still says of this server counts for nothing, and is swept with it
//! (`subscribers::forget`).

use std::collections::VecDeque;
use std::mem::take;
use std::time::Instant;

use perilune_resp::Replies;

use super::Worker;
use crate::client::Client;
use crate::commands::pubsub::{change, leave_some};
use crate::connection::Connection;
use crate::limits::{SUBSCRIBED_AT_ONCE, TURN};
use crate::loop_state::LoopState;
use crate::rest::{Pending, Rest, Work};
use perilune_net::elsewhere::drop_elsewhere;
use perilune_net::seat::Seat;

/// What waits for its next slice.
#[derive(Debug, Default)]
pub(super) struct Slices {
    /// Connections that are parked meanwhile.
    parked: VecDeque<usize>,
    /// Those that have gone, by token.
    gone: VecDeque<(usize, Pending)>,
    /// Those that are to end, and do nothing more.
    doomed: VecDeque<Seat>,
}

impl Slices {
    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.gone.is_empty() && self.doomed.is_empty()
    }
}

/// Whether that was the last of it.
fn is_done(
    connection: &mut Connection,
    rest: &mut Rest,
    loop_state: &mut LoopState,
) -> perilune::Result<bool> {
    let client: &mut Client = &mut connection.client;
    let mut told = Vec::new();
    let mut replies = Replies::new(&mut told, client.protocol);
    let (effects, mut changes) = (&mut loop_state.effects, Vec::new());
    let is_done = match &mut rest.work {
        Work::Names { topic, word, is_in, names, next } => {
            let names = names.as_arguments().from(*next);
            change(client, effects, (*topic, word, *is_in), names.first(SUBSCRIBED_AT_ONCE), &mut replies);
            *next += SUBSCRIBED_AT_ONCE;
            names.len() <= SUBSCRIBED_AT_ONCE
        }
        Work::All { topic, word } => {
            !leave_some(client, effects, (*topic, word), SUBSCRIBED_AT_ONCE, &mut replies)
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

impl Worker {
    /// Notes a connection whose command has a rest.
    pub(super) fn put_off(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        if let Some(rest) = connection.client.rest.as_mut().filter(|rest| !rest.is_known) {
            rest.is_known = true;
            self.slices.parked.push_back(token);
        }
    }

    /// Ends connections, many of them some at a time: those that wait for that neither ask nor get anything any more.
    pub(super) fn end_all(&mut self, tokens: Vec<usize>) {
        for token in tokens {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            connection.client.closing = true;
            connection.is_doomed = true;
            self.slices.doomed.push_back(connection.client.seat);
        }
        self.end_some();
    }

    fn end_some(&mut self) {
        let begun = Instant::now();
        while let Some(seat) = self.slices.doomed.pop_front() {
            if self.at(seat).is_some() {
                self.end(seat.token);
            }
            if begun.elapsed() > TURN {
                return;
            }
        }
    }

    /// Does the next slice of those that are parked, of those that have gone, and of those that are to end.
    pub(super) fn do_slices(&mut self) {
        if !self.slices.doomed.is_empty() {
            self.end_some();
        }
        if let Some(token) = self.slices.parked.pop_front() {
            self.go_on(token);
        }
        if let Some((token, mut pending)) = self.slices.gone.pop_front() {
            let (changes, left) = pending.next(SUBSCRIBED_AT_ONCE);
            if let Some(left) = left {
                drop_elsewhere(left);
            }
            // What is not noted now is when the next one comes or goes, or this server does.
            let _ = self.loop_state.subscribe(token, &changes);
            if pending.is_over() {
                self.free.push(token);
            } else {
                self.slices.gone.push_back((token, pending));
            }
        }
    }

    fn go_on(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        // NB: another connection may have the token by now, with a rest of its own that is known as well: then it has two
        // slices in some round.
        let Some(mut rest) = connection.client.rest.take() else { return };
        match is_done(connection, &mut rest, &mut self.loop_state) {
            Ok(false) => {
                connection.client.rest = Some(rest);
                self.slices.parked.push_back(token);
            }
            Ok(true) => {
                let reply = match rest.work {
                    Work::Pending(_, reply) => reply,
                    Work::Names { .. } | Work::All { .. } => Vec::new(),
                };
                if let Some(ticket) = connection.client.parked.as_ref().map(|parked| parked.ticket) {
                    connection.answer(ticket, reply);
                }
            }
            // The tree does not say what the client has just been told.
            Err(_) => {
                connection.client.closing = true;
                connection.client.parked = None;
                let pending = rest.into_pending();
                if !pending.is_over() {
                    connection.client.rest = Some(Rest::new(Work::Pending(pending, Vec::new())));
                }
            }
        }
        if self.is_within(token) {
            self.serve(token);
        }
    }

    /// What a connection that ends was subscribed to, it is no longer; its token is free when that is so.
    pub(super) fn leave_topics(&mut self, token: usize, client: &mut Client) {
        let rest = client.rest.take().map(|rest| rest.into_pending()).unwrap_or_default();
        let mut pending = rest.and_leaving(take(&mut client.topics));
        if pending.is_over() {
            return self.free.push(token);
        }
        if !pending.is_short(SUBSCRIBED_AT_ONCE) {
            return self.slices.gone.push_back((token, pending));
        }
        let mut changes = Vec::new();
        while !pending.is_over() {
            changes.append(&mut pending.next(usize::MAX).0);
        }
        let _ = self.loop_state.subscribe(token, &changes);
        self.free.push(token);
    }
}
