//! A thread of the server: an event loop over its connections, with its own session of the database.
//!
//! Invariants
//! - A connection stays with its thread. The first thread accepts, and gives each one to the thread that
//!   has fewest.
//! - No thread waits for another; a command runs to its end, or until its connection is parked, before the
//!   next event. A parked one goes on by a letter or a timer.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use perilune::{node, Session};
use perilune_resp::Protocol;

use crate::client::Client;
use crate::connection::{Connection, Lent, Outcome, Stream};
use crate::effects::Effects;
use crate::gate::Context;
use crate::journal::Level;
use crate::limits::EVENTS;
use crate::listener::Listeners;
use crate::mailbox::{Letter, Seat};
use crate::peers;
use crate::server::Server;
use crate::settings::Name;
use crate::subscribers::{self, Message, Topic};
use crate::subscriptions::Subscriptions;
use crate::timers::Timers;
use crate::tls::TlsStream;

const WAKE: Token = Token(usize::MAX);
const UNIX: Token = Token(usize::MAX - 1);
/// TCP listeners count down from here.
const TCP: usize = usize::MAX - 2;
/// The lowest of them.
const LISTENERS: usize = usize::MAX - 1_000;

const DENIED: &[u8] =
    b"-DENIED Perilune runs in protected mode: there is no password, so that only clients of this \
machine are served. Set `requirepass`, or give --protected-mode no if the network is trusted.\r\n";
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// What a thread lends to the connection that it serves.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) server: Arc<Server>,
    pub(crate) session: Session,
    pub(crate) lent: Lent,
    pub(crate) effects: Effects,
    subscriptions: Subscriptions,
    timers: Timers,
    /// Which of the server's loops this is.
    thread: usize,
}

impl Desk {
    /// What a command of `client` works with.
    pub(crate) fn context<'d>(&'d mut self, client: &'d mut Client) -> Context<'d> {
        Context {
            server: &self.server,
            session: &mut self.session,
            client,
            effects: &mut self.effects,
            may_park: true,
        }
    }

    /// Sees to what a command of `client` wants done, now that it has committed.
    ///
    /// # Errors
    /// The database does not take its subscriptions.
    pub(crate) fn carry_out(&mut self, client: &Client) -> perilune::Result<()> {
        if let Some(parked) = &client.parked {
            if let Some(until) = parked.until {
                self.timers.set(until, client.seat.token, parked.ticket);
            }
        }
        if self.effects.is_empty() {
            return Ok(());
        }
        self.send_letters();
        self.subscribe(client.seat.token)
    }

    #[cold]
    fn subscribe(&mut self, token: usize) -> perilune::Result<()> {
        let changes = std::mem::take(&mut self.effects.subscriptions);
        let mut counts = BTreeMap::new();
        for (topic, name, is_in) in &changes {
            let count = self.subscriptions.change(*topic, name, token, *is_in);
            counts.insert((*topic, &name[..]), count);
        }
        let counts: Vec<_> = counts.into_iter().map(|((topic, name), count)| (topic, name, count)).collect();
        if counts.is_empty() {
            return Ok(());
        }
        subscribers::note(&mut self.session, self.server.number, self.thread, &counts)
    }

    fn send_letters(&mut self) {
        for (thread, letter) in self.effects.letters.drain(..) {
            match self.server.mailboxes.get(thread) {
                Some(mailbox) if thread == self.thread => mailbox.keep(letter),
                Some(mailbox) => mailbox.post(letter),
                None => {}
            }
        }
    }
}

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    desk: Desk,
    poll: Poll,
    listeners: Option<Listeners>,
    /// By token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections with more to do than one visit allowed.
    again: VecDeque<usize>,
    /// Connections that letters have given something to send.
    given: Vec<usize>,
}

