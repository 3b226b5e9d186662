//! What reaches an event loop from elsewhere: connections, replies that were made on another thread, pushes.
//!
//! Invariants
//! - A letter names its client by number as well as by place: one that is gone gets nothing.
//! - A [`Later`] answers exactly once, also if whoever holds it forgets to or panics: no parked
//!   connection is left hanging.
//! - Who posts never waits: a mailbox takes everything, and is emptied before its loop sleeps.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mio::Waker;

use crate::invalidation::{Changes, Notice, Place};
use crate::question::Inquiry;
use crate::redis::Redis;
use crate::seat::Seat;
use crate::topic::Message;

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
    /// Another loop is to get some of this one's connections.
    Share { with: usize },
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
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    waker: OnceLock<Waker>,
    letters: Mutex<Vec<Letter>>,
    /// There are letters, and the loop knows or has been woken.
    waiting: AtomicBool,
    /// Connections that the thread has, or is about to.
    pub(crate) load: AtomicUsize,
    /// Nanoseconds that the loop has used of a processor, as far as it has said so.
    pub(crate) used: AtomicU64,
}

impl Mailbox {
    /// Says how its loop is woken.
    pub(crate) fn attend(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// Puts a letter in, and wakes the loop.
    pub(crate) fn post(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        if !self.waiting.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// The same for letters of the loop's own thread, which looks before it sleeps.
    pub(crate) fn keep(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        self.waiting.store(true, Ordering::Release);
    }

    /// Wakes the loop to look around.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            // A loop that cannot be woken looks around within a second.
            let _ = waker.wake();
        }
    }

    /// Whether there are letters.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Takes all letters out.
    pub(crate) fn empty(&self) -> Vec<Letter> {
        // A loop looks at each round: the exchange only where there is something.
        if !self.is_waiting() || !self.waiting.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

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
