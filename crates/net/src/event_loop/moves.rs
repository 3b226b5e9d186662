//! How clients go from one loop to another, when one wakes or rests (`awake`).
//!
//! Invariants
//! - A client moves while nothing of it is under way, and nobody else knows its place: it waits for nothing, is subscribed to
//!   nothing, is told of nothing. Others stay where they are.
//! - A question to all clients meets each one once: questions and clients come to a loop in one order, and no
//!   client leaves a loop that has a question in its mailbox.

use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Interest, Token};

use super::{EventLoop, Handed, Service};
use crate::awake::{Advice, Steward, Used};
use crate::connection::Connection;
use crate::mailbox::Mailbox;
use crate::processor::{idle_time, thread_time};
use crate::protocol::Client;
use crate::seat::Seat;

/// How often a loop says what it has used, and one at rest looks for clients that can leave.
const TOLD: Duration = Duration::from_millis(20);

/// What a loop knows of its own work.
#[derive(Debug)]
pub(super) struct Balance {
    /// The thread that it was with, and what that one had taken, when it said so last.
    said: Option<(ThreadId, Duration)>,
    at: Instant,
    /// Only the first loop has one.
    steward: Option<Steward>,
    /// Who is to get some of its clients.
    pub(super) receivers: Vec<usize>,
}

impl Balance {
    pub(super) fn new(thread: usize, loops: usize) -> Balance {
        let now = Instant::now();
        let steward = (thread == 0).then(|| Steward::new(now, loops));
        Balance { said: None, at: now, steward, receivers: Vec::new() }
    }
}

impl<S: Service> EventLoop<S> {
    /// Sees to it that as many loops are awake as there is work for, at the end of a round.
    pub(super) fn attend(&mut self) {
        if self.service.crew().mailboxes().len() < 2 {
            return;
        }
        let now = Instant::now();
        if now.saturating_duration_since(self.balance.at) >= TOLD {
            self.balance.at = now;
            if self.service.crew().awake().follows() {
                self.tell_use();
                self.decide(now);
            }
            if !self.service.crew().awake().has(self.thread) {
                self.give_all_away();
            }
        }
        while let Some(receiver) = self.balance.receivers.pop() {
            if !self.share_with(receiver) {
                // The letters that have come are read first: then it goes on.
                return self.balance.receivers.push(receiver);
            }
        }
    }

    fn tell_use(&mut self) {
        let (thread, time) = (thread::current().id(), thread_time());
        // A thread that has taken the loop over has worked for others before.
        if let Some((_, before)) = self.balance.said.filter(|(before, _)| *before == thread) {
            let used = time.saturating_sub(before).as_nanos() as u64;
            self.service.crew().mailboxes()[self.thread].used.fetch_add(used, Ordering::Relaxed);
        }
        self.balance.said = Some((thread, time));
    }

    fn decide(&mut self, now: Instant) {
        let Some(steward) = self.balance.steward.as_mut().filter(|steward| steward.is_due(now)) else {
            return;
        };
        let crew = self.service.crew();
        let used = |mailbox: &Mailbox<S::Letter>| Used {
            time: Duration::from_nanos(mailbox.used.load(Ordering::Relaxed)),
            clients: mailbox.load.load(Ordering::Relaxed),
        };
        let used: Vec<Used> = crew.mailboxes().iter().map(used).collect();
        let awake = crew.awake().count();
        match steward.advise(now, awake, &used, idle_time) {
            Advice::Stay => {}
            Advice::Share(busiest) => {
                crew.awake().wake();
                crew.mailboxes()[busiest].post(Handed::Share { with: awake }.into());
            }
            Advice::Rest => {
                crew.awake().rest();
                crew.mailboxes()[awake - 1].wake();
            }
        }
    }

    fn load_of(&self, thread: usize) -> usize {
        self.service.crew().mailboxes().get(thread).map_or(0, |mailbox| mailbox.load.load(Ordering::Relaxed))
    }

    /// Gives so many clients to another loop that both have as many, each second one beginning with the busiest; false: it
    /// was interrupted.
    fn share_with(&mut self, receiver: usize) -> bool {
        let more = self.load_of(self.thread).saturating_sub(self.load_of(receiver)) / 2;
        let mut movable: Vec<(Instant, usize)> = self.movable().collect();
        movable.sort_unstable_by_key(|(active, token)| (std::cmp::Reverse(*active), *token));
        let tokens: Vec<usize> =
            movable.into_iter().skip(1).step_by(2).take(more).map(|(_, token)| token).collect();
        tokens.into_iter().all(|token| self.give_away(token, receiver))
    }

    /// Gives those that can be moved to loops that are awake.
    fn give_all_away(&mut self) {
        if self.load_of(self.thread) == 0 {
            return;
        }
        let tokens: Vec<usize> = self.movable().map(|(_, token)| token).collect();
        for token in tokens {
            let awake = self.service.crew().awake().count();
            let receiver = (0..awake).min_by_key(|thread| self.load_of(*thread)).unwrap_or(0);
            if !self.give_away(token, receiver) {
                return;
            }
        }
    }

    /// Clients that can be moved now, and when they have asked for something last.
    fn movable(&self) -> impl Iterator<Item = (Instant, usize)> + '_ {
        let connections = self.connections.iter().enumerate();
        connections.filter_map(|(token, connection)| {
            let connection = connection.as_ref().filter(|connection| connection.is_movable())?;
            Some((self.service.ended(&connection.client), token))
        })
    }

    /// False: a question may wait that the client is to be asked here.
    fn give_away(&mut self, token: usize, receiver: usize) -> bool {
        let crew = self.service.crew();
        let _order = crew.order();
        if crew.mailboxes()[self.thread].is_waiting() {
            return false;
        }
        let Some(slot) = self.connections.get_mut(token).filter(|_| receiver != self.thread) else {
            return true;
        };
        let Some(mut connection) = slot.take() else { return true };
        if self.poll.registry().deregister(connection.stream.source()).is_err() {
            *slot = Some(connection);
            return true;
        }
        self.free.push(token);
        // On the way it tells for how long it has been idle: its next loop counts seconds of its own.
        connection.served = self.seconds - connection.served;
        crew.mailboxes()[self.thread].load.fetch_sub(1, Ordering::Relaxed);
        crew.mailboxes()[receiver].load.fetch_add(1, Ordering::Relaxed);
        crew.mailboxes()[receiver].post(Handed::Moved(Box::new(connection)).into());
        true
    }

    /// Takes a client over from another loop.
    pub(super) fn take_over(&mut self, mut connection: Connection<S>) {
        let token = self.free_token();
        let is_registered = self.register(connection.stream.source(), token);
        connection.client.sit(Seat { thread: self.thread, token, client: connection.client.seat().client });
        // What has come to it on the way is told by no event that this loop has seen.
        (connection.readable, connection.writable) = (true, true);
        if !self.weighs {
            self.service.crew().weights().change(connection.weight.take(), None);
        }
        // Rules may have changed while it was with neither loop.
        let is_refused = self.service.is_refused(&connection.client);
        connection.served = self.seconds - connection.served;
        self.connections[token] = Some(connection);
        if !is_registered || is_refused {
            return self.end(token);
        }
        self.serve(token);
    }

    /// A token that no connection has.
    pub(super) fn free_token(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        })
    }

    /// Lets the loop hear of a socket under a token; false where the kernel has no room for it.
    pub(super) fn register(&self, socket: &mut dyn Source, token: usize) -> bool {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(socket, Token(token), interest).is_ok()
    }
}
