//! What the server remembers of a client between its commands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use perilune_resp::{ArgumentsBuf, Protocol};

use crate::acl::{Acl, User};
use crate::command::Command;
use crate::invalidation::{redirected, Tracking};
use crate::nodes::Nodes;
use crate::rest::{Rest, Work};
use crate::subscriptions::Topics;
use crate::watched::own::Own;
use crate::watched::Watched;
use perilune_net::clock::clock;
use perilune_net::elsewhere::{drop_elsewhere, FREED_AT_ONCE};
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
    pub(crate) failures: u32,
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
    pub(crate) rest: Option<Box<Rest>>,
    /// What it is parked on, until it is begun.
    pub(crate) aside: Option<Box<(&'static Command, ArgumentsBuf)>>,
}

/// Clients that this process has had.
static TICKETS: AtomicU64 = AtomicU64::new(0);
/// Parkings of one client, before its tickets are like those of the next one: no two clients have the same, since timers
/// know a connection by its place alone, which another one may have by then.
const TICKET_BITS: u32 = 28;

/// Why a connection waits, and for how long.
#[derive(Debug)]
pub(crate) struct Parked {
    /// Of this parking: an answer to an earlier one comes too late.
    pub(crate) ticket: u64,
    pub(crate) until: Option<Instant>,
    /// What it is told then.
    pub(crate) too_late: Vec<u8>,
    /// It ends with its client: the command has no effect that anybody else waits for.
    pub(crate) gives_up: bool,
    /// Where it waits, if that is for keys.
    pub(crate) queued: Option<Queued>,
    /// The question that it has asked all servers.
    pub(crate) asked: Option<u64>,
    /// What it tracks from then on, if the answer is where its target is.
    pub(crate) tracking: Option<Tracking>,
    /// It redirects: what it is to track it does only if the target is anywhere.
    pub(crate) redirects: bool,
    /// Not a command but all of them wait: CLIENT PAUSE.
    pub(crate) paused: bool,
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

/// A place in the queues of keys.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: i64,
    pub(crate) database: i64,
    pub(crate) keys: Vec<Vec<u8>>,
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
        (address, local_address): (String, String),
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
            failures: 0,
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
            last_ticket: TICKETS.fetch_add(1, Ordering::Relaxed) << TICKET_BITS,
            rest: None,
            aside: None,
        }
    }

    /// Who it is from now on.
    pub(crate) fn enter(&mut self, user: Arc<User>, version: u64) {
        self.authenticated = true;
        self.failures = 0;
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

    /// Whether its user may do everything, by rules that have not changed since they were looked at.
    #[inline]
    pub(crate) fn is_unlimited(&self, acl: &Acl) -> bool {
        self.acl_version == acl.version() && self.user.as_ref().is_some_and(|user| user.is_unlimited())
    }

    /// Parks the connection behind the command that runs; an answer names the ticket.
    pub(crate) fn park(&mut self) -> &mut Parked {
        self.last_ticket += 1;
        self.parked.insert(Box::new(Parked {
            ticket: self.last_ticket,
            until: None,
            too_late: Vec::new(),
            gives_up: false,
            queued: None,
            asked: None,
            tracking: None,
            redirects: false,
            paused: false,
        }))
    }

    /// Parks the connection until `work` is done, in slices.
    pub(crate) fn put_off(&mut self, work: Work) {
        self.park();
        self.rest = Some(Rest::new(work));
    }

    /// The ticket of the next parking.
    pub(crate) fn coming_ticket(&self) -> u64 {
        self.last_ticket + 1
    }

    /// Ends the parking on `ticket`, if that is what it waits on.
    pub(crate) fn unpark(&mut self, ticket: u64) -> Option<Parked> {
        if self.parked.as_ref().is_none_or(|parked| parked.ticket != ticket) {
            return None;
        }
        self.parked.take().map(|parked| *parked)
    }

    /// A client for a command that runs aside: as this one is, with what it has queued, watched and locked.
    pub(crate) fn lend(&mut self) -> Box<Client> {
        Box::new(Client {
            id: self.id,
            seat: self.seat,
            address: Arc::clone(&self.address),
            local_address: Arc::clone(&self.local_address),
            name: self.name.clone(),
            protocol: self.protocol,
            database: self.database,
            authenticated: self.authenticated,
            failures: self.failures,
            user: self.user.clone(),
            acl_version: self.acl_version,
            since: self.since,
            active: self.active,
            visit: self.visit,
            scripts: None,
            command: None,
            monitors: false,
            keeps_memory: false,
            leaves_untouched: self.leaves_untouched,
            reply_mode: ReplyMode::On,
            replies_end: usize::MAX,
            is_shown: std::mem::take(&mut self.is_shown),
            queue: self.queue.take(),
            watched: std::mem::take(&mut self.watched),
            kept: std::mem::take(&mut self.kept),
            own: std::mem::take(&mut self.own),
            topics: self.topics.clone(),
            tracking: self.tracking.take(),
            broken_redirect: self.broken_redirect,
            is_target: self.is_target,
            locked: false,
            is_local: self.is_local,
            nodes: self.nodes.take(),
            closing: false,
            held: false,
            held_since: None,
            parked: None,
            // NB: it never parks: that is for connections.
            last_ticket: 0,
            rest: None,
            aside: None,
        })
    }

    /// Takes back what was lent, as the command has left it.
    pub(crate) fn take_back(&mut self, lent: Box<Client>) {
        let lent = *lent;
        self.name = lent.name;
        self.protocol = lent.protocol;
        self.database = lent.database;
        self.authenticated = lent.authenticated;
        self.failures = lent.failures;
        self.user = lent.user;
        self.acl_version = lent.acl_version;
        self.queue = lent.queue;
        self.watched = lent.watched;
        self.kept = lent.kept;
        self.own = lent.own;
        self.topics = lent.topics;
        self.tracking = lent.tracking;
        self.nodes = lent.nodes;
        self.closing |= lent.closing;
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
