//! What a server speaks, as its event loops and connections know it: bytes in, requests out; requests in, bytes out; what a
//! request costs; what it waits for.
//!
//! A connection has bytes and a socket, and knows nothing of what they mean. It hands the bytes to a [`Protocol`], which takes
//! the first request from them, runs it and appends what it answers. Then it asks the [`Client`] whether it goes on.
//!
//! ```
//! use perilune_net::protocol::{Output, Progress, Protocol};
//! use perilune_net::seat::Seat;
//! use std::time::Instant;
//!
//! /// Answers each line with the line.
//! struct Echo;
//! # #[derive(Debug)]
//! struct Speaker { ends: bool, seat: Seat }
//!
//! impl perilune_net::protocol::Client for Speaker {
//!     fn is_closing(&self) -> bool { self.ends }
//!     fn close(&mut self) { self.ends = true }
//!     fn seat(&self) -> Seat { self.seat }
//!     fn sit(&mut self, seat: Seat) { self.seat = seat }
//! }
//!
//! impl Protocol for Echo {
//!     type Client = Speaker;
//!     type Reader = ();
//!
//!     fn request(&mut self, _: &mut Speaker, _: &mut (), bytes: &[u8], output: &mut Output<'_>) -> Progress {
//!         let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Progress::Incomplete };
//!         output.bytes.extend_from_slice(&bytes[..=end]);
//!         Progress::Ran(end + 1)
//!     }
//! }
//!
//! let (mut speaker, mut bytes) = (Speaker { ends: false, seat: Seat::default() }, Vec::new());
//! let mut output = Output { bytes: &mut bytes, sent: 0 };
//! assert_eq!(Echo.request(&mut speaker, &mut (), b"one\ntwo", &mut output), Progress::Ran(4));
//! assert_eq!(Echo.request(&mut speaker, &mut (), b"two", &mut output), Progress::Incomplete);
//! assert_eq!(bytes, b"one\n");
//! ```
//!
//! Invariants
//! - A request is run when all of it has come, and once: what a request that is put off has done, it has not done.
//! - While a client waits for something, no request of it is run.
//!
//! Deliberately absent: what a request is, and every name of one.

use std::fmt;
use std::time::Instant;

use crate::seat::Seat;

/// What waits to be sent: what a request answers is appended.
#[derive(Debug)]
pub struct Output<'o> {
    /// All that is kept.
    pub bytes: &'o mut Vec<u8>,
    /// So much of it the kernel has taken: that cannot be taken back.
    pub sent: usize,
}

impl Output<'_> {
    /// Takes back what came after `start`, but for what has been sent.
    pub fn rewind(&mut self, start: usize) {
        self.bytes.truncate(start.max(self.sent));
    }
}

/// What has become of the first request in some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not all of it has come.
    Incomplete,
    /// It has run; it took so many bytes.
    Ran(usize),
    /// It has done nothing, and is to be run again when its client waits no longer.
    Later,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing: its requests are run.
    No,
    /// An answer to its last request.
    Yes,
    /// Such an answer, of which nobody else knows: it ends with its client.
    WhileThere,
}

/// Bytes of a connection that may wait at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of requests that have come and are not run.
    pub requests: usize,
    /// Of replies that are not sent.
    pub replies: usize,
}

/// What a connection knows of its client.
pub trait Client: fmt::Debug {
    /// Whether no further request is run, and the connection ends when what it has to say is sent.
    fn is_closing(&self) -> bool;
    /// That is so from now on.
    fn close(&mut self);

    /// Where it is served.
    fn seat(&self) -> Seat;
    /// It is served there from now on.
    fn sit(&mut self, seat: Seat);

    /// Whether it waits.
    #[inline]
    fn waits(&self) -> Waits {
        Waits::No
    }

    /// Whether its request is about to run on another thread: what it has to say is sent before that, by whoever takes it there.
    #[inline]
    fn goes_aside(&self) -> bool {
        false
    }

    /// Whether nothing of it is under way, so that another loop can go on with it.
    fn is_movable(&self) -> bool {
        true
    }

    /// Its replies must end here in their buffer.
    #[inline]
    fn bound(&mut self, _end: usize) {}
}

/// What a server speaks.
pub trait Protocol: Sized {
    /// What is remembered of a client between its requests.
    type Client: Client;
    /// What is remembered of a request that has not come to its end.
    type Reader: fmt::Debug;

    /// Takes the first request from `bytes`, runs it, and appends what it answers.
    fn request(
        &mut self,
        client: &mut Self::Client,
        reader: &mut Self::Reader,
        bytes: &[u8],
        output: &mut Output<'_>,
    ) -> Progress;

    /// So many bytes are missing of the request that `kept` bytes have come of; 0: that is not known.
    fn missing(_reader: &Self::Reader, _kept: usize) -> usize {
        0
    }

    /// No request is under way: room that is not needed for the next one is given back.
    #[inline]
    fn shrink(_reader: &mut Self::Reader) {}

    /// Requests of a client are about to be run; when that is.
    #[inline]
    fn begin(&mut self, _client: &mut Self::Client) -> Instant {
        Instant::now()
    }

    /// When the request that ran last has ended: what it has cost lies between that and the end of the one before it.
    #[inline]
    fn ended(&self, _client: &Self::Client) -> Instant {
        Instant::now()
    }

    /// The requests that have come have been run, as far as they are.
    #[inline]
    fn end(&mut self, _client: &mut Self::Client) {}

    /// How much of a client may wait.
    fn bounds(&self, _client: &Self::Client) -> Bounds {
        Bounds { requests: usize::MAX, replies: usize::MAX }
    }

    /// Whether replies have to wait until what they tell is durable.
    #[inline]
    fn is_unsettled(&self) -> bool {
        false
    }

    /// Appends what a client is told in the place of replies that would say that something is durable which is not.
    fn refuse(_client: &mut Self::Client, why: &str, output: &mut Output<'_>) {
        output.bytes.extend_from_slice(why.as_bytes());
    }
}
