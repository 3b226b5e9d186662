//! CLIENT TRACKING with BCAST, between servers: who is told of changed keys, whether or not anybody has read them.
//!
//! An event loop that has such clients says so at `^redis("broadcast",server,thread)`. Who changes keys gathers their names
//! (`Effects`), finds those loops at the end of its transaction, and tells them: its own server's by letter, others by a
//! message that leaves with the commit. Whether there is anybody to look for is one word of the server (`invalidation::Switch`). Who
//! turns it on is the first client: it asks all loops of all servers, and is answered when all have heard.
//!
//! Invariants
//! - A client is told that it tracks only when the switches of all living servers are on, and stay so until a transaction
//!   has found nobody: a command that begins then gathers what it changes.
//! - A command that found the switch off and at its end finds that it was turned meanwhile tells of all keys. A loop need not
//!   look: it hears between two commands.
//! - A change whose message may be lost is told as one of all keys: of a server that was killed, or whose messages were dropped.
//!
//! What if we are killed? Before the commit nothing has changed, with it the message is on its way; clients of ours are gone
//! with us, and know. What a killed server may not have got to tell, who sweeps it tells as all keys.
//!
//! Deliberately absent: changes by node, of programs, scripts and PERILUNE.*: who writes a node does not ask whether anybody
//! is to be told, and a watch does not say what was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use perilune::{Cursor, Node, Session};
use perilune_resp::Arguments;

use crate::effects::Effects;
use crate::failure::Result;
use crate::invalidation::{change, Change, Changes};
use crate::limits::CHANGED_BYTES;
use crate::mailbox::Letter;
use crate::name::NAME;
use crate::peers;
use crate::server::Server;
use perilune_net::crew::Crew;

fn loops() -> perilune::Result<Node> {
    Node::new(NAME)?.with("broadcast")
}

/// Notes that a loop has clients to tell.
pub(crate) fn note(session: &mut Session, server: i64, thread: usize) -> perilune::Result<()> {
    session.set(&loops()?.with(server)?.with(thread as i64)?, true)
}

/// Notes that it has none any more.
pub(crate) fn unnote(session: &mut Session, server: i64, thread: usize) -> perilune::Result<()> {
    session.delete_value(&loops()?.with(server)?.with(thread as i64)?).map(drop)
}

/// The loops to tell, by server.
fn noted(session: &mut Session) -> perilune::Result<BTreeMap<i64, Vec<usize>>> {
    let mut cursor = Cursor::subtree(&loops()?).without_values();
    let mut servers: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    while cursor.next(session)? {
        if let [_, server, thread] = &cursor.node()?.subscripts()?[..] {
            if let (Some(server), Some(thread)) = (server.as_i64(), thread.as_i64()) {
                servers.entry(server).or_default().push(thread as usize);
            }
        }
    }
    Ok(servers)
}

/// Whether there is anybody to tell: what a server that starts begins with.
pub(crate) fn has_any(session: &mut Session) -> perilune::Result<bool> {
    Ok(!noted(session)?.is_empty())
}

/// Tells of changes, in the open transaction; false if there is nobody to tell.
pub(crate) fn send(session: &mut Session, effects: &mut Effects, changes: Changes) -> Result<bool> {
    let servers = noted(session)?;
    if servers.is_empty() {
        return Ok(false);
    }
    // Whoever forgets everything forgets these.
    let is_short = |changes: &Vec<Change>| changes.iter().map(Change::bytes).sum::<usize>() <= CHANGED_BYTES;
    let changes = Arc::new(changes.filter(is_short));
    for (server, threads) in servers {
        if server == effects.home {
            let letters = threads.into_iter().map(|thread| (thread, Letter::Changed(Arc::clone(&changes))));
            effects.letters.extend(letters);
        } else {
            peers::tell(session, server, change::words(&changes))?;
        }
    }
    Ok(true)
}

/// Tells that any key may have changed, in a transaction of its own.
pub(crate) fn send_all(session: &mut Session, effects: &mut Effects) -> perilune::Result<()> {
    let before = effects.mark();
    session.transaction(|session| {
        effects.rewind(before);
        send(session, effects, None)?;
        Ok(())
    })
}

/// Hands the loops what another server has told.
pub(crate) fn hear(crew: &Crew<Letter>, words: Arguments<'_>) {
    let changes = Arc::new(change::parse(words));
    for mailbox in crew.mailboxes().iter() {
        mailbox.post(Letter::Changed(Arc::clone(&changes)));
    }
}

/// What this server was told has been dropped.
pub(crate) fn hear_nothing(server: &Server) {
    // It may have been that somebody is to be told.
    server.commons().broadcast().turn_on();
    for mailbox in server.crew().mailboxes().iter() {
        mailbox.post(Letter::Changed(Arc::new(None)));
    }
}

/// A server is dead: it has nobody to tell, and may not have told all.
pub(crate) fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    session.delete_tree(&loops()?.with(server)?)
}
