//! A question to every event loop of a server, and what they answer. Who asks and who is answered is for others to know.
//!
//! Example: how many clients there are: each loop adds its own to the [`Answer`], and the last one hands it on.
//!
//! Invariant: each loop answers once.

use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;

use perilune_resp::ArgumentsBuf;

use perilune_net::seat::Seat;

/// What the loops have answered so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) lines: Vec<u8>,
    pub(crate) count: i64,
}

impl Answer {
    /// With what another loop, or another server, has answered.
    pub(crate) fn add(&mut self, other: &Answer) {
        self.lines.extend_from_slice(&other.lines);
        self.count += other.count;
    }
}

/// A question, as the loops of one server see it.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// The command, as it was given.
    pub(crate) words: ArgumentsBuf,
    /// Who asks; if it is a client of another server, only its number means anything.
    pub(crate) asker: Seat,
    /// The server that asks, and its number for the question.
    pub(crate) from: i64,
    pub(crate) number: u64,
    /// Loops that have not answered, and what the others have.
    pub(crate) left: AtomicUsize,
    pub(crate) gathered: Mutex<Answer>,
}
