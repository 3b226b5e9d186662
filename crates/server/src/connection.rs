//! A connection: its socket, what has arrived and not been understood, what waits to be sent.
//!
//! Invariants
//! - While [`PENDING_BYTES`] of replies wait, nothing more is read or run: a client that does not read
//!   its replies stops itself, and costs no more memory.
//! - An idle connection keeps no buffers.

use std::io::{self, Read, Write};
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use perilune::Session;
use perilune_resp::{Progress, Replies, RequestParser};
use socket2::{SockRef, TcpKeepalive};

use crate::client::Client;
use crate::gate::Context;
use crate::limits::{PENDING_BYTES, READ_BYTES, TURNS};
use crate::server::Server;

/// Either kind of socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Replies go at once, and a peer that is gone is noticed.
    pub(crate) fn prepare(&self) {
        if let Stream::Tcp(stream) = self {
            // What fails here is noticed when the socket is used.
            let _ = stream.set_nodelay(true);
            let _ = SockRef::from(stream)
                .set_tcp_keepalive(&TcpKeepalive::new().with_time(Duration::from_secs(300)));
        }
    }

    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

/// What becomes of a connection when it has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It waits for the kernel.
    Waits,
    /// It has more to do; others first.
    Again,
    /// It has ended.
    Ended,
}

/// Buffers of a thread, lent to the connection that is being served.
#[derive(Debug)]
pub(crate) struct Lent {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Lent {
    pub(crate) fn new() -> Lent {
        Lent { input: vec![0; READ_BYTES], output: Vec::with_capacity(READ_BYTES) }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    parser: RequestParser,
    /// The part of a request that has arrived.
    input: Vec<u8>,
    /// Replies that the kernel has not taken yet, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// The kernel may have more to read, or room to write.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Connection {
    pub(crate) fn new(stream: Stream, client: Client) -> Connection {
        Connection {
            stream,
            client,
            parser: RequestParser::default(),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            readable: true,
            writable: true,
        }
    }

    /// Reads, runs and answers as much as there is, for a while.
    pub(crate) fn serve(&mut self, server: &Server, session: &mut Session, lent: &mut Lent) -> Outcome {
        for _ in 0..TURNS {
            match self.turn(server, session, lent) {
                Ok(Outcome::Again) => {}
                Ok(outcome) => return outcome,
                Err(_) => return Outcome::Ended,
            }
        }
        Outcome::Again
    }

    fn turn(&mut self, server: &Server, session: &mut Session, lent: &mut Lent) -> io::Result<Outcome> {
        self.send()?;
        if self.pending() > PENDING_BYTES {
            return Ok(Outcome::Waits);
        }
        if self.client.closing {
            return Ok(if self.pending() == 0 { Outcome::Ended } else { Outcome::Waits });
        }
        // Requests that were not run because too many replies waited come before new ones.
        let waiting = std::mem::take(&mut self.input);
        let held = waiting.len();
        let (mut bytes, fresh) = if held > 0 && self.parser.missing(held) == 0 && !self.readable {
            (waiting, false)
        } else if !self.readable {
            self.input = waiting;
            return Ok(Outcome::Waits);
        } else {
            match self.receive(waiting, lent)? {
                Some(bytes) => (bytes, true),
                None => return Ok(if self.client.closing { Outcome::Again } else { Outcome::Waits }),
            }
        };
        let (used, stopped) = self.run(server, session, &bytes, lent);
        self.keep(&mut bytes, used, lent);
        self.send()?;
        let more = stopped || fresh && self.readable || self.client.closing;
        Ok(if more { Outcome::Again } else { Outcome::Waits })
    }

    /// Reads into the thread's buffer, or behind what the connection has kept; none when nothing came.
    fn receive(&mut self, mut kept: Vec<u8>, lent: &mut Lent) -> io::Result<Option<Vec<u8>>> {
        let (mut buffer, start) = if kept.is_empty() {
            (std::mem::take(&mut lent.input), 0)
        } else {
            let start = kept.len();
            // As much as came so far: a request that promises much gets room as it keeps its word.
            let room = self.parser.missing(start).clamp(READ_BYTES, start.max(READ_BYTES));
            kept.resize(start + room, 0);
            (kept, start)
        };
        let outcome = loop {
            match self.stream.read(&mut buffer[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let came = match outcome {
            Ok(0) => {
                self.readable = false;
                // What was asked before the end is answered first.
                self.client.closing = true;
                0
            }
            Ok(came) => {
                // Edge-triggered: a read that did not fill its buffer has emptied the socket.
                self.readable = start + came == buffer.len();
                came
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                0
            }
            Err(error) => return Err(error),
        };
        buffer.truncate(start + came);
        if came > 0 {
            return Ok(Some(buffer));
        }
        self.keep(&mut buffer, 0, lent);
        Ok(None)
    }

    /// Runs the requests in `bytes`; how many bytes they took, and whether it stopped before the end.
    fn run(
        &mut self,
        server: &Server,
        session: &mut Session,
        bytes: &[u8],
        lent: &mut Lent,
    ) -> (usize, bool) {
        if self.output.is_empty() {
            std::mem::swap(&mut self.output, &mut lent.output);
        }
        let (mut used, mut commands) = (0, 0);
        let mut stopped = false;
        while used < bytes.len() && !self.client.closing {
            if self.output.len() - self.sent > PENDING_BYTES {
                stopped = true;
                break;
            }
            match self.parser.parse(&bytes[used..], self.client.authenticated) {
                Ok(Progress::Incomplete) => break,
                Ok(Progress::Complete { used: length }) => {
                    let arguments = self.parser.arguments(&bytes[used..]);
                    used += length;
                    if !arguments.is_empty() {
                        let client = &mut self.client;
                        Context { server, session, client }.execute(arguments, &mut self.output);
                        commands += 1;
                    }
                }
                Err(error) => {
                    let mut replies = Replies::new(&mut self.output, self.client.protocol);
                    replies.error(&format!("ERR {error}"));
                    self.client.closing = true;
                }
            }
        }
        server.figures.commands.fetch_add(commands, std::sync::atomic::Ordering::Relaxed);
        (used, stopped)
    }

    /// Keeps what is left of `bytes`, and gives the thread its buffer back.
    fn keep(&mut self, bytes: &mut Vec<u8>, used: usize, lent: &mut Lent) {
        let rest = &bytes[used.min(bytes.len())..];
        if lent.input.is_empty() {
            self.input = rest.to_vec();
            lent.input = std::mem::take(bytes);
            lent.input.resize(READ_BYTES, 0);
        } else {
            bytes.drain(..used.min(bytes.len()));
            self.input = std::mem::take(bytes);
        }
        if self.input.is_empty() {
            self.input = Vec::new();
            self.parser.shrink();
        }
    }

    fn pending(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Sends what the kernel takes.
    fn send(&mut self) -> io::Result<()> {
        while self.writable && self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.sent += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Gives the buffer of replies back when it is empty.
    pub(crate) fn settle(&mut self, lent: &mut Lent) {
        if self.output.is_empty() && self.output.capacity() > 0 {
            let output = std::mem::take(&mut self.output);
            if lent.output.capacity() == 0 {
                lent.output = output;
                lent.output.shrink_to(16 * READ_BYTES);
            }
        }
    }

    /// Sends what waits, and nothing more, before the server ends.
    pub(crate) fn finish(&mut self) {
        self.writable = true;
        let _ = self.send();
    }
}
