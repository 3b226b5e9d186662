//! Every command of every client is looked up, checked and run here.
//!
//! Invariants
//! - Each command appends exactly one reply, whatever happens; one that parks its connection does so later.
//! - A command that works with keys runs as one transaction, again when it meets a concurrent change;
//!   its reply is that of the run that was committed.

use std::borrow::Cow;
use std::time::Duration;

use perilune::{Session, TransactionOptions};
use perilune_resp::{Arguments, Protocol, Replies};

use crate::busy_pages::is_held;
use crate::command::{
    self, Command, ADMITTED, FAST, GROWS, IMMEDIATE, NO_MULTI, POSTS, SUBSCRIBED, WHOLE, WRITE,
};
use crate::context::Context;
use crate::eviction;
use crate::failure;
use crate::handler::{Handler, Run};
use crate::keyspace::Keys;
use crate::limits::{ASIDE_BYTES, LONG_BYTES, LONG_COMMANDS, LONG_QUEUE_BYTES, QUEUE_BYTES};
use crate::monitoring;
use crate::notify;
use crate::patience::Patience;
use crate::refusals::{full_name, only_subscribed, unknown, unknown_word, wrong_number};
use crate::secrets::is_private;
use crate::settings::Name;
use crate::slowlog;
use crate::statistics::End;
use crate::stopwatch::Stopwatch;
use crate::tracking::broadcast;

const QUEUED_TOO_MUCH: &str = "ERR the commands queued behind MULTI take too much memory";

