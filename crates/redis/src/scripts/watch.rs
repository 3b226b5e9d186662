//! The thread that stops scripts: those that run for too long, and those that SCRIPT KILL and FUNCTION KILL mean.
//!
//! It sleeps while nothing runs. A script that runs for long is announced in the tree, `^redis("busy",n)`, with
//! a lock on that node, so that such a command finds it at every server, and none that died with its server. What
//! FUNCTION STATS says of a function lies at `^redis("busy",n,"run")`.
//!
//! Invariants
//! - A run is stopped by its number, and so is why: the next one of the same sandbox is never meant.
//! - Starting and ending the run of a script costs two stores and no lock; that of a function a lock that nobody else has.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use perilune::{node, Cursor, LockMode, Node, Session, ValueRef};
use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Progress, RequestParser};
use perilune_sandbox::Stopper;

use crate::limits::{SHOWN_ARGUMENTS, SHOWN_BYTES};
use crate::server::{Server, Spares as _};
use crate::settings::Name;
use perilune_net::clock::clock;

/// Why a run was stopped.
pub(crate) const TIME: u8 = 1;
pub(crate) const KILLED: u8 = 2;
pub(crate) const SHUTDOWN: u8 = 3;
/// It holds an event loop up, and runs again aside.
const TURN: u8 = 4;

/// How long a script may run in an event loop.
pub(crate) const IN_PLACE: Duration = Duration::from_millis(1);
/// How often the thread looks while scripts run.
const TICK: Duration = Duration::from_millis(1);
/// A run is announced after this time.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(20);
/// Ticks without a script after which the thread sleeps.
const IDLE_TICKS: u32 = 200;

/// What runs: SCRIPT KILL and FUNCTION KILL each stop their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Script,
    Function,
}

impl Kind {
    /// As a run is announced in the tree.
    fn name(self) -> &'static str {
        match self {
            Kind::Script => "script",
            Kind::Function => "function",
        }
    }
}

/// What is known of a sandbox's run.
#[derive(Debug)]
pub(crate) struct Watched {
    stopper: Stopper,
    /// Of the run under way; 0: none.
    number: AtomicU64,
    last: AtomicU64,
    /// Microseconds since the server started.
    since: AtomicU64,
    /// Why which run was stopped: its number, and a byte.
    why: AtomicU64,
    is_function: AtomicBool,
    /// It runs in an event loop.
    in_place: AtomicBool,
    /// Milliseconds that it may take, besides what scripts may; 0: any.
    limit: AtomicU64,
    /// Of the last function that it ran: its name, and the command, as far as it is shown.
    function: Mutex<ArgumentsBuf>,
}

impl Watched {
    pub(crate) fn new(stopper: Stopper) -> Watched {
        Watched {
            stopper,
            number: AtomicU64::new(0),
            last: AtomicU64::new(0),
            since: AtomicU64::new(0),
            why: AtomicU64::new(0),
            is_function: AtomicBool::new(false),
            in_place: AtomicBool::new(false),
            limit: AtomicU64::new(0),
            function: Mutex::default(),
        }
    }

    /// A run of a function begins, by this command; its number.
    pub(crate) fn begin_function(&self, started: Instant, name: &str, command: Arguments<'_>) -> u64 {
        {
            let mut function = self.function.lock().unwrap_or_else(PoisonError::into_inner);
            function.clear();
            function.push(name.as_bytes());
            for argument in command.iter().take(SHOWN_ARGUMENTS) {
                function.push(&argument[..argument.len().min(SHOWN_BYTES)]);
            }
        }
        self.begin(started, Kind::Function)
    }

    /// A run begins; its number.
    pub(crate) fn begin(&self, started: Instant, kind: Kind) -> u64 {
        self.begin_within(started, kind, Duration::ZERO)
    }

    /// A run of a script begins in an event loop, so long after the server's start; it is stopped when it takes long.
    pub(crate) fn begin_in_place(&self, since: Duration) -> u64 {
        self.note(since, Kind::Script, Duration::ZERO, true)
    }

    /// A run begins that has a time limit of its own; zero: none.
    pub(crate) fn begin_within(&self, started: Instant, kind: Kind, limit: Duration) -> u64 {
        self.note(started.elapsed(), kind, limit, false)
    }

