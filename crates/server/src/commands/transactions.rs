//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC is one transaction of the engine, in which what is watched ([`crate::watched`]) is compared; of a few commands that
//! need no more, a brief one.

use perilune::TransactionOptions;
use perilune_resp::{Arguments, Replies};

use crate::client::Queue;
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Failure, Result};
use crate::refusals::wrong_number;
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

/// Runs what is queued, as a transaction.
fn run_queue(
    context: &mut Context<'_>,
    queue: &Queue,
    watched: &Watched,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let now = clock();
    if !watched.broken && context.attempt_queue(queue, watched, now, replies)? {
        return Ok(());
    }
    // A run that is not the last may have changed the client: SELECT, CLIENT SETNAME, HELLO.
    let client = &*context.client;
    let before = (client.database, client.protocol, client.name.clone(), client.authenticated);
    let topics = client.topics.clone();
    let (start, server) = (replies.position(), context.server);
    let outcome = context.transaction(&TransactionOptions::default(), |session, client, effects| {
        replies.rewind(start);
        client.database = before.0;
        client.protocol = before.1;
        client.name.clone_from(&before.2);
        client.authenticated = before.3;
        client.topics.clone_from(&topics);
        replies.speak(client.protocol);
        if watched.broken || !watched.holds(session, now)? {
            replies.null_array();
            return Ok(());
        }
        replies.array(queue.commands.len());
        let mut inside = Context { server, session, client, effects, may_park: false };
        for (command, arguments) in &queue.commands {
            inside.run_queued(command, arguments.as_arguments(), now, replies)?;
        }
        Ok(())
    });
    // A run that did not commit may have told this server of settings or users that are none.
    if queue.commands.iter().any(|(command, _)| matches!(command.name, "config" | "acl")) {
        server.live.load(context.session)?;
        server.acl.load(context.session)?;
    }
    Ok(outcome?)
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
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
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
