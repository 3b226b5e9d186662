//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC is one transaction of the engine. WATCH remembers what its keys hold, as a digest of their nodes;
//! EXEC compares it inside its transaction. So what counts is the content: a key that was changed and
//! changed back is as it was, and a change made by node in another process counts like one by a command.

use std::ops::Bound;

use perilune::{NodeRef, Session, TransactionOptions};
use perilune_resp::{Arguments, Replies};
use sha2::{Digest, Sha256};

use crate::client::{Queue, Watched};
use crate::effects::Effects;
use crate::failure::{refuse, refuse_with, Result};
use crate::gate::{wrong_number, Context};
use crate::keyspace::{clock, Keys};
use crate::limits::WATCHED_KEYS;

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
    // A run that is not the last may have changed the client: SELECT, CLIENT SETNAME, HELLO.
    let client = &*context.client;
    let before = (client.database, client.protocol, client.name.clone(), client.authenticated);
    let topics = client.topics.clone();
    let (start, server, now) = (replies.position(), context.server, clock());
    context.transaction(&TransactionOptions::default(), |session, client, effects| {
        replies.rewind(start);
        client.database = before.0;
        client.protocol = before.1;
        client.name.clone_from(&before.2);
        client.authenticated = before.3;
        client.topics.clone_from(&topics);
        replies.speak(client.protocol);
        for key in &watched {
            if digest(session, key.database, &key.key, now)? != key.digest {
                replies.null_array();
                return Ok(());
            }
        }
        replies.array(queue.commands.len());
        let mut inside = Context { server, session, client, effects, may_park: false };
        for (command, arguments) in &queue.commands {
            inside.run_queued(command, arguments.as_arguments(), now, replies)?;
        }
        Ok(())
    })?;
    Ok(())
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
    for key in arguments.from(1).iter() {
        let known = |watched: &Watched| watched.database == database && watched.key == key;
        if context.client.watched.iter().any(known) {
            continue;
        }
        if context.client.watched.len() >= WATCHED_KEYS {
            return refuse_with(format!("ERR a client watches at most {WATCHED_KEYS} keys"));
        }
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        let digest =
            context.session.transaction_with(&options, |session| Ok(digest(session, database, key, now)?))?;
        context.client.watched.push(Watched { database, key: key.to_vec(), digest });
    }
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

/// What a key holds, in 32 bytes: all its nodes, with their lengths between them.
fn digest(session: &mut Session, database: i64, name: &[u8], now: i64) -> Result<[u8; 32]> {
    let mut effects = Effects::default();
    let mut keys = Keys::new(session, &mut effects, database, now, false);
    let key = keys.key(name)?;
    let mut digest = Sha256::new();
    if keys.open(&key)?.is_none() {
        return Ok(digest.finalize().into());
    }
    let (mut last, mut encoded) = (Vec::new(), Vec::new());
    loop {
        let from = if last.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(NodeRef::from_encoded(&last, false))
        };
        let Some((node, value)) = keys.session.first_entry(&key.node, from)? else { break };
        encoded.clear();
        value.encode_into(&mut encoded);
        for part in [node.encoded(), &encoded[..]] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let next = node.encoded().to_vec();
        last = next;
    }
    Ok(digest.finalize().into())
}
