//! CLIENT TRACKING with BCAST, between servers: who is told of changed keys, whether or not anybody has read them.
//!
//! An event loop that has such clients says so at `^redis("broadcast",server,thread)`. Who changes keys gathers their names
//! (`Effects`), finds those loops at the end of its transaction, and tells them: its own server's by letter, others by a
//! message that leaves with the commit. Whether there is anybody to look for is one word of the server, the [`Switch`]. Who
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
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::sync::Arc;

use perilune::{Cursor, Node, Session};
use perilune_resp::{parse_integer, Arguments};

use crate::effects::Effects;
use crate::failure::Result;
use crate::keyspace::NAME;
use crate::limits::CHANGED_BYTES;
use crate::mailbox::Letter;
use crate::peers;
use crate::server::Server;

/// A key that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The client that changed it, and knows; 0: none does.
    pub(crate) by: i64,
    pub(crate) key: Vec<u8>,
}

/// What has changed; none: anything.
pub(crate) type Changes = Option<Vec<Change>>;

/// Whether a server's commands gather what they change: an odd number, another one each time that it is turned.
#[derive(Debug, Default)]
pub(crate) struct Switch(AtomicU64);

impl Switch {
    /// A loop has turned it on itself when it was asked; others ask again by [`Switch::was_turned_on`].
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Somebody is to be told from now on.
    pub(crate) fn turn_on(&self) {
        let next = |state: u64| Some(if is_on(state) { state + 2 } else { state + 1 });
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        // Pairs with the fence of `was_turned_on`.
        fence(Ordering::SeqCst);
    }

    /// A transaction that began in this state has found nobody. If somebody was announced since then, it stays on.
    pub(crate) fn turn_off(&self, state: u64) {
        let _ = self.0.compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether it was off in this state, and has been turned since: for those who do not hear between two commands, and
    /// have committed something.
    pub(crate) fn was_turned_on(&self, state: u64) -> bool {
        // Either this sees the switch turned, or who is answered behind that sees what was committed.
        fence(Ordering::SeqCst);
        !is_on(state) && self.state() != state
    }
}

/// Whether this is the state of a switch that is on.
#[inline]
pub(crate) fn is_on(state: u64) -> bool {
    state & 1 == 1
}

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
            peers::tell(session, server, words(&changes))?;
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

impl Change {
    /// What it takes in memory and in a message, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + 48
    }
}

/// Changes as a server tells another of them: nothing but the head if anything may have changed.
fn words(changes: &Changes) -> Vec<Vec<u8>> {
    let mut words = vec![b"changed".to_vec()];
    for Change { by, key } in changes.iter().flatten() {
        words.push(by.to_string().into_bytes());
        words.push(key.clone());
    }
    words
}

fn parse(words: Arguments<'_>) -> Changes {
    let (mut changes, mut words) = (Vec::new(), words.iter().skip(1));
    while let (Some(by), Some(key)) = (words.next(), words.next()) {
        changes.push(Change { by: parse_integer(by)?, key: key.to_vec() });
    }
    (!changes.is_empty()).then_some(changes)
}

/// Hands the loops what another server has told.
pub(crate) fn hear(server: &Server, words: Arguments<'_>) {
    let changes = Arc::new(parse(words));
    for mailbox in &server.mailboxes {
        mailbox.post(Letter::Changed(Arc::clone(&changes)));
    }
}

/// What this server was told has been dropped.
pub(crate) fn hear_nothing(server: &Server) {
    // It may have been that somebody is to be told.
    server.broadcast.turn_on();
    for mailbox in &server.mailboxes {
        mailbox.post(Letter::Changed(Arc::new(None)));
    }
}

/// A server is dead: it has nobody to tell, and may not have told all.
pub(crate) fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    session.delete_tree(&loops()?.with(server)?)
}

#[cfg(test)]
mod tests {
    use perilune_resp::ArgumentsBuf;

    use super::*;

    #[test]
    fn changes_are_heard_as_they_were_told() {
        let change = |by, key: &[u8]| Change { by, key: key.to_vec() };
        for changes in [None, Some(vec![change(0, b"")]), Some(vec![change(7, b"a\r\n"), change(-1, b"b")])] {
            let told: ArgumentsBuf = words(&changes).iter().collect();
            assert_eq!(parse(told.as_arguments()), changes);
        }
    }

    #[test]
    fn a_switch_is_not_turned_off_by_who_has_not_seen_it_turned() {
        let switch = Switch::default();
        let off = switch.state();
        assert!(!is_on(off) && !switch.was_turned_on(off));
        switch.turn_on();
        let first = switch.state();
        assert!(is_on(first) && switch.was_turned_on(off) && !switch.was_turned_on(first));
        switch.turn_on();
        switch.turn_off(first);
        assert!(is_on(switch.state()), "somebody else was announced");
        switch.turn_off(switch.state());
        assert!(!is_on(switch.state()) && switch.was_turned_on(off), "it was on meanwhile");
    }
}
