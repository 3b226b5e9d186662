//! A server: what all its threads share, how it starts and how it ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Waker;
use perilune::{node, Database, Limits, LockMode, Session};
use perilune_luahost::sandbox::SCRIPT_STACK;

use crate::acl::{hashed, Acl};
use crate::aside::{self, Loops, Vital};
use crate::awake::Awake;
use crate::clock::clock;
use crate::commands;
use crate::commands::nodes::Waiters;
use crate::cursors::Cursors;
use crate::effects::Effects;
use crate::figures::Figures;
use crate::follower::Follower;
use crate::inquiry::Inquiries;
use crate::invalidation::Switch;
use crate::journal::{Journal, Level};
use crate::keyspace::sweep;
use crate::limits::{PEERS_SWEPT, SWEPT_AT_ONCE};
use crate::listener::Listeners;
use crate::mailbox::{Letter, Mailbox};
use crate::memory::Memory;
use crate::monitors::Monitors;
use crate::password::Password;
use crate::peers;
use crate::scripts::{watch, Scripts};
use crate::settings::{Live, Name, Settings};
use crate::start_error::StartError;
use crate::statistics::Statistics;
use crate::tracking::broadcast;
use crate::weights::Weights;
use crate::worker::Worker;
use crate::{metrics, tls};

/// What the threads of a server share.
#[derive(Debug)]
pub(crate) struct Server {
    /// Unique over all servers of the database, and over time; 0: it takes no writes.
    pub(crate) number: i64,
    /// How it was started.
    pub(crate) settings: Settings,
    /// Databases to SELECT.
    pub(crate) databases: i64,
    /// Bytes of an argument at most.
    pub(crate) bulk_bytes: usize,
    /// The settings that all servers of the database share.
    pub(crate) live: Live,
    /// The users that they share.
    pub(crate) acl: Acl,
    /// Of the database.
    pub(crate) limits: Limits,
    /// Who wait for clients.
    pub(crate) waiters: Waiters,
    pub(crate) started: Instant,
    pub(crate) figures: Figures,
    pub(crate) statistics: Statistics,
    pub(crate) memory: Memory,
    /// Whether this server removes expired keys, when it is its turn.
    pub(crate) expires: AtomicBool,
    pub(crate) database: Database,
    /// What TLS needs, if `tls-port` is set.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    journal: Journal,
    /// 40 hexadecimal digits that no other server has.
    pub(crate) run_id: String,
    /// Milliseconds since 1970.
    pub(crate) started_ms: u64,
    stopping: AtomicBool,
    /// One for each event loop.
    pub(crate) mailboxes: Arc<[Mailbox]>,
    pub(crate) scripts: Scripts,
    /// How many loops have clients.
    pub(crate) awake: Awake,
    /// Loops whose threads run something long.
    pub(crate) aside: Loops,
    /// Wakes the thread that follows changes of settings and users.
    follower_waker: Waker,
    /// What clients have asked all servers.
    pub(crate) inquiries: Inquiries,
    /// Who sees all commands.
    pub(crate) monitors: Monitors,
    /// What its clients take.
    pub(crate) weights: Weights,
    /// Where their scans are.
    pub(crate) cursors: Arc<Cursors>,
    /// Until when commands are held back, in milliseconds since 1970; 0: they are not.
    paused_until: AtomicI64,
    /// All commands, not just those that write.
    pauses_all: AtomicBool,
    /// Whether clients of any server are to be told of all keys that change.
    pub(crate) broadcast: Switch,
    /// Clients that wait for keys, those among them that are just about to.
    pub(crate) blocked: AtomicUsize,
    /// Clients that CLIENT PAUSE holds back.
    pub(crate) held_back: AtomicUsize,
    /// How long a command may wait for a page that another process holds.
    pub(crate) wait_limit: Duration,
    /// Event loops that have not ended.
    pub(crate) loops: AtomicUsize,
}

impl Server {
    /// Whether events of this level are logged.
    pub(crate) fn notes(&self, level: Level) -> bool {
        self.live.number(Name::LogLevel) <= level as i64
    }

    /// Logs an event.
    pub(crate) fn note(&self, level: Level, event: &str, details: &[(&str, &str)]) {
        if self.notes(level) {
            self.journal.write(level, event, details);
        }
    }

    /// Logs an event that anybody can cause who reaches the server, unless there were many of its kind just now.
    pub(crate) fn note_some(&self, level: Level, event: &'static str, details: &[(&str, &str)]) {
        if self.notes(level) {
            self.journal.write_some(level, event, details);
        }
    }

    /// Logs how many of these were left out.
    pub(crate) fn tell_floods(&self) {
        self.journal.tell_floods();
    }

