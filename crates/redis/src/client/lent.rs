//! What a command that runs aside has of its client: a client of its own, with what the connection's has queued, watched and
//! locked, which is given back when it ends.
//!
//! Invariant: what is lent is with one of the two; what both have (name, user, protocol) is taken back as the command left it.

use std::sync::Arc;

use super::{Client, ReplyMode};

impl Client {
    /// A client for a command that runs aside: as this one is, with what it has queued, watched and locked.
    pub(crate) fn lend(&mut self) -> Box<Client> {
        Box::new(Client {
            id: self.id,
            seat: self.seat,
            address: Arc::clone(&self.address),
            local_address: Arc::clone(&self.local_address),
            name: self.name.clone(),
            protocol: self.protocol,
            database: self.database,
            authenticated: self.authenticated,
            attempts: self.attempts,
            user: self.user.clone(),
            acl_version: self.acl_version,
            since: self.since,
            active: self.active,
            visit: self.visit,
            scripts: None,
            command: None,
            monitors: false,
            keeps_memory: false,
            leaves_untouched: self.leaves_untouched,
            reply_mode: ReplyMode::On,
            replies_end: usize::MAX,
            is_shown: std::mem::take(&mut self.is_shown),
            queue: self.queue.take(),
            watched: std::mem::take(&mut self.watched),
            kept: std::mem::take(&mut self.kept),
            own: std::mem::take(&mut self.own),
            topics: self.topics.clone(),
            tracking: self.tracking.take(),
            broken_redirect: self.broken_redirect,
            is_target: self.is_target,
            locked: false,
            is_local: self.is_local,
            nodes: self.nodes.take(),
            closing: false,
            held: false,
            held_since: None,
            parked: None,
            // NB: it never parks: that is for connections.
            last_ticket: 0,
            rest: None,
            aside: None,
        })
    }

    /// Takes back what was lent, as the command has left it.
    pub(crate) fn take_back(&mut self, lent: Box<Client>) {
        let lent = *lent;
        self.name = lent.name;
        self.protocol = lent.protocol;
        self.database = lent.database;
        self.authenticated = lent.authenticated;
        self.attempts = lent.attempts;
        self.user = lent.user;
        self.acl_version = lent.acl_version;
        self.queue = lent.queue;
        self.watched = lent.watched;
        self.kept = lent.kept;
        self.own = lent.own;
        self.topics = lent.topics;
        self.tracking = lent.tracking;
        self.nodes = lent.nodes;
        self.closing |= lent.closing;
    }
}
