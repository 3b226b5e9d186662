//! The end of CLIENT PAUSE in a loop.

use super::Worker;

impl Worker {
    /// Goes on with what CLIENT PAUSE has held back.
    pub(super) fn resume(&mut self) {
        for token in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            if let Some(parked) = connection.client.parked.take_if(|parked| parked.paused) {
                self.loop_state.leave(&parked);
                self.give(token);
            }
        }
    }
}
