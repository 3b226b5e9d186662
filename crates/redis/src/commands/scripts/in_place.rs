//! EVAL and its kin in the event loop itself: no thread leaves its loop for a script that is known to be short.
//!
//! A script whose last runs aside were one-shot transactions is tried once, in a one-shot transaction on the loop's own session. One that
//! takes longer than a loop can be spared for is stopped as any other (`scripts::watch`), has done nothing, and runs from
//! its start aside. So does what is not plain: what is not compiled yet, shows its commands to somebody, compares keys,
//! may be short of memory, or asks for more than commands.
//!
//! Invariants
//! - An attempt that fails leaves nothing behind, neither a reply nor an effect.
//! - Behind one that took long all scripts go aside for a while (`scripts::loop_pause`).

use std::time::Duration;

use perilune_resp::{Arguments, Replies};

use super::{run_as_one, script_work, split, Traits};
use crate::command::Command;
use crate::context::Context;
use crate::eviction;
use crate::execution::Way;
use crate::scripts::loop_pause::sampled_thread_time;
use crate::scripts::watch::IN_PLACE;
use crate::transact::{Ended, Plan};
use perilune_net::processor::thread_time;

/// Runs a script to its end; false: it is to run aside.
pub(crate) fn attempt(
    context: &mut Context<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> bool {
    let (server, begun) = (context.server, context.client.active);
    let since = begun.saturating_duration_since(server.measures().started());
    let is_plain = !server.scripts().rest.lasts(since)
        && context.may_be_one_shot()
        && server.commons().monitors().is_empty()
        && !eviction::is_limited(server.rules());
    if !is_plain {
        return false;
    }
    // Errors are told aside.
    let Ok(given) = split(arguments) else { return false };
    let Some(mut state) = server.scripts().take_made(server) else { return false };
    // What a visit asks for has come before it, and asks for one generation.
    if context.client.scripts != Some(state.generation()) {
        if state.refresh(context.session).is_err() {
            return false;
        }
        context.client.scripts = Some(state.generation());
    }
    let Some(script) = state.compiled(command.name, &arguments[1]) else { return false };
    if script.flags.non_atomic || !state.may_be_in_place(script.code) {
        return false;
    }
    let start = replies.position();
    let work = script_work(command.name, &script, &given, context.client.protocol);
    let mut run = work.run;
    let worked = sampled_thread_time(begun);
    run.number = state.watched.begin_in_place(since);
    server.scripts().wake();
    let traits =
        Traits { read_only: work.read_only, is_full: false, in_place: true, now: context.client.time() };
    let plan = Plan { one_shot: true, whole: None };
    let ended = run_as_one(context, &mut state, &run, (&traits, &plan), replies);
    state.watched.end();
    drop(state);
    if !matches!(ended, Ok(Ended::As(_))) {
        note_delay(context, begun.elapsed(), worked);
        return false;
    }
    context.end(command, arguments, Way::Request, replies.since(start));
    note_delay(context, context.client.active.saturating_duration_since(begun), worked);
    true
}

/// An attempt took so long; no more of that is its own than the thread has worked beyond `worked`.
fn note_delay(context: &Context<'_>, took: Duration, worked: Duration) {
    if took > IN_PLACE {
        let own = took.min(thread_time().saturating_sub(worked));
        if own > IN_PLACE {
            context.server.scripts().rest.begin(context.server.measures().started().elapsed(), own);
        }
    }
}
