//! Scripts: the sandboxes of this server, what is compiled, who looks after what runs.
//!
//! Invariants
//! - A sandbox is used by one run at a time. There are as many as have ever run at once, and a new one
//!   takes the place of one that is worn.
//! - Scripts lie in the tree (`store`), and are those of all servers of the database.
//!
//! Deliberately absent: the commands, which are in `commands::scripts`.

pub(crate) mod calls;
pub(crate) mod header;
pub(crate) mod libraries;
pub(crate) mod loop_pause;
mod redis;
mod shipped;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod watch;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use perilune_sandbox::Pool;

use self::loop_pause::LoopPause;
use self::state::State;
use self::watch::Watched;
use crate::rules::Rules;
use crate::server::{Sandboxes, Server};
use crate::settings::Name;

/// What the threads of a server share for scripts.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    #[allow(clippy::vec_box, reason = "they go from hand to hand, and are large")]
    free: Mutex<Vec<Box<State>>>,
    #[allow(clippy::vec_box, reason = "they go from hand to hand, and are large")]
    worn: Mutex<Vec<Box<State>>>,
    watched: Mutex<Vec<Arc<Watched>>>,
    /// The thread that looks after them is awake, or about to be.
    awake: AtomicBool,
    watcher: OnceLock<Thread>,
    pub(crate) rest: LoopPause,
    /// The memory that all sandboxes have together.
    pool: Pool,
}

/// A sandbox on loan.
#[derive(Debug)]
pub(crate) struct Loan<'s> {
    scripts: &'s Scripts,
    state: Option<Box<State>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting that is a number of bytes.
fn bytes(rules: &Rules, name: Name) -> usize {
    usize::try_from(rules.live().number(name)).unwrap_or(usize::MAX)
}

impl Scripts {
    /// A sandbox that nobody else uses meanwhile; none if there is no memory for one more.
    pub(crate) fn take(&self, server: &Server) -> Option<Loan<'_>> {
        let total = bytes(server.rules(), Name::ScriptMemoryTotal);
        self.pool.limit(total);
        if self.pool.used() > total / 2 {
            self.drop_idle();
        }
        let free = lock(&self.free).pop();
        let state = free.or_else(|| self.make(server))?;
        Some(self.lend(server, state))
    }

    /// A sandbox of those that are there, which nobody else uses meanwhile.
    pub(crate) fn take_made(&self, server: &Server) -> Option<Loan<'_>> {
        let state = lock(&self.free).pop()?;
        Some(self.lend(server, state))
    }

    fn lend(&self, server: &Server, mut state: Box<State>) -> Loan<'_> {
        state.limit(bytes(server.rules(), Name::ScriptMemoryLimit));
        Loan { scripts: self, state: Some(state) }
    }

    /// What sandboxes keep that nobody uses is for those that run, where memory is short.
    #[cold]
    fn drop_idle(&self) {
        let idle = std::mem::take(&mut *lock(&self.free));
        lock(&self.watched).retain(|watched| !idle.iter().any(|state| Arc::ptr_eq(&state.watched, watched)));
    }

    fn make(&self, server: &Server) -> Option<Box<State>> {
        let state = State::new(&self.pool, bytes(server.rules(), Name::ScriptMemoryLimit))?;
        lock(&self.watched).push(Arc::clone(&state.watched));
        Some(Box::new(state))
    }

    /// Makes one for each thread, ahead of time.
    fn prepare(&self, server: &Server) {
        let _ = self.watcher.set(thread::current());
        let made: Vec<_> = server.crew().mailboxes().iter().filter_map(|_| self.make(server)).collect();
        lock(&self.free).extend(made);
    }

    fn watched(&self) -> Vec<Arc<Watched>> {
        lock(&self.watched).clone()
    }

    /// Sees to it that the run that has just begun is looked after.
    pub(crate) fn wake(&self) {
        // Pairs with `sleep`: either this sees that the thread sleeps, or the thread sees the run.
        fence(Ordering::SeqCst);
        if !self.awake.load(Ordering::Relaxed) && !self.awake.swap(true, Ordering::AcqRel) {
            if let Some(watcher) = self.watcher.get() {
                watcher.unpark();
            }
        }
    }

    /// The thread that looks after scripts has nothing to do until one begins; whether one has.
    fn sleep(&self, has_loops: impl Fn() -> bool) -> bool {
        self.awake.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_loops() && self.watched().iter().all(|watched| watched.is_idle()) {
            thread::park_timeout(Duration::from_secs(1));
        }
        self.awake.swap(true, Ordering::AcqRel)
    }

    fn empty_trash(&self) {
        let worn = std::mem::take(&mut *lock(&self.worn));
        if worn.is_empty() {
            return;
        }
        lock(&self.watched).retain(|watched| !worn.iter().any(|state| Arc::ptr_eq(&state.watched, watched)));
    }
}

impl Sandboxes for Scripts {
    fn stop(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }
}

impl Deref for Loan<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("it is there until the loan ends")
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("it is there until the loan ends")
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            let to = if state.is_worn() { &self.scripts.worn } else { &self.scripts.free };
            lock(to).push(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread looked around each millisecond for 200 of them after each second of sleep, on a server without scripts.
    #[test]
    fn who_looks_after_scripts_is_woken_by_them_only() {
        let scripts = Scripts::default();
        assert!(!scripts.sleep(|| false), "nothing has begun");
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let _ = scripts.watcher.set(thread::current());
                while !scripts.sleep(|| false) {}
            });
            // It may be about to sleep; a run that begins wakes it from that, too.
            while !sleeper.is_finished() {
                scripts.wake();
                thread::yield_now();
            }
        });
    }
}
