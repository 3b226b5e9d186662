//! The end of CLIENT PAUSE in a loop.

use super::Worker;

/// Goes on with what CLIENT PAUSE has held back.
pub(super) fn resume(worker: &mut Worker) {
    for token in 0..worker.connections().len() {
        let Some((service, connection)) = worker.split(token) else { continue };
        if let Some(parked) = connection.client.parked.take_if(|parked| parked.paused) {
            service.leave(&parked);
            worker.give(token);
        }
    }
}