    fn note(&self, since: Duration, kind: Kind, limit: Duration, in_place: bool) -> u64 {
        self.in_place.store(in_place, Ordering::Relaxed);
        self.is_function.store(kind == Kind::Function, Ordering::Relaxed);
        self.limit.store(limit.as_millis() as u64, Ordering::Relaxed);
        let number = self.last.load(Ordering::Relaxed) + 1;
        self.last.store(number, Ordering::Relaxed);
        self.since.store(since.as_micros() as u64, Ordering::Relaxed);
        // Pairs with the load of the thread that looks: it sees the time of this run.
        self.number.store(number, Ordering::Release);
        number
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        self.number.store(0, Ordering::Release);
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.is_function.load(Ordering::Relaxed) {
            Kind::Function
        } else {
            Kind::Script
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.number.load(Ordering::Acquire) == 0
    }

    /// Why the last run was stopped; 0: it was not.
    pub(crate) fn why(&self) -> u8 {
        self.why_of(self.last.load(Ordering::Relaxed))
    }

    fn why_of(&self, number: u64) -> u8 {
        let why = self.why.load(Ordering::Acquire);
        if why >> 8 == number {
            why as u8
        } else {
            0
        }
    }

    /// Stops run `number`. It is told again at the next tick if it still runs.
    fn stop(&self, number: u64, why: u8) {
        self.why.store(number << 8 | u64::from(why), Ordering::Release);
        let _ = self.stopper.stop(number);
    }
}

/// A run that others can see.
#[derive(Debug)]
struct Announced {
    watched: Arc<Watched>,
    number: u64,
    place: Node,
}

/// Looks after the scripts of `server` until it stops and none runs.
pub(crate) fn run(server: &Arc<Server>, mut session: Session) {
    let scripts = server.scripts();
    let mut announced: Vec<Announced> = Vec::new();
    let mut idle = 0;
    scripts.prepare(server);
    loop {
        scripts.empty_trash();
        server.aside().hand_over(server);
        let running: Vec<_> = scripts
            .watched()
            .into_iter()
            .filter_map(|watched| match watched.number.load(Ordering::Acquire) {
                0 => None,
                number => Some((watched, number)),
            })
            .collect();
        announced.retain(|run| {
            let runs = run.watched.number.load(Ordering::Acquire) == run.number;
            if !runs {
                withdraw(&mut session, &run.place);
            }
            runs
        });
        // A command that is no script may keep a thread from its loop as well.
        if running.is_empty() && !server.crew().away().has_any() {
            if server.is_stopping() {
                return;
            }
            idle += 1;
            if idle > IDLE_TICKS {
                // Woken by nothing it goes on sleeping.
                idle = if scripts.sleep(|| server.crew().away().has_any()) { 0 } else { IDLE_TICKS };
                continue;
            }
        } else {
            idle = 0;
        }
        for (watched, number) in running {
            look_at(server, &mut session, &mut announced, &watched, number);
        }
        thread::park_timeout(TICK);
    }
}

fn look_at(
    server: &Server,
    session: &mut Session,
    announced: &mut Vec<Announced>,
    watched: &Arc<Watched>,
    number: u64,
) {
    let since = Duration::from_micros(watched.since.load(Ordering::Relaxed));
    let runs = server.measures().started().elapsed().saturating_sub(since);
    if watched.in_place.load(Ordering::Relaxed) {
        if runs > IN_PLACE {
            watched.stop(number, TURN);
        }
        return;
    }
    let known = announced.iter().find(|run| run.number == number && Arc::ptr_eq(&run.watched, watched));
    let killed = match known {
        None if runs > ANNOUNCED_AFTER => {
            if let Some(place) = announce(session, watched, number, runs) {
                announced.push(Announced { watched: Arc::clone(watched), number, place });
            }
            false
        }
        None => false,
        Some(run) => is_killed(session, &run.place),
    };
    let limit = server.rules().live().number(Name::ScriptTimeLimit);
    let own = watched.limit.load(Ordering::Relaxed);
    let over =
        [limit.max(0) as u64, own].into_iter().any(|most| most > 0 && runs > Duration::from_millis(most));
    let why = match (watched.why_of(number), over, killed, server.is_stopping()) {
        (0, true, ..) => TIME,
        (0, _, true, _) => KILLED,
        (0, _, _, true) => SHUTDOWN,
        (why, ..) => why,
    };
    if why != 0 {
        watched.stop(number, why);
    }
}

/// Makes a run known to all servers, which has taken so long; where.
fn announce(session: &mut Session, watched: &Watched, run: u64, runs: Duration) -> Option<Node> {
    let number = session.increment(&node!("^redis", "busy").ok()?, 1).ok()?.as_i64()?;
    let place = node!("^redis", "busy", number).ok()?;
    if !session.lock(&place, LockMode::Exclusive, Some(Duration::ZERO)).ok()? {
        return None;
    }
    let kind = watched.kind();
    let mut record = Vec::new();
    // What is being loaded has a limit of its own, and is no function yet.
    if kind == Kind::Function && watched.limit.load(Ordering::Relaxed) == 0 {
        let mut words = ArgumentsBuf::default();
        words.push((clock() - runs.as_millis() as i64).to_string().as_bytes());
        let function = watched.function.lock().unwrap_or_else(PoisonError::into_inner);
        function.as_arguments().iter().for_each(|word| words.push(word));
        drop(function);
        words.write_request(&mut record);
    }
    // What was copied is of another run, or of none.
    if watched.number.load(Ordering::Acquire) != run {
        let _ = session.unlock(&place);
        return None;
    }
    let written = session.transaction(|session| {
        if !record.is_empty() {
            session.set(&place.child("run")?, &record[..])?;
        }
        session.set(&place, kind.name())
    });
    if written.is_err() {
        let _ = session.unlock(&place);
    }
    written.is_ok().then_some(place)
}

/// NB: what cannot be written now is found without its lock by the next SCRIPT KILL, and removed.
fn withdraw(session: &mut Session, place: &Node) {
    let _ = session.delete_tree(place);
    let _ = session.unlock(place);
}

fn is_killed(session: &mut Session, place: &Node) -> bool {
    matches!(session.get_ref(place), Ok(Some(ValueRef::Bool(true))))
}

/// What became of a wish to stop scripts or functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    /// There is nothing that runs for long.
    Nothing,
    /// There is, but of the other kind. What has been told to stop is of neither.
    Others,
    Some,
}

