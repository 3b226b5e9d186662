//! Requests of a client about locks and watches.
//!
//! Problem: LOCK and WAIT may have to wait, and the thread that answers may serve other clients. Idea: who calls
//! says what is to become of such a request ([`Waiting`]). A thread of the client's own waits here; an event loop
//! gets [`Served::Waits`] at once and calls again with the same request on a thread that may wait.
//!
//! Invariant: with [`Waiting::Elsewhere`] and [`Waiting::Never`] nothing here waits.

use std::time::Duration;

use perilune_resp::Replies;
use perilune_store::{Error as StoreError, LockMode};

use super::messages::{self, Patience};
use super::serve::{invalid, Peer, Served, Waiting};
use crate::limits::REMOTE_WATCHES;
use crate::{LockOwners, Result, Session, WatchScope};

/// Runs one request whose name and arguments are given.
pub(super) fn run(
    session: &mut Session,
    peer: &mut Peer,
    name: &[u8],
    given: &[&[u8]],
    replies: &mut Replies<'_>,
    waiting: Waiting,
) -> Result<Served> {
    if let Some(served) = messages::run(session, name, given, replies, waiting)? {
        return Ok(served);
    }
    match (name, given) {
        (b"UNLOCK", [owner, name]) => {
            let owner = peer.owner(session, owner)?;
            replies.truth(session.unlock_as(owner, peer.locked(name)?)?);
        }
        (b"UNLOCKALL", [owner]) => {
            let owner = peer.owner(session, owner)?;
            session.unlock_all(owner)?;
            replies.simple("OK");
        }
        (b"LOCKCOUNT", [owner, name]) => {
            let owner = peer.owner(session, owner)?;
            replies.integer(session.lock_count(owner, peer.locked(name)?)?.into());
        }
        (b"LOCK", [owner, milliseconds, locks @ ..]) if !locks.is_empty() && locks.len() % 2 == 0 => {
            let patience = Patience::new(milliseconds, waiting)?;
            let granted = lock(session, peer, owner, locks, patience.here)?;
            if !granted && patience.elsewhere {
                return Ok(Served::Waits);
            }
            replies.truth(granted);
        }
        (b"WATCH", places) if !places.is_empty() && places.len() % 2 == 0 => {
            watch(session, peer, places, replies)?
        }
        (b"WAIT", [id, milliseconds]) => {
            let patience = Patience::new(milliseconds, waiting)?;
            let touched = session.wait(peer.watch(id)?, Some(patience.here))?;
            if !touched && patience.elsewhere {
                return Ok(Served::Waits);
            }
            replies.truth(touched);
        }
        (b"UNWATCH", [id]) => {
            let watch = peer.watch(id)?;
            peer.watches.retain(|known| *known != watch);
            session.unwatch(watch);
            replies.simple("OK");
        }
        _ => {
            return Err(invalid("wrong arguments of a command of the wire: the client is of another version"))
        }
    }
    Ok(Served::Answered)
}

fn lock(
    session: &mut Session,
    peer: &mut Peer,
    owner: &[u8],
    locks: &[&[u8]],
    time: Duration,
) -> Result<bool> {
    let mut nodes = Vec::with_capacity(locks.len() / 2);
    for lock in locks.chunks_exact(2) {
        let mode = match lock[0] {
            b"x" => LockMode::Exclusive,
            b"s" => LockMode::Shared,
            _ => return Err(invalid("the mode of a lock is x or s")),
        };
        nodes.push((peer.locked(lock[1])?, mode));
    }
    let owner = peer.owner(session, owner)?;
    session.lock_all(owner, nodes, Some(time))
}

fn watch(session: &mut Session, peer: &mut Peer, places: &[&[u8]], replies: &mut Replies<'_>) -> Result<()> {
    let mut nodes = Vec::with_capacity(places.len() / 2);
    for place in places.chunks_exact(2) {
        let scope = match place[0] {
            b"n" => WatchScope::Node,
            b"t" => WatchScope::Subtree,
            _ => return Err(invalid("what is watched is n or t")),
        };
        nodes.push((peer.node(place[1])?, scope));
    }
    if peer.watches.len() >= REMOTE_WATCHES {
        let limit = REMOTE_WATCHES as u64;
        return Err(StoreError::LimitReached { what: "watches of one connection", limit }.into());
    }
    let watch = session.watch(nodes)?;
    peer.watches.push(watch);
    replies.integer(watch.0 as i64);
    Ok(())
}
