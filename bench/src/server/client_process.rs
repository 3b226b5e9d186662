//! A process of many connections to one server, which does what the suite asks: the clients of a
//! measurement. One thread, one epoll; requests are made beforehand.
//!
//! Invariants
//! - A connection that is busy has one batch under way; idle ones have none.
//! - An operation's latency begins when it is sent or, where operations have a pace, when it was due: a
//!   server that stands still is not spared the requests of that time.
//! - It ends when its standard input does, and gives up when nothing is answered for [`PATIENCE`].

use std::collections::VecDeque;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{epoll, Timespec};
use rustix::net::{sockopt, AddressFamily, SocketType};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::subject::Result;

use super::histogram::{Buckets, Histogram};
use super::requests::{reply, Job, Requests};

/// Nanoseconds without any answer after which a server counts as hung.
const PATIENCE: u64 = 60_000_000_000;
/// Bytes read from a connection at once.
const BUFFER: usize = 1 << 16;

/// Ports of clients: those from which Linux takes them too.
const FIRST_PORT: u16 = 32_768;
const PORTS: u16 = 28_232;

/// What the suite asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Have so many connections.
    Connect(usize),
    /// Send this, so many in a batch.
    Load(Job, usize),
    Work(Work),
}

/// An amount of operations.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Batches at most.
    pub(crate) operations: u64,
    /// For so long at most; 0: until all are done.
    pub(crate) nanoseconds: u64,
    /// Connections that take part.
    pub(crate) busy: usize,
    /// Nanoseconds from one operation of this process to the next; 0: as fast as they are answered.
    pub(crate) interval: u64,
}

/// What has become of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Ready,
    Done(Outcome),
    Failed(String),
}

/// What work has come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Requests that were answered.
    pub(crate) requests: u64,
    /// Operations: several exchanges or requests may be one.
    pub(crate) operations: u64,
    /// Requests whose answer was wrong, and the first such answer.
    pub(crate) wrong: u64,
    pub(crate) sample: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) cpu: u64,
    pub(crate) latencies: Buckets,
}

