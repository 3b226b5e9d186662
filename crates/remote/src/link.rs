//! The connection of a session: requests out, answers in, and what is said when it is lost.
//!
//! Invariants
//! - After any failure of input or output the socket is closed: what it would say next belongs to a
//!   request that was given up.
//! - A forked child makes a connection of its own, and leaves its parent's alone.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_resp::limits::{ARGUMENTS, BULK_BYTES, REQUEST_BYTES};
use perilune_resp::{Answer, Protocol, Replies};
use perilune_store::{Error, Result};

use crate::address::Address;
use crate::codes;
use crate::input::Input;
use crate::limits::ANSWER_BYTES;
use crate::stream::Stream;
use crate::wire::{FAMILY, VERSION};

/// What a server may take for each MiB of a long request.
const PER_MIB: Duration = Duration::from_millis(100);

/// What an operation does at the server, for what is said when its answer never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it can be asked again.
    None,
    /// It changes something.
    Change,
}

/// What a server says of itself when a client comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    pub(crate) update_bytes: usize,
    pub(crate) transaction_depth: usize,
}

/// A connection, made when it is needed.
#[derive(Debug)]
pub(crate) struct Link {
    address: Arc<Address>,
    /// For connecting, and for each answer.
    timeout: Duration,
    stream: Option<Stream>,
    /// The process that made it.
    pid: u32,
    /// Bytes of an argument that the server takes.
    argument_bytes: usize,
    /// What the server may take for what was sent last, besides the timeout.
    work: Duration,
    out: Vec<u8>,
    input: Input,
}

impl Link {
    pub(crate) fn new(address: &Arc<Address>, timeout: Duration) -> Link {
        Link {
            address: Arc::clone(address),
            timeout,
            stream: None,
            pid: std::process::id(),
            argument_bytes: BULK_BYTES,
            work: Duration::ZERO,
            out: Vec::new(),
            input: Input::default(),
        }
    }

    /// Connects, if it is not, and answers what the server says of itself.
    pub(crate) fn greet(&mut self) -> Result<Greeting> {
        self.drop_stream();
        self.connect()
    }

    /// Whether this process is a child of the one that made the connection.
    pub(crate) fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Whether there is a connection that can hold something.
    pub(crate) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// One request and its answer. `wait` is how long the server may take on purpose.
    pub(crate) fn call(
        &mut self,
        name: &str,
        arguments: &[&[u8]],
        effect: Effect,
        wait: Duration,
    ) -> Result<Answer> {
        self.here()?;
        self.fits(arguments.iter().copied())?;
        self.request(name, arguments);
        self.exchange(effect, wait)
    }

    /// Many requests of one kind, each with its answer; the first error that one of them answers. Sends some
    /// at a time, so that neither end fills the other's buffers.
    pub(crate) fn call_each<'a>(
        &mut self,
        name: &str,
        requests: impl Iterator<Item = [&'a [u8]; 2]>,
    ) -> Result<()> {
        const AT_ONCE: usize = 64 << 10;
        self.here()?;
        let mut requests = requests.peekable();
        let mut misfit = Ok(());
        while misfit.is_ok() && requests.peek().is_some() {
            let mut count = 0;
            while self.out.len() < AT_ONCE {
                let Some(arguments) = requests.next() else { break };
                // NB: those before it are sent all the same.
                if let Err(error) = self.fits(arguments.iter().copied()) {
                    misfit = Err(error);
                    break;
                }
                self.request(name, &arguments);
                count += 1;
            }
            self.send(Effect::Change)?;
            let mut failure = Ok(());
            for _ in 0..count {
                match self.receive(Effect::Change, Duration::ZERO) {
                    Ok(_) => {}
                    Err(error) if self.stream.is_none() => return Err(error),
                    Err(error) => failure = failure.and(Err(error)),
                }
            }
            failure?;
        }
        misfit
    }

