//! What clients read is remembered, if they want to be told of changes.

use perilune_resp::Arguments;

use super::LoopState;
use crate::client::Client;
use crate::tracking::broadcast;

impl LoopState {
    /// Remembers what a client is about to read, if it wants to be told of changes.
    #[cold]
    pub(crate) fn remember(&mut self, client: &mut Client, arguments: Arguments<'_>) {
        if self.tracker.remember(&mut self.session, client, arguments).is_err() {
            // It could miss a change of what it keeps.
            client.closing = true;
        }
    }

    /// A client wants to be told from now on, or no longer.
    ///
    /// Who wants to be told of all keys comes by `worker::rings::take_target`.
    #[cold]
    pub(crate) fn switch_tracking(&mut self, client: &mut Client) {
        if client.tracking.is_some() {
            self.tracker.enter(client.seat);
        } else {
            client.kept.clear();
            client.own.clear();
            self.tracker.forget(&mut self.session, client.seat);
            self.audience.leave(client.seat);
            self.clear_audience();
        }
    }

    /// Nobody has to tell this loop of all keys, if it has nobody who wants to be told.
    pub(crate) fn clear_audience(&mut self) {
        let LoopState { server, session, thread, audience, .. } = self;
        // While that fails others tell in vain.
        if audience.is_noted_in_vain() && broadcast::unnote(session, server.number(), *thread).is_ok() {
            audience.is_noted_no_more();
        }
    }
}
