//! How long a session waits for another one that holds a page which it needs, and the error after that.
//!
//! A process may be stopped anywhere (SIGSTOP, a debugger, a paused container), also with pages latched. Nobody can
//! go on for it, since it may come back at any instruction. So whoever needs such a page waits up to its own limit,
//! and the error names the process that it waited for.
//!
//! Deliberately absent: the waiting itself (`repair::patience`).

use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use perilune_shm::stopped::is_stopped;
use perilune_store::{Error, Holder};

use super::Seat;
use crate::image::layout::{Owner, ProcessState};
use crate::image::Image;
use crate::limits::SESSIONS;

/// Who is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// Writers that change what is being read: a different one each time.
    Anybody,
    /// The session with this number, which holds a latch, a step or the lease.
    Session(u16),
    /// A process at work for all, as long as that takes; None: one that has just ended.
    Worker(Option<Owner>),
}

/// When a wait ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// How long one wait may take.
    pub(crate) wait: Duration,
    /// When all waits end.
    pub(crate) until: Option<Instant>,
    /// If `until` is the end of a transaction: how long that may take in all.
    pub(crate) transaction: Option<Duration>,
    /// Whether the session may take exclusive mode.
    pub(crate) may_be_alone: bool,
}

impl Limit {
    /// A limit of one wait.
    pub(crate) fn of(wait: Duration) -> Limit {
        Limit { wait, until: None, transaction: None, may_be_alone: true }
    }

    /// This limit, and no wait lasts beyond the time `until`.
    pub(crate) fn until(self, until: Option<Instant>) -> Limit {
        match until {
            // NB: from here on the end is the caller's, not that of a transaction.
            Some(_) if self.until.is_none_or(|own| until < Some(own)) => {
                Limit { until, transaction: None, ..self }
            }
            _ => self,
        }
    }

    /// When a wait that began at `since` ends; None: never.
    pub(crate) fn end(&self, since: Instant) -> Option<Instant> {
        since.checked_add(self.wait).into_iter().chain(self.until).min()
    }

    /// Whether a wait for `whom` that began at `since` is over. Who works for all is waited for as long as he works.
    pub(crate) fn is_over(&self, image: &Image, whom: Whom, since: Instant) -> bool {
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return true;
        }
        let waited = self.end(since).is_some_and(|end| now >= end);
        waited && (!matches!(whom, Whom::Worker(_)) || holder(image, whom).is_some_and(|it| it.stopped))
    }

    /// What is answered then.
    #[cold]
    pub(crate) fn error(&self, image: &Image, whom: Whom, since: Instant) -> Error {
        let holder = holder(image, whom);
        match self.transaction {
            Some(limit) if self.until.is_some_and(|until| Instant::now() >= until) => {
                Error::TransactionTimeout { limit, holder }
            }
            _ => Error::Busy { waited: since.elapsed(), holder },
        }
    }
}

/// The process that is waited for, if it can be told.
fn holder(image: &Image, whom: Whom) -> Option<Holder> {
    let owner = match whom {
        Whom::Anybody => return None,
        Whom::Worker(owner) => owner?,
        Whom::Session(id) if (1..=SESSIONS).contains(&id.into()) => {
            let owner = Owner::from_word(Seat::owner_word_of(image, id).load(Acquire))?;
            match image.process(owner.slot.into()) {
                // What a dead process holds is in the hands of who repairs it.
                ProcessState::Repairing { by, .. } => by,
                _ => owner,
            }
        }
        Whom::Session(_) => return None,
    };
    let pid = image.pid(owner.slot.into());
    Some(Holder { pid, stopped: is_stopped(pid) })
}
