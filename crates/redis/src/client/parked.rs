//! A connection that waits: for keys, for an answer of other servers, for the end of a pause, for a command that runs aside.
//!
//! Example: BLPOP on an empty list parks its connection on a ticket, with what it is told when its time is over. Whoever pushes
//! answers that ticket. A timer that rings afterwards finds the connection on no ticket, or on another one, and does nothing.
//!
//! Invariant: an answer names its ticket, and no two parkings of any two clients of this process have the same one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Client;
use crate::invalidation::Tracking;
use crate::leftovers::{Leftovers, Work};

/// Clients that this process has had.
static TICKETS: AtomicU64 = AtomicU64::new(0);
/// Parkings of one client, before its tickets are like those of the next one: no two clients have the same, since timers
/// know a connection by its place alone, which another one may have by then.
const TICKET_BITS: u32 = 28;

/// What the tickets of a new client are counted from.
pub(super) fn first_ticket() -> u64 {
    TICKETS.fetch_add(1, Ordering::Relaxed) << TICKET_BITS
}

/// Why a connection waits, and for how long.
#[derive(Debug)]
pub(crate) struct Parked {
    /// Of this parking: an answer to an earlier one comes too late.
    pub(crate) ticket: u64,
    pub(crate) until: Option<Instant>,
    /// What it is told then.
    pub(crate) too_late: Vec<u8>,
    /// It ends with its client: the command has no effect that anybody else waits for.
    pub(crate) gives_up: bool,
    /// Where it waits, if that is for keys.
    pub(crate) queued: Option<Queued>,
    /// The question that it has asked all servers.
    pub(crate) asked: Option<u64>,
    /// What it tracks from then on, if the answer is where its target is.
    pub(crate) tracking: Option<Tracking>,
    /// It redirects: what it is to track it does only if the target is anywhere.
    pub(crate) redirects: bool,
    /// Not a command but all of them wait: CLIENT PAUSE.
    pub(crate) paused: bool,
}

/// A place in the queues of keys.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: i64,
    pub(crate) database: i64,
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Client {
    /// Parks the connection behind the command that runs; an answer names the ticket.
    pub(crate) fn park(&mut self) -> &mut Parked {
        self.last_ticket += 1;
        self.parked.insert(Box::new(Parked {
            ticket: self.last_ticket,
            until: None,
            too_late: Vec::new(),
            gives_up: false,
            queued: None,
            asked: None,
            tracking: None,
            redirects: false,
            paused: false,
        }))
    }

    /// Parks the connection until `work` is done, in slices.
    pub(crate) fn put_off(&mut self, work: Work) {
        self.park();
        self.rest = Some(Leftovers::new(work));
    }

    /// The ticket of the next parking.
    pub(crate) fn coming_ticket(&self) -> u64 {
        self.last_ticket + 1
    }

    /// Ends the parking on `ticket`, if that is what it waits on.
    pub(crate) fn unpark(&mut self, ticket: u64) -> Option<Parked> {
        if self.parked.as_ref().is_none_or(|parked| parked.ticket != ticket) {
            return None;
        }
        self.parked.take().map(|parked| *parked)
    }
}
