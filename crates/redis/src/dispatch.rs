//! The thread that reads what other servers of the database tell this one, and hands it to whom it concerns; and what is
//! removed of servers that are dead.
//!
//! Invariant: a message that was dropped loses nothing for good: what lies in the tree is looked for, and all keys count as
//! changed.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use perilune::Session;
use perilune_resp::{parse_integer, Arguments, Progress, RequestParser};

use crate::effects::Effects;
use crate::mailbox::Letter;
use crate::peers::{all, channel, is_alive, place};
use crate::server::Server;
use crate::subscribers;
use crate::topic::{Message, Topic};
use crate::tracking::{broadcast, notice};
use crate::{asking, queue};
use perilune_net::crew::Crew;

/// Reads what this server is told until it is told to stop; then it is forgotten.
pub(crate) fn listen(server: &Arc<Server>, mut session: Session) {
    let (channel, mut held) = (channel(server.number()), Vec::new());
    loop {
        match session.channel(&channel).receive(None) {
            Ok(None) => {}
            Ok(Some(message)) => {
                if message.missed > 0 {
                    // The rest of something whose beginning was dropped.
                    held.clear();
                    // Replies that were told of are still there.
                    let _ = queue::deliver_all(server, &mut session);
                    let _ = notice::deliver(server, &mut session);
                    broadcast::hear_nothing(server);
                }
                let Some((more, piece)) = message.body.split_first() else { continue };
                held.extend_from_slice(piece);
                if *more == 0 && !hear(server, &mut session, &std::mem::take(&mut held)) {
                    break;
                }
            }
            Err(_) if server.is_stopping() => break,
            // Nothing can be read just now: a database without room, for one.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
    leave(&mut session, server.number());
}

/// Takes back what `enter` made known, of a server that does not start.
pub(crate) fn leave(session: &mut Session, number: i64) {
    // What is left is swept by another server.
    let _ = forget(session, number);
}

/// Does what one message says; false if it says stop.
fn hear(server: &Arc<Server>, session: &mut Session, bytes: &[u8]) -> bool {
    let mut parser = RequestParser::default();
    let Ok(Progress::Complete { .. }) = parser.parse(bytes, true) else { return true };
    let words = parser.arguments(bytes);
    match words.get(0) {
        Some(b"stop") => return false,
        Some(b"message") => hear_message(server.crew(), words),
        Some(b"changed") => broadcast::hear(server.crew(), words),
        Some(b"ask") => asking::hear_question(server, words),
        Some(b"answer") => asking::hear_answer(server.commons().inquiries(), words.from(1)),
        Some(b"pause") => {
            let number = |index: usize| words.get(index).and_then(parse_integer).unwrap_or(0);
            server.pause(number(1).unsigned_abs(), number(2) != 0);
        }
        // What cannot be read now is read with the next one.
        Some(b"notices") => drop(notice::deliver(server, session)),
        Some(b"served") => {
            if let Some(ticket) = words.get(1).and_then(parse_integer) {
                // What cannot be read now is read after the next time that messages were dropped.
                let _ = queue::deliver(server, session, ticket);
            }
        }
        _ => {}
    }
    true
}

fn hear_message(crew: &Crew<Letter>, words: Arguments<'_>) {
    let (Some(topic), Some(channel), Some(payload)) = (words.get(1), words.get(2), words.get(3)) else {
        return;
    };
    let Some(topic) = Topic::of(topic) else { return };
    let message = Arc::new(Message { topic, channel: channel.to_vec(), payload: payload.to_vec() });
    for mailbox in crew.mailboxes().iter() {
        mailbox.post(Letter::Message(Arc::clone(&message)));
    }
}

/// Removes what the tree says of servers that are dead.
pub(crate) fn sweep(session: &mut Session, effects: &mut Effects, home: i64) -> perilune::Result<()> {
    for server in all(session)? {
        if server != home && !is_alive(session, server)? {
            // What it may not have got to tell.
            broadcast::send_all(session, effects)?;
            forget(session, server)?;
        }
    }
    Ok(())
}

fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    subscribers::forget(session, server)?;
    broadcast::forget(session, server)?;
    queue::forget(session, server)?;
    notice::forget(session, server)?;
    session.channel(&channel(server)).remove()?;
    session.delete_tree(&place(server)?)
}
