//! An event loop: a thread's connections, served when the kernel or a letter says that there is something to do.
//!
//! It knows no protocol. What it serves is a [`Service`]: that says whom it lets in, what its letters mean, and what it does in
//! each round besides. The loop has the sockets, the buffers, who is served when, who is cut off, and who moves to another loop.
//!
//! A round: wait; serve the connections of which the kernel says something; read letters; end who has been idle; serve those
//! that had more to do than one visit allowed; what the service does by itself; let replies go, together.
//!
//! Invariants
//! - The first loop accepts, and gives each connection to the loop that has fewest of those awake. It stays there until
//!   another loop wakes or this one rests (`moves`).
//! - Replies and letters leave when what they tell is durable: the requests of a round share one wait for that.
//! - Other replies wait for those of the same round, up to [`SAID`](crate::limits::SAID) connections and about a
//!   millisecond: a client of many connections is woken once for all of them. None waits while the loop sleeps.
//! - No loop waits for another; a request runs to its end, or until its connection waits, before the next event.
//!
//! Deliberately absent: threads. Whoever has a loop calls [`EventLoop::round`] until it is over.

mod admission;
mod moves;
mod replies;
mod service;
mod unread;
mod weighing;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem::take;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Registry, Token, Waker};

use self::moves::Balance;
pub use self::service::{Comer, Handed, Service, OWN_TOKENS};
use crate::buffers::Buffers;
use crate::connection::{Connection, Outcome};
use crate::limits::TURN;
use crate::listener::Listeners;
use crate::protocol::Client;
use crate::seat::Seat;

const WAKE: Token = Token(usize::MAX);
const UNIX: Token = Token(usize::MAX - 1);
/// TCP listeners count down from here.
const TCP: usize = usize::MAX - 2;
/// The lowest of them.
const LISTENERS: usize = usize::MAX - 1_000;

/// How often is looked at those beyond a soft limit, at least.
const SLOW_LOOKED_AT: Duration = Duration::from_millis(100);

/// A loop that serves `S`.
pub struct EventLoop<S: Service> {
    /// What it serves.
    pub service: S,
    thread: usize,
    lent: Buffers,
    poll: Poll,
    listeners: Option<Listeners>,
    /// By token.
    connections: Vec<Option<Connection<S>>>,
    free: Vec<usize>,
    /// Connections with more to do than one visit allowed.
    again: VecDeque<usize>,
    /// Connections that letters have given something to send.
    given: VecDeque<usize>,
    /// Connections whose replies wait until what they tell is durable.
    held: Vec<usize>,
    /// Connections whose replies leave when enough others have some, too, and when the first of them had.
    said: Vec<usize>,
    said_at: Instant,
    /// Those that are to end, and do nothing more.
    doomed: VecDeque<Seat>,
    /// Connections beyond a soft limit of what they may leave unread.
    slow: Vec<usize>,
    /// Seconds that have been counted for those that are idle, and when the last one was.
    seconds: u64,
    second: Instant,
    /// What its connections take is counted.
    weighs: bool,
    balance: Balance,
}

impl<S: Service> fmt::Debug for EventLoop<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl<S: Service> EventLoop<S> {
    /// Loop `thread` of its crew. `begin` makes what it serves; sockets that it registers itself have tokens from
    /// [`OWN_TOKENS`] on.
    ///
    /// # Errors
    /// The system has no descriptors for it, or `begin` fails.
    pub fn new(
        thread: usize,
        mut listeners: Option<Listeners>,
        begin: impl FnOnce(&Registry) -> io::Result<S>,
    ) -> io::Result<EventLoop<S>> {
        let poll = Poll::new()?;
        let service = begin(poll.registry())?;
        service.crew().mailboxes()[thread].attend(Waker::new(poll.registry(), WAKE)?);
        if let Some(listeners) = &mut listeners {
            for (number, listener) in listeners.tcp.iter_mut().enumerate() {
                poll.registry().register(listener, Token(TCP - number), Interest::READABLE)?;
            }
            if let Some(listener) = &mut listeners.unix {
                poll.registry().register(listener, UNIX, Interest::READABLE)?;
            }
        }
        let loops = service.crew().mailboxes().len();
        Ok(EventLoop {
            service,
            thread,
            lent: Buffers::default(),
            poll,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            given: VecDeque::new(),
            held: Vec::new(),
            said: Vec::new(),
            said_at: Instant::now(),
            doomed: VecDeque::new(),
            slow: Vec::new(),
            // One that comes from another loop may have been idle for longer than this one counts.
            seconds: 1 << 40,
            second: Instant::now(),
            weighs: false,
            balance: Balance::new(thread, loops),
        })
    }

    /// Which loop of its crew it is.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// Serves what there is to be served, after waiting for it; false when the server ends.
    pub fn round(&mut self, events: &mut Events) -> bool {
        if self.service.crew().is_stopping() {
            return false;
        }
        let wait = self.service.sleep(self.most_sleep());
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
                Token(token) if token >= OWN_TOKENS => S::ring(self, token),
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
        S::after_letters(self);
        self.end_idle();
        for _ in 0..self.again.len() {
            if let Some(token) = self.again.pop_front() {
                self.serve(token);
            }
        }
        if !self.doomed.is_empty() {
            self.end_some();
        }
        S::round(self);
        self.speak();
        self.settle();
        self.service.count(take(&mut self.lent.came), take(&mut self.lent.went));
        self.attend();
        true
    }

