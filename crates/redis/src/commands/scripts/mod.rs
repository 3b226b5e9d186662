//! EVAL and its kin, SCRIPT.
//!
//! A script is one transaction of the engine, run again from its start on conflict, with what it has answered
//! and asked to happen taken back. An error that it raises ends it, and what it has written stays, as in
//! Redis; one that is stopped leaves nothing.

pub(crate) mod in_place;

use std::time::Duration;

use perilune::{Serving, TransactionOptions};
use perilune_resp::{parse_integer, Arguments, Protocol, Replies};
use perilune_sandbox::{Form, Outcome, Run, Text};

use crate::context::Context;
use crate::eviction;
use crate::failure::{refuse, refuse_with, Failure, Result, NOT_INTEGER};
use crate::numbers::lower;
use crate::refusals::wrong_number;
use crate::scripts::calls::Caller;
use crate::scripts::header::Flags;
use crate::scripts::state::{is_by_sha, Script, State};
use crate::scripts::store;
use crate::scripts::watch::{self, Killed, Kind};
use crate::settings::Name;
use crate::stopwatch::Stopwatch;
use crate::transact::{Ended, Plan, Span};

/// Time for a script that may take any.
const UNLIMITED: Duration = Duration::from_secs(365 * 86_400);

/// What is run, and with what.
pub(crate) struct Work<'a> {
    pub(crate) run: Run<'a>,
    /// The command, if it runs a function.
    pub(crate) function: Option<Arguments<'a>>,
    pub(crate) flags: Flags,
    pub(crate) read_only: bool,
}

/// What a script is given: its keys, and behind them its other arguments.
pub(super) struct Given<'a> {
    texts: Vec<Text<'a>>,
    keys: usize,
}

impl<'a> Given<'a> {
    pub(super) fn keys(&self) -> &[Text<'a>] {
        &self.texts[..self.keys]
    }

    pub(super) fn rest(&self) -> &[Text<'a>] {
        &self.texts[self.keys..]
    }
}

/// The keys and the other arguments behind a number of keys at index 2.
pub(super) fn split(arguments: Arguments<'_>) -> Result<Given<'_>> {
    let Some(count) = parse_integer(&arguments[2]) else { return refuse(NOT_INTEGER) };
    let rest = arguments.from(3);
    if count < 0 {
        return refuse("ERR Number of keys can't be negative");
    }
    let keys = match usize::try_from(count) {
        Ok(count) if count <= rest.len() => count,
        _ => return refuse("ERR Number of keys can't be greater than number of args"),
    };
    Ok(Given { texts: rest.iter().map(Text::from).collect(), keys })
}

/// EVAL, EVALSHA, EVAL_RO, EVALSHA_RO.
pub(crate) fn eval(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let name = String::from_utf8_lossy(&lower(&arguments[0])).into_owned();
    let given = split(arguments)?;
    let server = context.server;
    let Some(mut state) = server.scripts().take(server) else {
        return refuse("OOM there is no memory for another script");
    };
    state.refresh(context.session)?;
    let script = if is_by_sha(&name) {
        let sha = String::from_utf8_lossy(&arguments[1]).to_ascii_lowercase();
        match state.by_sha(context.session, &sha)? {
            Some(script) => script,
            None => return refuse("NOSCRIPT No matching script. Please use EVAL."),
        }
    } else {
        state.by_source(context.session, &arguments[1])
    };
    let script = match script {
        Ok(script) => script,
        Err(text) => return refuse_with(text),
    };
    let work = script_work(&name, &script, &given, context.client.protocol);
    run(context, &mut state, work, replies)
}

/// What the command called so, in lower case, runs.
fn script_work<'a>(name: &str, script: &'a Script, given: &'a Given<'a>, protocol: Protocol) -> Work<'a> {
    Work {
        run: Run {
            code: script.code,
            form: Form::Script,
            number: 0,
            variant: protocol.number() as u8,
            name: &script.sha,
            keys: given.keys(),
            arguments: given.rest(),
        },
        function: None,
        flags: script.flags,
        read_only: name.ends_with("_ro") || script.flags.no_writes,
    }
}

