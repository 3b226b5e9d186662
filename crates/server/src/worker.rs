//! A thread of the server: an event loop over its connections, with its own session of the database.
//!
//! Invariants
//! - A connection stays with its thread. The first thread accepts, and gives each one to the thread that
//!   has fewest.
//! - Replies and letters leave when what they tell is durable: at level `fsync` the commands of a round share one
//!   sync. A reply of a command that ran aside, on a session of its own, has waited for its own.
//! - No thread waits for another; a command runs to its end, or until its connection is parked, before the
//!   next event. A parked one goes on by a letter or a timer. Commands that may take long run aside (`aside`).

mod pauses;
mod rings;
mod unread;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use perilune::{node, Session};
use perilune_resp::{parse_integer, Arguments, Protocol};

use crate::aside::{Aside, Done};
use crate::census::{self, Filter};
use crate::client::{Client, Parked, Queued};
use crate::connection::{Connection, Lent, Outcome, Stream};
use crate::effects::Effects;
use crate::failure;
use crate::gate::Context;
use crate::inquiry::{Answer, Inquiry};
use crate::journal::Level;
use crate::listener::Listeners;
use crate::mailbox::{Letter, Seat};
use crate::numbers::lower;
use crate::peers;
use crate::queue;
use crate::server::Server;
use crate::settings::Name;
use crate::subscribers::{self, Message, Topic};
use crate::subscriptions::Subscriptions;
use crate::timers::{Clocks, Timers};
use crate::tls::TlsStream;
use crate::tracking::{self, Tracker};
use crate::waits::Waits;

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
    pub(crate) clocks: Clocks,
    subscriptions: Subscriptions,
    waits: Waits,
    tracker: Tracker,
    timers: Timers,
    /// Why what was written last is not durable, for those whose replies wait for that.
    unsettled: Option<String>,
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
        if client.kept.broken {
            self.tracker.settle(client);
        }
        if let Some(parked) = &client.parked {
            if let Some(until) = parked.until {
                self.timers.set(until, client.seat.token, parked.ticket);
            }
            if let Some(queued) = &parked.queued {
                self.await_keys(queued)?;
            }
        }
        if self.effects.is_empty() {
            return Ok(());
        }
        self.send_letters();
        self.subscribe(client.seat.token)
    }

    /// Watches the keys that a client waits for. What came between its look and the watch is served at once.
    fn await_keys(&mut self, queued: &Queued) -> perilune::Result<()> {
        for key in &queued.keys {
            self.waits.add(&mut self.session, queued.database, key)?;
        }
        for key in &queued.keys {
            self.serve_key(queued.database, key)?;
        }
        Ok(())
    }

    /// Serves who waits for a key, wherever that is, if there is anything.
    fn serve_key(&mut self, database: i64, key: &[u8]) -> perilune::Result<()> {
        let Desk { server, session, effects, .. } = self;
        effects.begin(server);
        let before = effects.mark();
        let served = session.transaction(|session| {
            effects.rewind(before);
            effects.wake(database, key);
            Ok(effects.finish(session)?)
        });
        if served.is_err() {
            effects.rewind(before);
        }
        self.send_letters();
        served
    }

    /// A client no longer waits, for keys or for the end of a pause.
    fn leave(&mut self, parked: &Parked) {
        if parked.paused {
            self.server.held_back.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(queued) = &parked.queued {
            self.server.blocked.fetch_sub(1, Ordering::AcqRel);
            for key in &queued.keys {
                self.waits.remove(&mut self.session, queued.database, key);
            }
        }
    }

    /// Takes a client out of the queues; false if its reply is on its way. One that cannot be taken out is
    /// told the truth by the reply that comes.
    fn cancel(&mut self, queued: Option<&Queued>) -> bool {
        queued.is_none_or(|queued| {
            queue::cancel(&mut self.session, self.server.number, queued.ticket).unwrap_or(false)
        })
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

    /// Whether replies have to wait for [`Desk::settle`].
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.session.is_unsettled() || self.unsettled.is_some()
    }

    /// Waits until all that was written is durable, if the level wants that.
    fn settle(&mut self) {
        if let Err(error) = self.session.settle() {
            self.unsettled = Some(failure::text_of(&error).into_owned());
        }
    }

    fn send_letters(&mut self) {
        if self.effects.letters.is_empty() {
            return;
        }
        // What others are told is as durable as what the client is told itself.
        self.settle();
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
    /// Connections whose replies wait until what they tell is durable.
    held: Vec<usize>,
    /// Connections that wait for a command to be run aside.
    asides: VecDeque<usize>,
    /// Connections beyond a soft limit of client-output-buffer-limit.
    slow: Vec<usize>,
    /// Seconds that have been counted for `timeout`, and when the last one was.
    seconds: u64,
    second: Instant,
}

impl Worker {
    pub(crate) fn new(
        server: &Arc<Server>,
        thread: usize,
        mut session: Session,
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
        // Each round of the loop waits once for the disk, if anything has to.
        session.defer(true);
        let desk = Desk {
            server: Arc::clone(server),
            session,
            lent: Lent::new(),
            effects: Effects::default(),
            clocks: Clocks::new(),
            subscriptions: Subscriptions::default(),
            waits: Waits::new(poll.registry().try_clone()?),
            tracker: Tracker::new(poll.registry().try_clone()?),
            timers: Timers::default(),
            unsettled: None,
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
            held: Vec::new(),
            seconds: 0,
            second: Instant::now(),
            asides: VecDeque::new(),
            slow: Vec::new(),
        })
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(&self.desk.server)
    }

    /// Which of the server's loops this is.
    pub(crate) fn thread(&self) -> usize {
        self.desk.thread
    }

    /// Serves what there is to be served, after waiting for it; false when the server ends.
    pub(crate) fn round(&mut self, events: &mut Events) -> bool {
        if self.desk.server.is_stopping() {
            return false;
        }
        let waiting = self.desk.server.mailboxes[self.desk.thread].is_waiting();
        let unsettled = self.desk.is_unsettled() || !self.held.is_empty();
        let busy = waiting || unsettled || !self.again.is_empty() || !self.asides.is_empty();
        let most = if busy { Duration::ZERO } else { Duration::from_secs(1) };
        let wait = self.desk.tracker.sleep(self.desk.timers.sleep(most));
        match self.poll.poll(events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            // Nothing can be waited for any more: the other threads go on.
            Err(_) => return false,
        }
        for event in &*events {
            match event.token() {
                WAKE => {}
                UNIX => self.accept_unix(),
                Token(token) if token > LISTENERS => self.accept_tcp(TCP - token),
                Token(token) if token >= tracking::FIRST => self.ring(token),
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
        self.end_idle();
        for _ in 0..self.again.len() {
            if let Some(token) = self.again.pop_front() {
                self.serve(token);
            }
        }
        self.tell_changes();
        self.settle();
        true
    }

    /// Makes durable what the commands of this round have written, with one sync for all of them, and lets their
    /// replies go.
    fn settle(&mut self) {
        if !self.desk.is_unsettled() && self.held.is_empty() {
            return;
        }
        self.desk.settle();
        let failure = self.desk.unsettled.take();
        for token in std::mem::take(&mut self.held) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let outcome = connection.release(failure.as_deref());
            connection.settle(&mut self.desk.lent);
            self.follow(token, outcome);
        }
    }

    /// The next command to be run aside.
    pub(crate) fn next_aside(&mut self) -> Option<Aside> {
        while let Some(token) = self.asides.pop_front() {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let client = &mut connection.client;
            let Some(aside) = client.aside.take() else { continue };
            let Some(ticket) = client.parked.as_ref().map(|parked| parked.ticket) else { continue };
            let (command, arguments) = *aside;
            let (seat, client) = (client.seat, client.lend());
            self.settle();
            return Some(Aside { command, arguments, seat, ticket, client });
        }
        None
    }

    /// Answers a command that ran aside, and goes on with its connection.
    pub(crate) fn finish_aside(&mut self, done: Done) {
        let Done { seat, ticket, client, reply, effects } = done;
        self.desk.effects = effects;
        let Some(connection) = self.connections.get_mut(seat.token).and_then(Option::as_mut) else {
            return self.forget_aside(client);
        };
        if connection.client.id != seat.client {
            return self.forget_aside(client);
        }
        connection.client.take_back(client);
        connection.answer(ticket, reply);
        if self.desk.carry_out(&connection.client).is_err() {
            // The tree does not say what the client has just been told.
            connection.client.closing = true;
        }
        self.serve(seat.token);
    }

    /// The client is gone: what its command wants done for others is done, and what it held is released.
    fn forget_aside(&mut self, mut client: Box<Client>) {
        self.desk.effects.subscriptions.clear();
        self.desk.send_letters();
        if let Some(nodes) = &mut client.nodes {
            nodes.end(&mut self.desk.session);
        }
    }

    /// Sends what a connection has to say before a command that takes long.
    pub(crate) fn flush(&mut self, token: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(token) {
            connection.flush();
        }
    }

    /// Says goodbye, when the server ends.
    pub(crate) fn finish(mut self) {
        self.settle();
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
        connection.served = self.seconds;
        let outcome = connection.serve(&mut self.desk);
        connection.settle(&mut self.desk.lent);
        self.desk.session.shrink();
        if connection.client.aside.is_some() {
            self.asides.push_back(token);
        }
        self.follow(token, outcome);
    }

    fn follow(&mut self, token: usize, outcome: Outcome) {
        match outcome {
            Outcome::Waits => {}
            Outcome::Again => self.again.push_back(token),
            // What it has to send is not to be sent yet.
            Outcome::Held => return self.held.push(token),
            Outcome::Ended => return self.end(token),
        }
        let looked_at = |connection: &Connection| connection.waiting() > 0 || connection.is_slow();
        if self.connections.get(token).and_then(Option::as_ref).is_some_and(looked_at) {
            self.is_within(token);
        }
    }

    fn end(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) {
            connection.finish();
            if let Some(parked) = connection.client.parked.take() {
                self.desk.cancel(parked.queued.as_ref());
                self.desk.leave(&parked);
            }
            if connection.client.monitors {
                self.desk.server.monitors.remove(connection.client.seat);
            }
            self.desk.forget(&mut connection.client);
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
                    let here = stream.local_address();
                    self.admit(stream, (address.to_string(), here), local);
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
                    self.admit(Stream::Unix(stream), (address.clone(), address), true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, (address, here): (String, String), local: bool) {
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
        let client = Client::new(id, (address, here), local, server.is_open());
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
                    let parked = self.at(seat).and_then(|connection| connection.answer(ticket, bytes));
                    if let Some(parked) = parked {
                        self.desk.leave(&parked);
                        self.given.push(seat.token);
                    }
                }
                Letter::Done(done) => self.finish_aside(*done),
                Letter::Message(message) => self.deliver(&message),
                Letter::Push { seat, bytes } => self.push(seat, &bytes),
                Letter::Ask(inquiry) => self.inquire(&inquiry),
                Letter::Resume => self.resume(),
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

    /// Goes on with what CLIENT PAUSE has held back.
    fn resume(&mut self) {
        for (token, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            if let Some(parked) = connection.client.parked.take_if(|parked| parked.paused) {
                self.desk.leave(&parked);
                self.given.push(token);
            }
        }
    }

    /// Answers a question for the clients of this loop.
    fn inquire(&mut self, inquiry: &Inquiry) {
        let words = inquiry.words.as_arguments();
        let answer = match words.get(1).map(lower).as_deref() {
            Some(b"list") => self.list(words, inquiry.asker),
            Some(b"kill") => self.kill(words, inquiry.asker),
            Some(b"unblock") => self.unblock(words),
            // The log is the server's: one loop answers.
            Some(b"log") if self.desk.thread == 0 => self.desk.server.acl.log.asked(words),
            _ => Answer::default(),
        };
        let Desk { server, session, .. } = &mut self.desk;
        inquiry.answer(server, session, &answer);
    }

    fn list(&self, words: Arguments<'_>, asker: Seat) -> Answer {
        let mut answer = Answer::default();
        let Ok(filter) = Filter::of_list(words.from(2)) else { return answer };
        for connection in self.connections.iter().flatten().filter(|each| filter.means(each, asker)) {
            let mut holds = connection.holds();
            if connection.client.id == asker.client {
                holds = holds.and_command(words);
            }
            let line = census::line(&connection.client, holds);
            answer.lines.extend_from_slice(line.as_bytes());
        }
        answer
    }

    fn kill(&mut self, words: Arguments<'_>, asker: Seat) -> Answer {
        let mut answer = Answer::default();
        let Ok(filter) = Filter::of_kill(words.from(2), |_| true) else { return answer };
        let meant = |(token, connection): (usize, &Option<Connection>)| {
            connection.as_ref().filter(|each| filter.means(each, asker)).map(|_| token)
        };
        let tokens: Vec<usize> = self.connections.iter().enumerate().filter_map(meant).collect();
        answer.count = tokens.len() as i64;
        for token in tokens {
            match self.connections.get_mut(token) {
                // Who asks for its own end is answered first.
                Some(Some(connection)) if connection.client.id == asker.client => {
                    connection.client.closing = true;
                }
                _ => self.end(token),
            }
        }
        answer
    }

    fn unblock(&mut self, words: Arguments<'_>) -> Answer {
        let id = words.get(2).and_then(parse_integer);
        let fails = words.get(3).is_some_and(|reason| reason.eq_ignore_ascii_case(b"error"));
        let waits = |connection: &Connection| {
            Some(connection.client.id) == id
                && connection.client.parked.as_ref().is_some_and(|parked| parked.gives_up)
        };
        let token = self.connections.iter().position(|connection| connection.as_ref().is_some_and(waits));
        let Some(token) = token else { return Answer::default() };
        let Some(Some(connection)) = self.connections.get_mut(token) else { return Answer::default() };
        let Some(parked) = connection.client.parked.as_mut() else { return Answer::default() };
        if fails {
            parked.too_late = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_vec();
        }
        let ticket = parked.ticket;
        self.time_out(token, ticket);
        let still = self.connections.get(token).and_then(Option::as_ref);
        let waits =
            still.is_some_and(|each| each.client.parked.as_ref().is_some_and(|it| it.ticket == ticket));
        Answer { count: i64::from(!waits), ..Answer::default() }
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
        let mut frames = [const { None }; 2];
        for token in tokens {
            let Some(Some(connection)) = self.connections.get_mut(*token) else { continue };
            let protocol = connection.client.protocol;
            let frame: &mut Option<Vec<u8>> = &mut frames[usize::from(protocol == Protocol::Resp3)];
            let frame = frame.get_or_insert_with(|| message.frame(protocol, pattern));
            connection.push(frame);
            if self.is_within(*token) {
                self.given.push(*token);
            }
        }
    }

    /// Ends connections that have been idle for longer than `timeout`; who waits for a reply or for messages is not.
    fn end_idle(&mut self) {
        let most = self.desk.server.live.number(Name::Timeout);
        if most <= 0 && self.slow.is_empty() || self.second.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.second = Instant::now();
        self.end_slow();
        if most <= 0 {
            return;
        }
        self.seconds += 1;
        let mut idle = Vec::new();
        for (token, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            let waits = connection.client.parked.is_some() || connection.client.topics.is_some();
            if !waits && self.seconds - connection.served > most as u64 {
                idle.push(token);
            }
        }
        for token in idle {
            self.end(token);
        }
    }

    fn ring_timers(&mut self) {
        while let Some((token, ticket)) = self.desk.timers.take_due() {
            self.time_out(token, ticket);
        }
    }

    /// A command has waited long enough.
    fn time_out(&mut self, token: usize, ticket: u64) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let Some(parked) = connection.client.parked.as_mut().filter(|parked| parked.ticket == ticket) else {
            return;
        };
        if let Some(number) = parked.asked {
            self.desk.server.inquiries.give_up(number);
            return;
        }
        if parked.paused {
            if let Some(parked) = connection.client.parked.take() {
                self.desk.leave(&parked);
            }
            self.serve(token);
            return;
        }
        if !self.desk.cancel(parked.queued.as_ref()) {
            return;
        }
        let reply = std::mem::take(&mut parked.too_late);
        if let Some(parked) = connection.answer(ticket, reply) {
            self.desk.leave(&parked);
        }
        self.serve(token);
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
        self.connections[token] = Some(Connection::new(stream, client, self.desk.server.bulk_bytes));
        self.serve(token);
    }
}

/// A number that no other client of the database has had, on any server.
fn client_id(session: &mut Session) -> i64 {
    let number = node!("^redis", "client").and_then(|node| session.increment(&node, 1));
    // A database that takes no writes still serves readers.
    number.ok().and_then(perilune::Number::as_i64).unwrap_or(0)
}
