//! The one way to run a command, whoever asks for it.
//!
//! A client's request, what EXEC runs and what a script calls differ in two things: which transaction the command is part of,
//! and who counts it. Both are said by a [`Way`]; all else is the same for all.
//!
//! ```text
//! Way::Request                     a client's request: a transaction of its own
//! Way::Called(stopwatch)           a script's call, where the script is no transaction: one of its own as well
//! Way::Inside(span: Whole, ..)     inside EXEC or a script: a level of the transaction that is open
//! Way::Inside(span: OneShot, ..)   so too, where that transaction is a one-shot one and has no levels
//! ```
//!
//! Invariants
//! - Each command appends exactly one reply, unless it is run again or fails with all that is around it.
//! - A command that works with keys runs as one transaction, again when it meets a concurrent change (`transact`); its reply
//!   is that of the run that was committed.

use std::borrow::Cow;
use std::time::Duration;

use perilune::{Serving, Session, TransactionOptions};
use perilune_resp::{Arguments, Replies};

use crate::busy_pages::is_held;
use crate::command::{self, Command, FAST, GROWS, POSTS, QUEUED, WHOLE, WRITE};
use crate::context::Context;
use crate::effects::{Effects, Mark};
use crate::eviction;
use crate::failure;
use crate::handler::{Handler, Run};
use crate::keyspace::Keys;
use crate::limits::{ATTEMPTED_ARGUMENTS, LONG_BYTES};
use crate::monitoring;
use crate::notify;
use crate::patience::Patience;
use crate::secrets::is_private;
use crate::settings::Name;
use crate::slowlog;
use crate::stopwatch::Stopwatch;
use crate::tracking::broadcast;
use crate::transact::{Plan, Span};

/// How a command is run.
#[derive(Debug)]
pub(crate) enum Way<'w> {
    /// As a client has asked for it.
    Request,
    /// As a script has called it that is no transaction, and has its time told by this.
    Called(&'w mut Stopwatch),
    /// Inside an open transaction.
    Inside(Inside),
}

/// The open transaction of EXEC or of a script, for all of which it is the time `now`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inside {
    pub(crate) span: Span,
    pub(crate) now: i64,
    pub(crate) by_script: bool,
}

impl Way<'_> {
    /// Whether it is a transaction of its own.
    #[inline]
    fn is_own(&self) -> bool {
        !matches!(self, Way::Inside(_))
    }

    #[inline]
    fn is_one_shot(&self) -> bool {
        matches!(self, Way::Inside(Inside { span: Span::OneShot, .. }))
    }
}

/// What has become of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It has replied, and is counted.
    Done,
    /// It has met a page that another process holds, and has done nothing: it runs again later.
    Held,
    /// It would keep an event loop from others for long, and has done nothing.
    TakesLong,
}

