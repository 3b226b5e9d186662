//! A server: what all its threads share, how it starts and how it ends.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perilune::{node, Database, Durability, LockMode, Session};
use sha2::{Digest, Sha256};

use crate::keyspace::{clock, sweep};
use crate::limits::{DATABASES, OUTPUT_BYTES, SWEPT_AT_ONCE};
use crate::listener::Listeners;
use crate::mailbox::Mailbox;
use crate::worker::Worker;

/// How a server is to run. The names are those of `redis.conf` where they mean the same.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TCP port; 0 is any free one.
    pub port: u16,
    /// Addresses to listen at; one that begins with `-` may be missing on this machine.
    pub bind: Vec<String>,
    /// A Unix socket to listen at.
    pub unix_socket: Option<PathBuf>,
    /// Permissions of the Unix socket.
    pub unix_socket_mode: u32,
    /// Threads that serve clients.
    pub threads: usize,
    /// The password of the user `default`.
    pub password: Option<String>,
    /// Whether clients from other machines are refused while there is no password.
    pub protected_mode: bool,
    /// Clients at most.
    pub max_clients: u64,
    /// The level that the database was opened with, to be told to clients; none: as it was found.
    pub durability: Option<Durability>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            port: 6379,
            bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()],
            unix_socket: None,
            unix_socket_mode: 0o700,
            threads: thread::available_parallelism().map_or(1, usize::from),
            password: None,
            protected_mode: true,
            max_clients: 10_000,
            durability: None,
        }
    }
}

impl Settings {
    /// Whether this user with this password may enter. Takes the same time for every wrong password.
    pub(crate) fn admits(&self, user: &[u8], password: &[u8]) -> bool {
        if user != b"default" {
            return false;
        }
        match &self.password {
            None => true,
            Some(wanted) => {
                let pair = Sha256::digest(wanted).into_iter().zip(Sha256::digest(password));
                pair.fold(0, |differences, (left, right)| differences | (left ^ right)) == 0
            }
        }
    }

    /// The settings by their names in `redis.conf`.
    pub(crate) fn as_config(&self) -> Vec<(&'static str, String)> {
        let yes = |truth: bool| if truth { "yes" } else { "no" }.to_owned();
        let mut settings = vec![
            ("bind", self.bind.join(" ")),
            ("databases", DATABASES.to_string()),
            ("io-threads", self.threads.to_string()),
            ("maxclients", self.max_clients.to_string()),
            ("port", self.port.to_string()),
            ("protected-mode", yes(self.protected_mode)),
            ("requirepass", self.password.clone().unwrap_or_default()),
            ("save", String::new()),
            (
                "unixsocket",
                self.unix_socket.as_ref().map_or_else(String::new, |path| path.display().to_string()),
            ),
            ("unixsocketperm", format!("{:o}", self.unix_socket_mode)),
        ];
        if let Some(durability) = self.durability {
            let often = match durability {
                Durability::Fsync => "always",
                Durability::Periodic => "everysec",
                Durability::None => "no",
            };
            settings.push(("appendfsync", often.to_owned()));
            settings.push(("appendonly", yes(durability != Durability::None)));
        }
        settings
    }
}

/// Why a server could not start: the text says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An address or socket is not to be had.
    Listen {
        /// Which.
        place: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The operating system refused something else.
    Io(io::Error),
    /// The database answered.
    Database(perilune::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen { place, source } => {
                write!(f, "cannot listen at {place}: {source}: choose another `port`, `bind` or `unixsocket`")
            }
            StartError::Io(error) => write!(f, "cannot start the server: {error}"),
            StartError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Listen { source, .. } | StartError::Io(source) => Some(source),
            StartError::Database(error) => Some(error),
        }
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

impl From<perilune::Error> for StartError {
    fn from(error: perilune::Error) -> StartError {
        StartError::Database(error)
    }
}

/// Counters of this server; each thread adds to them.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) connected: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) swept: AtomicU64,
}

/// What the threads of a server share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) settings: Settings,
    pub(crate) started: Instant,
    pub(crate) figures: Figures,
    stopping: AtomicBool,
    /// One for each event loop.
    pub(crate) mailboxes: Vec<Mailbox>,
    /// Bytes of pushes and replies that may wait for a client; beyond, it is cut off.
    pub(crate) output_limit: AtomicU64,
}

impl Server {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Asks all threads to finish what they are at.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    server: Arc<Server>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

/// Ends a [`Running`] server from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Server>);

impl Stopper {
    /// Asks the server to end: it takes no more clients, sends what it has to say and closes.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Running {
    /// Starts a server of `database` and returns when it takes clients.
    ///
    /// # Errors
    /// An address that is not to be had; threads, descriptors or sessions of the database that are not.
    pub fn start(database: &Database, settings: Settings) -> Result<Running, StartError> {
        let listeners = Listeners::open(&settings)?;
        let addresses = listeners.addresses()?;
        let mut settings = settings;
        if let Some(address) = addresses.first() {
            settings.port = address.port();
        }
        let server = Arc::new(Server {
            started: Instant::now(),
            figures: Figures::default(),
            stopping: AtomicBool::new(false),
            mailboxes: (0..settings.threads.max(1)).map(|_| Mailbox::default()).collect(),
            output_limit: AtomicU64::new(OUTPUT_BYTES),
            settings,
        });
        let mut threads = Vec::new();
        let mut listeners = Some(listeners);
        for index in 0..server.mailboxes.len() {
            let session = database.session()?;
            let worker = Worker::new(&server, index, session, listeners.take())?;
            threads.push(thread::Builder::new().name(format!("serve-{index}")).spawn(move || worker.run())?);
        }
        let (session, shared) = (database.session()?, Arc::clone(&server));
        threads
            .push(thread::Builder::new().name("expiry".to_owned()).spawn(move || expire(&shared, session))?);
        Ok(Running { server, addresses, threads })
    }

    /// The addresses it listens at, with the ports that it was given.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What ends it, for another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.server))
    }

    /// Waits until the server has ended, by [`Stopper::stop`] or SHUTDOWN.
    pub fn wait(self) {
        for thread in self.threads {
            // A thread that panicked has said so; the others have their clients to finish.
            let _ = thread.join();
        }
        if let Some(path) = &self.server.settings.unix_socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes expired keys, as long as this process is the one that does: who holds the lock. When it dies
/// the lock is free, and another server of the database gets it.
fn expire(server: &Server, mut session: Session) {
    let Ok(lock) = node!("^redis", "expiry") else { return };
    let mut held = false;
    while !server.is_stopping() {
        if !held {
            held = session.lock(&lock, LockMode::Exclusive, Some(Duration::ZERO)).unwrap_or(false);
        }
        let swept = if held { sweep(&mut session, clock()).unwrap_or(0) } else { 0 };
        server.figures.swept.fetch_add(swept as u64, Ordering::Relaxed);
        if swept < SWEPT_AT_ONCE {
            thread::park_timeout(Duration::from_millis(100));
        }
    }
}
