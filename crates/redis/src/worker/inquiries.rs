//! What the loops of all servers are asked: for the clients of this one.

use perilune_resp::{parse_integer, Arguments, ArgumentsBuf};

use super::{overdue, Worker};
use crate::asking;
use crate::client_list::{self, Filter};
use crate::command;
use crate::commands::tracking::{target, wants_all};
use crate::connection::{self, Connection};
use crate::invalidation::Place;
use crate::loop_state::LoopState;
use crate::numbers::lower;
use crate::question::{Answer, Inquiry};
use perilune_net::seat::Seat;

/// Answers a question for the clients of this loop.
pub(super) fn inquire(worker: &mut Worker, inquiry: &Inquiry) {
    let words = inquiry.words.as_arguments();
    let answer = match words.get(1).map(lower).as_deref() {
        Some(b"list") => list(worker, words, inquiry.asker),
        Some(b"kill") => kill(worker, words, inquiry.asker),
        Some(b"unblock") => unblock(worker, words),
        Some(b"tracking") => {
            if wants_all(words) {
                worker.service.server.commons().broadcast().turn_on();
            }
            find(worker, words)
        }
        // The log is the server's: one loop answers.
        Some(b"log") if worker.thread() == 0 => worker.service.server.rules().acl().log.asked(words),
        _ => Answer::default(),
    };
    let LoopState { server, session, .. } = &mut worker.service;
    asking::answer(inquiry, server, session, &answer);
}

fn list(worker: &Worker, words: Arguments<'_>, asker: Seat) -> Answer {
    let mut answer = Answer::default();
    let Ok(filter) = Filter::of_list(words.from(2)) else { return answer };
    for connection in worker
        .connections()
        .iter()
        .flatten()
        .filter(|each| !each.is_doomed && filter.means(&each.client, asker))
    {
        let mut holds = connection::holds(connection);
        if connection.client.id == asker.client {
            holds = holds.and_command(words);
        }
        let line = client_list::line(&connection.client, holds);
        answer.lines.extend_from_slice(line.as_bytes());
    }
    answer
}

/// Where the client is that one wants to redirect to, if it is here.
fn find(worker: &mut Worker, words: Arguments<'_>) -> Answer {
    let id = target(words);
    let is_meant = |connection: &&mut Connection| Some(connection.client.id) == id;
    let (service, connections) = worker.parts();
    match connections.iter_mut().flatten().find(is_meant) {
        None => Answer::default(),
        Some(connection) => {
            connection.client.is_target = true;
            let place = Place { server: service.server.number(), seat: connection.client.seat };
            Answer { lines: place.to_text().into_bytes(), count: 1 }
        }
    }
}

fn kill(worker: &mut Worker, words: Arguments<'_>, asker: Seat) -> Answer {
    let mut answer = Answer::default();
    let Ok(filter) = Filter::of_kill(words.from(2), |_| true) else { return answer };
    let meant = |(token, connection): (usize, &Option<Connection>)| {
        let is_meant = |each: &&Connection| !each.is_doomed && filter.means(&each.client, asker);
        connection.as_ref().filter(is_meant).map(|_| token)
    };
    let tokens: Vec<usize> = worker.connections().iter().enumerate().filter_map(meant).collect();
    answer.count = tokens.len() as i64;
    let mut others = Vec::new();
    for token in tokens {
        match worker.connection(token) {
            // Who asks for its own end is answered first.
            Some(connection) if connection.client.id == asker.client => {
                connection.client.closing = true;
            }
            _ => others.push(token),
        }
    }
    worker.end_all(others);
    answer
}

fn unblock(worker: &mut Worker, words: Arguments<'_>) -> Answer {
    let id = words.get(2).and_then(parse_integer);
    let fails = words.get(3).is_some_and(|reason| reason.eq_ignore_ascii_case(b"error"));
    let waits = |connection: &Connection| {
        Some(connection.client.id) == id
            && connection.client.parked.as_ref().is_some_and(|parked| parked.gives_up)
    };
    let token = worker.connections().iter().position(|connection| connection.as_ref().is_some_and(waits));
    let Some(token) = token else { return Answer::default() };
    let Some(connection) = worker.connection(token) else { return Answer::default() };
    let Some(parked) = connection.client.parked.as_mut() else { return Answer::default() };
    if fails {
        parked.too_late = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_vec();
    }
    let (ticket, command) = (parked.ticket, connection.client.command);
    overdue::time_out(worker, token, ticket);
    let still = worker.connections().get(token).and_then(Option::as_ref);
    let waits = still.is_some_and(|each| each.client.parked.as_ref().is_some_and(|it| it.ticket == ticket));
    let command = command.and_then(|(name, _)| command::find(name.as_bytes()));
    if let (true, false, Some(command)) = (fails, waits, command) {
        // Containers do not wait.
        let number = command::number(command, ArgumentsBuf::default().as_arguments());
        worker.service.server.measures().statistics().count_late(worker.thread(), number, "UNBLOCKED");
    }
    Answer { count: i64::from(!waits), ..Answer::default() }
}
