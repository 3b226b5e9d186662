//! What happens when time has passed: commands give up waiting.

use std::time::Instant;

use super::Worker;
use crate::connection;

/// Lets those go on whose time has come, each once.
pub(super) fn ring_timers(worker: &mut Worker) {
    let now = Instant::now();
    while let Some((token, ticket)) = worker.service.timers.take_due(now) {
        time_out(worker, token, ticket);
    }
}

/// A command has waited long enough.
pub(super) fn time_out(worker: &mut Worker, token: usize, ticket: u64) {
    let Some((service, connection)) = worker.split(token) else { return };
    let Some(parked) = connection.client.parked.as_mut().filter(|parked| parked.ticket == ticket) else {
        return;
    };
    if let Some(number) = parked.asked {
        service.server.commons().inquiries().give_up(number);
        return;
    }
    if parked.paused {
        if let Some(parked) = connection.client.parked.take() {
            service.leave(&parked);
        }
        worker.serve(token);
        return;
    }
    if !service.cancel(parked.queued.as_ref()) {
        return;
    }
    let reply = std::mem::take(&mut parked.too_late);
    if let Some(parked) = connection::answer(connection, ticket, reply) {
        service.leave(&parked);
    }
    worker.serve(token);
}
