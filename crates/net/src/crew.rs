//! What the event loops of a server share, whatever it serves.
//!
//! A crew is made with the server and outlives all its threads. Each loop has a number in it. By that number others reach its
//! mailbox, know whether it is awake and give it clients.
//!
//! ```
//! use perilune_net::crew::Crew;
//!
//! let crew: Crew<&str> = Crew::new(2, false);
//! crew.mailboxes()[1].post("for the second loop");
//! assert!(crew.awake().has(0) && !crew.awake().has(1));
//! assert!(!crew.ends() && crew.ends(), "the second one to end is the last");
//! ```
//!
//! Invariant: whoever asks all loops, or moves a client from one to another, holds [`Crew::order`]: so a question meets each
//! client once.
//!
//! Deliberately absent: the loops themselves. They belong to their threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::awake::Awake;
use crate::away::Away;
use crate::mailbox::Mailbox;
use crate::weights::Weights;

/// What they share; `L` is what is posted to them.
#[derive(Debug)]
pub struct Crew<L> {
    mailboxes: Arc<[Mailbox<L>]>,
    awake: Awake,
    away: Away,
    weights: Weights,
    order: Mutex<()>,
    /// Loops that have not ended.
    running: AtomicUsize,
    stopping: AtomicBool,
}

impl<L> Crew<L> {
    /// Of so many loops, all of which have clients from the start, or as many as have work.
    pub fn new(loops: usize, all_awake: bool) -> Crew<L> {
        Crew {
            mailboxes: (0..loops).map(|_| Mailbox::default()).collect(),
            awake: Awake::new(loops, all_awake),
            away: Away::default(),
            weights: Weights::default(),
            order: Mutex::new(()),
            running: AtomicUsize::new(loops),
            stopping: AtomicBool::new(false),
        }
    }

    /// One for each loop.
    #[inline]
    pub fn mailboxes(&self) -> &Arc<[Mailbox<L>]> {
        &self.mailboxes
    }

    /// How many loops have clients.
    #[inline]
    pub fn awake(&self) -> &Awake {
        &self.awake
    }

    /// How many threads are away from their loops.
    #[inline]
    pub fn away(&self) -> &Away {
        &self.away
    }

    /// What clients take.
    #[inline]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// While this is held, nobody else sends questions to all loops, or clients from one to another.
    pub fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A loop has ended; whether it was the last one.
    pub fn ends(&self) -> bool {
        self.running.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether all loops are to end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Has all loops end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }
}
