//! A connection: its socket, what has arrived and has not been run, what waits to be sent.
//!
//! A loop lets it serve its client: it reads, has the requests in what has come run by the [`Protocol`], and sends what they
//! answer, for no longer than a turn. The [`Outcome`] says what the loop is to do with it then.
//!
//! Invariants
//! - While [`PENDING_BYTES`] of replies wait, nothing more is read or run: a client that does not read
//!   its replies stops itself, and costs no more memory.
//! - An idle connection keeps no buffers.
//! - No reply is sent before what its request has written is as durable as the protocol wants.
//! - Replies beyond what the protocol bounds are not kept, and none of them is sent: the connection is cut off. Neither is more
//!   kept of requests.
//! - While the client waits nothing of it is read or run: what it sends waits in the kernel.
//!
//! Deliberately absent: which loop it belongs to, and when it is served.

mod input;
mod sending;

use std::io;
use std::time::{Duration, Instant};

use crate::buffers::Buffers;
use crate::limits::{PENDING_BYTES, SAID_BYTES, TURN, TURNS};
use crate::protocol::{Bounds, Client, Output, Progress, Protocol, Waits};
use crate::stream::Stream;
use crate::weights::Weight;

/// Bytes that a connection holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// The number of its socket.
    pub descriptor: i32,
    /// Of requests, and room for more of them.
    pub input: usize,
    /// See `input`.
    pub input_room: usize,
    /// Of replies that wait, and of the buffer that they are in.
    pub output: usize,
    /// See `output`.
    pub output_buffer: usize,
}

/// What becomes of a connection when it has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits for the kernel.
    Waits,
    /// It has more to do; others first.
    Again,
    /// What it has to say waits until what its commands have written is durable.
    Held,
    /// It waits for the kernel, and what it has to say may leave with what others have to say.
    Said,
    /// It has ended.
    Ended,
    /// It has more waiting than its limits allow: it ends, and nothing of that is sent.
    Cut,
}

/// One connection, of a client of `P`.
#[derive(Debug)]
pub struct Connection<P: Protocol> {
    /// Its socket.
    pub stream: Stream,
    /// What is remembered of whom it is with.
    pub client: P::Client,
    reader: P::Reader,
    /// What has arrived and has not been run.
    input: Vec<u8>,
    /// There may be whole requests in it.
    unrun: bool,
    /// Replies that the kernel has not taken yet, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// What the kernel has taken and is not counted yet.
    went: u64,
    /// Replies from here on are not sent before the loop has seen to it that what they tell is durable.
    held: Option<usize>,
    /// The kernel may have more to read, or room to write.
    pub readable: bool,
    /// See `readable`.
    pub writable: bool,
    /// The client will send no more.
    pub hung_up: bool,
    /// What its commands have taken in the visit under way.
    spent: Duration,
    /// Replies must end here in `output`.
    end: usize,
    /// Its end has been decided.
    pub is_doomed: bool,
    /// It is among those to whom letters have given something to send.
    pub is_given: bool,
    /// The second, as its loop counts them for `timeout`, in which it was served last.
    pub served: u64,
    /// Since when more waits to be sent than the soft limit of its class allows.
    slow_since: Option<Instant>,
    /// What it takes, as its server has counted it.
    pub weight: Option<Weight>,
}

impl<P: Protocol> Connection<P> {
    /// One whose client has just come, or that is new to its loop.
    pub fn new(stream: Stream, client: P::Client, reader: P::Reader) -> Connection<P> {
        Connection {
            stream,
            client,
            reader,
            input: Vec::new(),
            unrun: false,
            output: Vec::new(),
            sent: 0,
            went: 0,
            held: None,
            readable: true,
            writable: true,
            hung_up: false,
            spent: Duration::ZERO,
            end: usize::MAX,
            is_doomed: false,
            is_given: false,
            served: 0,
            slow_since: None,
            weight: None,
        }
    }

    /// Reads, runs and answers as much as there is, for a while.
    pub fn serve(&mut self, protocol: &mut P, lent: &mut Buffers) -> Outcome {
        self.spent = Duration::ZERO;
        for _ in 0..TURNS {
            match self.turn(protocol, lent) {
                Ok(Outcome::Again) if self.spent < TURN => {}
                Ok(outcome) => return outcome,
                Err(_) => return Outcome::Ended,
            }
        }
        Outcome::Again
    }