impl Worker {
    pub(crate) fn new(
        server: &Arc<Server>,
        thread: usize,
        session: Session,
        mut listeners: Option<Listeners>,
    ) -> io::Result<Worker> {
        let poll = Poll::new()?;
        server.mailboxes[thread].attend(Waker::new(poll.registry(), WAKE)?);
        if let Some(listeners) = &mut listeners {
            for (number, listener) in listeners.tcp.iter_mut().enumerate() {
                poll.registry().register(listener, Token(TCP - number), Interest::READABLE)?;
            }
            if let Some(listener) = &mut listeners.unix {
                poll.registry().register(listener, UNIX, Interest::READABLE)?;
            }
        }
        let desk = Desk {
            server: Arc::clone(server),
            session,
            lent: Lent::new(),
            effects: Effects::default(),
            subscriptions: Subscriptions::default(),
            timers: Timers::default(),
            thread,
        };
        Ok(Worker {
            desk,
            poll,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            given: Vec::new(),
        })
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.desk.server.is_stopping() {
            let busy = !self.again.is_empty() || self.desk.server.mailboxes[self.desk.thread].is_waiting();
            let most = if busy { Duration::ZERO } else { Duration::from_secs(1) };
            let wait = self.desk.timers.sleep(most);
            match self.poll.poll(&mut events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Nothing can be waited for any more: the other threads go on.
                Err(_) => break,
            }
            for event in &events {
                match event.token() {
                    WAKE => {}
                    UNIX => self.accept_unix(),
                    Token(token) if token > LISTENERS => self.accept_tcp(TCP - token),
                    Token(token) => {
                        if let Some(Some(connection)) = self.connections.get_mut(token) {
                            connection.readable |=
                                event.is_readable() || event.is_read_closed() || event.is_error();
                            connection.writable |= event.is_writable();
                            connection.hung_up |= event.is_read_closed() || event.is_error();
                            self.serve(token);
                        }
                    }
                }
            }
            self.read_letters();
            self.ring_timers();
            for _ in 0..self.again.len() {
                if let Some(token) = self.again.pop_front() {
                    self.serve(token);
                }
            }
        }
        for connection in self.connections.iter_mut().flatten() {
            connection.finish();
            if let Some(nodes) = &mut connection.client.nodes {
                nodes.end(&mut self.desk.session);
            }
        }
        if self.desk.server.loops.fetch_sub(1, Ordering::AcqRel) == 1 {
            peers::stop(&mut self.desk.session, self.desk.server.number);
        }
    }

    fn serve(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let outcome = connection.serve(&mut self.desk);
        connection.settle(&mut self.desk.lent);
        match outcome {
            Outcome::Waits => {}
            Outcome::Again => self.again.push_back(token),
            Outcome::Ended => self.end(token),
        }
    }

