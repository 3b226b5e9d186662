//! Commands that may take long: run by the thread whose client asked, while its event loop can go on (`perilune_net::aside`).
//! They are scripts, and what has much to copy: long requests, and those that have found in the loop that they would read a
//! long value ([`perilune::Session::limit_reads`]), and begin anew here.
//!
//! Invariants
//! - The connection is parked, so that its replies keep their order. The command has a client of its own,
//!   lent by the connection's, and a session of its own.
//! - At most 64 threads (`away`) are away from loops; beyond, such commands are refused.
//! - A command that panics takes its session with it, and what it wanted done; its client is told, and nobody else notices.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perilune::{LockOwners, Serving, Session};
use perilune_resp::Replies;
use perilune_sandbox::SCRIPT_STACK;

use crate::context::Context;
use crate::effects::Effects;
use crate::execution::{Ran, Way};
use crate::loop_state::LoopState;
use crate::mailbox::Letter;
use crate::redis::Redis;
use crate::scripts::Scripts;
use crate::server::{Parts, Server, Spares};
use crate::worker::asides::{finish_aside, next_aside, Aside, Done};
use crate::worker::{self, Handed, Worker};
use perilune_net::aside::{self, Slots, Task};
use perilune_net::crew::Crew;

/// The loops of a server that lie in their slots, and sessions for what runs meanwhile.
#[derive(Debug)]
pub(crate) struct Loops {
    slots: Slots<LoopState>,
    #[allow(clippy::vec_box, reason = "they go from hand to hand, and are large")]
    sessions: Mutex<Vec<Box<Session>>>,
}

impl Loops {
    /// Waits for all spare threads, when the server ends.
    pub(crate) fn join(&self) {
        self.slots.join();
    }

    #[allow(clippy::vec_box, reason = "they go from hand to hand, and are large")]
    fn sessions(&self) -> MutexGuard<'_, Vec<Box<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts for Redis {
    type Scripts = Scripts;
    type Loops = Loops;
}

impl Spares for Loops {
    fn new(loops: usize) -> Loops {
        Loops { slots: Slots::new(loops), sessions: Mutex::default() }
    }

    fn hand_over(&self, server: &Arc<Server>) {
        self.slots.hand_over(server);
    }

    fn stop(&self) {
        self.slots.stop();
    }
}

impl aside::Aside for LoopState {
    type Shared = Server;
    type Work = Aside;
    type Done = Done;

    const STACK: usize = SCRIPT_STACK;

    fn shared(&self) -> &Arc<Server> {
        &self.server
    }

    fn slots(server: &Server) -> &Slots<LoopState> {
        &server.aside().slots
    }

    fn crew_of(server: &Server) -> &Crew<Letter> {
        server.crew()
    }

    fn next_task(worker: &mut Worker) -> Option<Task<Aside>> {
        next_aside(worker).map(|work| Task { token: work.seat.token, work })
    }

    fn leaves(server: &Server) {
        // Who looks after scripts gives loops away.
        server.scripts().wake();
    }

    fn run(server: &Arc<Server>, work: Aside) -> Done {
        run(server, work)
    }

    fn answer(worker: &mut Worker, done: Done) {
        finish_aside(worker, done);
    }

    fn letter_of(done: Done) -> Letter {
        Letter::Handed(Handed::Done(Box::new(done)))
    }

    fn finish(worker: Worker) {
        worker::finish(worker);
    }
}

fn run(server: &Arc<Server>, aside: Aside) -> Done {
    let Aside { command, arguments, seat, ticket, mut client } = aside;
    let (mut reply, mut effects) = (Vec::new(), Effects::default());
    let protocol = client.protocol;
    let kept = server.aside().sessions().pop();
    let session = kept.map_or_else(|| server.database().session().map(Box::new), Ok);
    match session {
        _ if server.crew().away().is_overfull() => {
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
                let ran = context.run(command, arguments.as_arguments(), Way::Request, &mut replies);
                assert!(matches!(ran, Ok(Ran::Done)), "nothing runs again beside a loop");
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
                server.aside().sessions().push(session);
            } else {
                reply = b"-ERR the server has failed in this command: please report it\r\n".to_vec();
                effects = Effects::default();
            }
        }
    }
    Done { seat, ticket, client, reply, effects }
}
