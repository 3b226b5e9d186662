//! Connections that may no longer be what they are, since rules of users have changed: those of a user who is gone, and
//! subscribers of what their user may not have any more. They are ended, as in Redis, wherever the rules were changed.
//!
//! Deliberately absent: ending others whose rules have changed. Each of their commands looks at the rules anew.

use super::Worker;
use crate::acl::Acl;
use crate::client::Client;
use crate::topic::Topic;

/// Whether a client's user is gone, or may not have what the client is subscribed to.
pub(super) fn is_refused(client: &Client, acl: &Acl) -> bool {
    if !client.authenticated {
        return false;
    }
    let Some(user) = acl.user(client.user_name()) else { return true };
    let Some(topics) = client.topics.as_ref().filter(|_| !user.is_unlimited()) else { return false };
    [Topic::Channel, Topic::Pattern, Topic::Shard].into_iter().any(|topic| {
        let mut names = topics.names(topic);
        names
            .any(|name| !user.selectors.iter().any(|each| each.allows_channel(name, topic == Topic::Pattern)))
    })
}

/// Ends the connections that the rules of now refuse, if rules have changed.
pub(super) fn end_refused(worker: &mut Worker) {
    let version = worker.service.server.rules().acl().version();
    if std::mem::replace(&mut worker.service.chores.rules, version) == version {
        return;
    }
    let acl = worker.service.server.rules().acl();
    let tokens: Vec<usize> = (worker.connections().iter().enumerate())
        .filter(|(_, each)| each.as_ref().is_some_and(|each| is_refused(&each.client, acl)))
        .map(|(token, _)| token)
        .collect();
    let mut others = Vec::new();
    for token in tokens {
        let is_held = worker.is_held(token);
        match worker.connection(token) {
            // Who has removed itself is told so first.
            Some(connection) if is_held => connection.client.closing = true,
            _ => others.push(token),
        }
    }
    worker.end_all(others);
}
