//! How a server starts, runs and ends.
//!
//! ```text
//! start   settings looked at - a number taken, ports noted - sockets - settings and users from the tree - threads
//! run     event loops; threads for settings, scripts, expiry, other servers; the page of figures
//! stop    loops send what they have to say - waiting clients are let go - threads end - the number is given back
//! ```
//!
//! Invariants
//! - It takes clients only when it knows the users.
//! - A thread without which it would be none ends the process if it panics.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use perilune::{Database, Serving, Session};
use perilune_net::page;
use perilune_sandbox::SCRIPT_STACK;

use crate::acl::Acl;
use crate::follower::Follower;
use crate::password::Password;
use crate::rules::Rules;
use crate::scripts::watch;
use crate::server::{Beginning, Server};
use crate::settings::{Live, Name, Settings};
use crate::start_error::StartError;
use crate::tracking::broadcast;
use crate::{commands, cron, dispatch, expiry, peers, sockets, worker};
use perilune_net::aside::{self, Vital};
use perilune_net::journal::{Journal, Level};
use perilune_net::listener::Listeners;

/// A running server.
#[derive(Debug)]
pub struct Running {
    server: Arc<Server>,
    addresses: Vec<SocketAddr>,
    metrics_at: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
    metrics_threads: Vec<JoinHandle<()>>,
}

/// Ends a [`Running`] server from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Server>);

impl Stopper {
    /// Opens the log anew, after its file was moved away.
    ///
    /// # Errors
    /// The file cannot be opened: then the old one stays.
    pub fn reopen_log(&self) -> io::Result<()> {
        self.0.reopen_log()
    }

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
        // Another server, or the memory of this process: neither is a file that servers share.
        if Database::is_address(database.path()) {
            return Err(StartError::Remote { address: database.path().display().to_string() });
        }
        let tls = sockets::tls(&settings).map_err(StartError::Setting)?;
        let journal = open_journal(&settings)?;
        let metrics = metrics_sockets(&settings)?;
        let (follower, follower_waker) = Follower::new(database.session()?)?;
        let (live, acl) = (Live::new(), Acl::new());
        let (number, mut post) = peers::enter(database)?;
        let opened = listen(&settings, number, &mut post).and_then(|opened| {
            begin(&live, &acl, &settings, &mut database.session()?)?;
            Ok(opened)
        });
        let (listeners, addresses) = opened.inspect_err(|_| dispatch::leave(&mut post, number))?;
        let mut settings = settings;
        if std::mem::take(&mut settings.any_port) {
            // Plain sockets come first.
            settings.port = addresses.first().map_or(0, SocketAddr::port);
        }
        let server = Arc::new(Server::new(Beginning {
            number,
            rules: Rules::new(settings, live, acl, database.session()?.wait_limit()),
            database: database.clone(),
            tls,
            journal,
            follower_waker,
        }));
        // Behind `enter`: whoever wants to be told has left a note by now, or asks this server, too.
        if broadcast::has_any(&mut database.session()?)? {
            server.commons().broadcast().turn_on();
        }
        let mut threads = start_loops(&server, database, listeners)?;
        start_helpers(&server, database, follower, post, &mut threads)?;
        let metrics_at: Vec<_> = metrics.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let metrics_threads = page::serve(&server, metrics)?;
        note_start(&server, &addresses);
        Ok(Running { server, addresses, metrics_at, threads, metrics_threads })
    }

    /// Where GET /metrics is answered.
    #[must_use]
    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        &self.metrics_at
    }

    /// The addresses it listens at, with the ports that it was given.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether the user `default` needs a password, and who has said so.
    #[must_use]
    pub fn password(&self) -> Password {
        self.server.rules().password()
    }

    /// What ends it, for another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.server))
    }

    /// Waits until the server has ended, by [`Stopper::stop`] or SHUTDOWN.
    pub fn wait(self) {
        for thread in self.threads {
            // One that panics ends the process.
            let _ = thread.join();
        }
        self.server.aside().join();
        self.server.commons().waiters().end();
        page::wake(&self.metrics_at);
        for thread in self.metrics_threads {
            let _ = thread.join();
        }
        if let Some(path) = &self.server.rules().settings().unix_socket {
            let _ = std::fs::remove_file(path);
        }
        if self.server.has_log_file() {
            self.server.note(Level::Notice, "stopped", &[]);
        }
    }
}

/// On standard error whoever starts the server says where it is, in words for people.
fn note_start(server: &Server, addresses: &[SocketAddr]) {
    if !server.has_log_file() {
        return;
    }
    let listens: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let details = [
        ("database", &*server.database().path().display().to_string()),
        ("addresses", &listens.join(" ")),
        ("server", &server.number().to_string()),
        ("threads", &server.rules().settings().threads.to_string()),
        ("version", env!("CARGO_PKG_VERSION")),
        ("password", server.rules().password().name()),
    ];
    server.note(Level::Notice, "started", &details);
}