/// The runs that are announced, those of dead servers among them.
fn all(session: &mut Session) -> perilune::Result<Vec<Node>> {
    let mut cursor = Cursor::children(&node!("^redis", "busy")?);
    let mut places = Vec::new();
    while cursor.next(session)? {
        places.push(cursor.node()?);
    }
    Ok(places)
}

/// SCRIPT KILL, FUNCTION KILL: asks for the end of all of a kind that runs for long, anywhere in the database.
pub(crate) fn kill(session: &mut Session, kind: Kind) -> perilune::Result<Killed> {
    let mut found = Killed::Nothing;
    for place in all(session)? {
        let (is_meant, is_told) = match session.get_ref(&place)? {
            Some(ValueRef::String(text)) => (*text == *kind.name().as_bytes(), false),
            _ => (false, true),
        };
        if session.lock(&place, LockMode::Exclusive, Some(Duration::ZERO))? {
            // Nobody holds it: its server has died, or it has ended meanwhile.
            session.delete_tree(&place)?;
            session.unlock(&place)?;
        } else if is_meant {
            session.set(&place, true)?;
            found = Killed::Some;
        } else if found == Killed::Nothing && !is_told {
            found = Killed::Others;
        }
    }
    Ok(found)
}

/// A function that runs for long, somewhere in the database.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: Vec<u8>,
    pub(crate) command: ArgumentsBuf,
    pub(crate) runs_ms: i64,
}

/// The function that has run for longest; none if none runs for long.
pub(crate) fn running(session: &mut Session) -> perilune::Result<Option<Running>> {
    for place in all(session)? {
        let record = match session.get_ref(&place.child("run")?)? {
            Some(ValueRef::String(record)) => record.to_vec(),
            _ => continue,
        };
        if session.lock(&place, LockMode::Shared, Some(Duration::ZERO))? {
            // Its server has died: SCRIPT KILL removes it.
            session.unlock(&place)?;
            continue;
        }
        let mut parser = RequestParser::default();
        let Ok(Progress::Complete { .. }) = parser.parse(&record, true) else { continue };
        let words = parser.arguments(&record);
        let (Some(since), Some(name)) = (words.get(0).and_then(parse_integer), words.get(1)) else {
            continue;
        };
        let runs_ms = (clock() - since).max(0);
        return Ok(Some(Running { name: name.to_vec(), command: words.from(2).to_owned(), runs_ms }));
    }
    Ok(None)
}
