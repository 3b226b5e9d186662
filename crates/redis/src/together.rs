//! Requests of one client that have arrived together, run as one.
//!
//! A client that sends sixteen SETs at once pays for sixteen searches, records and publications, where MSET pays for one. So a
//! run of requests of one command is looked at before the first of it is run: where their row has a way to do them at one moment
//! ([`Together`]), they are one operation of the database, and are answered one by one. Other commands that are one operation
//! each (their *quick* way) share what surrounds a command: its place, the clock, what is looked up for it.
//!
//! ```text
//! SET a 1 | SET b 2 | SET a 3 | GET a      the SETs are one operation, of which the last value of `a` counts; then GET
//! LPUSH l x | LPUSH l y                    one operation at both ends of the list; answered with two lengths
//! INCR a | INCR b | INCR text | INCR c     two operations; then one that is refused, and the last
//! ```
//!
//! Invariants
//! - What each is answered, and what is there afterwards, is as if they had run one after another.
//! - Each is counted, with its part of the time, and has its own error.
//! - At most [`TOGETHER`] requests and [`TOGETHER_BYTES`], asked or answered, run as one: the first reply does not wait for long.
//! - What came to nothing has done nothing; those requests then run one by one, and are not tried together again.
//!
//! Deliberately absent: whatever has to be seen, compared or told for each command - MULTI, WATCH, tracking, events, MONITOR,
//! `maxmemory`, rules of users. Where any of that is on, requests run one by one.

use perilune::Serving;
use perilune_net::protocol::{Output, Progress};
use perilune_resp::{Arguments, Replies, RequestParser};

use crate::client::{Client, ReplyMode};
use crate::command::{self, Command, WHOLE};
use crate::context::Context;
use crate::eviction;
use crate::failure::{self, Failure};
use crate::handler::{Quick, Together};
use crate::keyspace::Keys;
use crate::limits::{LONG_BYTES, LOOP_WAIT, TOGETHER, TOGETHER_BYTES};
use crate::loop_state::LoopState;
use crate::patience::Patience;

impl LoopState {
    /// Whether a request with others behind it may be run with them.
    #[inline]
    pub(crate) fn may_gather(&mut self, first: Arguments<'_>) -> bool {
        let is_last = |last: &&Command| first[0].eq_ignore_ascii_case(last.name.as_bytes());
        let Some(command) = self.ahead.last.filter(is_last).or_else(|| command::find(&first[0])) else {
            return false;
        };
        self.ahead.last = Some(command);
        Shared::of(command).is_some()
    }