/// A thread without which the server is none.
fn vital(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // As the standard library has it.
    vital_with(name, 2 << 20, body)
}

/// Such a thread with this stack.
fn vital_with(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(move || {
        let _vital = Vital;
        body();
    })
}

/// The sockets of `metrics-port` and `metrics-bind`; none if the port is 0.
fn metrics_sockets(settings: &Settings) -> Result<Vec<TcpListener>, StartError> {
    match settings.number(Name::MetricsPort) as u16 {
        0 => Ok(Vec::new()),
        port => page::listen(&settings.text(Name::MetricsBind), port)
            .map_err(|error| StartError::of_listening(error, " (metrics)")),
    }
}

/// The log that the settings name.
fn open_journal(settings: &Settings) -> Result<Journal, StartError> {
    Journal::open(settings.path(Name::LogFile), settings.number(Name::LogFormat) == 1)
        .map_err(|error| StartError::Setting(format!("`logfile`: {error}")))
}

/// Opens the sockets of server `number`; the ports are noted before they are bound, so that of servers that start
/// at the same time each finds the others' notes.
fn listen(
    settings: &Settings,
    number: i64,
    session: &mut Session,
) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let plain = if settings.any_port { 0 } else { settings.port };
    for port in [plain, settings.number(Name::TlsPort) as u16] {
        if port != 0 {
            peers::note_port(session, number, port)?;
        }
    }
    let listeners = sockets::open(settings, |port| peers::serve_port(session, number, port))?;
    let addresses = listeners.addresses()?;
    if settings.any_port {
        if let Some(address) = addresses.first() {
            peers::note_port(session, number, address.port())?;
        }
    }
    Ok((listeners, addresses))
}

/// Takes the shared settings and users from the tree, those that were given at the start set there first.
fn begin(live: &Live, acl: &Acl, settings: &Settings, session: &mut Session) -> Result<(), StartError> {
    live.load(session)?;
    acl.load(session)?;
    let given: Vec<_> = settings
        .shared()
        .filter(|(name, text)| live.text(*name) != *text)
        .map(|(name, text)| (name, text.to_owned()))
        .collect();
    if !given.is_empty() {
        live.change(session, &given)?;
    }
    if let Some(path) = settings.path(Name::AclFile) {
        let users = commands::acl::read_file(&path, live.gives_channels()).map_err(StartError::Users)?;
        acl.change(session, &users, true)?;
    }
    let users =
        commands::acl::of_lines(acl, live.gives_channels(), &settings.users).map_err(StartError::Users)?;
    if !users.is_empty() {
        acl.change(session, &users, false)?;
    }
    // An empty one as well: it clears what an earlier start has left.
    if let Some((_, password)) = settings.shared().find(|(name, _)| *name == Name::RequirePass) {
        let (name, user) = commands::acl::with_password(acl, password);
        if acl.user(&name).as_deref() != user.as_ref() {
            acl.change(session, &[(name, user)], false)?;
        }
    }
    Ok(())
}

/// Starts what runs beside the event loops.
fn start_helpers(
    server: &Arc<Server>,
    database: &Database,
    follower: Follower,
    post: Session,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(), StartError> {
    let shared = Arc::clone(server);
    threads.push(vital("settings", move || follower.run(&shared))?);
    let (session, shared) = (database.session()?, Arc::clone(server));
    threads.push(vital("scripts", move || watch::run(&shared, session))?);
    let (session, shared) = (database.session()?, Arc::clone(server));
    threads.push(vital("expiry", move || expiry::run(&shared, session))?);
    let (session, shared) = (database.session()?, Arc::clone(server));
    threads.push(vital_with("cron", SCRIPT_STACK, move || cron::run(&shared, session))?);
    if server.number() != 0 {
        let shared = Arc::clone(server);
        threads.push(vital("peers", move || dispatch::listen(&shared, post))?);
    }
    Ok(())
}

/// Starts the event loops; the first one accepts.
fn start_loops(
    server: &Arc<Server>,
    database: &Database,
    listeners: Listeners,
) -> Result<Vec<JoinHandle<()>>, StartError> {
    let mut listeners = Some(listeners);
    (0..server.crew().mailboxes().len())
        .map(|index| {
            let worker = worker::begin(server, index, database.session()?, listeners.take())?;
            let thread = thread::Builder::new().name(format!("serve-{index}")).stack_size(SCRIPT_STACK);
            Ok(thread.spawn(move || aside::serve(Box::new(worker)))?)
        })
        .collect()
}
