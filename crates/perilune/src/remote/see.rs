//! SEE: what an open transaction of a client asks, answered so that all it has been told is of one state.
//!
//! A client's transaction asks one thing after another, each in a request. Between two of them others write. If the second
//! answer were simply what is there then, a body could see an account before a transfer and another one behind it. So each
//! question is asked in a transaction here that goes on from what those before it have read: the engine notes that, leaf by
//! leaf, and one look at each leaf tells whether it is still so.
//!
//! Example: `SEE 0 0 GET a` begins; `SEE 1 0 GET b` is answered with `b` if `a` is as it was, and with the status `STALE` if
//! that cannot be said. Then the client sends what it has seen, as conditions: `SEE 0 3 = a 100 GET b` is answered with
//! `b` if all of them hold, and else by a conflict.
//!
//! Invariants
//! - An answer is of one state with all that the client's transaction has been told before it.
//! - What is noted here can be lost at any time: then the client sends its conditions. So it is bounded
//!   ([`REMOTE_READ_BYTES`]), goes with the commit and with the connection, and nobody needs it.
//! - Where the server itself is in a transaction (EXEC) nothing is noted, since that one would forget it.

use perilune_resp::Replies;
use perilune_store::{KeptReads, ReadSets, TransactionOptions};

use super::commit;
use super::serve::{invalid, look, Peer};
use crate::limits::REMOTE_READ_BYTES;
use crate::{Error, Levels, Result, Session};

/// One question of a transaction.
pub(super) struct See<'s> {
    /// Whether it rests on what was noted of the questions before it.
    pub(super) has_read: bool,
    /// The conditions on which it rests, if nothing is noted.
    pub(super) conditions: &'s [&'s [u8]],
    /// The request, its name first; empty: only whether all is as it was.
    pub(super) asked: &'s [&'s [u8]],
}

/// Answers a question; or `STALE`, if nobody can say whether the answer is of one state with those before it; or a conflict.
pub(super) fn see(
    session: &mut Session,
    peer: &mut Peer,
    see: &See<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let start = replies.position();
    let noted = peer.read.take();
    if see.has_read {
        let answered = match noted {
            Some(noted) if session.depth() == 0 => go_on(session, peer, noted, see, replies)?,
            _ => false,
        };
        if !answered {
            replies.rewind(start);
            replies.simple("STALE");
        }
        return Ok(());
    }
    let conditions = commit::read(peer, see.conditions)?;
    let is_alone = session.depth() == 0;
    let noted = session.transaction_with(&read_only(), |session| {
        replies.rewind(start);
        for condition in &conditions {
            if !commit::holds(session, peer, condition)? {
                return Ok(None);
            }
        }
        ask(session, peer, see, replies)?;
        // Its commit is told about what it has read once that is taken away: so it is looked at before.
        session.validate()?;
        Ok(Some(is_alone.then(|| suspend(session)).flatten()))
    })?;
    match noted {
        Some(noted) => peer.read = noted,
        None => return Err(Error::Conflict),
    }
    Ok(())
}

/// Asks in a transaction that goes on from what was noted; false if that is no longer so.
fn go_on(
    session: &mut Session,
    peer: &mut Peer,
    noted: KeptReads,
    see: &See<'_>,
    replies: &mut Replies<'_>,
) -> Result<bool> {
    session.begin(&read_only())?;
    let outcome = resume(session, noted).and_then(|()| {
        ask(session, peer, see, replies)?;
        session.validate()?;
        Ok(suspend(session))
    });
    session.rollback()?;
    session.give_up();
    match outcome {
        Ok(noted) => {
            peer.read = noted;
            Ok(true)
        }
        Err(error) if error.is_retry() => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_only() -> TransactionOptions {
    TransactionOptions { read_only: true, ..TransactionOptions::default() }
}

fn ask(session: &mut Session, peer: &Peer, see: &See<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let Some((name, given)) = see.asked.split_first() else {
        replies.simple("OK");
        return Ok(());
    };
    match look(session, peer, &name.to_ascii_uppercase(), given, replies)? {
        true => Ok(()),
        false => Err(invalid("only what changes nothing is seen")),
    }
}

fn resume(session: &mut Session, noted: KeptReads) -> Result<()> {
    match session.trees.database.read_sets() {
        Some(read_sets) => Ok(read_sets.resume(noted)?),
        None => Err(Error::Conflict),
    }
}

fn suspend(session: &mut Session) -> Option<KeptReads> {
    let noted = session.trees.database.read_sets()?.suspend();
    noted.filter(|noted| noted.bytes() <= REMOTE_READ_BYTES)
}
