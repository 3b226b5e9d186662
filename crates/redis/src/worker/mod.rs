//! A server's event loop: what `perilune_net`'s loop asks of what it serves, for Redis's clients.
//!
//! The loop itself knows no protocol: it has sockets, buffers, turns, and clients that move. Here is what its letters mean, who
//! is let in, and what is done in each round besides: watches that ring, messages, questions to all clients, slices.
//!
//! Invariants
//! - Letters leave when what they tell is durable: at level `fsync` the commands of a round share one sync. A reply of a command
//!   that ran aside, on a session of its own, has waited for its own.
//! - No thread waits for another; a command runs to its end, or until its connection is parked, before the
//!   next event. A parked one goes on by a letter or a timer. Commands that may take long run aside (`aside`).
//!
//! Deliberately absent: how requests are run (`connection`, `gate`).

mod admission;
pub(crate) mod asides;
mod inquiries;
mod messages;
mod overdue;
mod resume;
mod rights;
mod rings;
mod slices;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune::{Serving, Session};
use perilune_resp::RequestParser;

use self::asides::Done;
use crate::client::Client;
use crate::client_list;
use crate::connection::{self, Connection};
use crate::loop_state::LoopState;
use crate::mailbox::{Handing, Letter};
use crate::peers;
use crate::redis::Redis;
use crate::server::Server;
use crate::settings::Name;
use crate::statistics::Traffic;
use perilune_net::connection::Held;
use perilune_net::crew::Crew;
use perilune_net::event_loop::{self, Comer, EventLoop, Service};
use perilune_net::journal::Level;
use perilune_net::listener::Listeners;

/// What loops, and threads that have run a command for one, hand to a loop.
#[derive(Debug)]
pub(crate) enum Handed {
    /// What is the loop's, whatever it serves.
    Loop(event_loop::Handed<LoopState>),
    /// A command that ran aside has ended.
    Done(Box<Done>),
}

impl Handing for Redis {
    type Handed = Handed;
}

impl From<event_loop::Handed<LoopState>> for Letter {
    fn from(handed: event_loop::Handed<LoopState>) -> Letter {
        Letter::Handed(Handed::Loop(handed))
    }
}

/// An event loop of Redis's clients.
pub(crate) type Worker = EventLoop<LoopState>;

/// Loop `thread` of a server.
pub(crate) fn begin(
    server: &Arc<Server>,
    thread: usize,
    mut session: Session,
    listeners: Option<Listeners>,
) -> io::Result<Worker> {
    // Each round of the loop waits once for the disk, if anything has to.
    session.defer(true);
    EventLoop::new(thread, listeners, |registry| {
        LoopState::new(server, thread, session, || registry.try_clone())
    })
}

/// Says goodbye, when the server ends.
pub(crate) fn finish(mut worker: Worker) {
    worker.finish(|service, client| {
        if let Some(nodes) = &mut client.nodes {
            nodes.end(&mut service.session);
        }
    });
    let LoopState { server, session, .. } = &mut worker.service;
    if server.crew().ends() {
        peers::stop(session, server.number());
    }
}

impl Service for LoopState {
    type Letter = Letter;

    #[inline]
    fn crew(&self) -> &Crew<Letter> {
        self.server.crew()
    }

