//! How a client is told of keys that another client has read: CLIENT TRACKING with REDIRECT.
//!
//! To a client of this server a notice goes by letter. For one of another server it is put at
//! `^redis("server",server,"notices",home,thread,number)`, and that server is told, as replies of blocking commands are.
//! Where the client has gone, the notice comes back as one that says so.
//!
//! Invariants
//! - A notice is in the tree until the server of its client has taken it: a message that is dropped loses none.
//! - Only the loop `thread` of the server `home` writes there, so that no two are in each other's way.
//!
//! What if we are killed? Before the commit the client whose keys these are is gone with us, and knows. After it the notice
//! is found. A server that is killed with notices that it has not taken is swept: they come back as those of clients that
//! have gone.

use std::sync::Arc;

use perilune::{Cursor, Node, Session, ValueRef};

use crate::invalidation::Notice;
use crate::mailbox::Letter;
use crate::peers;
use crate::server::Server;

fn notices(server: i64) -> perilune::Result<Node> {
    peers::place(server)?.with("notices")
}

/// Sends a notice to a client of another server, as the `number`th of a loop of this one; false if that server is dead.
pub(crate) fn send(
    session: &mut Session,
    home: i64,
    thread: usize,
    number: u64,
    notice: &Notice,
) -> perilune::Result<bool> {
    let server = notice.to.server;
    if !peers::is_alive(session, server)? {
        return Ok(false);
    }
    let (record, place) =
        (notice.record(), notices(server)?.with(home)?.with(thread as i64)?.with(number as i64)?);
    session.transaction(|session| {
        session.set(&place, &record[..])?;
        peers::tell(session, server, ["notices"])?;
        Ok(())
    })?;
    Ok(true)
}

/// Takes all notices for clients of a server out of the tree.
fn take(session: &mut Session, server: i64) -> perilune::Result<Vec<Notice>> {
    session.transaction(|session| {
        let mut cursor = Cursor::subtree(&notices(server)?);
        let (mut taken, mut places) = (Vec::new(), Vec::new());
        while cursor.next(session)? {
            if let Some(ValueRef::String(record)) = cursor.value()? {
                taken.extend(Notice::parse(record));
            }
            places.push(cursor.node()?);
        }
        for place in places {
            session.delete_value(&place)?;
        }
        Ok(taken)
    })
}

/// Hands out what other servers have put down for clients of this one.
pub(crate) fn deliver(server: &Arc<Server>, session: &mut Session) -> perilune::Result<()> {
    for notice in take(session, server.number())? {
        if let Some(mailbox) = server.crew().mailboxes().get(notice.to.seat.thread) {
            mailbox.post(Letter::Notice(Box::new(notice)));
        }
    }
    Ok(())
}

/// Tells those whose notices a dead server has not taken.
pub(crate) fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    session.transaction(|session| {
        for (number, notice) in (0..).zip(take(session, server)?) {
            if !notice.is_broken {
                // NB: as if by a thread of the dead server that it never had, so that nothing is overwritten. Who is dead as
                // well has no clients.
                send(session, server, usize::MAX, number, &notice.returned())?;
            }
        }
        Ok(())
    })
}
