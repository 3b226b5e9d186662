//! Commands that run aside (`aside`): which is the next one, and how its connection goes on.

use super::{rings, Worker};
use crate::client::Client;
use crate::command::Command;
use crate::connection;
use crate::effects::Effects;
use perilune_net::seat::Seat;
use perilune_resp::ArgumentsBuf;

/// A command to be run aside.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) command: &'static Command,
    pub(crate) arguments: ArgumentsBuf,
    /// Of the connection, which is parked on `ticket`.
    pub(crate) seat: Seat,
    pub(crate) ticket: u64,
    pub(crate) client: Box<Client>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) seat: Seat,
    pub(crate) ticket: u64,
    pub(crate) client: Box<Client>,
    pub(crate) reply: Vec<u8>,
    pub(crate) effects: Effects,
}

/// The next command to be run aside.
pub(crate) fn next_aside(worker: &mut Worker) -> Option<Aside> {
    worker.speak();
    while let Some(token) = worker.service.chores.asides.pop_front() {
        let Some((service, connection)) = worker.split(token) else { continue };
        let client = &mut connection.client;
        let Some(aside) = client.aside.take() else { continue };
        let Some(ticket) = client.parked.as_ref().map(|parked| parked.ticket) else { continue };
        let (command, arguments) = *aside;
        let (seat, mut client) = (client.seat, client.lend());
        client.replies_end = service.server.rules().live().hard_limit(client.output_class());
        worker.settle();
        return Some(Aside { command, arguments, seat, ticket, client });
    }
    None
}

/// Answers a command that ran aside, and goes on with its connection.
pub(crate) fn finish_aside(worker: &mut Worker, done: Done) {
    let Done { seat, ticket, client, reply, effects } = done;
    worker.service.effects = effects;
    let Some((service, connection)) = worker.split(seat.token) else {
        return forget_aside(worker, client);
    };
    if connection.client.id != seat.client {
        return forget_aside(worker, client);
    }
    let start = connection.said();
    connection.client.take_back(client);
    connection::answer(connection, ticket, reply);
    let (client, mut output) = connection.parts();
    if service.carry_out(client, &mut output, start).is_err() {
        // The tree does not say what the client has just been told.
        client.closing = true;
    }
    worker.serve(seat.token);
    // What was held back from it while it was away.
    rings::tell_broadcasts(worker);
}

/// The client is gone: what its command wants done for others is done, and what it held is released.
fn forget_aside(worker: &mut Worker, mut client: Box<Client>) {
    worker.service.effects.subscriptions.clear();
    worker.service.send_letters();
    if let Some(nodes) = &mut client.nodes {
        nodes.end(&mut worker.service.session);
    }
}
