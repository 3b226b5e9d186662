//! What all threads of a server share.
//!
//! It stands in four parts, each of which is given to whom it concerns: what the operator has set ([`Rules`]), what the event
//! loops share ([`Crew`]), what is counted ([`Measures`]), and what clients have to do with each other ([`Commons`]). Scripts
//! and loops stand above: what is kept of them here is of types that they lend ([`Parts`]).
//!
//! Invariant: no part knows another one, or the server.
//!
//! Deliberately absent: what one loop has for itself, which is its `loop_state`.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use mio::Waker;
use perilune::{Database, Limits};

use crate::commons::Commons;
use crate::mailbox::Letter;
use crate::measures::Measures;
use crate::redis::Redis;
use crate::rules::Rules;
use crate::settings::Name;
use perilune_net::crew::Crew;
use perilune_net::journal::{Journal, Level};

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
    pub(crate) rules: Rules,
    pub(crate) database: Database,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) journal: Journal,
    pub(crate) follower_waker: Waker,
}

/// What the threads of a server share.
#[derive(Debug)]
pub(crate) struct Server {
    /// Unique over all servers of the database, and over time; 0: it takes no writes.
    number: i64,
    database: Database,
    limits: Limits,
    rules: Rules,
    crew: Crew<Letter>,
    measures: Measures,
    commons: Commons,
    scripts: <Redis as Parts>::Scripts,
    aside: <Redis as Parts>::Loops,
    tls: Option<Arc<rustls::ServerConfig>>,
    journal: Journal,
    /// Whether this server removes expired keys, when it is its turn.
    expires: AtomicBool,
    /// Wakes the thread that follows changes of settings and users.
    follower_waker: Waker,
}

impl Server {
    /// A server without clients, whose threads are yet to be started.
    pub(crate) fn new(beginning: Beginning) -> Server {
        let Beginning { number, rules, database, tls, journal, follower_waker } = beginning;
        let loops = rules.settings().threads.max(1);
        Server {
            number,
            limits: database.limits().clone(),
            crew: Crew::new(loops, rules.settings().number(Name::ThreadsAwake) == 1),
            measures: Measures::new(loops),
            commons: Commons::new(&database),
            scripts: <Redis as Parts>::Scripts::default(),
            aside: <Redis as Parts>::Loops::new(loops),
            expires: AtomicBool::new(true),
            database,
            rules,
            tls,
            journal,
            follower_waker,
        }
    }

    /// Unique over all servers of the database, and over time; 0: it takes no writes.
    #[inline]
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Of the database.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What its operator has set.
    #[inline]
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What its event loops share.
    #[inline]
    pub(crate) fn crew(&self) -> &Crew<Letter> {
        &self.crew
    }

    /// What is counted and measured.
    #[inline]
    pub(crate) fn measures(&self) -> &Measures {
        &self.measures
    }

    /// What its clients have to do with each other.
    #[inline]
    pub(crate) fn commons(&self) -> &Commons {
        &self.commons
    }

    /// What its threads share for scripts.
    #[inline]
    pub(crate) fn scripts(&self) -> &<Redis as Parts>::Scripts {
        &self.scripts
    }

    /// Loops whose threads run something long.
    pub(crate) fn aside(&self) -> &<Redis as Parts>::Loops {
        &self.aside
    }

    /// What TLS needs, if `tls-port` is set.
    pub(crate) fn tls(&self) -> Option<&Arc<rustls::ServerConfig>> {
        self.tls.as_ref()
    }

    /// Whether this server removes expired keys, when it is its turn.
    pub(crate) fn expires(&self) -> &AtomicBool {
        &self.expires
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
        self.rules.live().number(Name::LogLevel) <= level as i64
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
        let least = self.rules.live().number(Name::LatencyMonitorThreshold);
        if least > 0 && took.as_millis() as i64 >= least {
            self.measures.statistics().delayed(event, took);
        }
    }

    /// Holds commands back for no less than so many milliseconds from now on; 0 ends that.
    pub(crate) fn pause(&self, time: u64, all: bool) {
        self.commons.pause().begin(time, all);
        if time == 0 {
            self.crew.mailboxes().iter().for_each(|mailbox| mailbox.post(Letter::Resume));
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.crew.is_stopping()
    }

    /// Asks all threads to finish what they are at.
    pub(crate) fn stop(&self) {
        self.crew.stop();
        self.scripts.stop();
        self.aside.stop();
        // It knows no more than that it ends.
        let _ = self.follower_waker.wake();
    }
}
