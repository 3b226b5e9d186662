//! What the server remembers of a client between its commands.
//!
//! ```text
//! client          who it is, what it has chosen, what it has queued, watched, subscribed to
//!   parked        why its connection waits, if it does
//!   lent          what a command that runs aside has of it meanwhile
//! ```
//!
//! Invariant: while its connection is parked no command of it runs but the one that it waits for.
//!
//! Deliberately absent: its socket and what it has sent, which are the connection's.

mod lent;
mod parked;

use std::sync::Arc;
use std::time::Instant;

use perilune_resp::{ArgumentsBuf, Protocol};

pub(crate) use self::parked::{Parked, Queued};
use crate::acl::{Acl, User};
use crate::command::Command;
use crate::invalidation::{redirected, Tracking};
use crate::leftovers::Leftovers;
use crate::nodes::Nodes;
use crate::subscriptions::Topics;
use crate::watched::own::Own;
use crate::watched::Watched;
use perilune_net::clock::clock;
use perilune_net::elsewhere::{drop_elsewhere, FREED_AT_ONCE};
use perilune_net::passwords::Attempts;
use perilune_net::seat::Seat;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Unique over all servers of the database.
    pub(crate) id: i64,
    /// Where it is served.
    pub(crate) seat: Seat,
    pub(crate) address: Arc<str>,
    pub(crate) local_address: Arc<str>,
    pub(crate) name: Vec<u8>,
    pub(crate) protocol: Protocol,
    /// The number given to SELECT.
    pub(crate) database: i64,
    pub(crate) authenticated: bool,
    /// Wrong passwords that it has given since it gave a right one.
    pub(crate) attempts: Attempts,
    /// Who it is, as of `acl_version`; none yet: the user `default`.
    user: Option<Arc<User>>,
    acl_version: u64,
    pub(crate) since: Instant,
    /// When its last command ended, or the visit began that the next one belongs to.
    pub(crate) active: Instant,
    /// When that visit began, in milliseconds since 1970, and how many nanoseconds its commands have taken since.
    visit: (i64, u64),
    /// The generation of scripts, if it has been read since that visit began.
    pub(crate) scripts: Option<i64>,
    /// The last command, and the word behind it if it is a container.
    pub(crate) command: Option<(&'static str, &'static str)>,
    /// It sees all commands of this server.
    pub(crate) monitors: bool,
    /// CLIENT NO-EVICT, as it is told again.
    pub(crate) keeps_memory: bool,
    /// CLIENT NO-TOUCH: its commands do not count as uses of keys.
    pub(crate) leaves_untouched: bool,
    pub(crate) reply_mode: ReplyMode,
    /// Where its replies must end in their buffer: its hard limit of client-output-buffer-limit.
    pub(crate) replies_end: usize,
    /// Monitors have been shown its command, which runs again, aside.
    pub(crate) is_shown: bool,
    /// Between MULTI and EXEC.
    pub(crate) queue: Option<Queue>,
    pub(crate) watched: Watched,
    /// What its command reads and it is to be told of, as that was when it was remembered: CLIENT TRACKING.
    pub(crate) kept: Watched,
    /// What its command may change of what it keeps, if it is not to be told of that.
    pub(crate) own: Own,
    /// What it is subscribed to, if anything.
    pub(crate) topics: Option<Arc<Topics>>,
    /// It came from this machine.
    pub(crate) is_local: bool,
    /// What it wants to be told of what it reads: CLIENT TRACKING.
    pub(crate) tracking: Option<Tracking>,
    /// The client that was to be told in its place, if that was found to have gone; else 0.
    pub(crate) broken_redirect: i64,
    /// What it has of PERILUNE.*: locks and watches, released when it ends.
    pub(crate) nodes: Option<Box<Nodes>>,
    /// Others may redirect what they are to be told to its place: it stays there.
    pub(crate) is_target: bool,
    /// A script of its command under way has taken locks.
    pub(crate) locked: bool,
    /// No further command is read, and the connection ends when its replies are sent.
    pub(crate) closing: bool,
    /// Its command has met a page that another process holds, and has done nothing: it runs again.
    pub(crate) held: bool,
    /// Since when that command has met it.
    pub(crate) held_since: Option<Instant>,
    /// A command of it is not answered yet, and no further one is run until it is.
    pub(crate) parked: Option<Box<Parked>>,
    /// Of the parking before this one.
    last_ticket: u64,
    /// What is left of the command that it is parked on.
    pub(crate) rest: Option<Box<Leftovers>>,
    /// What it is parked on, until it is begun.
    pub(crate) aside: Option<Box<(&'static Command, ArgumentsBuf)>>,
}

/// What CLIENT REPLY has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    On,
    Off,
    /// Neither this command's nor the next one's.
    SkipsNext,
    /// Not this one's.
    Skips,
}

/// Commands behind MULTI.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) commands: Vec<(&'static Command, ArgumentsBuf)>,
    pub(crate) bytes: usize,
    /// One of them may take long.
    pub(crate) long: bool,
    /// One of them could not be queued: EXEC refuses.
    pub(crate) failed: bool,
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.commands.len() > FREED_AT_ONCE {
            drop_elsewhere(std::mem::take(&mut self.commands));
        }
    }
}

