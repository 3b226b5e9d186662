//! Who is subscribed to what, over all servers: in the tree, so that who publishes finds them.
//!
//! `^redis("subscribed",topic,name,server,thread)` says how many clients of an event loop are subscribed.
//! Only that loop writes it, so that no two are in each other's way.
//!
//! Invariant: a client is told that it is subscribed only when the tree says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effects::Effects;
use crate::failure::Result;
use crate::limits::{KEY_BYTES, SUBSCRIBED_AT_ONCE};
use crate::mailbox::Letter;
use crate::name;
use crate::name::NAME;
use crate::topic::{Message, Topic};
use crate::{pattern, peers};
use perilune::{Cursor, Durability, Node, Session, TransactionOptions, ValueRef};

fn names(topic: Topic) -> Result<Node> {
    Ok(Node::new(NAME)?.with("subscribed")?.with(topic.name())?)
}

fn place(topic: Topic, name: &[u8]) -> Result<Node> {
    Ok(names(topic)?.with(&*name::subscript(name, KEY_BYTES))?)
}

/// Notes how many clients of a loop are subscribed to each of `changed`. Nobody waits for the disk because of it: behind a
/// crash of the machine nobody is subscribed.
pub(crate) fn note(
    session: &mut Session,
    server: i64,
    thread: usize,
    changed: &[(Topic, &[u8], usize)],
) -> perilune::Result<()> {
    let options = TransactionOptions { durability: Some(Durability::None), ..TransactionOptions::default() };
    session.transaction_with(&options, |session| {
        for (topic, name, count) in changed {
            let place = place(*topic, name)?;
            let node = place.child(server)?.with(thread as i64)?;
            if *count > 0 {
                if name::subscript(name, KEY_BYTES).len() != name.len() {
                    session.set(&place, *name)?;
                }
                session.set(&node, *count as i64)?;
            } else {
                session.delete_value(&node)?;
                drop_if_last(session, &place)?;
            }
        }
        Ok(())
    })
}

/// The whole of a cut name goes with its last subscriber.
fn drop_if_last(session: &mut Session, place: &Node) -> perilune::Result<()> {
    if session.count_children(place)? == 0 {
        session.delete_value(place)?;
    }
    Ok(())
}

/// The names that anybody is subscribed to.
pub(crate) fn known(session: &mut Session, topic: Topic) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::children(&names(topic)?);
    let mut known = Vec::new();
    while cursor.next(session)? {
        let text = cursor.subscript()?.to_text().into_owned();
        known.push(match cursor.value()? {
            Some(ValueRef::String(whole)) if name::is_cut(&text, KEY_BYTES) => whole.to_vec(),
            _ => text,
        });
    }
    Ok(known)
}

/// Counts of clients by server, and by thread for those of server `home`.
#[derive(Debug, Default)]
struct Found {
    home: i64,
    clients: i64,
    servers: BTreeMap<i64, Vec<usize>>,
}

impl Found {
    fn gather(&mut self, session: &mut Session, place: &Node) -> Result<()> {
        let mut cursor = Cursor::subtree(place);
        while cursor.next(session)? {
            let node = cursor.node_ref()?.to_node()?;
            let subscripts = node.subscripts()?;
            let [_, _, _, server, thread] = &subscripts[..] else { continue };
            let (Some(server), Some(thread)) = (server.as_i64(), thread.as_i64()) else { continue };
            self.clients += cursor.value()?.and_then(|value| value.as_i64()).unwrap_or(0);
            let threads = self.servers.entry(server).or_default();
            if server == self.home && !threads.contains(&(thread as usize)) {
                threads.push(thread as usize);
            }
        }
        Ok(())
    }
}

/// How many clients are subscribed to a name.
pub(crate) fn count(session: &mut Session, topic: Topic, name: &[u8]) -> Result<i64> {
    let mut found = Found::default();
    found.gather(session, &place(topic, name)?)?;
    Ok(found.clients)
}

/// Publishes a message, in the open transaction, and answers how many clients get it.
pub(crate) fn publish(
    session: &mut Session,
    effects: &mut Effects,
    topic: Topic,
    channel: &[u8],
    payload: &[u8],
) -> Result<i64> {
    let mut found = Found { home: effects.home, ..Found::default() };
    found.gather(session, &place(topic, channel)?)?;
    if topic == Topic::Channel {
        for pattern in known(session, Topic::Pattern)? {
            if pattern::matches(&pattern, channel) {
                found.gather(session, &place(Topic::Pattern, &pattern)?)?;
            }
        }
    }
    if found.servers.is_empty() {
        return Ok(0);
    }
    let message = Arc::new(Message { topic, channel: channel.to_vec(), payload: payload.to_vec() });
    for (server, threads) in found.servers {
        if server == effects.home {
            let letters = threads.into_iter().map(|thread| (thread, Letter::Message(Arc::clone(&message))));
            effects.letters.extend(letters);
        } else {
            peers::tell(session, server, [b"message", topic.name().as_bytes(), channel, payload])?;
        }
    }
    Ok(found.clients)
}

/// Removes what a dead server has noted, some names at a time: it may have been a million, and nobody waits for the disk
/// because of them.
pub(crate) fn forget(session: &mut Session, server: i64) -> perilune::Result<()> {
    let options = TransactionOptions { durability: Some(Durability::None), ..TransactionOptions::default() };
    for topic in Topic::ALL {
        for names in known(session, topic)?.chunks(SUBSCRIBED_AT_ONCE) {
            session.transaction_with(&options, |session| {
                for name in names {
                    let place = place(topic, name)?;
                    session.delete_tree(&place.child(server)?)?;
                    drop_if_last(session, &place)?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}
