//! A thread of the server: an event loop over its connections, with its own session of the database.
//!
//! Invariants
//! - A connection stays with its thread. The first thread accepts, and gives each one to the thread that
//!   has fewest.
//! - No thread waits for another; a command runs to its end before the next event.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token, Waker};
use perilune::{node, Session};

use crate::client::Client;
use crate::connection::{Connection, Lent, Outcome, Stream};
use crate::limits::EVENTS;
use crate::listener::Listeners;
use crate::server::Server;

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

/// Where other threads put connections for a thread.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waker: Mutex<Option<Arc<Waker>>>,
    arrived: Mutex<Vec<(Stream, Client)>>,
    /// Connections that the thread has, or is about to.
    load: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Mailbox> {
        Ok(Mailbox { waker: Mutex::new(None), arrived: Mutex::new(Vec::new()), load: AtomicUsize::new(0) })
    }
}

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    server: Arc<Server>,
    mailboxes: Arc<Vec<Mailbox>>,
    index: usize,
    poll: Poll,
    waker: Arc<Waker>,
    session: Session,
    listeners: Option<Listeners>,
    /// By token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections with more to do than one visit allowed.
    again: VecDeque<usize>,
    lent: Lent,
}

impl Worker {
    pub(crate) fn new(
        server: &Arc<Server>,
        mailboxes: &Arc<Vec<Mailbox>>,
        index: usize,
        session: Session,
        mut listeners: Option<Listeners>,
    ) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        if let Some(listeners) = &mut listeners {
            for (number, listener) in listeners.tcp.iter_mut().enumerate() {
                poll.registry().register(listener, Token(TCP - number), Interest::READABLE)?;
            }
            if let Some(listener) = &mut listeners.unix {
                poll.registry().register(listener, UNIX, Interest::READABLE)?;
            }
        }
        *mailboxes[index].waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&waker));
        Ok(Worker {
            server: Arc::clone(server),
            mailboxes: Arc::clone(mailboxes),
            index,
            poll,
            waker,
            session,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            lent: Lent::new(),
        })
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.server.is_stopping() {
            let wait = if self.again.is_empty() { Duration::from_secs(1) } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Nothing can be waited for any more: the other threads go on.
                Err(_) => break,
            }
            for event in &events {
                match event.token() {
                    WAKE => self.take_arrived(),
                    UNIX => self.accept_unix(),
                    Token(token) if token > LISTENERS => self.accept_tcp(TCP - token),
                    Token(token) => {
                        if let Some(Some(connection)) = self.connections.get_mut(token) {
                            connection.readable |=
                                event.is_readable() || event.is_read_closed() || event.is_error();
                            connection.writable |= event.is_writable();
                            self.serve(token);
                        }
                    }
                }
            }
            for _ in 0..self.again.len() {
                if let Some(token) = self.again.pop_front() {
                    self.serve(token);
                }
            }
        }
        for connection in self.connections.iter_mut().flatten() {
            connection.finish();
        }
    }

    fn serve(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let outcome = connection.serve(&self.server, &mut self.session, &mut self.lent);
        connection.settle(&mut self.lent);
        match outcome {
            Outcome::Waits => {}
            Outcome::Again => self.again.push_back(token),
            Outcome::Ended => self.end(token),
        }
    }

    fn end(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.get_mut(token).and_then(Option::take) {
            connection.finish();
            // It is closed in any case; then the kernel forgets it too.
            let _ = self.poll.registry().deregister(connection.stream.source());
            self.free.push(token);
            self.mailboxes[self.index].load.fetch_sub(1, Ordering::Relaxed);
            self.server.figures.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn accept_tcp(&mut self, number: usize) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.tcp.get(number)) {
            match listener.accept() {
                Ok((stream, address)) => {
                    let stream = Stream::Tcp(stream);
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

    fn accept_unix(&mut self) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.unix.as_ref()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let path = self.server.settings.unix_socket.as_ref();
                    let address = path.map_or_else(String::new, |path| format!("{}:0", path.display()));
                    self.admit(Stream::Unix(stream), address, true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, address: String, local: bool) {
        let (figures, settings) = (&self.server.figures, &self.server.settings);
        figures.connections.fetch_add(1, Ordering::Relaxed);
        let full = figures.connected.load(Ordering::Relaxed) >= settings.max_clients;
        let denied = !local && settings.protected_mode && settings.password.is_none();
        if full || denied {
            figures.rejected.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write(if full { FULL } else { DENIED });
            return;
        }
        figures.connected.fetch_add(1, Ordering::Relaxed);
        stream.prepare();
        let id = client_id(&mut self.session);
        let client = Client::new(id, address, settings.password.is_none());
        let Some(target) = self.mailboxes.iter().min_by_key(|mailbox| mailbox.load.load(Ordering::Relaxed))
        else {
            return;
        };
        target.load.fetch_add(1, Ordering::Relaxed);
        target.arrived.lock().unwrap_or_else(PoisonError::into_inner).push((stream, client));
        if let Some(waker) = &*target.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = waker.wake();
        }
    }

    fn take_arrived(&mut self) {
        let arrived = {
            let mailboxes = Arc::clone(&self.mailboxes);
            let mut arrived = mailboxes[self.index].arrived.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *arrived)
        };
        for (mut stream, client) in arrived {
            let token = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(stream.source(), Token(token), interest).is_err() {
                self.free.push(token);
                self.mailboxes[self.index].load.fetch_sub(1, Ordering::Relaxed);
                self.server.figures.connected.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            self.connections[token] = Some(Connection::new(stream, client));
            self.serve(token);
        }
    }
}

/// A number that no other client of the database has had, on any server.
fn client_id(session: &mut Session) -> i64 {
    let number = node!("^redis", "client").and_then(|node| session.increment(&node, 1));
    // A database that takes no writes still serves readers.
    number.ok().and_then(perilune::Number::as_i64).unwrap_or(0)
}
