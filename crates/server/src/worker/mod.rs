//! A thread of the server: an event loop over its connections, with its own session of the database.
//!
//! Invariants
//! - The first thread accepts, and gives each connection to the thread that has fewest of those awake. It stays there until
//!   another thread wakes or this one rests (`awake`, `moves`).
//! - Replies and letters leave when what they tell is durable: at level `fsync` the commands of a round share one
//!   sync. A reply of a command that ran aside, on a session of its own, has waited for its own.
//! - Other replies wait for those of the same round, up to [`SAID`] connections and about a millisecond: a client of
//!   many connections is woken once for all of them. None waits while the loop sleeps, or lets a command run aside.
//! - No thread waits for another; a command runs to its end, or until its connection is parked, before the
//!   next event. A parked one goes on by a letter or a timer. Commands that may take long run aside (`aside`).

mod admission;
mod inquiries;
mod messages;
mod moves;
mod overdue;
mod resume;
mod rights;
mod rings;
mod slices;
mod unread;
mod weighing;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use perilune::Session;

use self::moves::Duty;
use self::slices::Slices;
use crate::client::Client;
use crate::command::Command;
use crate::connection::{Connection, Outcome};
use crate::effects::Effects;
use crate::limits::{SAID, TURN};
use crate::loop_state::{Buffers, LoopState};
use crate::mailbox::{Handing, Letter};
use crate::peers;
use crate::redis::Redis;
use crate::server::Server;
use crate::subscriptions::Subscriptions;
use crate::tracking::audience::Audience;
use crate::tracking::{self, Tracker};
use crate::waits::Waits;
use perilune_net::listener::Listeners;
use perilune_net::seat::Seat;
use perilune_net::stream::Stream;
use perilune_net::timers::{Clocks, Timers};
use perilune_resp::ArgumentsBuf;

const WAKE: Token = Token(usize::MAX);
const UNIX: Token = Token(usize::MAX - 1);
/// TCP listeners count down from here.
const TCP: usize = usize::MAX - 2;
/// The lowest of them.
const LISTENERS: usize = usize::MAX - 1_000;

/// How often is looked at those beyond a soft limit, at least.
const SLOW_LOOKED_AT: Duration = Duration::from_millis(100);

/// A command to be run aside.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) command: &'static Command,
    pub(crate) arguments: ArgumentsBuf,
    /// Of the connection, which is parked on `ticket`.
    pub(crate) seat: Seat,
    pub(crate) ticket: u64,
    pub(crate) client: Box<Client>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) seat: Seat,
    pub(crate) ticket: u64,
    pub(crate) client: Box<Client>,
    pub(crate) reply: Vec<u8>,
    pub(crate) effects: Effects,
}

/// What loops, and threads that have run a command for one, hand to a loop.
#[derive(Debug)]
pub(crate) enum Handed {
    /// A new connection.
    Arrived(Box<(Stream, Client)>),
    /// A connection that another loop has had.
    Moved(Box<Connection>),
    /// A command that ran aside has ended.
    Done(Box<Done>),
}

