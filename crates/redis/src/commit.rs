//! What belongs into a transaction at its end, besides its own nodes: clients that wait for keys are served, events are told,
//! and so are changes to those who are told of all.
//!
//! Invariant: it happens in the transaction whose effects these are, or not at all.

use perilune::Session;

use crate::effects::Effects;
use crate::failure::Result;
use crate::notify::{Event, KEYEVENT, KEYSPACE};
use crate::queue;
use crate::subscribers::publish;
use crate::topic::Topic;
use crate::tracking::broadcast;

/// Does what `effects` ask for, in the open transaction.
pub(crate) fn finish(effects: &mut Effects, session: &mut Session) -> Result<()> {
    // What is taken for clients that wait this one does not know.
    let client = std::mem::take(&mut effects.client);
    let served = serve(effects, session);
    effects.client = client;
    served?;
    if !effects.events.is_empty() {
        let events = std::mem::take(&mut effects.events);
        tell(session, effects, &events)?;
    }
    if !effects.changes.is_empty() {
        let changes = std::mem::take(&mut effects.changes).into_iter().collect();
        effects.unheard = !broadcast::send(session, effects, changes)?;
    }
    Ok(())
}

/// Serves the clients that wait for keys that are there now.
fn serve(effects: &mut Effects, session: &mut Session) -> Result<()> {
    // Serving may bring further keys into being.
    let mut next = 0;
    while let Some((database, key)) = effects.ready.get(next).cloned() {
        queue::serve(session, effects, database, &key)?;
        next += 1;
    }
    effects.ready.clear();
    Ok(())
}

/// Tells of events, as messages to the channels of their keys and of their names.
fn tell(session: &mut Session, effects: &mut Effects, events: &[Event]) -> Result<()> {
    for Event { name, database, key } in events {
        if effects.notify & KEYSPACE != 0 {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            publish(session, effects, Topic::Channel, &channel, name.as_bytes())?;
        }
        if effects.notify & KEYEVENT != 0 {
            let channel = format!("__keyevent@{database}__:{name}");
            publish(session, effects, Topic::Channel, channel.as_bytes(), key)?;
        }
    }
    Ok(())
}