    /// What the server would take for no request, and close the connection, is not sent.
    fn fits<'a>(&self, arguments: impl Iterator<Item = &'a [u8]> + Clone) -> Result<()> {
        let (count, bytes) =
            arguments.clone().fold((0, 0), |(count, bytes), each| (count + 1, bytes + each.len()));
        let refuse = |what, limit: usize| Err(Error::LimitReached { what, limit: limit as u64 });
        if arguments.map(<[u8]>::len).max() > Some(self.argument_bytes) {
            return refuse("bytes in one string over the wire (proto-max-bulk-len)", self.argument_bytes);
        }
        if count + 1 > ARGUMENTS {
            return refuse("parts of one request over the wire", ARGUMENTS);
        }
        // NB: before each argument stands its length.
        if bytes + 16 * (count + 1) > REQUEST_BYTES {
            return refuse("bytes of one request over the wire", REQUEST_BYTES);
        }
        Ok(())
    }

    fn here(&mut self) -> Result<()> {
        self.out.clear();
        if self.is_forked() {
            // The descriptor is closed, and the connection, which is the parent's too, goes on.
            self.stream = None;
            self.pid = std::process::id();
        }
        if self.stream.is_none() {
            self.connect()?;
        }
        Ok(())
    }

    fn request(&mut self, name: &str, arguments: &[&[u8]]) {
        self.out.reserve(arguments.iter().map(|argument| argument.len() + 16).sum::<usize>() + 64);
        let mut replies = Replies::new(&mut self.out, Protocol::Resp2);
        replies.array(arguments.len() + 1);
        replies.bulk(&[FAMILY.as_bytes(), name.as_bytes()].concat());
        arguments.iter().for_each(|argument| replies.bulk(argument));
    }

    fn exchange(&mut self, effect: Effect, wait: Duration) -> Result<Answer> {
        self.send(effect)?;
        self.receive(effect, wait)
    }

    fn send(&mut self, effect: Effect) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return Err(self.lost(effect, io::ErrorKind::NotConnected.into()));
        };
        let sent = stream.write_all(&self.out);
        self.work = PER_MIB * (self.out.len() >> 20) as u32;
        self.out.clear();
        // Large requests are rare: their memory is not kept.
        self.out.shrink_to(1 << 20);
        sent.map_err(|error| self.lost(effect, error))
    }

    fn receive(&mut self, effect: Effect, wait: Duration) -> Result<Answer> {
        let deadline = Instant::now() + self.timeout + self.work + wait;
        loop {
            if let Some(bytes) = self.input.take_long() {
                return Ok(Answer::Bulk(bytes));
            }
            match Answer::parse(self.input.held()) {
                Ok(Some((answer, used))) => {
                    self.input.take(used);
                    return self.told(answer);
                }
                Ok(None) => self.read(deadline).map_err(|error| self.lost(effect, error))?,
                Err(error) => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
                    return Err(self.lost(effect, error));
                }
            }
        }
    }

    /// An answer, or the error that the server answers.
    fn told(&self, answer: Answer) -> Result<Answer> {
        match answer {
            Answer::Error(line) => {
                Err(codes::to_error(&String::from_utf8_lossy(&line), &self.address.shown()))
            }
            answer => Ok(answer),
        }
    }

    fn read(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if self.input.held().len() > ANSWER_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"));
        }
        let room = self.input.room();
        let outcome = loop {
            match stream.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket's own limit is that of the shortest answer.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.input.add(count);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn connect(&mut self) -> Result<Greeting> {
        let opened = Stream::open(&self.address.place, self.timeout);
        let stream = opened.map_err(|source| Error::Unavailable {
            place: self.address.shown().into(),
            why: format!("cannot connect: {source}: is `perilune serve` running there, and does it listen at this address?"),
        })?;
        self.stream = Some(stream);
        self.input.clear();
        let greeting = self.enter();
        if greeting.is_err() {
            self.drop_stream();
        }
        greeting
    }

    /// Gives the password and asks what the server is.
    fn enter(&mut self) -> Result<Greeting> {
        let environment = || std::env::var("PERILUNE_PASSWORD").ok().filter(|password| !password.is_empty());
        let held = std::mem::take(&mut self.out);
        if let Some(password) = self.address.password.clone().or_else(environment) {
            let user = self.address.user.clone().unwrap_or_else(|| "default".to_owned());
            let mut replies = Replies::new(&mut self.out, Protocol::Resp2);
            replies.array(3);
            [b"AUTH", user.as_bytes(), password.as_bytes()].into_iter().for_each(|part| replies.bulk(part));
            self.exchange(Effect::None, Duration::ZERO)?;
        }
        self.request("HELLO", &[VERSION.to_string().as_bytes()]);
        let answer = self.exchange(Effect::None, Duration::ZERO)?;
        self.out = held;
        let Answer::Array(figures) = &answer else { return Err(unexpected("HELLO")) };
        let figure = |index: usize| match figures.get(index) {
            Some(Answer::Integer(figure)) => usize::try_from(*figure).map_err(|_| unexpected("HELLO")),
            _ => Err(unexpected("HELLO")),
        };
        self.argument_bytes = figure(2)?.min(BULK_BYTES);
        Ok(Greeting {
            key_bytes: figure(1)?,
            value_bytes: self.argument_bytes,
            update_bytes: figure(3)?,
            transaction_depth: figure(4)?,
        })
    }

    fn drop_stream(&mut self) {
        if let Some(stream) = self.stream.take() {
            if !self.is_forked() {
                stream.close();
            }
        }
    }

    /// The connection is gone: what the caller is told.
    fn lost(&mut self, effect: Effect, error: io::Error) -> Error {
        self.drop_stream();
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no answer in {} s (option `timeout`)", self.timeout.as_secs_f64())
            }
            _ => error.to_string(),
        };
        match effect {
            Effect::None => Error::Unavailable {
                place: self.address.shown().into(),
                why: format!(
                    "the connection was lost ({why}), and with it this session's locks and watches; nothing has happened: \
                     the next call connects again"
                ),
            },
            Effect::Change => Error::CommitUnknown {
                why: format!(
                    "{}: the connection was lost before the answer came ({why}): whether the write has happened is unknown: \
                     read the data to find out; this session's locks and watches are gone; the next call connects again",
                    self.address.shown()
                ),
            },
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.drop_stream();
    }
}

/// The server answered something else than the operation has for an answer.
pub(crate) fn unexpected(name: &str) -> Error {
    Error::Internal(format!("the server answered {name} in a form that this version does not know"))
}