/// Serves orders until there are no more.
///
/// # Errors
/// The suite is gone.
pub(crate) fn serve(port: u16, source: Ipv4Addr) -> Result<()> {
    let mut process = ClientProcess {
        server: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        source,
        poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        connections: Vec::new(),
        // Others of this machine begin elsewhere.
        port: (std::process::id() % 7 * 4_000) as u16,
        requests: Job::Get.requests(1),
        next: 0,
    };
    for line in io::stdin().lock().lines() {
        let answer = match process.follow(serde_json::from_str(&line?)?) {
            Ok(answer) => answer,
            Err(error) => Answer::Failed(error.to_string()),
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

struct Connection {
    stream: TcpStream,
    begun: u64,
    batch: usize,
    /// Replies of the batch that are still to come.
    replies: usize,
    /// Exchanges of the operation that are still to come, this one included.
    exchanges: usize,
    /// The beginning of a reply.
    rest: Vec<u8>,
}

struct ClientProcess {
    server: SocketAddrV4,
    source: Ipv4Addr,
    poll: rustix::fd::OwnedFd,
    connections: Vec<Connection>,
    /// The port that was taken last, from [`FIRST_PORT`] on.
    port: u16,
    requests: Requests,
    /// The batch that is sent next.
    next: usize,
}

impl ClientProcess {
    fn follow(&mut self, order: Order) -> Result<Answer> {
        match order {
            Order::Connect(count) => {
                self.connections.truncate(count);
                while self.connections.len() < count {
                    self.connect()
                        .map_err(|error| format!("connection {}: {error}", self.connections.len() + 1))?;
                }
            }
            Order::Load(job, pipeline) => (self.requests, self.next) = (job.requests(pipeline), 0),
            Order::Work(work) => return self.work(&work).map(Answer::Done),
        }
        Ok(Answer::Ready)
    }

    fn connect(&mut self) -> Result<()> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        // Nothing of a connection stays in the kernel when it is closed: there are few ports.
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        self.bind(&socket)?;
        rustix::net::connect(&socket, &SocketAddr::V4(self.server))?;
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        let number = epoll::EventData::new_u64(self.connections.len() as u64);
        epoll::add(&self.poll, &stream, number, epoll::EventFlags::IN)?;
        let rest = Vec::new();
        self.connections.push(Connection { stream, begun: 0, batch: 0, replies: 0, exchanges: 0, rest });
        Ok(())
    }

    /// Gives a socket the next free port of this process' address: the kernel's own search for one takes longer and
    /// longer, the more of them are taken.
    fn bind(&mut self, socket: &rustix::fd::OwnedFd) -> Result<()> {
        for _ in 0..PORTS {
            self.port = (self.port + 1) % PORTS;
            match rustix::net::bind(socket, &SocketAddr::from((self.source, FIRST_PORT + self.port))) {
                Err(rustix::io::Errno::ADDRINUSE) => {}
                bound => return Ok(bound?),
            }
        }
        Err(format!("{} has no free port", self.source).into())
    }

    fn work(&mut self, work: &Work) -> Result<Outcome> {
        let busy = work.busy.min(self.connections.len());
        let (start, cpu) = (clock::now(), clock::cpu());
        let mut round = Round {
            process: self,
            left: work.operations,
            end: if work.nanoseconds == 0 { u64::MAX } else { start + work.nanoseconds },
            interval: work.interval,
            due: start,
            free: (0..busy).collect(),
            now: start,
            heard: start,
            latencies: Histogram::default(),
            outcome: Outcome { start, ..Outcome::default() },
            buffer: vec![0; BUFFER],
        };
        round.run(busy)?;
        let (latencies, outcome) = (round.latencies.buckets(), round.outcome);
        Ok(Outcome { latencies, end: clock::now(), cpu: clock::cpu() - cpu, ..outcome })
    }
}

/// Work under way.
struct Round<'a> {
    process: &'a mut ClientProcess,
    /// Operations that have not begun.
    left: u64,
    /// When none begins any more.
    end: u64,
    interval: u64,
    /// When the next begins, where there is a pace.
    due: u64,
    /// Connections that wait for work.
    free: VecDeque<usize>,
    now: u64,
    /// When anything was answered last.
    heard: u64,
    latencies: Histogram,
    outcome: Outcome,
    buffer: Vec<u8>,
}

impl Round<'_> {
    fn run(&mut self, busy: usize) -> Result<()> {
        let mut events = Vec::with_capacity(512);
        loop {
            self.begin()?;
            let is_over = self.left == 0 || self.reached() >= self.end;
            if is_over && self.free.len() == busy {
                return Ok(());
            }
            let wait = match self.interval {
                0 => PATIENCE,
                _ if is_over || self.free.is_empty() => PATIENCE,
                _ => self.due.saturating_sub(self.now),
            };
            let wait =
                Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as i64 };
            events.clear();
            epoll::wait(&self.process.poll, spare_capacity(&mut events), Some(&wait))?;
            self.now = clock::now();
            for event in &events {
                self.read(event.data.u64() as usize)?;
            }
            if !events.is_empty() {
                self.heard = self.now;
            } else if self.now - self.heard >= PATIENCE {
                return Err("the server has answered nothing for a minute".into());
            }
        }
    }

    /// The time at which the next operation begins: what was due is sent, however late.
    fn reached(&self) -> u64 {
        if self.interval > 0 {
            self.due
        } else {
            self.now
        }
    }

    /// Begins what may begin now.
    fn begin(&mut self) -> Result<()> {
        while self.left > 0 && self.reached() < self.end.min(self.now + 1) {
            let Some(index) = self.free.pop_front() else { break };
            let begun = if self.interval > 0 { self.due } else { clock::now() };
            self.due += self.interval;
            self.left -= 1;
            let connection = &mut self.process.connections[index];
            connection.begun = begun;
            connection.exchanges = self.process.requests.exchanges;
            self.send(index)?;
        }
        Ok(())
    }

    /// Sends the next batch.
    fn send(&mut self, index: usize) -> Result<()> {
        let batch = self.process.next;
        self.process.next = (batch + 1) % self.process.requests.batches.len();
        let connection = &mut self.process.connections[index];
        let requests = &self.process.requests.batches[batch];
        (connection.batch, connection.replies) = (batch, requests.expected.len());
        // NB: batches are much shorter than what the kernel takes at once.
        let sent = connection.stream.write(&requests.bytes)?;
        if sent < requests.bytes.len() {
            return Err("the kernel took only a part of a batch: make it shorter".into());
        }
        Ok(())
    }

    /// Reads what has come, and goes on with what comes after it.
    fn read(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.process.connections[index];
        let kept = connection.rest.len();
        self.buffer[..kept].copy_from_slice(&connection.rest);
        connection.rest.clear();
        let read = match connection.stream.read(&mut self.buffer[kept..]) {
            Ok(0) => return Err(format!("the server has closed connection {}", index + 1).into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            read => read?,
        };
        let bytes = &self.buffer[..kept + read];
        let expected = &self.process.requests.batches[connection.batch].expected;
        let mut at = 0;
        while let Some(length) = reply(&bytes[at..])? {
            let found = &bytes[at..at + length];
            if connection.replies == 0 {
                return Err("the server answers what nobody has asked".into());
            }
            if !expected[expected.len() - connection.replies].suits(found) {
                self.outcome.wrong += 1;
                if self.outcome.sample.is_empty() {
                    self.outcome.sample =
                        String::from_utf8_lossy(&found[..length.min(200)]).trim().to_owned();
                }
            }
            connection.replies -= 1;
            self.outcome.requests += 1;
            at += length;
            if at == bytes.len() {
                break;
            }
        }
        connection.rest.extend_from_slice(&bytes[at..]);
        if connection.replies > 0 {
            return Ok(());
        }
        connection.exchanges -= 1;
        if connection.exchanges > 0 {
            return self.send(index);
        }
        self.now = clock::now();
        self.latencies.add(self.now - connection.begun);
        self.outcome.operations += 1;
        self.free.push_back(index);
        if self.interval == 0 {
            self.begin()?;
        }
        Ok(())
    }
}