impl Context<'_> {
    /// Runs one command and appends its reply to `out`.
    pub(crate) fn execute(&mut self, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let mut replies = Replies::new(out, self.client.protocol).up_to(self.client.replies_end);
        self.effects.begin(self.server);
        let Some(command) = command::find(&arguments[0]) else {
            self.refused(None, &unknown(arguments), &mut replies);
            return;
        };
        let number = Some(command::number(command, arguments));
        if !command.takes(arguments.len()) {
            self.refused(number, &wrong_number(command.name), &mut replies);
            return;
        }
        if let (false, Some(word)) = (command.words.is_empty(), arguments.get(1)) {
            let Some(known) = command.words.iter().find(|known| word.eq_ignore_ascii_case(known.as_bytes()))
            else {
                self.refused(None, &unknown_word(command.name, word), &mut replies);
                return;
            };
            self.client.command = Some((command.name, known));
        } else {
            self.client.command = Some((command.name, ""));
        }
        if !self.client.authenticated && !command.is(ADMITTED) {
            self.refused(number, "NOAUTH Authentication required.", &mut replies);
            return;
        }
        let place = if self.client.queue.is_some() { "multi" } else { "toplevel" };
        if let Err(text) = self.permit(command, arguments, place) {
            self.refused(number, &text, &mut replies);
            return;
        }
        let subscribed = self.client.topics.is_some() && self.client.protocol == Protocol::Resp2;
        if subscribed && !command.is(SUBSCRIBED) {
            self.refused(number, &only_subscribed(&full_name(command, arguments)), &mut replies);
            return;
        }
        if eviction::is_limited(self.server) && !self.has_room(command, arguments) {
            self.refuse_for_memory(command, number, &mut replies);
            return;
        }
        match &mut self.client.queue {
            Some(_) if command.is(NO_MULTI) => {
                self.refused(number, "ERR Command not allowed inside a transaction", &mut replies);
            }
            Some(queue) if !command.is(IMMEDIATE) => {
                let arguments = arguments.to_owned();
                queue.bytes += arguments.bytes();
                if queue.bytes > QUEUE_BYTES {
                    return self.refused(number, QUEUED_TOO_MUCH, &mut replies);
                }
                queue.long |= command.takes_long(arguments.as_arguments())
                    || queue.commands.len() >= LONG_COMMANDS
                    || queue.bytes > LONG_QUEUE_BYTES;
                queue.commands.push((command, arguments));
                replies.simple("QUEUED");
            }
            queue => {
                let long = command.takes_long(arguments)
                    || command.is_about_many(arguments.len()) && !self.server.away.is_full()
                    || queue.as_ref().is_some_and(|queue| queue.long) && command.name == "exec";
                // What would read more than this goes aside.
                self.session.limit_reads(ASIDE_BYTES);
                match long && self.may_park {
                    true => self.run_long(command, arguments, &mut replies),
                    false => self.run(command, arguments, &mut replies),
                }
                self.session.limit_reads(0);
            }
        }
    }

    /// Runs a command that may take long: at once if that is known to be short, else aside.
    fn run_long(&mut self, command: &'static Command, arguments: Arguments<'_>, replies: &mut Replies<'_>) {
        let in_place = command.runs.in_place.filter(|_| self.client.queue.is_none());
        if in_place.is_none_or(|attempt| !attempt(self, command, arguments, replies)) {
            self.go_aside(command, arguments);
        }
    }

    /// Leaves a command to a run aside, which begins it anew.
    #[cold]
    fn go_aside(&mut self, command: &'static Command, arguments: Arguments<'_>) {
        self.client.park();
        self.client.aside = Some(Box::new((command, arguments.to_owned())));
    }

    pub(crate) fn run(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) {
        // EXEC is shown behind what it runs.
        let is_exec = command.name == "exec";
        let is_shown = std::mem::take(&mut self.client.is_shown) || self.client.held_since.is_some();
        if !is_exec && !is_shown {
            self.show(command, arguments);
        }
        let start = replies.position();
        let is_done = self.perform(command, arguments, replies);
        if self.client.held {
            return;
        }
        if !is_done {
            self.client.is_shown = true;
            return self.go_aside(command, arguments);
        }
        self.conclude(command, arguments, replies.since(start));
        if is_exec {
            self.show(command, arguments);
        }
    }

    /// Runs a command that a script calls, no part of a transaction; it is timed by the script's stopwatch.
    #[inline]
    pub(crate) fn run_called(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
        stopwatch: &mut Stopwatch,
    ) {
        self.client.pass(stopwatch.lap());
        self.show(command, arguments);
        let start = replies.position();
        self.perform(command, arguments, replies);
        let took = stopwatch.lap();
        self.client.pass(took);
        self.count(command, arguments, replies.since(start), took);
    }

    /// Runs a command, whose reply may be an error, and what that is told to others; false: it would keep an event loop from
    /// others for long, and has done nothing.
    #[inline]
    fn perform(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) -> bool {
        let (start, before) = (replies.position(), self.effects.mark());
        self.effects.client = self.client.id;
        if !self.may_park {
            // A script may call many.
            self.effects.broadcast = self.server.broadcast.state();
        }
        // On a full disk it may use what is kept for that.
        let frees = command.is(WRITE) && !command.is(GROWS);
        if frees {
            self.session.free_up(true);
        }
        let outcome = match command.runs.run {
            Run::Connection(handler) => handler(self, arguments, replies).map_err(perilune::Error::from),
            Run::Keys(handler) => self.run_keys(command, handler, arguments, replies),
        };
        if frees {
            self.session.free_up(false);
        }
        if let Err(error) = outcome {
            replies.rewind(start);
            let is_held = self.client.held || self.puts_off(&error);
            let is_long = (error.is_long_read() || failure::takes_long(&error)) && self.may_park;
            if is_held || is_long {
                self.effects.rewind(before);
                self.effects.tally.clear();
                return is_held;
            }
            let held = self.held_for_long(&error);
            replies.error(&held.map_or_else(|| failure::text_of(&error), Cow::Owned));
        }
        // What only reads takes away nothing but what has expired, of which whoever asks from now on sees nothing.
        let changes = !command.is_on_keys() || command.is(WRITE);
        if !self.may_park && (changes || !self.effects.letters.is_empty()) {
            self.tell_changes();
        }
        true
    }

    /// A command has ended with `reply`: it is counted.
    pub(crate) fn conclude(&mut self, command: &'static Command, arguments: Arguments<'_>, reply: &[u8]) {
        self.client.held_since = None;
        let took = self.client.end_command();
        self.count(command, arguments, reply, took);
    }

    /// Counts a command that took so many nanoseconds.
    #[inline]
    fn count(&mut self, command: &'static Command, arguments: Arguments<'_>, reply: &[u8], took: u64) {
        let (thread, tally) = (self.client.seat.thread, &mut self.effects.tally);
        let end = self.server.statistics.count_inside(thread, tally, reply);
        self.server.statistics.count_looks(thread, &mut self.effects.looks);
        self.server.statistics.count(thread, command::number(command, arguments), took, end);
        self.note_delay(command, arguments, took);
    }

    /// A command has committed that ran aside, or was called by a script that goes on: who is to be told of all keys is told
    /// now, and not at the script's end.
    fn tell_changes(&mut self) {
        // A loop hears between two commands that it is to gather what they change; this one may have not.
        if self.server.broadcast.was_turned_on(self.effects.broadcast) {
            // A database that takes no message any more takes no changes, either.
            let _ = broadcast::send_all(self.session, self.effects);
        }
        if !self.effects.letters.is_empty() {
            self.effects.post_changes(self.server);
        }
    }

    /// Keeps a command that took long, for SLOWLOG and LATENCY.
    #[inline]
    fn note_delay(&mut self, command: &Command, arguments: Arguments<'_>, took: u64) {
        let live = &self.server.live;
        let (slow, delayed) =
            (live.number(Name::SlowlogLogSlowerThan), live.number(Name::LatencyMonitorThreshold));
        let micros = (took / 1_000) as i64;
        if slow >= 0 && micros >= slow {
            self.keep_slow(command, arguments, Duration::from_nanos(took));
        }
        if delayed > 0 && micros / 1_000 >= delayed {
            let event = if command.is(FAST) { "fast-command" } else { "command" };
            self.server.statistics.delayed(event, Duration::from_nanos(took));
        }
    }

    #[cold]
    fn keep_slow(&mut self, command: &Command, arguments: Arguments<'_>, took: Duration) {
        let most = self.server.live.number(Name::SlowlogMaxLen);
        // A database that takes no writes keeps none.
        let _ = slowlog::keep(self.session, self.client, command, arguments, took, most);
    }

    /// Shows a command to those who see all, but what operators do and what has passwords.
    #[inline]
    fn show(&mut self, command: &Command, arguments: Arguments<'_>) {
        if !self.server.monitors.is_empty() && !is_private(command, arguments) {
            monitoring::show(self, arguments, false);
        }
    }

    /// Shows a command that a script calls to those who see all; of a script that is atomic, once it has committed.
    #[inline]
    pub(crate) fn show_call(&mut self, command: &Command, arguments: Arguments<'_>) {
        if !self.server.monitors.is_empty() && !is_private(command, arguments) {
            monitoring::show(self, arguments, true);
        }
    }

    fn run_keys(
        &mut self,
        command: &Command,
        handler: Handler,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        if eviction::counts_uses(self.server) {
            self.note_uses(command, arguments);
        }
        let (start, database, now) = (replies.position(), self.client.database, self.client.time());
        // Nobody waits for what runs aside; where too many do, it runs here.
        let is_loop = self.may_park && !self.server.away.is_full();
        let patience = if is_loop { Patience::of_loop(command.is(WHOLE)) } else { Patience::Endless };
        let writes = command.is(WRITE);
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
        if is_plain && self.attempt_command((handler, patience), writes, arguments, replies)? {
            return Ok(());
        }
        // A key that is missed may be an event, and that a message.
        let posts = command.is(POSTS) || self.effects.notify & notify::MISSED != 0;
        let read_only = !writes && !posts;
        let options = TransactionOptions { read_only, ..TransactionOptions::default() };
        self.transaction(&options, |session, _, effects| {
            replies.rewind(start);
            let mut keys = Keys::new(session, effects, database, now, writes).with(patience);
            Ok(handler(&mut keys, arguments, replies)?)
        })
    }

    /// Runs one command inside the open transaction of EXEC, as a level of its own: what it wrote before
    /// it failed is taken back. Only a conflict is an error here.
    pub(crate) fn run_queued(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        now: i64,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        self.show(command, arguments);
        if let Err(text) = self.permit(command, arguments, "multi") {
            self.effects.tally.rejected(Some(command::number(command, arguments)), &text);
            replies.error(&format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {}",
                text.trim_start_matches("NOPERM ")
            ));
            return Ok(());
        }
        self.run_inside(command, arguments, now, replies)
    }

    /// Runs one command, which the client may run, inside the open transaction: scripts have asked before.
    pub(crate) fn run_inside(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        now: i64,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let (start, before) = (replies.position(), self.effects.mark());
        let outcome = match command.runs.run {
            Run::Connection(handler) => handler(self, arguments, replies).map_err(perilune::Error::from),
            Run::Keys(handler) => {
                if eviction::counts_uses(self.server) {
                    self.note_uses(command, arguments);
                }
                let (database, effects) = (self.client.database, &mut *self.effects);
                let writes = command.is(WRITE);
                let mut level = |session: &mut Session| {
                    let mut keys = Keys::new(session, effects, database, now, writes);
                    // Quick ways to write are for outside of transactions.
                    if let (Some(quick), false) = (command.runs.quick, writes) {
                        if quick(&mut keys, arguments, replies)? {
                            return Ok(());
                        }
                    }
                    Ok(handler(&mut keys, arguments, replies)?)
                };
                // What only reads leaves nothing to take back.
                if writes {
                    self.session.transaction(level)
                } else {
                    level(self.session)
                }
            }
        };
        match outcome {
            // NB: who waited in vain has not got through with any of it.
            Err(error) if error.is_retry() || is_held(&error) || error.is_long_read() => return Err(error),
            Err(error) => {
                self.effects.rewind(before);
                replies.rewind(start);
                replies.error(&failure::text_of(&error));
            }
            Ok(()) => {}
        }
        self.effects.tally.ended(command::number(command, arguments), replies.since(start));
        Ok(())
    }

    /// Answers that there is no memory; EXEC is over then.
    #[cold]
    fn refuse_for_memory(&mut self, command: &Command, number: Option<usize>, replies: &mut Replies<'_>) {
        if command.name != "exec" {
            return self.refused(number, eviction::FULL, replies);
        }
        self.client.queue = None;
        self.client.watched.clear();
        let text = format!("EXECABORT Transaction discarded because of: {}", eviction::FULL);
        self.refused(number, &text, replies);
    }

    /// Answers an error; behind MULTI that makes EXEC refuse.
    fn refused(&mut self, number: Option<usize>, text: &str, replies: &mut Replies<'_>) {
        if let Some(queue) = &mut self.client.queue {
            queue.failed = true;
        }
        self.server.statistics.count_error(text);
        if let Some(number) = number {
            let thread = self.client.seat.thread;
            self.server.statistics.count(thread, number, 0, End::Rejected);
        }
        replies.error(text);
    }
}
