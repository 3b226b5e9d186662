//! The only way from a request to a command: looked up, checked, queued behind MULTI or run.
//!
//! ```text
//! GET a       unknown? wrong number? not let in? not allowed? no memory?   then refused, with one error
//!             behind MULTI?                                                then queued
//!             may it take long?                                            then run aside, on another thread
//!             else                                                         run here, at once
//! ```
//!
//! Invariants
//! - Each request gets exactly one reply, whatever happens; one that parks its connection gets it later.
//! - What is refused behind MULTI makes EXEC refuse.
//!
//! Deliberately absent: how a command runs (`execution`), and what scripts may call (`scripts::calls`).

use perilune::Serving;
use perilune_resp::{Arguments, Protocol, Replies};

use crate::command::{self, statements, Command, ADMITTED, IMMEDIATE, NO_MULTI, QUEUED, SUBSCRIBED};
use crate::context::Context;
use crate::eviction;
use crate::execution::{Ran, Way};
use crate::limits::{ASIDE_BYTES, LONG_COMMANDS, LONG_QUEUE_BYTES, QUEUE_BYTES};
use crate::refusals::{full_name, only_subscribed, unknown, unknown_word, wrong_number};
use crate::statistics::End;

const QUEUED_TOO_MUCH: &str = "ERR the commands queued behind MULTI take too much memory";

/// Why a request is not run: the number by which that is counted, and what its client is told.
type Refusal = (Option<usize>, String);

impl Context<'_> {
    /// Sees to one request, and appends its reply to `out`.
    pub(crate) fn execute(&mut self, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let mut replies = Replies::new(out, self.client.protocol).up_to(self.client.replies_end);
        self.effects.begin(self.server);
        match self.admit(arguments) {
            Err((number, text)) => self.refuse(number, &text, &mut replies),
            Ok(command) if self.client.queue.is_some() && !command.is(IMMEDIATE) => {
                self.queue(command, arguments, &mut replies);
            }
            Ok(command) => self.start(command, arguments, &mut replies),
        }
    }

    /// The command that a request is for, if its client may run it now.
    #[inline]
    fn admit(&mut self, arguments: Arguments<'_>) -> Result<&'static Command, Refusal> {
        let Some(command) = statements::of(arguments) else { return Err((None, unknown(arguments))) };
        let command = self.as_permitted(command, arguments);
        let refusal = |text| (Some(command::number(command, arguments)), text);
        if !command.takes(arguments.len()) {
            return Err(refusal(wrong_number(command.name)));
        }
        let word = match arguments.get(1).filter(|_| !command.words.is_empty()) {
            None => "",
            Some(given) => {
                match command.words.iter().find(|word| given.eq_ignore_ascii_case(word.as_bytes())) {
                    Some(word) => word,
                    None => return Err((None, unknown_word(command.name, given))),
                }
            }
        };
        self.client.command = Some((command.name, word));
        if !self.client.authenticated && !command.is(ADMITTED) {
            return Err(refusal("NOAUTH Authentication required.".to_owned()));
        }
        let place = if self.client.queue.is_some() { "multi" } else { "toplevel" };
        self.permit(command, arguments, place).map_err(refusal)?;
        let subscribed = self.client.topics.is_some() && self.client.protocol == Protocol::Resp2;
        if subscribed && !command.is(SUBSCRIBED) {
            return Err(refusal(only_subscribed(&full_name(command, arguments))));
        }
        if eviction::is_limited(self.server.rules()) && !self.has_room(command, arguments) {
            return Err(refusal(self.without_memory(command)));
        }
        if self.client.queue.is_some() && command.is(NO_MULTI) {
            return Err(refusal("ERR Command not allowed inside a transaction".to_owned()));
        }
        Ok(command)
    }

    /// Keeps a command for EXEC.
    fn queue(&mut self, command: &'static Command, arguments: Arguments<'_>, replies: &mut Replies<'_>) {
        let Some(queue) = &mut self.client.queue else { return };
        let arguments = arguments.to_owned();
        queue.bytes += arguments.bytes();
        if queue.bytes > QUEUE_BYTES {
            let number = command::number(command, arguments.as_arguments());
            return self.refuse(Some(number), QUEUED_TOO_MUCH, replies);
        }
        queue.long |= command.takes_long(arguments.as_arguments())
            || queue.commands.len() >= LONG_COMMANDS
            || queue.bytes > LONG_QUEUE_BYTES;
        queue.commands.push((command, arguments));
        replies.simple("QUEUED");
    }

    /// Runs a command in the event loop, or leaves it to another thread, where it begins anew.
    #[inline]
    fn start(&mut self, command: &'static Command, arguments: Arguments<'_>, replies: &mut Replies<'_>) {
        let queue = self.client.queue.as_ref();
        let is_long = command.takes_long(arguments)
            || command.is_about_many(arguments.len()) && !self.server.crew().away().is_full()
            || command.is(QUEUED) && queue.is_some_and(|queue| queue.long);
        // What would read more than this goes aside.
        self.session.limit_reads(ASIDE_BYTES);
        let is_seen_to = if is_long && self.may_park {
            let in_place = command.runs.in_place.filter(|_| self.client.queue.is_none());
            in_place.is_some_and(|attempt| attempt(self, command, arguments, replies))
        } else {
            !matches!(self.run(command, arguments, Way::Request, replies), Ok(Ran::TakesLong))
        };
        self.session.limit_reads(0);
        if !is_seen_to {
            self.client.park();
            self.client.aside = Some(Box::new((command, arguments.to_owned())));
        }
    }

    /// What a client is told where there is no memory; what it has queued is dropped with EXEC.
    #[cold]
    fn without_memory(&mut self, command: &Command) -> String {
        if !command.is(QUEUED) {
            return eviction::FULL.to_owned();
        }
        self.client.queue = None;
        self.client.watched.clear();
        format!("EXECABORT Transaction discarded because of: {}", eviction::FULL)
    }

    /// Answers an error; behind MULTI that makes EXEC refuse.
    #[cold]
    fn refuse(&mut self, number: Option<usize>, text: &str, replies: &mut Replies<'_>) {
        if let Some(queue) = &mut self.client.queue {
            queue.failed = true;
        }
        self.server.measures().statistics().count_error(text);
        if let Some(number) = number {
            let thread = self.client.seat.thread;
            self.server.measures().statistics().count(thread, number, 0, End::Rejected);
        }
        replies.error(text);
    }
}
