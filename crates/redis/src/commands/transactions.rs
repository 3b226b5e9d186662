//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC is one transaction of the engine, in which what is watched ([`crate::watched`]) is compared; of a few commands that
//! need no more, a one-shot one.

use perilune::{FirstTry, TransactionOptions};
use perilune_resp::{Arguments, ArgumentsBuf, Replies};

use crate::client::Queue;
use crate::command::{self, Command, GOVERNS, POSTS};
use crate::context::Context;
use crate::execution::{Inside, Way};
use crate::failure::{refuse, refuse_with, Failure, Result};
use crate::limits::{ATTEMPTED_COMMANDS, LONG_BYTES};
use crate::refusals::wrong_number;
use crate::transact::{Plan, Span};
use crate::watched::Watched;
use perilune_net::clock::clock;

pub(crate) fn multi(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if context.client.queue.is_some() {
        return refuse("ERR MULTI calls can not be nested");
    }
    context.client.queue = Some(Queue::default());
    replies.simple("OK");
    Ok(())
}

pub(crate) fn discard(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if context.client.queue.take().is_none() {
        return refuse("ERR DISCARD without MULTI");
    }
    context.client.watched.clear();
    replies.simple("OK");
    Ok(())
}

pub(crate) fn exec(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let Some(queue) = context.client.queue.take() else { return refuse("ERR EXEC without MULTI") };
    let watched = std::mem::take(&mut context.client.watched);
    if queue.failed {
        return refuse("EXECABORT Transaction discarded because of previous errors.");
    }
    let outcome = run_queue(context, &queue, &watched, replies);
    if matches!(&outcome, Err(Failure::Database(error)) if context.puts_off(error) || error.is_long_read()) {
        // It runs again: here when the page is free, or aside.
        (context.client.queue, context.client.watched) = (Some(queue), watched);
    }
    outcome
}

/// Runs what is queued as one transaction: a few commands of keys as a one-shot one, if nobody is to be told of them and the
/// client may run them all.
fn run_queue(
    context: &mut Context<'_>,
    queue: &Queue,
    watched: &Watched,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let is_one_shot = |(command, arguments): &(&'static Command, ArgumentsBuf)| {
        command.is_on_keys() && !command.is(POSTS) && arguments.as_arguments().extent() < LONG_BYTES
    };
    let one_shot = queue.commands.len() <= ATTEMPTED_COMMANDS
        && !watched.broken
        && watched.is_short()
        && context.may_be_one_shot()
        && context.server.commons().monitors().is_empty()
        && context.client.is_unlimited(context.server.rules().acl())
        && queue.commands.iter().all(is_one_shot);
    let (now, plan) = (clock(), Plan { one_shot, whole: Some(TransactionOptions::default()) });
    // A run that is not the last may have changed the client: SELECT, CLIENT SETNAME, HELLO.
    let client = &*context.client;
    let before = (client.database, client.protocol, client.name.clone(), client.authenticated);
    let topics = client.topics.clone();
    let ended = context.transact(&plan, replies, |context, replies, span| {
        let client = &mut *context.client;
        client.database = before.0;
        client.protocol = before.1;
        client.name.clone_from(&before.2);
        client.authenticated = before.3;
        client.topics.clone_from(&topics);
        replies.speak(client.protocol);
        if watched.broken || !watched.holds(context.session, now)? {
            replies.null_array();
            return Ok(());
        }
        replies.array(queue.commands.len());
        for (command, arguments) in &queue.commands {
            run_queued(context, command, arguments.as_arguments(), (span, now), replies)?;
        }
        Ok(())
    });
    // A run that did not commit may have told this server of settings or users that are none.
    if queue.commands.iter().any(|(command, _)| command.is(GOVERNS)) {
        context.server.rules().live().load(context.session)?;
        context.server.rules().acl().load(context.session)?;
    }
    ended?;
    Ok(())
}

/// Runs one of the queued commands, unless the rules of users have changed since it was queued.
fn run_queued(
    context: &mut Context<'_>,
    command: &'static Command,
    arguments: Arguments<'_>,
    (span, now): (Span, i64),
    replies: &mut Replies<'_>,
) -> perilune::Result<()> {
    if let Err(text) = context.permit(command, arguments, "multi") {
        context.show(command, arguments, false);
        context.effects.tally.rejected(Some(command::number(command, arguments)), &text);
        replies.error(&format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {}",
            text.trim_start_matches("NOPERM ")
        ));
        return Ok(());
    }
    context.run(command, arguments, Way::Inside(Inside { span, now, by_script: false }), replies).map(|_| ())
}

pub(crate) fn watch(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    if context.client.queue.is_some() {
        return refuse("ERR WATCH inside MULTI is not allowed");
    }
    let (database, now) = (context.client.database, clock());
    // NB: what it reads is kept, and neighbours of that may change.
    let first_try = FirstTry::Whole;
    let options = TransactionOptions { read_only: true, first_try, ..TransactionOptions::default() };
    let (session, watched) = (&mut *context.session, &mut context.client.watched);
    let before = watched.mark();
    let outcome = session.transaction_with(&options, |session| {
        watched.rewind(before);
        for key in arguments.from(1).iter() {
            watched.add(session, database, key, now)?;
        }
        Ok(watched.gather(session, before, now)?)
    });
    outcome.inspect_err(|_| watched.rewind(before))?;
    replies.simple("OK");
    Ok(())
}

pub(crate) fn unwatch(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    if arguments.len() != 1 {
        return refuse_with(wrong_number("unwatch"));
    }
    context.client.watched.clear();
    replies.simple("OK");
    Ok(())
}