    /// Runs the requests in `bytes` that are of one command and can be run as one; the first has been parsed and takes
    /// `used` bytes. None: it is to run alone.
    #[inline(never)]
    pub(crate) fn run_together(
        &mut self,
        client: &mut Client,
        first: Arguments<'_>,
        used: usize,
        bytes: &[u8],
        output: &mut Output<'_>,
    ) -> Option<Progress> {
        let command = self.ahead.last.filter(|command| command.takes(first.len()))?;
        let shared = Shared::of(command)?;
        if self.ahead.alone > 0 {
            self.ahead.alone -= 1;
            return None;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        let (mut requests, mut ends) = ([first; TOGETHER], [used; TOGETHER]);
        let mut count = 1;
        ahead.parsers.resize_with(TOGETHER - 1, || RequestParser::new(self.server.rules().bulk_bytes()));
        for parser in &mut ahead.parsers {
            let begin = ends[count - 1];
            let rest = bytes.get(begin..).unwrap_or_default();
            let Ok(perilune_resp::Progress::Complete { used }) = parser.parse(rest, true) else {
                *parser = RequestParser::new(self.server.rules().bulk_bytes());
                break;
            };
            let arguments = parser.arguments(rest);
            let is_same = arguments.get(0).is_some_and(|name| name.eq_ignore_ascii_case(&first[0]));
            if !is_same || !command.takes(arguments.len()) || begin + used > TOGETHER_BYTES {
                break;
            }
            (requests[count], ends[count]) = (arguments, begin + used);
            count += 1;
        }
        let mut ran = 0;
        if count > 1 {
            self.session.set_wait_limit(LOOP_WAIT);
            ran = self.context(client).execute_together(command, shared, &requests[..count], output.bytes);
            self.session.set_wait_limit(self.server.rules().wait_limit());
            if ran == 0 {
                ahead.alone = count - 1;
            }
        }
        self.ahead = ahead;
        self.commands += ran as u64;
        ran.checked_sub(1).map(|last| Progress::Ran(ends[last]))
    }
}

impl Context<'_> {
    /// Runs requests of one command as one, and appends their replies; how many of them it was.
    fn execute_together(
        &mut self,
        command: &'static Command,
        shared: Shared,
        requests: &[Arguments<'_>],
        out: &mut Vec<u8>,
    ) -> usize {
        self.effects.begin(self.server);
        if !self.may_be_together(command) {
            return 0;
        }
        let mut replies = Replies::new(out, self.client.protocol).up_to(self.client.replies_end);
        let start = replies.position();
        let (database, now) = (self.client.database, self.client.time());
        let patience = Patience::of_loop(false);
        let mut keys = Keys::new(self.session, self.effects, database, now, false).with(patience);
        let mut ran = 0;
        while ran < requests.len() {
            let (part, before) = (replies.position(), keys.effects.mark());
            let rest = &requests[ran..];
            let answered = match shared {
                Shared::Operation(together) => together(&mut keys, rest, &mut replies).unwrap_or(0),
                Shared::Surroundings(quick) => run_each(quick, &mut keys, rest, &mut replies),
            };
            ran += answered;
            if answered == 0 {
                replies.rewind(part);
                keys.effects.rewind(before);
                break;
            }
            // The next one has been tried, and is its handler's.
            if matches!(shared, Shared::Surroundings(_)) {
                break;
            }
        }
        if ran == 0 {
            return 0;
        }
        self.client.command = Some((command.name, ""));
        let took = self.client.end_command() / ran as u64;
        for arguments in &requests[..ran] {
            self.count(command, *arguments, replies.since(start), took);
        }
        ran
    }

    /// Whether nothing has to be seen, compared or told for each of several commands of the client.
    fn may_be_together(&self, command: &Command) -> bool {
        let (client, rules, commons) = (&*self.client, self.server.rules(), self.server.commons());
        let is_free = client.authenticated && client.is_unlimited(rules.acl()) && client.queue.is_none();
        let is_quiet = client.topics.is_none() && client.tracking.is_none() && !client.compares();
        let is_told = client.reply_mode == ReplyMode::On && client.held_since.is_none() && !client.is_shown;
        let is_unseen = commons.monitors().is_empty() && commons.pause().state().is_none();
        let is_plain = !eviction::is_limited(rules) && !eviction::counts_uses(rules);
        let tells = self.effects.broadcasts() || self.effects.tells(command.runs.quick_tells);
        is_free && is_quiet && is_told && is_unseen && is_plain && !tells
    }
}

/// What requests of one command share.
#[derive(Clone, Copy)]
enum Shared {
    /// They are one operation.
    Operation(Together),
    /// They are one operation each, of a command on one key.
    Surroundings(Quick),
}

impl Shared {
    #[inline]
    fn of(command: &Command) -> Option<Shared> {
        let is_small = command.keys == command::ONE && !command.is(WHOLE);
        let quick = command.runs.quick.filter(|_| is_small).map(Shared::Surroundings);
        command.runs.together.map(Shared::Operation).or(quick)
    }
}

/// Runs requests by the quick way of their command, up to one that it does not suffice for; how many of them.
fn run_each(
    quick: Quick,
    keys: &mut Keys<'_>,
    requests: &[Arguments<'_>],
    replies: &mut Replies<'_>,
) -> usize {
    let first = replies.position();
    for (ran, arguments) in requests.iter().enumerate() {
        let (start, before) = (replies.position(), keys.effects.mark());
        if start - first > TOGETHER_BYTES || arguments.extent() >= LONG_BYTES {
            return ran;
        }
        match quick(keys, *arguments, replies) {
            Ok(true) => {}
            Err(Failure::Database(error)) if failure::has_happened(&error) => {
                replies.rewind(start);
                replies.error(&failure::text_of(&error));
            }
            // Its own handler answers, whatever that is.
            Ok(false) | Err(_) => {
                replies.rewind(start);
                keys.effects.rewind(before);
                return ran;
            }
        }
    }
    requests.len()
}