/// Runs a script or a function.
pub(crate) fn run(
    context: &mut Context<'_>,
    state: &mut State,
    work: Work<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (server, now, database) = (context.server, context.client.time(), context.client.database);
    let is_full = eviction::is_limited(server.rules()) && !context.make_room(0) && !work.flags.allows_oom();
    if is_full && work.flags.declared && !work.read_only {
        return refuse(eviction::FULL);
    }
    let number = match work.function {
        Some(command) => state.watched.begin_function(server.measures().started(), work.run.name, command),
        None => state.watched.begin(server.measures().started(), Kind::Script),
    };
    server.scripts().wake();
    let traits = Traits { read_only: work.read_only, is_full, in_place: false, now };
    let run = Run { number, ..work.run };
    let outcome = if work.flags.non_atomic && context.session.depth() == 0 {
        run_by_commands(context, state, &run, &traits, replies)
    } else {
        let limit = server.rules().live().number(Name::ScriptTimeLimit);
        let timeout = if limit > 0 { Duration::from_millis(limit as u64 + 1_000) } else { UNLIMITED };
        let whole =
            TransactionOptions { read_only: work.read_only, timeout, ..TransactionOptions::default() };
        let plan =
            Plan { one_shot: context.may_be_one_shot() && state.may_attempt(run.code), whole: Some(whole) };
        run_as_one(context, state, &run, (&traits, &plan), replies).map(|ended| {
            if ended == Ended::As(Span::OneShot) {
                state.note_one_shot(run.code, context.client.active.elapsed());
            }
        })
    };
    state.watched.end();
    context.client.database = database;
    Ok(outcome?)
}

/// What a run is told besides its code.
struct Traits {
    read_only: bool,
    is_full: bool,
    /// The event loop waits for it.
    in_place: bool,
    now: i64,
}

impl Traits {
    /// The host of a run.
    fn host<'c>(&self, context: &'c mut Context<'_>) -> Caller<'c> {
        let Context { server, session, client, effects, .. } = context;
        let mut caller = Caller::new(server, session, client, effects, self.now);
        caller.read_only = self.read_only;
        caller.is_full = self.is_full;
        caller.in_place = self.in_place;
        caller
    }
}

/// Runs a script that is no transaction: each command that it calls is one.
fn run_by_commands(
    context: &mut Context<'_>,
    state: &mut State,
    run: &Run<'_>,
    traits: &Traits,
    replies: &mut Replies<'_>,
) -> perilune::Result<()> {
    let mut caller = traits.host(context);
    caller.context.client.resume();
    caller.stopwatch = Some(Stopwatch::start());
    let outcome = state.sandbox.run(run, &mut caller);
    if let Some(stopwatch) = caller.stopwatch.take() {
        caller.context.client.active = stopwatch.last();
    }
    match outcome {
        Outcome::Replied(bytes) => {
            replies.raw(bytes);
            Ok(())
        }
        Outcome::Ended | Outcome::Stopped => Err(stopped(state, run.name).into()),
    }
}

/// Runs a script as one transaction, from its start as often as it takes.
fn run_as_one(
    context: &mut Context<'_>,
    state: &mut State,
    run: &Run<'_>,
    (traits, plan): (&Traits, &Plan),
    replies: &mut Replies<'_>,
) -> perilune::Result<Ended> {
    let database = context.client.database;
    let (mut is_stopped, mut is_done) = (false, false);
    let ended = context.transact(plan, replies, |context, replies, span| {
        // What it reads may have changed meanwhile: that is no reason to begin again.
        if is_stopped {
            return Err(stopped(state, run.name).into());
        }
        context.client.database = database;
        is_done = false;
        let mut caller = traits.host(context);
        caller.span = span;
        match state.sandbox.run(run, &mut caller) {
            Outcome::Replied(bytes) => {
                drop(caller);
                is_done = span == Span::OneShot && !context.effects.is_unfinished();
                replies.raw(bytes);
                Ok(())
            }
            Outcome::Ended => {
                let failure = caller.failure.take().filter(|_| span == Span::Whole);
                Err(failure.unwrap_or(perilune::Error::Conflict))
            }
            Outcome::Stopped => {
                is_stopped = true;
                Err(stopped(state, run.name).into())
            }
        }
    });
    context.client.database = database;
    // One that met others, or came to its end at a page without room: that says nothing of the next run.
    let is_beyond = plan.one_shot && !is_done && !is_stopped && !context.session.was_disturbed();
    match (&ended, traits.in_place) {
        (Ok(Ended::As(Span::OneShot)), _) => {}
        (_, true) if is_beyond || ended.is_err() => state.stays_aside(run.code),
        (_, false) if is_beyond => state.is_beyond_one_shot(run.code),
        _ => {}
    }
    ended
}