impl Handing for Redis {
    type Handed = Handed;
}

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    loop_state: LoopState,
    poll: Poll,
    listeners: Option<Listeners>,
    /// Numbers for clients that come.
    numbers: Range<i64>,
    /// By token.
    connections: Vec<Option<Connection>>,
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
    /// Connections that wait for a command to be run aside.
    asides: VecDeque<usize>,
    /// What is done a little in each round.
    slices: Slices,
    /// Connections beyond a soft limit of client-output-buffer-limit.
    slow: Vec<usize>,
    /// Seconds that have been counted for `timeout`, and when the last one was.
    seconds: u64,
    second: Instant,
    /// The version of users that its connections have been compared with.
    rules: u64,
    /// What its connections take is counted.
    weighs: bool,
    duty: Duty,
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
        let loop_state = LoopState {
            server: Arc::clone(server),
            session,
            lent: Buffers::new(),
            effects: Effects::default(),
            clocks: Clocks::new(),
            subscriptions: Subscriptions::default(),
            waits: Waits::new(poll.registry().try_clone()?),
            tracker: Tracker::new(poll.registry().try_clone()?),
            audience: Audience::default(),
            notices: 0,
            timers: Timers::default(),
            unsettled: None,
            thread,
        };
        Ok(Worker {
            loop_state,
            poll,
            listeners,
            numbers: 0..0,
            connections: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            given: VecDeque::new(),
            held: Vec::new(),
            said: Vec::new(),
            said_at: Instant::now(),
            // One that comes from another loop may have been idle for longer than this one counts.
            seconds: 1 << 40,
            second: Instant::now(),
            rules: 0,
            weighs: false,
            asides: VecDeque::new(),
            slices: Slices::default(),
            slow: Vec::new(),
            duty: Duty::new(thread, server.mailboxes.len()),
        })
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(&self.loop_state.server)
    }

    /// Which of the server's loops this is.
    pub(crate) fn thread(&self) -> usize {
        self.loop_state.thread
    }

    /// Serves what there is to be served, after waiting for it; false when the server ends.
    pub(crate) fn round(&mut self, events: &mut Events) -> bool {
        if self.loop_state.server.is_stopping() {
            return false;
        }
        let waiting = self.loop_state.server.mailboxes[self.loop_state.thread].is_waiting();
        let unsettled = self.loop_state.is_unsettled() || !self.held.is_empty();
        let works = !self.again.is_empty() || !self.asides.is_empty() || !self.slices.is_empty();
        let busy = waiting || unsettled || works || !self.given.is_empty();
        let most = match busy {
            true => Duration::ZERO,
            false if self.slow.is_empty() => Duration::from_secs(1),
            false => SLOW_LOOKED_AT,
        };
        let wait = self.loop_state.tracker.sleep(self.loop_state.timers.sleep(most));
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
        self.do_slices();
        self.tell_changes();
        self.speak();
        self.settle();
        let LoopState { server, lent, thread, .. } = &mut self.loop_state;
        server.statistics.count_traffic(*thread, &mut lent.traffic);
        self.attend();
        true
    }

    /// Lets those replies go that need not wait for the disk.
    fn speak(&mut self) {
        let mut said = std::mem::take(&mut self.said);
        for token in said.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let outcome = connection.speak();
            connection.settle(&mut self.loop_state.lent);
            self.follow(token, outcome);
        }
        self.said = said;
    }

    /// Notes a connection that has something to say.
    #[inline]
    fn let_speak(&mut self, token: usize) {
        let now = self.loop_state.clocks.tick();
        if self.said.is_empty() {
            self.said_at = now;
        }
        self.said.push(token);
        if self.said.len() >= SAID || self.said_at != now {
            self.speak();
        }
    }

    /// Makes durable what the commands of this round have written, with one sync for all of them, and lets their
    /// replies go.
    fn settle(&mut self) {
        if !self.loop_state.is_unsettled() && self.held.is_empty() {
            return;
        }
        self.loop_state.settle();
        let failure = self.loop_state.unsettled.take();
        for token in std::mem::take(&mut self.held) {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let outcome = connection.release(failure.as_deref());
            connection.settle(&mut self.loop_state.lent);
            self.follow(token, outcome);
        }
    }

    /// The next command to be run aside.
    pub(crate) fn next_aside(&mut self) -> Option<Aside> {
        self.speak();
        while let Some(token) = self.asides.pop_front() {
            let Some(Some(connection)) = self.connections.get_mut(token) else { continue };
            let client = &mut connection.client;
            let Some(aside) = client.aside.take() else { continue };
            let Some(ticket) = client.parked.as_ref().map(|parked| parked.ticket) else { continue };
            let (command, arguments) = *aside;
            let (seat, mut client) = (client.seat, client.lend());
            client.replies_end = self.loop_state.server.live.hard_limit(client.output_class());
            self.settle();
            return Some(Aside { command, arguments, seat, ticket, client });
        }
        None
    }

    /// Answers a command that ran aside, and goes on with its connection.
    pub(crate) fn finish_aside(&mut self, done: Done) {
        let Done { seat, ticket, client, reply, effects } = done;
        self.loop_state.effects = effects;
        let Some(connection) = self.connections.get_mut(seat.token).and_then(Option::as_mut) else {
            return self.forget_aside(client);
        };
        if connection.client.id != seat.client {
            return self.forget_aside(client);
        }
        let start = connection.said();
        connection.client.take_back(client);
        connection.answer(ticket, reply);
        connection.put_off_changes(&mut self.loop_state, start);
        if self.loop_state.carry_out(&connection.client).is_err() {
            // The tree does not say what the client has just been told.
            connection.client.closing = true;
        }
        self.serve(seat.token);
        // What was held back from it while it was away.
        self.tell_broadcasts();
    }

    /// The client is gone: what its command wants done for others is done, and what it held is released.
    fn forget_aside(&mut self, mut client: Box<Client>) {
        self.loop_state.effects.subscriptions.clear();
        self.loop_state.send_letters();
        if let Some(nodes) = &mut client.nodes {
            nodes.end(&mut self.loop_state.session);
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
                nodes.end(&mut self.loop_state.session);
            }
        }
        if self.loop_state.server.loops.fetch_sub(1, Ordering::AcqRel) == 1 {
            peers::stop(&mut self.loop_state.session, self.loop_state.server.number);
        }
    }

    fn serve(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let before = (connection.client.active, connection.waiting());
        let outcome = connection.serve(&mut self.loop_state);
        // NB: the kernel also tells of sockets at which nothing has happened, new ones of the loop.
        if before != (connection.client.active, connection.waiting()) {
            connection.served = self.seconds;
        }
        connection.settle(&mut self.loop_state.lent);
        self.loop_state.session.shrink();
        if connection.client.aside.is_some() {
            self.asides.push_back(token);
        }
        if connection.client.rest.is_some() {
            self.put_off(token);
        }
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
        let looked_at = |connection: &Connection| connection.waiting() > 0 || connection.is_slow();
        if self.connections.get(token).and_then(Option::as_ref).is_some_and(looked_at) {
            self.is_within(token);
        }
        self.weigh(token);
    }

    fn end(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) {
            self.loop_state.server.weights.change(connection.weight.take(), None);
            connection.finish();
            connection.settle(&mut self.loop_state.lent);
            if let Some(parked) = connection.client.parked.take() {
                self.loop_state.cancel(parked.queued.as_ref());
                self.loop_state.leave(&parked);
            }
            if connection.client.monitors {
                self.loop_state.server.monitors.remove(connection.client.seat);
            }
            connection.client.tracking = None;
            self.loop_state.switch_tracking(&mut connection.client);
            if let Some(nodes) = &mut connection.client.nodes {
                nodes.end(&mut self.loop_state.session);
            }
            // It is closed in any case; then the kernel forgets it too.
            let _ = self.poll.registry().deregister(connection.stream.source());
            self.leave_topics(token, &mut connection.client);
            self.forget_one();
        }
    }

    fn forget_one(&self) {
        let server = &self.loop_state.server;
        server.mailboxes[self.loop_state.thread].load.fetch_sub(1, Ordering::Relaxed);
        server.figures.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn read_letters(&mut self) {
        let letters = self.loop_state.server.mailboxes[self.loop_state.thread].empty();
        // A letter that came behind a change of users or settings finds it made.
        self.end_refused();
        self.balance();
        for letter in letters {
            match letter {
                Letter::Handed(Handed::Arrived(arrived)) => self.arrive(*arrived),
                Letter::Handed(Handed::Moved(connection)) => self.take_over(*connection),
                Letter::Handed(Handed::Done(done)) => self.finish_aside(*done),
                Letter::Share { with } => self.plan_to_share(with),
                Letter::Reply { seat, ticket, bytes } => {
                    let parked = self.at(seat).and_then(|connection| connection.answer(ticket, bytes));
                    if let Some(parked) = parked {
                        self.loop_state.leave(&parked);
                        self.give(seat.token);
                    }
                }
                Letter::Message(message) => self.deliver(&message),
                Letter::Push { seat, bytes } => self.push(seat, &bytes),
                Letter::Notice(notice) => self.take_notice(*notice),
                Letter::Changed(changes) => self.loop_state.audience.hear(&changes),
                Letter::Target { seat, ticket, place, is_complete } => {
                    self.take_target(seat, ticket, (place, is_complete));
                }
                Letter::Ask(inquiry) => self.inquire(&inquiry),
                Letter::Resume => self.resume(),
            }
        }
        self.serve_given();
    }

    /// Notes a connection that has something to send which it has not asked for.
    fn give(&mut self, token: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(token) {
            if !std::mem::replace(&mut connection.is_given, true) {
                self.given.push_back(token);
            }
        }
    }

    /// Serves those, for a while: a message may have thousands of subscribers. The others follow in the next round.
    fn serve_given(&mut self) {
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

    /// The connection of a client that is still there.
    fn at(&mut self, seat: Seat) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(seat.token)?.as_mut()?;
        (connection.client.id == seat.client).then_some(connection)
    }
}
