//! What all threads of a server share.
//!
//! Scripts and loops stand above: what is kept of them here is of types that they lend ([`Parts`]).

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use mio::Waker;
use perilune::{Database, Limits};

use crate::acl::{hashed, Acl};
use crate::cursors::Cursors;
use crate::figures::Figures;
use crate::inquiry::Inquiries;
use crate::invalidation::Switch;
use crate::mailbox::{Letter, Mailbox};
use crate::memory::Memory;
use crate::monitors::Monitors;
use crate::nodes::Waiters;
use crate::password::Password;
use crate::pause::Pause;
use crate::redis::Redis;
use crate::settings::{Live, Name, Settings};
use crate::statistics::Statistics;
use perilune_net::awake::Awake;
use perilune_net::away::Away;
use perilune_net::clock::clock;
use perilune_net::journal::{Journal, Level};
use perilune_net::weights::Weights;

/// The parts of a server that higher storeys know.
pub(crate) trait Parts {
    /// What its threads share for scripts.
    type Scripts: Sandboxes;
    /// Event loops that lie in their slots, and threads without one.
    type Loops: Spares;
}

/// What a server has to do with its scripts.
pub(crate) trait Sandboxes: fmt::Debug + Default + Send + Sync {
    /// Lets the thread that looks after scripts see that the server ends.
    fn stop(&self);
}

/// Event loops whose threads run something long, and the threads that take those loops over.
pub(crate) trait Spares: fmt::Debug + Send + Sync {
    /// For so many event loops.
    fn new(loops: usize) -> Self;
    /// Gives loops that have lain too long to spare threads. Called every millisecond while scripts run.
    fn hand_over(&self, server: &Arc<Server>);
    /// Lets all spare threads see that the server ends.
    fn stop(&self);
}

/// What a server begins with.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) number: i64,
    pub(crate) settings: Settings,
    pub(crate) live: Live,
    pub(crate) acl: Acl,
    pub(crate) database: Database,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) journal: Journal,
    pub(crate) follower_waker: Waker,
    pub(crate) wait_limit: Duration,
}

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
    pub(crate) scripts: <Redis as Parts>::Scripts,
    /// How many loops have clients.
    pub(crate) awake: Awake,
    /// Loops whose threads run something long, and how many do.
    pub(crate) aside: <Redis as Parts>::Loops,
    pub(crate) away: Away,
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
    /// Whether commands are held back.
    pub(crate) pause: Pause,
    /// Whether clients of any server are to be told of all keys that change.
    pub(crate) broadcast: Switch,
    /// Clients that wait for keys, those among them that are just about to.
    pub(crate) blocked: AtomicUsize,
    /// How long a command may wait for a page that another process holds.
    pub(crate) wait_limit: Duration,
    /// Event loops that have not ended.
    pub(crate) loops: AtomicUsize,
}

impl Server {
    /// A server without clients, whose threads are yet to be started.
    pub(crate) fn new(beginning: Beginning) -> Server {
        let Beginning { number, settings, live, acl, database, tls, journal, follower_waker, wait_limit } =
            beginning;
        let threads = settings.threads.max(1);
        Server {
            number,
            live,
            acl,
            started: Instant::now(),
            limits: database.limits().clone(),
            waiters: Waiters::new(&database),
            figures: Figures::default(),
            statistics: Statistics::new(threads),
            memory: Memory::new(),
            expires: AtomicBool::new(true),
            database,
            tls,
            journal,
            run_id: run_id(),
            started_ms: clock() as u64,
            stopping: AtomicBool::new(false),
            mailboxes: (0..threads).map(|_| Mailbox::default()).collect(),
            scripts: <Redis as Parts>::Scripts::default(),
            away: Away::default(),
            aside: <Redis as Parts>::Loops::new(threads),
            awake: Awake::new(threads, settings.number(Name::ThreadsAwake) == 1),
            follower_waker,
            inquiries: Inquiries::default(),
            monitors: Monitors::default(),
            weights: Weights::default(),
            cursors: Arc::default(),
            broadcast: Switch::default(),
            pause: Pause::default(),
            blocked: AtomicUsize::new(0),
            wait_limit,
            loops: AtomicUsize::new(threads),
            databases: settings.number(Name::Databases).max(1),
            bulk_bytes: usize::try_from(settings.number(Name::ProtoMaxBulkLen)).unwrap_or(usize::MAX),
            settings,
        }
    }

    /// Whether the log goes to a file of its own.
    pub(crate) fn has_log_file(&self) -> bool {
        self.journal.is_file()
    }

    /// Opens the log anew, after its file was moved away.
    ///
    /// # Errors
    /// The file cannot be opened: then the old one stays.
    pub(crate) fn reopen_log(&self) -> io::Result<()> {
        self.journal.reopen()
    }

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
        self.pause.begin(time, all);
        if time == 0 {
            self.mailboxes.iter().for_each(|mailbox| mailbox.post(Letter::Resume));
        }
    }

    /// Whether anybody may enter: the user `default` has no password.
    pub(crate) fn is_open(&self) -> bool {
        self.acl.is_open()
    }

    /// Whether the user `default` needs a password, and who has said so.
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

/// Whether an address of `bind` is reached from this machine alone.
fn is_local(place: &str) -> bool {
    place.trim_start_matches('-').parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// 40 hexadecimal digits from when and where this is.
fn run_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let place = format!("{} {now:?} {:?}", std::process::id(), thread::current().id());
    let mut text = hashed(place.as_bytes());
    text.truncate(40);
    text
}
