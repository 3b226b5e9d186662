//! The thread that follows what other servers, or programs, change of settings and users, and publishes once a second what
//! this server has done.
//!
//! Example: CONFIG SET at one server writes `^redis("config","timeout")`. The followers of all others watch that subtree,
//! wake, read all of it, and from then on their loops find the new value.
//!
//! Invariant: it takes over what lies in the tree behind a change, and wakes the loops only then.

use std::io;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use perilune::{node, Session, WatchScope};

use crate::mailbox::Mailbox;
use crate::published::Publisher;
use crate::server::Server;
use crate::start_error::StartError;

/// How often this server publishes what it has done, if it has done something.
const PUBLISHED_EACH: Duration = Duration::from_secs(1);

/// A thread that takes over what other servers, or programs, change of what servers share.
#[derive(Debug)]
pub(crate) struct Follower {
    poll: Poll,
    session: Session,
    watch: perilune::WatchId,
}

const WAKE: Token = Token(0);
const CHANGE: Token = Token(1);

impl Follower {
    /// Begins to watch; what was changed before is for the caller to load.
    pub(crate) fn new(mut session: Session) -> Result<(Follower, Waker), StartError> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let (config, acl) = (node!("^redis", "config")?, node!("^redis", "acl")?);
        let watch = session.watch([(&config, WatchScope::Subtree), (&acl, WatchScope::Subtree)])?;
        let descriptor = session.watch_descriptor(watch)?;
        poll.registry().register(&mut SourceFd(&descriptor), CHANGE, Interest::READABLE)?;
        Ok((Follower { poll, session, watch }, waker))
    }

    /// Follows until the server stops.
    pub(crate) fn run(mut self, server: &Server) {
        let mut events = Events::with_capacity(4);
        let mut publisher = Publisher::new();
        while !server.is_stopping() {
            publisher.publish(server, &mut self.session);
            server.tell_floods();
            if let Err(error) = self.poll.poll(&mut events, Some(PUBLISHED_EACH)) {
                if error.kind() != io::ErrorKind::Interrupted {
                    return;
                }
            }
            if self.session.wait(self.watch, Some(Duration::ZERO)).unwrap_or(false) {
                // The next change tries again.
                let _ = server.rules().live().load(&mut self.session);
                let _ = server.rules().acl().load(&mut self.session);
                // Each loop looks at whether its connections may still be there.
                server.crew().mailboxes().iter().for_each(Mailbox::wake);
            }
        }
    }
}