    fn turn(&mut self, protocol: &mut P, lent: &mut Buffers) -> io::Result<Outcome> {
        if self.held.is_some() {
            // The loop knows of it already.
            return Ok(Outcome::Waits);
        }
        let most = self.bound(protocol);
        if self.output.len() >= self.end {
            return Ok(Outcome::Cut);
        }
        // Replies of a pipeline that was interrupted by a command aside go together.
        if self.pending() > 0 && (!self.unrun || self.pending() > PENDING_BYTES) {
            self.send()?;
        }
        if self.pending() > PENDING_BYTES {
            return Ok(Outcome::Waits);
        }
        match self.client.waits() {
            Waits::No if !self.client.is_closing() => {}
            Waits::No => return Ok(if self.pending() == 0 { Outcome::Ended } else { Outcome::Waits }),
            Waits::WhileThere if self.hung_up => return Ok(Outcome::Ended),
            Waits::Yes | Waits::WhileThere => return Ok(Outcome::Waits),
        }
        // Requests that were not run because the connection had to wait come before new ones.
        let (mut bytes, end) = if self.unrun {
            let bytes = std::mem::take(&mut self.input);
            let end = bytes.len();
            (bytes, end)
        } else if self.readable {
            let kept = std::mem::take(&mut self.input);
            match self.receive(kept, lent)? {
                Some(received) => received,
                None => return Ok(if self.client.is_closing() { Outcome::Again } else { Outcome::Waits }),
            }
        } else {
            return Ok(Outcome::Waits);
        };
        let said = self.output.len();
        let used = self.run(protocol, lent, &bytes[..end]);
        self.keep(&mut bytes, used..end, lent);
        if self.output.len() >= self.end || self.input.len() > most {
            return Ok(Outcome::Cut);
        }
        if protocol.is_unsettled() {
            self.hold(said);
            return Ok(Outcome::Held);
        }
        let more = self.unrun || self.readable || self.client.is_closing();
        if !self.client.goes_aside() {
            if !more && self.pending() <= SAID_BYTES {
                return Ok(Outcome::Said);
            }
            self.send()?;
        }
        Ok(if more { Outcome::Again } else { Outcome::Waits })
    }

    /// Runs the requests in `bytes`, and answers how many bytes they took.
    fn run(&mut self, protocol: &mut P, lent: &mut Buffers, bytes: &[u8]) -> usize {
        self.borrow(lent);
        self.bound(protocol);
        let mut used = 0;
        self.unrun = false;
        let mut now = protocol.begin(&mut self.client);
        let begun = now;
        let until = begun + TURN.saturating_sub(self.spent);
        while used < bytes.len() && !self.client.is_closing() {
            if self.client.waits() != Waits::No || self.pending() > PENDING_BYTES || now > until {
                self.unrun = true;
                break;
            }
            if self.output.len() >= self.end {
                break;
            }
            let mut output = Output { bytes: &mut self.output, sent: self.sent };
            match protocol.request(&mut self.client, &mut self.reader, &bytes[used..], &mut output) {
                Progress::Incomplete => break,
                Progress::Ran(length) => used += length,
                Progress::Later => {
                    self.unrun = true;
                    break;
                }
            }
            now = protocol.ended(&self.client);
        }
        protocol.end(&mut self.client);
        self.spent += now.saturating_duration_since(begun);
        used
    }

    /// The client, and what it has to say.
    pub fn parts(&mut self) -> (&mut P::Client, Output<'_>) {
        (&mut self.client, Output { bytes: &mut self.output, sent: self.sent })
    }

    /// Takes over how much of it may wait; answers how much of requests.
    fn bound(&mut self, protocol: &P) -> usize {
        let Bounds { requests, replies } = protocol.bounds(&self.client);
        self.end = self.sent.saturating_add(replies);
        self.client.bound(self.end);
        requests
    }

    /// Whether nothing of it is under way, so that another loop can go on with it.
    pub fn is_movable(&self) -> bool {
        let is_quiet = self.held.is_none() && !self.unrun && self.pending() == 0;
        is_quiet && !self.hung_up && !self.client.is_closing() && !self.is_slow() && self.client.is_movable()
    }

    /// What it holds.
    pub fn holds(&self) -> Held {
        Held {
            descriptor: self.stream.descriptor(),
            input: self.input.len(),
            input_room: self.input.capacity() - self.input.len(),
            output: self.pending(),
            output_buffer: self.output.capacity(),
        }
    }
}
