//! What a thread lends to the connection that it serves, and what it does for its commands when they have committed.
//!
//! A command may want more than nodes changed: a client of another loop served, a message told, a timer set. It cannot do that while
//! its transaction is open, which may yet come to nothing. So it notes it in [`Effects`], and the loop carries it out.
//!
//! Example: LPUSH finds that a client of loop 2 waits for the key. Its effects hold a letter to that loop with the reply; it is
//! posted when the push has committed.
//!
//! Invariant: what others are told is as durable as what the client is told itself.

mod ahead;
mod busy_pages;
mod chores;
mod pauses;
mod tracked;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use mio::Registry;
use perilune::{Serving, Session};

pub(crate) use self::ahead::Ahead;
use self::chores::Chores;
use crate::client::{Client, Parked, Queued};
use crate::commit;
use crate::context::Context;
use crate::effects::Effects;
use crate::failure;
use crate::leftovers::{Pending, Work};
use crate::limits::SUBSCRIBED_AT_ONCE;
use crate::mailbox::Letter;
use crate::queue;
use crate::server::Server;
use crate::subscribers;
use crate::subscriptions::{Change, Subscriptions};
use crate::tracking::audience::Audience;
use crate::tracking::Tracker;
use crate::waits::Waits;
use perilune_net::protocol::Output;
use perilune_net::timers::{Clocks, Timers};

/// A thread's own things, but for its connections.
#[derive(Debug)]
pub(crate) struct LoopState {
    pub(crate) server: Arc<Server>,
    pub(crate) session: Session,
    pub(crate) effects: Effects,
    pub(crate) clocks: Clocks,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) waits: Waits,
    pub(crate) tracker: Tracker,
    pub(crate) audience: Audience,
    /// Notices that this loop has sent to clients of other servers.
    pub(crate) notices: u64,
    pub(crate) timers: Timers,
    pub(crate) chores: Chores,
    /// Requests that are looked at before they are run (`together`).
    pub(crate) ahead: Ahead,
    /// Commands of the visit under way.
    pub(crate) commands: u64,
    /// Why what was written last is not durable, for those whose replies wait for that.
    pub(crate) unsettled: Option<String>,
    /// Which of the server's loops this is.
    pub(crate) thread: usize,
}

impl LoopState {
    /// Those of loop `thread`; `registry` is where its watches are heard of.
    ///
    /// # Errors
    /// The system has no descriptors for them.
    pub(crate) fn new(
        server: &Arc<Server>,
        thread: usize,
        session: Session,
        registry: impl Fn() -> io::Result<Registry>,
    ) -> io::Result<LoopState> {
        Ok(LoopState {
            server: Arc::clone(server),
            session,
            effects: Effects::default(),
            clocks: Clocks::new(),
            subscriptions: Subscriptions::default(),
            waits: Waits::new(registry()?),
            tracker: Tracker::new(registry()?),
            audience: Audience::default(),
            notices: 0,
            timers: Timers::default(),
            chores: Chores::default(),
            ahead: Ahead::default(),
            commands: 0,
            unsettled: None,
            thread,
        })
    }

    /// What a command of `client` works with.
    pub(crate) fn context<'d>(&'d mut self, client: &'d mut Client) -> Context<'d> {
        Context {
            server: &self.server,
            session: &mut self.session,
            client,
            effects: &mut self.effects,
            may_park: true,
        }
    }

    /// Sees to what a command of `client` wants done, now that it has committed; its reply begins at `start`. One that changes
    /// many subscriptions at once, an EXEC, is answered when they are so.
    ///
    /// # Errors
    /// The database does not take its subscriptions.
    pub(crate) fn carry_out(
        &mut self,
        client: &mut Client,
        output: &mut Output<'_>,
        start: usize,
    ) -> perilune::Result<()> {
        if client.kept.broken || !client.own.is_empty() {
            self.tracker.settle(client);
        }
        if let Some(parked) = &client.parked {
            if let Some(until) = parked.until {
                self.timers.set(until, client.seat.token, parked.ticket);
            }
            if parked.tracking.as_ref().is_some_and(|tracking| tracking.prefixes.is_some()) {
                self.audience.ask(client.seat);
            }
            if let Some(queued) = &parked.queued {
                self.await_keys(queued)?;
            }
        }
        if self.effects.is_empty() {
            return Ok(());
        }
        if self.effects.subscriptions.len() > SUBSCRIBED_AT_ONCE {
            let changes = std::mem::take(&mut self.effects.subscriptions);
            let reply = output.bytes.split_off(start.max(output.sent));
            client.put_off(Work::Pending(Pending::of_changes(changes), reply));
        }
        self.send_letters();
        let changes = std::mem::take(&mut self.effects.subscriptions);
        self.subscribe(client.seat.token, &changes)
    }

