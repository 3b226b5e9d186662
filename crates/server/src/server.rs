//! What all threads of a server share.
//!
//! Scripts and loops stand above: what is kept of them here is of types that they lend ([`Parts`]).

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
pub(crate) trait Sandboxes: fmt::Debug + Send + Sync {
    /// Lets the thread that looks after scripts see that the server ends.
    fn stop(&self);
}

/// Event loops whose threads run something long, and the threads that take those loops over.
pub(crate) trait Spares: fmt::Debug + Send + Sync {
    /// Gives loops that have lain too long to spare threads. Called every millisecond while scripts run.
    fn hand_over(&self, server: &Arc<Server>);
    /// Lets all spare threads see that the server ends.
    fn stop(&self);
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
    pub(crate) journal: Journal,
    /// 40 hexadecimal digits that no other server has.
    pub(crate) run_id: String,
    /// Milliseconds since 1970.
    pub(crate) started_ms: u64,
    pub(crate) stopping: AtomicBool,
    /// One for each event loop.
    pub(crate) mailboxes: Arc<[Mailbox]>,
    pub(crate) scripts: <Redis as Parts>::Scripts,
    /// How many loops have clients.
    pub(crate) awake: Awake,
    /// Loops whose threads run something long, and how many do.
    pub(crate) aside: <Redis as Parts>::Loops,
    pub(crate) away: Away,
    /// Wakes the thread that follows changes of settings and users.
    pub(crate) follower_waker: Waker,
    /// What clients have asked all servers.
    pub(crate) inquiries: Inquiries,
    /// Who sees all commands.
    pub(crate) monitors: Monitors,
    /// What its clients take.
    pub(crate) weights: Weights,
    /// Where their scans are.
    pub(crate) cursors: Arc<Cursors>,
    /// Until when commands are held back, in milliseconds since 1970; 0: they are not.
    pub(crate) paused_until: AtomicI64,
    /// All commands, not just those that write.
    pub(crate) pauses_all: AtomicBool,
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