    fn admit(&mut self, comer: Comer) -> Result<Client, &'static [u8]> {
        admission::admit(self, comer)
    }

    fn reader(&self) -> RequestParser {
        RequestParser::new(self.server.rules().bulk_bytes())
    }

    fn letter(worker: &mut Worker, letter: Letter) {
        match letter {
            Letter::Handed(Handed::Loop(handed)) => worker.take(handed),
            Letter::Handed(Handed::Done(done)) => asides::finish_aside(worker, *done),
            Letter::Reply { seat, ticket, bytes } => {
                let answered = worker.at(seat).and_then(|at| connection::answer(at, ticket, bytes));
                if let Some(parked) = answered {
                    worker.service.leave(&parked);
                    worker.give(seat.token);
                }
            }
            Letter::Message(message) => messages::deliver(worker, &message),
            Letter::Push { seat, bytes } => worker.push(seat, &bytes),
            Letter::Notice(notice) => rings::take_notice(worker, *notice),
            Letter::Changed(changes) => worker.service.audience.hear(&changes),
            Letter::Target { seat, ticket, place, is_complete } => {
                rings::take_target(worker, seat, ticket, place, is_complete);
            }
            Letter::Ask(inquiry) => inquiries::inquire(worker, &inquiry),
            Letter::Resume => resume::resume(worker),
        }
    }

    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.server.tls().cloned()
    }

    fn keepalive(&self) -> u64 {
        self.server.rules().live().number(Name::TcpKeepalive) as u64
    }

    fn socket_address(&self) -> String {
        let path = self.server.rules().settings().unix_socket.as_ref();
        path.map_or_else(String::new, |path| format!("{}:0", path.display()))
    }

    fn has_gone(&self) {
        self.server.measures().figures().connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn before_letters(worker: &mut Worker) {
        rights::end_refused(worker);
    }

    fn after_letters(worker: &mut Worker) {
        overdue::ring_timers(worker);
    }

    fn ring(worker: &mut Worker, token: usize) {
        rings::ring(worker, token);
    }

    fn round(worker: &mut Worker) {
        slices::do_slices(worker);
        rings::tell_changes(worker);
    }

    fn is_busy(&self) -> bool {
        !self.chores.is_empty()
    }

    fn sleep(&self, most: Duration) -> Duration {
        self.tracker.sleep(self.timers.sleep(most))
    }

    #[inline]
    fn tick(&self) -> Instant {
        self.clocks.tick()
    }

    #[inline]
    fn visited(&mut self, token: usize, client: &mut Client) {
        self.session.shrink();
        self.chores.note(token, client);
    }

    fn ends(&mut self, token: usize, client: &mut Client) -> bool {
        if let Some(parked) = client.parked.take() {
            self.cancel(parked.queued.as_ref());
            self.leave(&parked);
        }
        if client.monitors {
            self.server.commons().monitors().remove(client.seat);
        }
        client.tracking = None;
        self.switch_tracking(client);
        if let Some(nodes) = &mut client.nodes {
            nodes.end(&mut self.session);
        }
        slices::leave_topics(self, token, client)
    }

    fn settle(&mut self) -> Option<String> {
        LoopState::settle(self);
        self.unsettled.take()
    }

    fn count(&mut self, came: u64, went: u64) {
        self.server.measures().statistics().count_traffic(self.thread, Traffic { came, went });
    }

    fn unread(&self, client: &Client) -> [i64; 3] {
        self.server.rules().live().output_limit(client.output_class())
    }

    fn cuts_off(&self, client: &Client, Held { input, output, .. }: Held) {
        let (unread, unrun) = (output.to_string(), input.to_string());
        let details = [("addr", &*client.address), ("unread_bytes", &*unread), ("unrun_bytes", &*unrun)];
        self.server.note_some(Level::Warning, "client cut off", &details);
    }

    fn idle_seconds(&self) -> u64 {
        u64::try_from(self.server.rules().live().number(Name::Timeout)).unwrap_or(0)
    }

    fn may_idle(client: &Client) -> bool {
        client.topics.is_some()
    }

    #[inline]
    fn clients_bytes(&self) -> u64 {
        self.server.rules().live().clients_bytes()
    }

    fn weigh(connection: &Connection) -> (usize, bool) {
        let client = &connection.client;
        (client_list::total(client, connection::holds(connection)), !client.keeps_memory)
    }

    fn counts_eviction(&self) {
        self.server.measures().figures().evicted_clients.fetch_add(1, Ordering::Relaxed);
    }

    fn is_refused(&self, client: &Client) -> bool {
        rights::is_refused(client, self.server.rules().acl())
    }
}