    /// Watches the keys that a client waits for. What came between its look and the watch is served at once.
    fn await_keys(&mut self, queued: &Queued) -> perilune::Result<()> {
        for key in &queued.keys {
            self.waits.add(&mut self.session, queued.database, key)?;
        }
        for key in &queued.keys {
            self.serve_key(queued.database, key)?;
        }
        Ok(())
    }

    /// Serves who waits for a key, wherever that is, if there is anything.
    pub(crate) fn serve_key(&mut self, database: i64, key: &[u8]) -> perilune::Result<()> {
        let LoopState { server, session, effects, .. } = self;
        effects.begin(server);
        let before = effects.mark();
        let served = session.transaction(|session| {
            effects.rewind(before);
            effects.wake(database, key);
            Ok(commit::finish(effects, session)?)
        });
        if served.is_err() {
            effects.rewind(before);
        }
        self.send_letters();
        served
    }

    /// A client no longer waits, for keys or for the end of a pause.
    pub(crate) fn leave(&mut self, parked: &Parked) {
        if parked.paused {
            self.server.commons().pause().let_client_go();
        }
        if let Some(queued) = &parked.queued {
            self.server.commons().blocked().fetch_sub(1, Ordering::AcqRel);
            for key in &queued.keys {
                self.waits.remove(&mut self.session, queued.database, key);
            }
        }
    }

    /// Takes a client out of the queues; false if its reply is on its way. One that cannot be taken out is
    /// told the truth by the reply that comes.
    pub(crate) fn cancel(&mut self, queued: Option<&Queued>) -> bool {
        queued.is_none_or(|queued| {
            queue::cancel(&mut self.session, self.server.number(), queued.ticket).unwrap_or(false)
        })
    }

    /// Puts a connection in or out of what it is subscribed to, here and in the tree.
    ///
    /// # Errors
    /// The tree does not take it.
    #[cold]
    pub(crate) fn subscribe(&mut self, token: usize, changes: &[Change]) -> perilune::Result<()> {
        let mut counts = BTreeMap::new();
        for (topic, name, is_in) in changes {
            let count = self.subscriptions.change(*topic, name, token, *is_in);
            counts.insert((*topic, &name[..]), count);
        }
        let counts: Vec<_> = counts.into_iter().map(|((topic, name), count)| (topic, name, count)).collect();
        if counts.is_empty() {
            return Ok(());
        }
        subscribers::note(&mut self.session, self.server.number(), self.thread, &counts)
    }

    /// Whether replies have to wait for [`LoopState::settle`].
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.session.is_unsettled() || self.unsettled.is_some()
    }

    /// Waits until all that was written is durable, if the level wants that.
    pub(crate) fn settle(&mut self) {
        if let Err(error) = self.session.settle() {
            self.unsettled = Some(failure::text_of(&error).into_owned());
        }
    }

    pub(crate) fn send_letters(&mut self) {
        if self.effects.letters.is_empty() {
            return;
        }
        // What others are told is as durable as what the client is told itself.
        self.settle();
        let is_question = |(_, letter): &(usize, Letter)| matches!(letter, Letter::Ask(_));
        let _order = self.effects.letters.iter().any(is_question).then(|| self.server.crew().order());
        for (thread, letter) in self.effects.letters.drain(..) {
            match self.server.crew().mailboxes().get(thread) {
                Some(mailbox) if thread == self.thread => mailbox.keep(letter),
                Some(mailbox) => mailbox.post(letter),
                None => {}
            }
        }
    }
}