    fn end(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) {
            connection.finish();
            connection.client.unsubscribe(&mut self.desk.effects);
            // What is not noted now is when the next one comes or goes, or this server does.
            let _ = self.desk.subscribe(token);
            if let Some(nodes) = &mut connection.client.nodes {
                nodes.end(&mut self.desk.session);
            }
            // It is closed in any case; then the kernel forgets it too.
            let _ = self.poll.registry().deregister(connection.stream.source());
            self.free.push(token);
            self.forget_one();
        }
    }

    fn forget_one(&self) {
        let server = &self.desk.server;
        server.mailboxes[self.desk.thread].load.fetch_sub(1, Ordering::Relaxed);
        server.figures.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn accept_tcp(&mut self, number: usize) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.tcp.get(number)) {
            match listener.accept() {
                Ok((stream, address)) => {
                    let Some(stream) = self.dress(stream, number) else { continue };
                    let local = match address.ip() {
                        IpAddr::V4(ip) => ip.is_loopback(),
                        IpAddr::V6(ip) => ip.is_loopback(),
                    };
                    self.admit(stream, address.to_string(), local);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // None is left, or no descriptor is: the next connection tries again.
                Err(_) => return,
            }
        }
    }

    /// The stream of a socket that came to listener `number`: with TLS or without.
    fn dress(&self, socket: TcpStream, number: usize) -> Option<Stream> {
        let tls_from = self.listeners.as_ref().map_or(0, |listeners| listeners.tls_from);
        if number < tls_from {
            return Some(Stream::Tcp(socket));
        }
        let config = self.desk.server.tls.as_ref()?;
        // Without memory for it the client is told by the end of its connection.
        Some(Stream::Tls(Box::new(TlsStream::new(socket, config).ok()?)))
    }

    fn accept_unix(&mut self) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.unix.as_ref()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let path = self.desk.server.settings.unix_socket.as_ref();
                    let address = path.map_or_else(String::new, |path| format!("{}:0", path.display()));
                    self.admit(Stream::Unix(stream), address, true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, address: String, local: bool) {
        let server = &self.desk.server;
        let (figures, live) = (&server.figures, &server.live);
        figures.connections.fetch_add(1, Ordering::Relaxed);
        let full = figures.connected.load(Ordering::Relaxed) >= live.number(Name::MaxClients) as u64;
        let denied = !local && live.is_on(Name::ProtectedMode) && server.is_open();
        if full || denied {
            figures.rejected.fetch_add(1, Ordering::Relaxed);
            let why = if full { "maxclients" } else { "protected-mode" };
            server.note(Level::Warning, "client refused", &[("addr", &address), ("why", why)]);
            let _ = stream.write(if full { FULL } else { DENIED });
            return;
        }
        figures.connected.fetch_add(1, Ordering::Relaxed);
        stream.prepare(live.number(Name::TcpKeepalive) as u64);
        let id = client_id(&mut self.desk.session);
        if server.notes(Level::Verbose) {
            server.note(Level::Verbose, "client connected", &[("addr", &address), ("id", &id.to_string())]);
        }
        let client = Client::new(id, address, local, server.is_open());
        let Some(target) = server.mailboxes.iter().min_by_key(|mailbox| mailbox.load.load(Ordering::Relaxed))
        else {
            return;
        };
        target.load.fetch_add(1, Ordering::Relaxed);
        target.post(Letter::Arrived(Box::new((stream, client))));
    }

    fn read_letters(&mut self) {
        for letter in self.desk.server.mailboxes[self.desk.thread].empty() {
            match letter {
                Letter::Arrived(arrived) => self.arrive(*arrived),
                Letter::Reply { seat, ticket, bytes } => {
                    if self.at(seat).is_some_and(|connection| connection.answer(ticket, bytes)) {
                        self.given.push(seat.token);
                    }
                }
                Letter::Message(message) => self.deliver(&message),
                Letter::Close { seat } => {
                    if self.at(seat).is_some() {
                        self.end(seat.token);
                    }
                }
            }
        }
        while let Some(token) = self.given.pop() {
            self.serve(token);
        }
    }

    /// The connection of a client that is still there.
    fn at(&mut self, seat: Seat) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(seat.token)?.as_mut()?;
        (connection.client.id == seat.client).then_some(connection)
    }

    /// Gives a message to the connections that are subscribed.
    fn deliver(&mut self, message: &Message) {
        let tokens = self.desk.subscriptions.of_channel(message.topic, &message.channel);
        self.push_message(message, None, &tokens);
        if message.topic == Topic::Channel {
            for (pattern, tokens) in self.desk.subscriptions.of_patterns(&message.channel) {
                self.push_message(message, Some(&pattern), &tokens);
            }
        }
    }

    fn push_message(&mut self, message: &Message, pattern: Option<&[u8]>, tokens: &[usize]) {
        // Class 2 is pub/sub; 0 is no limit.
        let limit = match self.desk.server.live.output_limit(2)[0] {
            0 => u64::MAX,
            limit => limit as u64,
        };
        let mut frames = [const { None }; 2];
        for token in tokens {
            let Some(Some(connection)) = self.connections.get_mut(*token) else { continue };
            let protocol = connection.client.protocol;
            let frame: &mut Option<Vec<u8>> = &mut frames[usize::from(protocol == Protocol::Resp3)];
            let frame = frame.get_or_insert_with(|| message.frame(protocol, pattern));
            if connection.push(frame, limit) {
                self.given.push(*token);
            } else {
                self.end(*token);
            }
        }
    }

    fn ring_timers(&mut self) {
        let now = Instant::now();
        while let Some((token, ticket)) = self.desk.timers.take_due(now) {
            let connection = self.connections.get_mut(token).and_then(Option::as_mut);
            if connection.is_some_and(|connection| connection.time_out(ticket)) {
                self.serve(token);
            }
        }
    }

    fn arrive(&mut self, (mut stream, mut client): (Stream, Client)) {
        let token = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(stream.source(), Token(token), interest).is_err() {
            self.free.push(token);
            self.forget_one();
            return;
        }
        client.seat = Seat { thread: self.desk.thread, token, client: client.id };
        self.connections[token] = Some(Connection::new(stream, client));
        self.serve(token);
    }
}

/// A number that no other client of the database has had, on any server.
fn client_id(session: &mut Session) -> i64 {
    let number = node!("^redis", "client").and_then(|node| session.increment(&node, 1));
    // A database that takes no writes still serves readers.
    number.ok().and_then(perilune::Number::as_i64).unwrap_or(0)
}
