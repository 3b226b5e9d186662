//! Requests of a client about channels, and how long a request may wait.
//!
//! Example: RECEIVE of an empty channel, with 5,000 ms. Where the thread may wait, it waits for a second at most,
//! and the client asks again; else the answer is [`Served::Waits`], and the caller sees to it.
//!
//! Invariant: with [`Waiting::Elsewhere`] and [`Waiting::Never`] nothing here waits.

use std::time::Duration;

use perilune_remote::wire::SLICE;
use perilune_resp::Replies;
use perilune_store::{ChannelOptions, Error as StoreError, Message, WhenFull};

use super::serve::{duration, integer, invalid, Peer, Served, Waiting};
use crate::limits::REMOTE_MESSAGES;
use crate::{Error, Result, Session};

/// How long a request may wait here, and whether it asks for more.
pub(super) struct Patience {
    pub(super) here: Duration,
    pub(super) elsewhere: bool,
}

impl Patience {
    pub(super) fn new(milliseconds: &[u8], waiting: Waiting) -> Result<Patience> {
        let asked = duration(milliseconds)?;
        let here = if waiting == Waiting::Here { asked.min(SLICE) } else { Duration::ZERO };
        Ok(Patience { here, elsewhere: waiting == Waiting::Elsewhere && asked > Duration::ZERO })
    }
}

/// Refuses a request about a channel that the client does not reach.
pub(super) fn check(peer: &Peer, name: &[u8], given: &[&[u8]]) -> Result<()> {
    match (name, given) {
        (b"POST" | b"PEEK" | b"CHANNEL" | b"UNCHANNEL" | b"RECEIVE" | b"FOLLOW", [channel, ..]) => {
            peer.channel(channel).map(drop)
        }
        _ => Ok(()),
    }
}

/// Runs one request about a channel; None: it is none.
pub(super) fn run(
    session: &mut Session,
    name: &[u8],
    given: &[&[u8]],
    replies: &mut Replies<'_>,
    waiting: Waiting,
) -> Result<Option<Served>> {
    match (name, given) {
        (b"POST", [channel, body]) => replies.integer(session.channel(channel).post(body)? as i64),
        (b"CHANNEL", [name, messages, bytes, full]) => {
            session.channel(name).create(channel(full, messages, bytes)?)?;
            replies.simple("OK");
        }
        (b"UNCHANNEL", [channel]) => {
            session.channel(channel).remove()?;
            replies.simple("OK");
        }
        (b"RECEIVE", [channel, milliseconds]) => {
            let patience = Patience::new(milliseconds, waiting)?;
            return Ok(Some(message(
                session.channel(channel).receive(Some(patience.here))?,
                &patience,
                replies,
            )));
        }
        (b"FOLLOW", [channel, after, milliseconds]) => {
            let patience = Patience::new(milliseconds, waiting)?;
            let found = session.channel(channel).follow(integer(after)?, Some(patience.here))?;
            return Ok(Some(message(found, &patience, replies)));
        }
        (b"PEEK", [channel, skipped]) => {
            let found = peek(session, channel, integer(skipped)?)?;
            return Ok(Some(message(found, &Patience { here: Duration::ZERO, elsewhere: false }, replies)));
        }
        _ => return Ok(None),
    }
    Ok(Some(Served::Answered))
}

/// The message that would be received after so many others.
fn peek(session: &mut Session, channel: &[u8], skipped: u64) -> Result<Option<Message>> {
    if skipped >= REMOTE_MESSAGES {
        let limit = REMOTE_MESSAGES;
        return Err(StoreError::LimitReached {
            what: "messages taken in one transaction over the wire",
            limit,
        }
        .into());
    }
    let mut found = None;
    let looked = session.transaction(|session| {
        for _ in 0..=skipped {
            found = session.channel(channel).receive(Some(Duration::ZERO))?;
        }
        Err::<(), _>(Error::Rollback)
    });
    match looked {
        Err(Error::Rollback) | Ok(()) => Ok(found),
        Err(error) => Err(error),
    }
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