impl Context<'_> {
    /// Runs a command, and appends its reply, which may be an error.
    ///
    /// # Errors
    /// The transaction around it comes to nothing; never of a command that is one of its own.
    #[inline]
    pub(crate) fn run(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        mut way: Way<'_>,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<Ran> {
        if way.is_one_shot() && (!command.is_on_keys() || command.is(POSTS)) {
            return Err(perilune::Error::Conflict);
        }
        self.begin(command, arguments, &mut way);
        let (start, before) = (replies.position(), self.effects.mark());
        // On a full disk it may use what is kept for that.
        let frees = way.is_own() && command.is(WRITE) && !command.is(GROWS);
        if frees {
            self.session.free_up(true);
        }
        let outcome = match command.runs.run {
            Run::Connection(handler) => handler(self, arguments, replies).map_err(perilune::Error::from),
            Run::Keys(handler) => {
                if eviction::counts_uses(self.server.rules()) {
                    self.note_uses(command, arguments);
                }
                match way {
                    Way::Inside(inside) => self.run_inside(command, handler, arguments, inside, replies),
                    _ => self.run_own(command, handler, arguments, replies),
                }
            }
        };
        if frees {
            self.session.free_up(false);
        }
        if let Err(error) = outcome {
            replies.rewind(start);
            let ran = match way.is_own() {
                true => self.fail(&error, before, replies),
                false => self.fail_inside(command, error, &way, before, replies)?,
            };
            if ran != Ran::Done {
                self.client.is_shown |= ran == Ran::TakesLong;
                return Ok(ran);
            }
        }
        self.end(command, arguments, way, replies.since(start));
        Ok(Ran::Done)
    }

    /// A command is about to run: monitors see it.
    #[inline]
    fn begin(&mut self, command: &Command, arguments: Arguments<'_>, way: &mut Way<'_>) {
        let is_shown = match way {
            Way::Request => {
                let is_again = std::mem::take(&mut self.client.is_shown) || self.client.held_since.is_some();
                // EXEC is shown behind what it runs.
                !is_again && !command.is(QUEUED)
            }
            Way::Called(stopwatch) => {
                self.client.pass(stopwatch.lap());
                true
            }
            Way::Inside(_) => true,
        };
        if is_shown {
            self.show(command, arguments, matches!(way, Way::Inside(Inside { by_script: true, .. })));
        }
        if way.is_own() {
            self.effects.client = self.client.id;
            if !self.may_park {
                // A script may call many.
                self.effects.broadcast = self.server.commons().broadcast().state();
            }
        }
    }

    /// A command has ended with `reply`: it is counted, and who is to know of it is told.
    #[inline]
    pub(crate) fn end(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        way: Way<'_>,
        reply: &[u8],
    ) {
        if let Way::Inside(_) = way {
            return self.effects.tally.ended(command::number(command, arguments), reply);
        }
        // What only reads takes away nothing but what has expired, of which whoever asks from now on sees nothing.
        let changes = !command.is_on_keys() || command.is(WRITE);
        if !self.may_park && (changes || !self.effects.letters.is_empty()) {
            self.tell_changes();
        }
        if let Way::Called(stopwatch) = way {
            let took = stopwatch.lap();
            self.client.pass(took);
            return self.count(command, arguments, reply, took);
        }
        self.client.held_since = None;
        let took = self.client.end_command();
        self.count(command, arguments, reply, took);
        if command.is(QUEUED) {
            self.show(command, arguments, false);
        }
    }

    /// A command that is a transaction of its own has failed: it answers the error, or runs again.
    #[cold]
    fn fail(&mut self, error: &perilune::Error, before: Mark, replies: &mut Replies<'_>) -> Ran {
        let is_held = self.client.held || self.puts_off(error);
        let is_long = (error.is_long_read() || failure::takes_long(error)) && self.may_park;
        if is_held || is_long {
            self.effects.rewind(before);
            self.effects.tally.clear();
            return if is_held { Ran::Held } else { Ran::TakesLong };
        }
        let held = self.held_for_long(error);
        replies.error(&held.map_or_else(|| failure::text_of(error), Cow::Owned));
        Ran::Done
    }

    /// A command has failed inside a transaction: it answers the error, or all around it has failed.
    #[cold]
    fn fail_inside(
        &mut self,
        command: &Command,
        error: perilune::Error,
        way: &Way<'_>,
        before: Mark,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<Ran> {
        // NB: who waited in vain has not got through with any of it.
        if error.is_retry() || is_held(&error) || error.is_long_read() {
            return Err(error);
        }
        if way.is_one_shot() && command.is(WRITE) {
            return Err(perilune::Error::Conflict);
        }
        self.effects.rewind(before);
        replies.error(&failure::text_of(&error));
        Ok(Ran::Done)
    }

    /// Runs a command that works with keys in the transaction that is open.
    fn run_inside(
        &mut self,
        command: &Command,
        handler: Handler,
        arguments: Arguments<'_>,
        inside: Inside,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let Inside { span, now, .. } = inside;
        let (database, writes) = (self.client.database, command.is(WRITE));
        // A quick way to write is one operation: it has no levels, and writes one key of a one-shot transaction.
        let is_quick = !writes || span == Span::OneShot && command.keys == command::ONE;
        let mut body = |session: &mut Session, effects: &mut Effects| {
            let mut keys = Keys::new(session, effects, database, now, writes);
            if let (Some(quick), true) = (command.runs.quick, is_quick) {
                if quick(&mut keys, arguments, replies)? {
                    return Ok(());
                }
            }
            Ok(handler(&mut keys, arguments, replies)?)
        };
        let Context { session, effects, .. } = self;
        // What only reads leaves nothing to take back.
        if writes && span == Span::Whole {
            session.transaction(|session| body(session, effects))
        } else {
            body(session, effects)
        }
    }

    /// Runs a command that works with keys as a transaction of its own, of the cheapest kind that will do.
    #[inline]
    fn run_own(
        &mut self,
        command: &Command,
        handler: Handler,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let (database, now, writes) = (self.client.database, self.client.time(), command.is(WRITE));
        // Nobody waits for what runs aside; where too many do, it runs here.
        let is_loop = self.may_park && !self.server.crew().away().is_full();
        let patience = if is_loop { Patience::of_loop(command.is(WHOLE)) } else { Patience::Endless };
        // What posts messages takes a whole transaction, telling of changes too, and so does comparing what is watched; quick
        // ways tell of no events. Neither takes long values, of which each try would make a copy.
        let is_long = writes && arguments.extent() >= LONG_BYTES;
        let compares = self.client.compares();
        let tells = writes && self.effects.broadcasts();
        let is_plain = !command.is(POSTS) && !compares && !is_long && !tells;
        if is_plain && !self.effects.tells(command.runs.quick_tells) {
            if let Some(quick) = command.runs.quick {
                let mut keys = Keys::new(self.session, self.effects, database, now, false).with(patience);
                if quick(&mut keys, arguments, replies)? {
                    return Ok(());
                }
            }
        }
        // A key that is missed may be an event, and that a message.
        let posts = command.is(POSTS) || self.effects.notify & notify::MISSED != 0;
        let options = TransactionOptions { read_only: !writes && !posts, ..TransactionOptions::default() };
        let is_brief = is_plain && arguments.len() <= ATTEMPTED_ARGUMENTS;
        let plan = Plan { one_shot: is_brief, whole: Some(options) };
        let ended = self.transact(&plan, replies, |context, replies, _| {
            let mut keys = Keys::new(context.session, context.effects, database, now, writes).with(patience);
            Ok(handler(&mut keys, arguments, replies)?)
        });
        ended.map(|_| ())
    }

    /// Counts a command that took so many nanoseconds, and keeps one that took long, for SLOWLOG and LATENCY.
    #[inline]
    pub(crate) fn count(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        reply: &[u8],
        took: u64,
    ) {
        let (thread, tally) = (self.client.seat.thread, &mut self.effects.tally);
        let end = self.server.measures().statistics().count_inside(thread, tally, reply);
        self.server.measures().statistics().count_looks(thread, &mut self.effects.looks);
        self.server.measures().statistics().count(thread, command::number(command, arguments), took, end);
        let live = self.server.rules().live();
        let (slow, delayed) =
            (live.number(Name::SlowlogLogSlowerThan), live.number(Name::LatencyMonitorThreshold));
        let micros = (took / 1_000) as i64;
        if slow >= 0 && micros >= slow {
            self.keep_slow(command, arguments, Duration::from_nanos(took));
        }
        if delayed > 0 && micros / 1_000 >= delayed {
            let event = if command.is(FAST) { "fast-command" } else { "command" };
            self.server.measures().statistics().delayed(event, Duration::from_nanos(took));
        }
    }

    /// A command has committed that ran aside, or was called by a script that goes on: who is to be told of all keys is told
    /// now, and not at the script's end.
    fn tell_changes(&mut self) {
        // A loop hears between two commands that it is to gather what they change; this one may have not.
        if self.server.commons().broadcast().was_turned_on(self.effects.broadcast) {
            // A database that takes no message any more takes no changes, either.
            let _ = broadcast::send_all(self.session, self.effects);
        }
        if !self.effects.letters.is_empty() {
            self.effects.post_changes(self.server.crew());
        }
    }

    #[cold]
    fn keep_slow(&mut self, command: &Command, arguments: Arguments<'_>, took: Duration) {
        let most = self.server.rules().live().number(Name::SlowlogMaxLen);
        // A database that takes no writes keeps none.
        let _ = slowlog::keep(self.session, self.client, command, arguments, took, most);
    }

    /// Shows a command to those who see all, but what operators do and what has passwords; what a script that is atomic has
    /// called they see once that has committed.
    #[inline]
    pub(crate) fn show(&mut self, command: &Command, arguments: Arguments<'_>, by_script: bool) {
        if !self.server.commons().monitors().is_empty() && !is_private(command, arguments) {
            monitoring::show(self, arguments, by_script);
        }
    }
}
