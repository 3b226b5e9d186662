//! The server's half, second part: locks, watches and messages of a client.
//!
//! Invariant: whoever may not wait here does not; [`Served::Waits`] says that there is something to wait for.

use std::time::Duration;

use perilune_resp::Replies;
use perilune_store::{ChannelOptions, Error as StoreError, LockMode, Message, WhenFull};

use super::serve::{duration, integer, invalid, Peer, Served, Waiting};
use super::SLICE;
use crate::limits::REMOTE_WATCHES;
use crate::{Result, Session, WatchScope};

/// How long a request may wait here, and whether it asks for more.
struct Patience {
    here: Duration,
    elsewhere: bool,
}

impl Patience {
    fn new(milliseconds: &[u8], waiting: Waiting) -> Result<Patience> {
        let asked = duration(milliseconds)?;
        let here = if waiting == Waiting::Here { asked.min(SLICE) } else { Duration::ZERO };
        Ok(Patience { here, elsewhere: waiting == Waiting::Elsewhere && asked > Duration::ZERO })
    }
}

/// Refuses a request about a channel that the client does not reach.
pub(super) fn check(peer: &Peer, name: &[u8], given: &[&[u8]]) -> Result<()> {
    match (name, given) {
        (b"POST" | b"CHANNEL" | b"UNCHANNEL" | b"RECEIVE" | b"FOLLOW", [channel, ..]) => {
            peer.channel(channel).map(drop)
        }
        _ => Ok(()),
    }
}

/// Runs one request whose name and arguments are given.
pub(super) fn run(
    session: &mut Session,
    peer: &mut Peer,
    (name, given): (&[u8], &[&[u8]]),
    replies: &mut Replies<'_>,
    waiting: Waiting,
) -> Result<Served> {
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
        (b"POST", [channel, body]) => replies.integer(session.post(channel, body)? as i64),
        (b"CHANNEL", [name, messages, bytes, full]) => {
            session.create_channel(name, channel(full, messages, bytes)?)?;
            replies.simple("OK");
        }
        (b"UNCHANNEL", [channel]) => {
            session.remove_channel(channel)?;
            replies.simple("OK");
        }
        (b"LOCK", [owner, milliseconds, locks @ ..]) if !locks.is_empty() && locks.len() % 2 == 0 => {
            let patience = Patience::new(milliseconds, waiting)?;
            let granted = lock(session, peer, owner, locks, patience.here)?;
            if !granted && patience.elsewhere {
                return Ok(Served::Waits);
            }
            replies.truth(granted);
        }
        (b"RECEIVE", [channel, milliseconds]) => {
            let patience = Patience::new(milliseconds, waiting)?;
            return Ok(message(session.receive(channel, Some(patience.here))?, &patience, replies));
        }
        (b"FOLLOW", [channel, after, milliseconds]) => {
            let patience = Patience::new(milliseconds, waiting)?;
            let found = session.follow(channel, integer(after)?, Some(patience.here))?;
            return Ok(message(found, &patience, replies));
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

fn channel(full: &[u8], messages: &[u8], bytes: &[u8]) -> Result<ChannelOptions> {
    let when_full = match full {
        b"refuse" => WhenFull::Refuse,
        b"drop" => WhenFull::DropOldest,
        _ => return Err(invalid("a full channel is to refuse or to drop")),
    };
    Ok(ChannelOptions { messages: integer(messages)?, bytes: integer(bytes)?, when_full })
}

fn message(found: Option<Message>, patience: &Patience, replies: &mut Replies<'_>) -> Served {
    match found {
        None if patience.elsewhere => return Served::Waits,
        None => replies.null_array(),
        Some(message) => {
            replies.array(3);
            replies.integer(message.number as i64);
            replies.integer(message.missed as i64);
            replies.bulk(&message.body);
        }
    }
    Served::Answered
}
