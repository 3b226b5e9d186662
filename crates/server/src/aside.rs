//! Commands that may take long: run by the thread whose client asked, while its event loop can go on. They are scripts, and
//! what has much to copy: long requests, and those that have found in the loop that they would read a long value
//! ([`perilune::Session::limit_reads`]), and begin anew here.
//!
//! Before such a command the thread leaves its loop in a slot. When the command ends within a millisecond it
//! takes the loop back: one lock each way, and nothing else. A loop that lies longer is given to a spare
//! thread; the one that has lost it answers by a letter, and is a spare itself from then on.
//!
//! Invariants
//! - A loop is with one thread, in its slot, or among those without a thread; nobody else can reach its connections.
//! - The connection is parked, so that its replies keep their order. The command has a client of its own,
//!   lent by the connection's, and a session of its own.
//! - At most 64 threads (`away`) are away from loops; beyond, such commands are refused.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Events;
use perilune::Session;
use perilune_luahost::sandbox::SCRIPT_STACK;
use perilune_resp::Replies;

use crate::context::Context;
use crate::effects::Effects;
use crate::limits::EVENTS;
use crate::mailbox::Letter;
use crate::redis::Redis;
use crate::scripts::Scripts;
use crate::server::{Parts, Server, Spares};
use crate::worker::{Aside, Done, Handed, Worker};

/// How long a loop lies in its slot.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a spare thread waits for a loop before it ends.
const BOREDOM: Duration = Duration::from_secs(10);

/// A loop in its slot.
#[derive(Debug)]
struct Left {
    worker: Box<Worker>,
    since: Instant,
    /// The connection whose command runs.
    token: usize,
}

/// Loops without a thread, and threads without a loop.
#[derive(Debug, Default)]
struct Unattended {
    loops: Vec<Left>,
    spares: usize,
}