    /// Keeps for LATENCY that `event` took so long, if that is worth keeping.
    pub(crate) fn note_delay(&self, event: &'static str, took: Duration) {
        let least = self.live.number(Name::LatencyMonitorThreshold);
        if least > 0 && took.as_millis() as i64 >= least {
            self.statistics.delayed(event, took);
        }
    }

    /// Holds commands back for no less than so many milliseconds from now on; 0 ends that.
    pub(crate) fn pause(&self, time: u64, all: bool) {
        self.pauses_all.store(all, Ordering::Relaxed);
        // NB: one more, since part of the millisecond that the clock shows is over.
        let until = if time == 0 { 0 } else { clock().saturating_add_unsigned(time).saturating_add(1) };
        self.paused_until.store(until, Ordering::Release);
        if time == 0 {
            self.mailboxes.iter().for_each(|mailbox| mailbox.post(Letter::Resume));
        }
    }

    /// Until when commands are held back, and whether all are.
    pub(crate) fn paused(&self) -> Option<(i64, bool)> {
        match self.paused_until.load(Ordering::Acquire) {
            0 => None,
            until if until <= clock() => {
                let _ = self.paused_until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Relaxed);
                None
            }
            until => Some((until, self.pauses_all.load(Ordering::Relaxed))),
        }
    }

    /// Whether anybody may enter: the user `default` has no password.
    pub(crate) fn is_open(&self) -> bool {
        self.acl.is_open()
    }

    /// The same, and why.
    pub(crate) fn password(&self) -> Password {
        let Some(user) = self.acl.user("default").filter(|user| user.is_on) else { return Password::Off };
        if user.no_password {
            let is_far = self.settings.bind.iter().any(|place| !is_local(place))
                && !self.live.is_on(Name::ProtectedMode);
            return if is_far { Password::NoneAnywhere } else { Password::NoneHere };
        }
        match self.password_text() {
            Some(_) => Password::Given,
            None => Password::Kept,
        }
    }

    /// `requirepass`, if it is what holds: this server may not have been told what another one, or a rule, has set.
    pub(crate) fn password_text(&self) -> Option<String> {
        let user = self.acl.user("default")?;
        let text = if user.no_password { String::new() } else { self.live.text(Name::RequirePass) };
        (user.no_password || user.passwords == [hashed(text.as_bytes())]).then_some(text)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Asks all threads to finish what they are at.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake);
        self.scripts.stop();
        self.aside.stop();
        // It knows no more than that it ends.
        let _ = self.follower_waker.wake();
    }
}

impl Server {
    /// On standard error whoever starts the server says where it is, in words for people.
    fn note_start(&self, addresses: &[SocketAddr]) {
        if !self.journal.is_file() {
            return;
        }
        let listens: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let details = [
            ("database", &*self.database.path().display().to_string()),
            ("addresses", &listens.join(" ")),
            ("server", &self.number.to_string()),
            ("threads", &self.settings.threads.to_string()),
            ("version", env!("CARGO_PKG_VERSION")),
            ("password", self.password().name()),
        ];
        self.note(Level::Notice, "started", &details);
    }
}

