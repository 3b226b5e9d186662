//! What a connection has of PERILUNE.*: locks and watches that end with it; and the threads on which it waits.
//!
//! Invariant: a lock that is granted after its connection has ended is released by the thread that got it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use perilune::remote::Peer;
use perilune::{Database, Session};

use crate::limits::WAITERS;

/// What a connection has that works with nodes.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) peer: Peer,
    /// Its watches belong to this session, and its waits use it.
    pub(crate) own: Option<Arc<Mutex<Session>>>,
    pub(crate) ended: Arc<AtomicBool>,
}

impl Nodes {
    /// Its connection has ended.
    pub(crate) fn end(&mut self, session: &mut Session) {
        // NB: before the locks are released: a lock that is granted later is released by who got it.
        self.ended.store(true, Ordering::SeqCst);
        self.peer.end(session);
    }
}

/// The threads that wait for clients of a server.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// None once the server has ended.
    database: Mutex<Option<Database>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiters {
    pub(crate) fn new(database: &Database) -> Waiters {
        Waiters { database: Mutex::new(Some(database.clone())), threads: Mutex::default() }
    }

    /// Waits until nobody waits any more.
    pub(crate) fn end(&self) {
        *locked(&self.database) = None;
        for thread in std::mem::take(&mut *locked(&self.threads)) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }

    /// A session for who waits; none when the server has ended.
    pub(crate) fn session(&self) -> Option<Arc<Mutex<Session>>> {
        let session = locked(&self.database).as_ref()?.session().ok()?;
        Some(Arc::new(Mutex::new(session)))
    }

    /// Whether one more may wait.
    pub(crate) fn has_room(&self) -> bool {
        let mut threads = locked(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.len() < WAITERS
    }

    /// Starts a thread that waits.
    pub(crate) fn start(&self, wait: impl FnOnce() + Send + 'static) {
        // Where there is no thread, the wait is dropped, and its `Later` answers.
        if let Ok(thread) = thread::Builder::new().name("wait".to_owned()).stack_size(256 << 10).spawn(wait) {
            locked(&self.threads).push(thread);
        }
    }
}
