//! Requests that may take long, run by the thread whose client asked, while its event loop goes on with another thread.
//!
//! Most requests of a server take microseconds and run in their loop. Some may take seconds, and nobody knows before which:
//! a thread for each would cost the short ones two wake-ups. So the thread that has such a request leaves its loop in a slot
//! and runs it. If it ends within a millisecond the thread takes the loop back: one lock each way, and nothing else. A loop
//! that lies longer is given to a spare thread; the one that has lost it answers by a letter, and is a spare itself from then
//! on.
//!
//! ```text
//! thread A   round - leave(loop) --------------- run the request --------- post the answer - wait for a loop
//! slot                    [loop]
//! watcher                        hand_over: it has lain for a millisecond
//! thread B                                       adopt(loop) - round - round - letter: the answer - ...
//! ```
//!
//! Invariants
//! - A loop is with one thread, in its slot, or among those without a thread; nobody else can reach its connections.
//! - The connection waits, so that its replies keep their order.
//! - No more threads are away from their loops than [`Away`](crate::away::Away) allows: who runs a request looks.
//!
//! Deliberately absent: what a request works with, which is the service's, and the thread that calls [`Slots::hand_over`].

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Events;

use crate::crew::Crew;
use crate::event_loop::{EventLoop, Service};
use crate::limits::EVENTS;

/// How long a loop lies in its slot.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a spare thread waits for a loop before it ends.
const BOREDOM: Duration = Duration::from_secs(10);

/// A request to be run without its loop.
#[derive(Debug)]
pub struct Task<W> {
    /// Its connection, which waits.
    pub token: usize,
    /// What is to be done.
    pub work: W,
}

/// A service whose requests may run aside.
pub trait Aside: Service {
    /// What its threads share.
    type Shared: Send + Sync + 'static;
    /// What such a request is.
    type Work;
    /// What has come of it.
    type Done;

    /// Bytes of stack of a thread that runs them.
    const STACK: usize;

    /// What its threads share.
    fn shared(&self) -> &Arc<Self::Shared>;
    /// Where its loops lie meanwhile.
    fn slots(shared: &Self::Shared) -> &Slots<Self>;
    /// Whose loops they are.
    fn crew_of(shared: &Self::Shared) -> &Crew<Self::Letter>;

    /// The next request of a loop that is to run aside.
    fn next_task(event_loop: &mut EventLoop<Self>) -> Option<Task<Self::Work>>;
    /// A loop lies in its slot: from now on [`Slots::hand_over`] is called each millisecond.
    fn leaves(shared: &Self::Shared);
    /// Runs a request. It must not panic.
    fn run(shared: &Arc<Self::Shared>, work: Self::Work) -> Self::Done;
    /// Answers it.
    fn answer(event_loop: &mut EventLoop<Self>, done: Self::Done);
    /// What tells a loop that is elsewhere by now to answer it.
    fn letter_of(done: Self::Done) -> Self::Letter;
    /// A loop ends, for good.
    fn finish(event_loop: EventLoop<Self>);
}

/// A loop in its slot.
#[derive(Debug)]
struct Left<S: Service> {
    event_loop: Box<EventLoop<S>>,
    since: Instant,
    /// The connection whose request runs.
    token: usize,
}

/// Loops without a thread, and threads without a loop.
#[derive(Debug)]
struct Unattended<S: Service> {
    loops: Vec<Left<S>>,
    spares: usize,
}