/// What the client of a script that was stopped is told.
pub(super) fn stopped(state: &State, name: &str) -> Failure {
    let why = match (state.watched.why(), state.watched.kind()) {
        (watch::TIME, _) => "it ran longer than script-time-limit",
        (watch::SHUTDOWN, _) => "the server ends",
        (_, Kind::Script) => "Script killed by user with SCRIPT KILL",
        (_, Kind::Function) => "Script killed by user with FUNCTION KILL",
    };
    Failure::Reply(format!("ERR {why}: nothing that it wrote is kept. script: {name}").into())
}

/// SCRIPT LOAD, EXISTS, FLUSH, KILL, DEBUG.
pub(crate) fn script(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let word = lower(&arguments[1]);
    let rest = arguments.from(2);
    match (&*word, rest.len()) {
        (b"load", 1) => {
            let server = context.server;
            let Some(mut state) = server.scripts().take(server) else {
                return refuse("OOM there is no memory for another script");
            };
            state.refresh(context.session)?;
            match state.by_source(context.session, &rest[0]) {
                Ok(script) => {
                    store::keep(context.session, &script.sha, &rest[0])?;
                    replies.bulk(script.sha.as_bytes());
                }
                Err(text) => return refuse_with(text),
            }
        }
        (b"exists", 1..) => {
            replies.array(rest.len());
            for sha in rest.iter() {
                let sha = String::from_utf8_lossy(sha).to_ascii_lowercase();
                replies.truth(store::exists(context.session, &sha)?);
            }
        }
        (b"flush", 0 | 1) => {
            if rest.get(0).is_some_and(|how| !matches!(&*lower(how), b"sync" | b"async")) {
                return refuse("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
            }
            store::flush(context.session)?;
            context.client.scripts = None;
            replies.simple("OK");
        }
        (b"kill", 0) => {
            kill(context, Kind::Script)?;
            replies.simple("OK");
        }
        (b"debug", 1) => match &*lower(&rest[0]) {
            b"no" => replies.simple("OK"),
            b"yes" | b"sync" => return refuse("ERR there is no debugger of scripts here"),
            _ => return refuse("ERR Use SCRIPT DEBUG YES/SYNC/NO"),
        },
        (b"help", 0) => help(replies),
        _ => {
            let word = String::from_utf8_lossy(&word);
            return refuse_with(wrong_number(&format!("script|{word}")));
        }
    }
    Ok(())
}

/// Stops what runs for long of a kind.
pub(super) fn kill(context: &mut Context<'_>, kind: Kind) -> Result<()> {
    match (watch::kill(context.session, kind)?, kind) {
        (Killed::Some, _) => Ok(()),
        (Killed::Nothing, _) => refuse("NOTBUSY No scripts in execution right now."),
        (Killed::Others, Kind::Function) => {
            refuse("BUSY only scripts run for long, and no functions: they are stopped by SCRIPT KILL")
        }
        (Killed::Others, Kind::Script) => {
            refuse("BUSY only functions run for long, and no scripts: they are stopped by FUNCTION KILL")
        }
    }
}

fn help(replies: &mut Replies<'_>) {
    let lines = [
        "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "LOAD <script>",
        "    Keeps a script without running it; answers its SHA1.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Says which scripts are kept.",
        "FLUSH [ASYNC|SYNC]",
        "    Drops all scripts, of all servers of the database.",
        "KILL",
        "    Stops the scripts that run for long, on any server; nothing that they wrote is kept.",
        "DEBUG NO",
        "    There is no debugger.",
    ];
    replies.array(lines.len());
    for line in lines {
        replies.simple(line);
    }
}
