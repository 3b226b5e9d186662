//! What reaches an event loop from elsewhere: connections, replies that were made on another thread, pushes.
//!
//! Invariants
//! - A letter names its client by number as well as by place: one that is gone gets nothing.
//! - A [`Later`] answers exactly once, also if whoever holds it forgets to or panics: no parked
//!   connection is left hanging.
//! - Who posts never waits: a mailbox takes everything, and is emptied before its loop sleeps.

use std::fmt;
use std::sync::Arc;

use crate::invalidation::{Changes, Notice, Place};
use crate::question::Inquiry;
use crate::redis::Redis;
use crate::topic::Message;
use perilune_net::seat::Seat;

/// What loops hand to each other: connections, for one. A mailbox carries it, in the order in which it came among all other
/// letters, and does not look inside.
pub(crate) trait Handing {
    type Handed: fmt::Debug + Send;
}

/// One thing for an event loop to do.
#[derive(Debug)]
pub(crate) enum Letter {
    /// What one loop hands to another.
    Handed(<Redis as Handing>::Handed),
    /// The reply that a parked connection waits for.
    Reply { seat: Seat, ticket: u64, bytes: Vec<u8> },
    /// A message for all who are subscribed.
    Message(Arc<Message>),
    /// Bytes that belong to no request.
    Push { seat: Seat, bytes: Arc<[u8]> },
    /// What a client is told of keys that another one has read.
    Notice(Box<Notice>),
    /// Where the client is to which one that is parked redirects its notices, if it is anywhere; and whether all servers have
    /// answered.
    Target { seat: Seat, ticket: u64, place: Option<Place>, is_complete: bool },
    /// Keys that have changed, for those who are told of all.
    Changed(Arc<Changes>),
    /// A question to answer.
    Ask(Arc<Inquiry>),
    /// Commands are held back no longer.
    Resume,
}

/// Where other threads put letters for a loop.
pub(crate) type Mailbox = perilune_net::mailbox::Mailbox<Letter>;

/// The right, and the duty, to answer a command whose connection is parked. It may be used on any thread.
#[derive(Debug)]
pub(crate) struct Later {
    mailboxes: Arc<[Mailbox]>,
    seat: Seat,
    ticket: u64,
    answered: bool,
}

impl Later {
    pub(crate) fn new(mailboxes: &Arc<[Mailbox]>, seat: Seat, ticket: u64) -> Later {
        Later { mailboxes: Arc::clone(mailboxes), seat, ticket, answered: false }
    }

    /// Sends the reply, exactly one, in the client's protocol; the connection goes on with its next request.
    pub(crate) fn reply(mut self, bytes: Vec<u8>) {
        self.send(bytes);
    }

    /// Says where the client is to which it redirects its notices.
    pub(crate) fn tell_target(mut self, place: Option<Place>, is_complete: bool) {
        self.answered = true;
        if let Some(mailbox) = self.mailboxes.get(self.seat.thread) {
            mailbox.post(Letter::Target { seat: self.seat, ticket: self.ticket, place, is_complete });
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.answered = true;
        if let Some(mailbox) = self.mailboxes.get(self.seat.thread) {
            mailbox.post(Letter::Reply { seat: self.seat, ticket: self.ticket, bytes });
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        if !self.answered {
            self.send(b"-ERR the server has dropped this command: try again\r\n".to_vec());
        }
    }
}