/// The loops of a server that lie, and the threads that are not with one.
#[derive(Debug)]
pub struct Slots<S: Service> {
    slots: Vec<Mutex<Option<Left<S>>>>,
    unattended: Mutex<Unattended<S>>,
    bell: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Aside> Slots<S> {
    /// One for each loop.
    #[must_use]
    pub fn new(loops: usize) -> Slots<S> {
        Slots {
            slots: (0..loops).map(|_| Mutex::default()).collect(),
            unattended: Mutex::new(Unattended { loops: Vec::new(), spares: 0 }),
            bell: Condvar::new(),
            threads: Mutex::default(),
        }
    }

    /// Gives loops that have lain too long to spare threads. Called every millisecond while requests run aside.
    pub fn hand_over(&self, shared: &Arc<S::Shared>) {
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
                self.hire(shared);
            } else {
                self.bell.notify_one();
            }
        }
    }

    /// Lets all spare threads see that the server ends.
    pub fn stop(&self) {
        let _unattended = lock(&self.unattended);
        self.bell.notify_all();
    }

    /// Waits for all spare threads, when the server ends.
    pub fn join(&self) {
        loop {
            let Some(thread) = lock(&self.threads).pop() else { return };
            // A thread that panicked has ended the process.
            let _ = thread.join();
        }
    }

    /// One spare thread more. NB: where the system gives none, the loop waits for one that comes back.
    fn hire(&self, shared: &Arc<S::Shared>) {
        let theirs = Arc::clone(shared);
        let thread = thread::Builder::new().name("serve-spare".to_owned()).stack_size(S::STACK);
        if let Ok(thread) = thread.spawn(move || {
            if let Some(event_loop) = S::slots(&theirs).adopt(S::crew_of(&theirs)) {
                serve(event_loop);
            }
        }) {
            let mut threads = lock(&self.threads);
            threads.retain(|thread| !thread.is_finished());
            threads.push(thread);
        }
    }

    /// Waits for a loop that has no thread; none when the server ends, or nothing happens for long.
    fn adopt(&self, crew: &Crew<S::Letter>) -> Option<Box<EventLoop<S>>> {
        let mut unattended = lock(&self.unattended);
        let until = Instant::now() + BOREDOM;
        loop {
            if let Some(mut left) = unattended.loops.pop() {
                left.event_loop.flush(left.token);
                return Some(left.event_loop);
            }
            let rest = until.saturating_duration_since(Instant::now());
            if crew.is_stopping() || rest.is_zero() {
                return None;
            }
            unattended.spares += 1;
            unattended = self.bell.wait_timeout(unattended, rest).unwrap_or_else(PoisonError::into_inner).0;
            unattended.spares -= 1;
        }
    }
}

/// Ends the process if the thread that holds it panics. A server without one of its threads would live on, keep its clients
/// waiting, and let no other take its place; as it is, nothing more is lost than when it is killed.
#[derive(Debug)]
pub struct Vital;

impl Drop for Vital {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// What a thread with a loop does until the server ends or it has lost its loop and is not needed any more.
pub fn serve<S: Aside>(mut event_loop: Box<EventLoop<S>>) {
    let _vital = Vital;
    let shared = Arc::clone(event_loop.service.shared());
    let mut events = Events::with_capacity(EVENTS);
    while event_loop.round(&mut events) {
        while let Some(task) = S::next_task(&mut event_loop) {
            match leave(&shared, event_loop, task) {
                Some(back) => event_loop = back,
                None => match S::slots(&shared).adopt(S::crew_of(&shared)) {
                    Some(other) => {
                        event_loop = other;
                        break;
                    }
                    None => return,
                },
            }
        }
    }
    S::finish(*event_loop);
}

/// Runs a request with the loop in its slot; the loop, if it is still there afterwards.
fn leave<S: Aside>(
    shared: &Arc<S::Shared>,
    event_loop: Box<EventLoop<S>>,
    task: Task<S::Work>,
) -> Option<Box<EventLoop<S>>> {
    let (crew, thread, token) = (S::crew_of(shared), event_loop.thread(), task.token);
    let slot = &S::slots(shared).slots[thread];
    *lock(slot) = Some(Left { event_loop, since: Instant::now(), token });
    crew.away().leave();
    S::leaves(shared);
    let done = S::run(shared, task.work);
    crew.away().come_back();
    let left = lock(slot).take();
    match left {
        Some(mut left) => {
            // NB: it may have lost its loop, and found it again with another connection's request begun.
            if left.token != token {
                left.event_loop.flush(left.token);
            }
            S::answer(&mut left.event_loop, done);
            Some(left.event_loop)
        }
        None => {
            crew.mailboxes()[thread].post(S::letter_of(done));
            None
        }
    }
}