    /// How long it may sleep, as far as it knows.
    fn most_sleep(&self) -> Duration {
        let waiting = self.service.crew().mailboxes()[self.thread].is_waiting();
        let unsettled = self.service.is_unsettled() || !self.held.is_empty();
        let works = !self.again.is_empty() || !self.doomed.is_empty() || self.service.is_busy();
        match waiting || unsettled || works || !self.given.is_empty() {
            true => Duration::ZERO,
            false if self.slow.is_empty() => Duration::from_secs(1),
            false => SLOW_LOOKED_AT,
        }
    }

    /// Says goodbye to all, when the server ends; what is left of each is for `end`.
    pub fn finish(&mut self, mut end: impl FnMut(&mut S, &mut S::Client)) {
        self.settle();
        for connection in self.connections.iter_mut().flatten() {
            connection.finish();
            end(&mut self.service, &mut connection.client);
        }
    }

    /// Lets a connection do what it has to do, for a turn.
    pub fn serve(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let before = (self.service.ended(&connection.client), connection.waiting());
        let outcome = connection.serve(&mut self.service, &mut self.lent);
        // NB: the kernel also tells of sockets at which nothing has happened, new ones of the loop.
        if before != (self.service.ended(&connection.client), connection.waiting()) {
            connection.served = self.seconds;
        }
        connection.settle(&mut self.lent);
        self.service.visited(token, &mut connection.client);
        self.follow(token, outcome);
    }

    fn follow(&mut self, token: usize, outcome: Outcome) {
        match outcome {
            Outcome::Waits => {}
            Outcome::Again => self.again.push_back(token),
            // What it has to send is not to be sent yet.
            Outcome::Held => return self.held.push(token),
            Outcome::Said => return self.let_speak(token),
            Outcome::Ended => return self.end(token),
            Outcome::Cut => return self.cut_off(token),
        }
        let looked_at = |connection: &Connection<S>| connection.waiting() > 0 || connection.is_slow();
        if self.connections.get(token).and_then(Option::as_ref).is_some_and(looked_at) {
            self.is_within(token);
        }
        self.weigh(token);
    }

    /// Ends a connection: what waits to be sent is sent as far as the kernel takes it.
    pub fn end(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) {
            self.service.crew().weights().change(connection.weight.take(), None);
            connection.finish();
            connection.settle(&mut self.lent);
            // It is closed in any case; then the kernel forgets it too.
            let _ = self.poll.registry().deregister(connection.stream.source());
            if self.service.ends(token, &mut connection.client) {
                self.free.push(token);
            }
            self.forget_one();
        }
    }

    /// Ends connections, many of them some at a time: those that wait for that neither ask nor get anything any more.
    pub fn end_all(&mut self, tokens: Vec<usize>) {
        for token in tokens {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            connection.client.close();
            connection.is_doomed = true;
            self.doomed.push_back(connection.client.seat());
        }
        self.end_some();
    }

    fn end_some(&mut self) {
        let begun = Instant::now();
        while let Some(seat) = self.doomed.pop_front() {
            if self.at(seat).is_some() {
                self.end(seat.token);
            }
            if begun.elapsed() > TURN {
                return;
            }
        }
    }

    fn forget_one(&self) {
        self.service.crew().mailboxes()[self.thread].load.fetch_sub(1, Ordering::Relaxed);
        self.service.has_gone();
    }

    fn read_letters(&mut self) {
        let letters = self.service.crew().mailboxes()[self.thread].empty();
        // A letter that came behind a change of what the service is told finds it made.
        S::before_letters(self);
        self.balance();
        for letter in letters {
            S::letter(self, letter);
        }
        self.serve_given();
    }

    /// Takes what another loop hands to this one.
    pub fn take(&mut self, handed: Handed<S>) {
        match handed {
            Handed::Arrived(arrived) => {
                let (stream, client) = *arrived;
                self.arrive(stream, client);
            }
            Handed::Moved(connection) => self.take_over(*connection),
            Handed::Share { with } => self.balance.receivers.push(with),
        }
    }

    /// Notes a connection that has something to send which it has not asked for.
    pub fn give(&mut self, token: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(token) {
            if !std::mem::replace(&mut connection.is_given, true) {
                self.given.push_back(token);
            }
        }
    }

    /// Serves those, for a while: a message may have thousands of readers. The others follow in the next round.
    pub fn serve_given(&mut self) {
        let begun = Instant::now();
        while let Some(token) = self.given.pop_front() {
            if let Some(Some(connection)) = self.connections.get_mut(token) {
                connection.is_given = false;
                self.serve(token);
                if begun.elapsed() > TURN {
                    return;
                }
            }
        }
    }

    /// A token may have another connection from now on.
    pub fn free(&mut self, token: usize) {
        self.free.push(token);
    }

    /// All connections, by token.
    pub fn connections(&self) -> &[Option<Connection<S>>] {
        &self.connections
    }

    /// What it serves, and all its connections, by token.
    pub fn parts(&mut self) -> (&mut S, &mut [Option<Connection<S>>]) {
        (&mut self.service, &mut self.connections)
    }

    /// What it serves, and the connection with this token.
    #[inline]
    pub fn split(&mut self, token: usize) -> Option<(&mut S, &mut Connection<S>)> {
        Some((&mut self.service, self.connections.get_mut(token)?.as_mut()?))
    }

    /// The connection with this token.
    #[inline]
    pub fn connection(&mut self, token: usize) -> Option<&mut Connection<S>> {
        self.connections.get_mut(token)?.as_mut()
    }

    /// The connection of a client that is still there.
    pub fn at(&mut self, seat: Seat) -> Option<&mut Connection<S>> {
        let connection = self.connections.get_mut(seat.token)?.as_mut()?;
        (connection.client.seat().client == seat.client).then_some(connection)
    }
}