/// Whether an address of `bind` is reached from this machine alone.
fn is_local(place: &str) -> bool {
    place.trim_start_matches('-').parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

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
        self.0.journal.reopen()
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
        if database.is_remote() {
            return Err(StartError::Remote { address: database.path().display().to_string() });
        }
        let tls = tls::configuration(&settings).map_err(StartError::Setting)?;
        let journal = open_journal(&settings)?;
        let metrics = metrics::listen(&settings)?;
        let (follower, follower_waker) = Follower::new(database.session()?)?;
        let (live, acl) = (Live::new(), Acl::new());
        let (number, mut post) = peers::enter(database)?;
        let opened = listen(&settings, number, &mut post).and_then(|opened| {
            begin(&live, &acl, &settings, &mut database.session()?)?;
            Ok(opened)
        });
        let (listeners, addresses) = opened.inspect_err(|_| peers::leave(&mut post, number))?;
        let mut settings = settings;
        if std::mem::take(&mut settings.any_port) {
            // Plain sockets come first.
            settings.port = addresses.first().map_or(0, SocketAddr::port);
        }
        let server = Arc::new(Server {
            number,
            live,
            acl,
            started: Instant::now(),
            limits: database.limits().clone(),
            waiters: Waiters::new(database),
            figures: Figures::default(),
            statistics: Statistics::new(settings.threads.max(1)),
            memory: Memory::new(),
            expires: AtomicBool::new(true),
            database: database.clone(),
            tls,
            journal,
            run_id: run_id(),
            started_ms: clock() as u64,
            stopping: AtomicBool::new(false),
            mailboxes: (0..settings.threads.max(1)).map(|_| Mailbox::default()).collect(),
            scripts: Scripts::default(),
            aside: Loops::new(settings.threads.max(1)),
            awake: Awake::new(settings.threads.max(1), settings.number(Name::ThreadsAwake) == 1),
            follower_waker,
            inquiries: Inquiries::default(),
            monitors: Monitors::default(),
            weights: Weights::default(),
            cursors: Arc::default(),
            broadcast: Switch::default(),
            paused_until: AtomicI64::new(0),
            pauses_all: AtomicBool::new(false),
            blocked: AtomicUsize::new(0),
            held_back: AtomicUsize::new(0),
            wait_limit: database.session()?.wait_limit(),
            loops: AtomicUsize::new(settings.threads.max(1)),
            databases: settings.number(Name::Databases).max(1),
            bulk_bytes: usize::try_from(settings.number(Name::ProtoMaxBulkLen)).unwrap_or(usize::MAX),
            settings,
        });
        // Behind `enter`: whoever wants to be told has left a note by now, or asks this server, too.
        if broadcast::has_any(&mut database.session()?)? {
            server.broadcast.turn_on();
        }
        let mut threads = start_loops(&server, database, listeners)?;
        start_helpers(&server, database, follower, post, &mut threads)?;
        let metrics_at: Vec<_> = metrics.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let metrics_threads = metrics::serve(&server, metrics)?;
        server.note_start(&addresses);
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
        self.server.password()
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
        self.server.aside.join();
        self.server.waiters.end();
        metrics::wake(&self.metrics_at);
        for thread in self.metrics_threads {
            let _ = thread.join();
        }
        if let Some(path) = &self.server.settings.unix_socket {
            let _ = std::fs::remove_file(path);
        }
        if self.server.journal.is_file() {
            self.server.note(Level::Notice, "stopped", &[]);
        }
    }
}

/// A thread without which the server is none.
fn vital(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _vital = Vital;
        body();
    })
}

/// The log that the settings name.
fn open_journal(settings: &Settings) -> Result<Journal, StartError> {
    Journal::open(settings.path(Name::LogFile), settings.number(Name::LogFormat) == 1)
        .map_err(|error| StartError::Setting(format!("`logfile`: {error}")))
}

/// 40 hexadecimal digits from when and where this is.
fn run_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let place = format!("{} {now:?} {:?}", std::process::id(), thread::current().id());
    let mut text = hashed(place.as_bytes());
    text.truncate(40);
    text
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
    let listeners = Listeners::open(settings, |port| peers::serve_port(session, number, port))?;
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
        commands::acl::of_lines((acl, live.gives_channels()), &settings.users).map_err(StartError::Users)?;
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
    threads.push(vital("expiry", move || expire(&shared, session))?);
    if server.number != 0 {
        let shared = Arc::clone(server);
        threads.push(vital("peers", move || peers::listen(&shared, post))?);
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
    (0..server.mailboxes.len())
        .map(|index| {
            let worker = Worker::new(server, index, database.session()?, listeners.take())?;
            let thread = thread::Builder::new().name(format!("serve-{index}")).stack_size(SCRIPT_STACK);
            Ok(thread.spawn(move || aside::serve(Box::new(worker)))?)
        })
        .collect()
}

/// Removes expired keys, as long as this process is the one that does: who holds the lock. When it dies
/// the lock is free, and another server of the database gets it.
fn expire(server: &Server, mut session: Session) {
    let Ok(lock) = node!("^redis", "expiry") else { return };
    let (mut held, mut looked, mut effects) = (false, None::<Instant>, Effects::default());
    session.free_up(true);
    while !server.is_stopping() {
        if !held {
            held = session.lock(&lock, LockMode::Exclusive, Some(Duration::ZERO)).unwrap_or(false);
        }
        effects.begin(server);
        let sweeps = held && server.expires.load(Ordering::Relaxed);
        let begun = Instant::now();
        let swept = if sweeps { sweep(&mut session, &mut effects, clock()).unwrap_or(0) } else { 0 };
        server.note_delay("expire-cycle", begun.elapsed());
        if swept > 0 && server.broadcast.was_turned_on(effects.broadcast) {
            let _ = broadcast::send_all(&mut session, &mut effects);
        }
        if held && looked.is_none_or(|looked| looked.elapsed() > PEERS_SWEPT) {
            // What fails is tried again a second later.
            let _ = peers::sweep(&mut session, &mut effects, server.number);
            looked = Some(Instant::now());
        }
        for (thread, letter) in effects.letters.drain(..) {
            if let Some(mailbox) = server.mailboxes.get(thread) {
                mailbox.post(letter);
            }
        }
        server.figures.swept.fetch_add(swept as u64, Ordering::Relaxed);
        if swept < SWEPT_AT_ONCE {
            thread::park_timeout(Duration::from_millis(100));
        }
    }
}