/// The loops of a server and the threads that are not with them.
#[derive(Debug)]
pub(crate) struct Loops {
    slots: Vec<Mutex<Option<Left>>>,
    unattended: Mutex<Unattended>,
    bell: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    #[allow(clippy::vec_box, reason = "they go from hand to hand, and are large")]
    sessions: Mutex<Vec<Box<Session>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loops {
    /// One spare thread more. NB: where the system gives none, the loop waits for one that comes back.
    fn hire(&self, server: &Arc<Server>) {
        let shared = Arc::clone(server);
        let thread = thread::Builder::new().name("serve-spare".to_owned()).stack_size(SCRIPT_STACK);
        if let Ok(thread) = thread.spawn(move || {
            if let Some(worker) = shared.aside.adopt(&shared) {
                serve(worker);
            }
        }) {
            let mut threads = lock(&self.threads);
            threads.retain(|thread| !thread.is_finished());
            threads.push(thread);
        }
    }

    /// Waits for a loop that has no thread; none when the server ends, or nothing happens for long.
    fn adopt(&self, server: &Server) -> Option<Box<Worker>> {
        let mut unattended = lock(&self.unattended);
        let until = Instant::now() + BOREDOM;
        loop {
            if let Some(mut left) = unattended.loops.pop() {
                left.worker.flush(left.token);
                return Some(left.worker);
            }
            let rest = until.saturating_duration_since(Instant::now());
            if server.is_stopping() || rest.is_zero() {
                return None;
            }
            unattended.spares += 1;
            unattended = self.bell.wait_timeout(unattended, rest).unwrap_or_else(PoisonError::into_inner).0;
            unattended.spares -= 1;
        }
    }

    /// Waits for all spare threads, when the server ends.
    pub(crate) fn join(&self) {
        loop {
            let Some(thread) = lock(&self.threads).pop() else { return };
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Parts for Redis {
    type Scripts = Scripts;
    type Loops = Loops;
}

impl Spares for Loops {
    fn new(count: usize) -> Loops {
        Loops {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            unattended: Mutex::default(),
            bell: Condvar::new(),
            threads: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    fn hand_over(&self, server: &Arc<Server>) {
        for slot in &self.slots {
            let left = {
                let mut slot = lock(slot);
                if slot.as_ref().is_none_or(|left| left.since.elapsed() < PATIENCE) {
                    continue;
                }
                slot.take()
            };
            let Some(left) = left else { continue };
            let mut unattended = lock(&self.unattended);
            unattended.loops.push(left);
            if unattended.loops.len() > unattended.spares {
                drop(unattended);
                self.hire(server);
            } else {
                self.bell.notify_one();
            }
        }
    }

    fn stop(&self) {
        let _orphans = lock(&self.unattended);
        self.bell.notify_all();
    }
}

/// Ends the process if the thread that holds it panics. A server without one of its threads would live on, keep its clients
/// waiting, and let no other take its place; as it is, nothing more is lost than when it is killed.
pub(crate) struct Vital;

impl Drop for Vital {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// What a thread with a loop does until the server ends or it has lost its loop and is not needed any more.
pub(crate) fn serve(mut worker: Box<Worker>) {
    let _vital = Vital;
    let server = worker.server();
    let mut events = Events::with_capacity(EVENTS);
    while worker.round(&mut events) {
        while let Some(aside) = worker.next_aside() {
            match leave(&server, worker, aside) {
                Some(back) => worker = back,
                None => match server.aside.adopt(&server) {
                    Some(other) => {
                        worker = other;
                        break;
                    }
                    None => return,
                },
            }
        }
    }
    worker.finish();
}

/// Runs a command with the loop in its slot; the loop, if it is still there afterwards.
fn leave(server: &Arc<Server>, worker: Box<Worker>, aside: Aside) -> Option<Box<Worker>> {
    let (loops, thread, token) = (&server.aside, worker.thread(), aside.seat.token);
    let slot = &loops.slots[thread];
    *lock(slot) = Some(Left { worker, since: Instant::now(), token });
    server.away.leave();
    // Who looks after scripts gives loops away.
    server.scripts.wake();
    let done = run(server, aside);
    server.away.come_back();
    let left = lock(slot).take();
    match left {
        Some(mut left) => {
            // NB: it may have lost its loop, and found it again with another connection's command begun.
            if left.token != done.seat.token {
                left.worker.flush(left.token);
            }
            left.worker.finish_aside(done);
            Some(left.worker)
        }
        None => {
            server.mailboxes[thread].post(Letter::Handed(Handed::Done(Box::new(done))));
            None
        }
    }
}

fn run(server: &Arc<Server>, aside: Aside) -> Done {
    let Aside { command, arguments, seat, ticket, mut client } = aside;
    let (mut reply, mut effects) = (Vec::new(), Effects::default());
    let protocol = client.protocol;
    let session =
        lock(&server.aside.sessions).pop().map_or_else(|| server.database.session().map(Box::new), Ok);
    match session {
        _ if server.away.is_overfull() => {
            let text = "BUSY too many commands run for long: try again, or stop scripts with SCRIPT KILL";
            Replies::new(&mut reply, protocol).error(text);
        }
        Err(error) => Replies::new(&mut reply, protocol).error(&format!("ERR {error}")),
        Ok(mut session) => {
            effects.begin(server);
            let ran = catch_unwind(AssertUnwindSafe(|| {
                let mut context = Context {
                    server,
                    session: &mut session,
                    client: &mut client,
                    effects: &mut effects,
                    may_park: false,
                };
                let mut replies = Replies::new(&mut reply, protocol).up_to(context.client.replies_end);
                context.client.begin_visit();
                context.run(command, arguments.as_arguments(), &mut replies);
            }));
            // NB: after the commit, so that whoever gets a lock next sees what was written under it. The session of a
            // command that panicked is dropped, and they with it.
            if ran.is_ok() && std::mem::take(&mut client.locked) {
                let owner = session.lock_owner();
                // Those that cannot be released go with the session.
                let _ = session.unlock_all(owner);
            }
            if ran.is_ok() {
                session.shrink();
                lock(&server.aside.sessions).push(session);
            } else {
                reply = b"-ERR the server has failed in this command: please report it\r\n".to_vec();
                effects = Effects::default();
            }
        }
    }
    Done { seat, ticket, client, reply, effects }
}
