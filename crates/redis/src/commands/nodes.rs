//! The family PERILUNE.*: nodes for programs that open a database by its server's address.
//!
//! What they do is in `perilune::remote`, where the client's half is, too. Here is who may, and where waits
//! happen: on a thread of their own, with a session that is the connection's, while it is parked.
//!
//! Invariants
//! - They reach every node of the database but what servers keep (`fence`), which is for operators, so that a server without a
//!   password serves them to clients of its own machine only.
//! - A wait ends within a second; the client asks again. So nothing keeps a server from ending, and a client
//!   that is gone holds its place no longer.
//! - A lock granted to a client that has ended meanwhile is released by the thread that got it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use perilune::remote::{Peer, Served, Waiting};
use perilune::{Durability, Session, TransactionOptions};
use perilune_resp::{Arguments, ArgumentsBuf, Protocol, Replies};

use crate::context::Context;
use crate::failure::{refuse, Result};
use crate::mailbox::Later;
use crate::nodes::{locked, Nodes};

const REMOTE: &str =
    "NOAUTH nodes are served to clients of other machines by servers with a password only: set \
                      `requirepass`";

/// Whether the client may reach nodes from where it is.
pub(super) fn admit(context: &Context<'_>) -> Result<()> {
    if !context.client.is_local && context.server.rules().is_open() {
        return refuse(REMOTE);
    }
    Ok(())
}

pub(crate) fn serve(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    admit(context)?;
    let (server, fence) = (Arc::clone(context.server), context.fence());
    let nodes = context.client.nodes.get_or_insert_with(|| {
        let peer = Peer::new(server.limits(), server.rules().bulk_bytes());
        Box::new(Nodes { peer, own: None, ended: Arc::default() })
    });
    nodes.peer.set_fence(fence.cloned());
    let waits = waits(&arguments[0]);
    if waits && nodes.own.is_none() {
        nodes.own = server.commons().waiters().session();
    }
    let room = waits && context.may_park && nodes.own.is_some() && server.commons().waiters().has_room();
    let waiting = if room { Waiting::Elsewhere } else { Waiting::Never };
    if !waits && !context.client.watched.is_empty() && tells(&arguments[0]) {
        return serve_watching(context, arguments, replies);
    }
    let Some(nodes) = &mut context.client.nodes else { return Ok(()) };
    let served = match nodes.own.as_ref().filter(|_| waits) {
        Some(own) => perilune::remote::serve(&mut locked(own), &mut nodes.peer, arguments, replies, waiting)?,
        None => perilune::remote::serve(context.session, &mut nodes.peer, arguments, replies, waiting)?,
    };
    let (Served::Waits, Some(own)) = (served, nodes.own.clone()) else { return Ok(()) };
    let (peer, ended) = (nodes.peer.clone(), Arc::clone(&nodes.ended));
    let (arguments, protocol) = (arguments.to_owned(), context.client.protocol);
    if let Some(later) = context.park_for_later() {
        if let Some(parked) = &mut context.client.parked {
            parked.gives_up = true;
        }
        server.commons().waiters().start(move || wait(&own, peer, &ended, &arguments, protocol, later));
    }
    Ok(())
}

/// Whether a request may have to wait, or is about a watch.
fn waits(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [b"LOCK", b"WAIT", b"WATCH", b"UNWATCH", b"RECEIVE", b"FOLLOW"];
    let word = name.get("PERILUNE.".len()..).unwrap_or_default();
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a request tells of nodes or changes them, so that WATCH is about it.
fn tells(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 12] = [
        b"SEE", b"GET", b"DATA", b"NEXT", b"PREV", b"WALK", b"SET", b"INCR", b"CAS", b"DEL", b"KILL",
        b"COMMIT",
    ];
    let word = name.get("PERILUNE.".len()..).unwrap_or_default();
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Serves a client that watches keys of Redis: in a transaction that compares these, too.
fn serve_watching(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let start = replies.position();
    // What a COMMIT asks of the disk is asked of the transaction around it.
    let waits_for_disk =
        arguments[0].to_ascii_lowercase().ends_with(b"commit") && arguments.get(2) == Some(b"1");
    let durability = waits_for_disk.then_some(Durability::Fsync);
    let options = TransactionOptions { durability, ..TransactionOptions::default() };
    context.transaction(&options, |session, client, _| {
        replies.rewind(start);
        let Some(nodes) = &mut client.nodes else { return Ok(()) };
        perilune::remote::serve(session, &mut nodes.peer, arguments, replies, Waiting::Never).map(drop)
    })?;
    Ok(())
}

/// Waits for a client whose connection is parked, and answers it.
fn wait(
    own: &Mutex<Session>,
    mut peer: Peer,
    ended: &AtomicBool,
    arguments: &ArgumentsBuf,
    protocol: Protocol,
    later: Later,
) {
    let mut out = Vec::new();
    let mut session = locked(own);
    let mut replies = Replies::new(&mut out, protocol);
    let served = perilune::remote::serve(
        &mut session,
        &mut peer,
        arguments.as_arguments(),
        &mut replies,
        Waiting::Here,
    );
    if ended.load(Ordering::SeqCst) {
        peer.end(&mut session);
    }
    if served.is_ok() {
        later.reply(out);
    }
}
