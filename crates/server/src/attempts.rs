//! Brief transactions of the engine, at a fraction of what a whole one costs: of one command, of what MULTI has queued, and
//! of the commands that a script calls.
//!
//! Invariants
//! - An attempt that comes to nothing has written nothing, and what it has replied and noted is taken back.
//! - What is beyond its means, tells of events or fails to write is left to a whole transaction, which answers.

use perilune_resp::{Arguments, Replies};

use crate::busy_pages::is_held;
use crate::client::Queue;
use crate::command::{self, Command, POSTS, WRITE};
use crate::context::Context;
use crate::eviction;
use crate::failure;
use crate::handler::{Handler, Run};
use crate::keyspace::Keys;
use crate::limits::{ATTEMPTED_COMMANDS, ATTEMPTS, LONG_BYTES};
use crate::patience::Patience;
use crate::watched::Watched;

impl Context<'_> {
    /// Whether several commands may be a brief transaction: telling of events is none, nor is comparing what is tracked or
    /// watched.
    pub(crate) fn may_attempt(&self) -> bool {
        let is_told = self.effects.notify != 0 || self.effects.broadcasts();
        self.session.depth() == 0 && !is_told && !self.client.compares()
    }

    /// Runs a command as a brief transaction; false: it takes a whole one, and has done nothing. While it meets others at
    /// the same nodes it is tried again: that costs less than a whole one.
    #[inline]
    pub(crate) fn attempt_command(
        &mut self,
        (handler, patience): (Handler, Patience),
        writes: bool,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<bool> {
        let (database, now) = (self.client.database, self.client.time());
        self.attempt(replies, |context, replies| {
            let mut keys = Keys::new(context.session, context.effects, database, now, writes).with(patience);
            Ok(handler(&mut keys, arguments, replies)?)
        })
    }

    /// Runs what MULTI has queued as a brief transaction, as [`Context::attempt_command`]: a few commands of keys, of a client
    /// that may run them all, where nobody is to be told of them. What is watched is compared first.
    pub(crate) fn attempt_queue(
        &mut self,
        queue: &Queue,
        watched: &Watched,
        now: i64,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<bool> {
        let is_brief = |command: &Command, arguments: Arguments<'_>| {
            command.is_on_keys() && !command.is(POSTS) && arguments.extent() < LONG_BYTES
        };
        let is_plain = queue.commands.len() <= ATTEMPTED_COMMANDS
            && self.may_attempt()
            && watched.is_short()
            && self.server.monitors.is_empty()
            && self.client.is_unlimited(&self.server.acl)
            && queue.commands.iter().all(|(command, arguments)| is_brief(command, arguments.as_arguments()));
        if !is_plain {
            return Ok(false);
        }
        let done = self.attempt(replies, |context, replies| {
            if !watched.holds(context.session, now)? {
                replies.null_array();
                return Ok(());
            }
            replies.array(queue.commands.len());
            let mut commands = queue.commands.iter();
            commands.try_for_each(|(command, arguments)| {
                context.run_in_attempt(command, arguments.as_arguments(), now, replies)
            })
        });
        if !matches!(done, Ok(true)) {
            self.effects.tally.clear();
        }
        done
    }

    /// Makes attempts, as long as they meet others; false: none came to anything.
    #[inline]
    fn attempt(
        &mut self,
        replies: &mut Replies<'_>,
        mut body: impl FnMut(&mut Context<'_>, &mut Replies<'_>) -> perilune::Result<()>,
    ) -> perilune::Result<bool> {
        let (start, before) = (replies.position(), self.effects.mark());
        for _ in 0..ATTEMPTS {
            let mut has_more = false;
            let Context { server, session, client, effects, .. } = self;
            let attempt = session.attempt(|session| {
                body(&mut Context { server, session, client, effects, may_park: false }, replies)?;
                // Neither is telling of events brief, nor serving clients that wait for what has come into being.
                has_more = effects.is_unfinished();
                if has_more {
                    return Err(perilune::Error::Conflict);
                }
                Ok(())
            });
            if matches!(attempt, Ok(Some(()))) {
                return Ok(true);
            }
            self.effects.rewind(before);
            replies.rewind(start);
            match attempt {
                Err(error) if !error.is_retry() => return Err(error),
                _ if has_more || !self.session.has_met() => break,
                _ => {}
            }
        }
        Ok(false)
    }

    /// Runs a command in the brief transaction around it, which has no levels: one that fails to write takes all with it.
    ///
    /// # Errors
    /// `Conflict`: it takes a whole transaction.
    pub(crate) fn run_in_attempt(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        now: i64,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let Run::Keys(handler) = command.runs.run else { return Err(perilune::Error::Conflict) };
        if command.is(POSTS) {
            return Err(perilune::Error::Conflict);
        }
        if eviction::counts_uses(self.server) {
            self.note_uses(command, arguments);
        }
        let (start, before) = (replies.position(), self.effects.mark());
        let writes = command.is(WRITE);
        let mut keys = Keys::new(self.session, self.effects, self.client.database, now, writes);
        // Quick ways write one key each here; they tell of no events, with which nothing is brief.
        let is_quick = !writes || command.keys == command::ONE;
        let outcome = match command.runs.quick {
            Some(quick) if is_quick => match quick(&mut keys, arguments, replies) {
                Ok(false) => handler(&mut keys, arguments, replies),
                done => done.map(|_| ()),
            },
            _ => handler(&mut keys, arguments, replies),
        };
        if let Err(error) = outcome.map_err(perilune::Error::from) {
            if is_held(&error) {
                return Err(error);
            }
            if writes || error.is_retry() || error.is_long_read() {
                return Err(perilune::Error::Conflict);
            }
            self.effects.rewind(before);
            replies.rewind(start);
            replies.error(&failure::text_of(&error));
        }
        self.effects.tally.ended(command::number(command, arguments), replies.since(start));
        Ok(())
    }
}