impl Client {
    pub(crate) fn new(
        id: i64,
        address: String,
        local_address: String,
        is_local: bool,
        authenticated: bool,
    ) -> Client {
        let now = Instant::now();
        Client {
            id,
            seat: Seat { client: id, ..Seat::default() },
            address: address.into(),
            local_address: local_address.into(),
            name: Vec::new(),
            protocol: Protocol::Resp2,
            database: 0,
            authenticated,
            attempts: Attempts::default(),
            user: None,
            acl_version: 0,
            since: now,
            active: now,
            visit: (clock(), 0),
            scripts: None,
            command: None,
            monitors: false,
            keeps_memory: false,
            leaves_untouched: false,
            reply_mode: ReplyMode::On,
            replies_end: usize::MAX,
            is_shown: false,
            queue: None,
            watched: Watched::default(),
            kept: Watched::default(),
            own: Own::default(),
            topics: None,
            is_local,
            tracking: None,
            broken_redirect: 0,
            nodes: None,
            is_target: false,
            locked: false,
            closing: false,
            held: false,
            held_since: None,
            parked: None,
            last_ticket: parked::first_ticket(),
            rest: None,
            aside: None,
        }
    }

    /// Who it is from now on.
    pub(crate) fn enter(&mut self, user: Arc<User>, version: u64) {
        self.authenticated = true;
        self.attempts = Attempts::default();
        self.user = Some(user);
        self.acl_version = version;
    }

    pub(crate) fn user_name(&self) -> &str {
        self.user.as_ref().map_or("default", |user| &user.name)
    }

    /// Begins to run commands of this client one after another: each begins when the one before it ends.
    pub(crate) fn begin_visit(&mut self) {
        self.begin_visit_at(Instant::now(), clock());
    }

    /// Begins to run commands of this client at a time that is known by both clocks.
    #[inline]
    pub(crate) fn begin_visit_at(&mut self, now: Instant, clock: i64) {
        self.active = now;
        self.visit = (clock, 0);
        self.scripts = None;
    }

    /// The command that ran ends now; how many nanoseconds it took. The next one begins.
    #[inline]
    pub(crate) fn end_command(&mut self) -> u64 {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.active);
        let took = took.as_secs() * 1_000_000_000 + u64::from(took.subsec_nanos());
        self.active = now;
        self.pass(took);
        took
    }

    /// A command begins behind something else that took time; the same visit goes on.
    pub(crate) fn resume(&mut self) {
        self.end_command();
    }

    /// So many nanoseconds of a visit that goes on have passed.
    #[inline]
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.visit.1 += nanoseconds;
    }

    /// When the command that runs began, in milliseconds since 1970.
    #[inline]
    pub(crate) fn time(&self) -> i64 {
        let (begun, since) = self.visit;
        begun.saturating_add((since / 1_000_000) as i64)
    }

    /// Its user, with the rules of now; none if there is no such user any more.
    pub(crate) fn user(&mut self, acl: &Acl) -> Option<&User> {
        let version = acl.version();
        if self.acl_version != version {
            self.user = Some(acl.user(self.user_name())?);
            self.acl_version = version;
        }
        self.user.as_deref()
    }

    /// Its user, with the rules of now, for whoever asks later; none as in [`Client::user`].
    pub(crate) fn shared_user(&mut self, acl: &Acl) -> Option<Arc<User>> {
        self.user(acl)?;
        self.user.clone()
    }

    /// Whether its user may do everything, by rules that have not changed since they were looked at.
    #[inline]
    pub(crate) fn is_unlimited(&self, acl: &Acl) -> bool {
        self.acl_version == acl.version() && self.user.as_ref().is_some_and(|user| user.is_unlimited())
    }

    /// Whose limits of client-output-buffer-limit hold: class 2 is of those who are sent what they have not asked for, 0 of
    /// all others.
    pub(crate) fn output_class(&self) -> usize {
        if self.topics.is_some() || self.monitors {
            2
        } else {
            0
        }
    }

    /// Whether its notices were to go to a client that was found to have gone.
    pub(crate) fn has_lost_target(&self) -> bool {
        self.broken_redirect != 0 && redirected(self.tracking.as_ref()) == self.broken_redirect
    }

    /// Whether its commands compare keys inside their transactions.
    pub(crate) fn compares(&self) -> bool {
        !self.watched.is_empty() || !self.kept.is_empty() || !self.own.is_empty()
    }

    /// Whether a command of it waits to be run aside, or is; then what it has chosen is lent.
    pub(crate) fn is_away(&self) -> bool {
        self.aside.is_some() || self.parked.is_some() && self.tracking.is_none()
    }

    /// Whether nothing that it waits for or is to be told names its place.
    pub(crate) fn is_movable(&self) -> bool {
        let is_told = self.topics.is_some() || self.tracking.is_some() || self.monitors || self.is_target;
        let waits = self.parked.is_some() || self.aside.is_some() || self.locked;
        !is_told && !waits && self.kept.is_empty() && self.own.is_empty()
    }

    /// As if it had just connected, but for its number.
    ///
    /// What it was subscribed to is for the caller to end.
    pub(crate) fn reset(&mut self, authenticated: bool) -> Option<Arc<Topics>> {
        self.monitors = false;
        self.keeps_memory = false;
        self.leaves_untouched = false;
        self.reply_mode = ReplyMode::On;
        self.tracking = None;
        self.name.clear();
        self.protocol = Protocol::Resp2;
        self.database = 0;
        self.authenticated = authenticated;
        self.user = None;
        self.acl_version = 0;
        self.queue = None;
        self.watched.clear();
        self.topics.take()
    }
}
