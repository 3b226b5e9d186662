//! What a command works with: the server, a session of the database, its client, and what happens when it has committed.
//!
//! Example: in `context.transaction(&options, |session, client, effects| ..)` the body runs as often as it takes; a message that
//! it notes in `effects` is told once.
//!
//! Invariant: what a transaction does besides its nodes is told once, of the run that was committed.

use std::sync::Arc;

use perilune::{ErrorCode, Session, TransactionOptions};

use crate::client::{Client, Parked};
use crate::commit;
use crate::effects::Effects;
use crate::leftovers::Work;
use crate::mailbox::{Later, Letter};
use crate::server::Server;
use perilune_net::clock::clock;

/// What a command works with that is not about keys.
pub(crate) struct Context<'c> {
    pub(crate) server: &'c Arc<Server>,
    pub(crate) session: &'c mut Session,
    pub(crate) client: &'c mut Client,
    /// What happens when the command has committed.
    pub(crate) effects: &'c mut Effects,
    /// False inside EXEC and scripts, where nothing may wait.
    pub(crate) may_park: bool,
}

impl Context<'_> {
    /// Parks the connection: the command's reply comes by a letter or a timer, and until then the client's
    /// further requests wait. None where nothing may wait.
    pub(crate) fn park(&mut self) -> Option<&mut Parked> {
        self.may_park.then(|| self.client.park())
    }

    /// Leaves the rest of the command that runs to be done in slices.
    pub(crate) fn put_off(&mut self, work: Work) {
        self.client.put_off(work);
    }

    /// Parks the connection, the reply coming from whoever has the [`Later`], on any thread.
    pub(crate) fn park_for_later(&mut self) -> Option<Later> {
        let ticket = self.park()?.ticket;
        Some(Later::new(self.server.crew().mailboxes(), self.client.seat, ticket))
    }

    /// Runs `body` as one transaction of the database. What it wants done besides, once it has committed,
    /// goes into the effects.
    pub(crate) fn transaction(
        &mut self,
        options: &TransactionOptions,
        mut body: impl FnMut(&mut Session, &mut Client, &mut Effects) -> perilune::Result<()>,
    ) -> perilune::Result<()> {
        let Context { session, client, effects, server, .. } = self;
        let (before, outermost) = (effects.mark(), session.depth() == 0);
        let (mut is_changed, mut is_not_kept) = (false, false);
        let outcome = session.transaction_with(options, |session| {
            effects.rewind(before);
            if outermost {
                effects.tally.clear();
            }
            if outermost && !client.own.is_empty() {
                client.own.begin(session, clock())?;
            }
            body(session, client, effects)?;
            if outermost {
                if !client.own.is_empty() {
                    client.own.end(session, clock())?;
                }
                is_changed = !client.watched.is_empty() && !client.watched.holds(session, clock())?;
                is_not_kept = !client.kept.is_empty() && !client.kept.holds(session, clock())?;
                commit::finish(effects, session)?;
            }
            Ok(())
        });
        client.watched.broken |= is_changed;
        client.kept.broken |= is_not_kept;
        if outermost && std::mem::take(&mut effects.unheard) && outcome.is_ok() {
            server.commons().broadcast().turn_off(effects.broadcast);
        }
        if let Err(error) = &outcome {
            effects.rewind(before);
            client.own.clear();
            if effects.broadcasts()
                && matches!(error.code(), ErrorCode::NotDurable | ErrorCode::CommitUnknown)
            {
                // It may have happened, and others are told with the commit.
                let all = Arc::new(None);
                let letters = (0..server.crew().mailboxes().len())
                    .map(|thread| (thread, Letter::Changed(Arc::clone(&all))));
                effects.letters.extend(letters);
            }
        }
        outcome
    }
}
