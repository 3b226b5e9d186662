//! What a client's command, or its end, leaves to be done in slices: entering names that it subscribes to and leaving them,
//! which takes as long as there are names. Between two slices the loop serves others (`worker::slices`).
//!
//! Invariants
//! - The client is parked meanwhile, so that its replies keep their order, and are told when they are so.
//! - While names of a connection are left, nobody else gets its token: what is published would go there.

use std::collections::VecDeque;
use std::sync::Arc;

use perilune_resp::ArgumentsBuf;

use crate::subscriptions::{Change, Topics};
use crate::topic::Topic;

/// Changes that a loop and the tree do not know of yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    changes: VecDeque<Change>,
    /// All names of these are left, behind the last one that was.
    left: VecDeque<Arc<Topics>>,
    last: Option<(Topic, Vec<u8>)>,
}

impl Pending {
    pub(crate) fn of_changes(changes: Vec<Change>) -> Pending {
        Pending { changes: changes.into(), ..Pending::default() }
    }

    /// All of `topics` end.
    pub(crate) fn leaving(topics: Arc<Topics>) -> Pending {
        Pending { left: [topics].into(), ..Pending::default() }
    }

    /// The client has gone: what it was about to enter it does not, and what it had it leaves.
    pub(crate) fn and_leaving(mut self, topics: Option<Arc<Topics>>) -> Pending {
        self.changes.retain(|(.., is_in)| !is_in);
        self.left.extend(topics);
        self
    }

    /// Whether it can be done at once.
    pub(crate) fn is_short(&self, most: usize) -> bool {
        self.changes.len() + self.left.iter().map(|topics| topics.total()).sum::<usize>() <= most
    }

    pub(crate) fn is_over(&self) -> bool {
        self.changes.is_empty() && self.left.is_empty()
    }

    /// The next ones, `most` of them at most. What topics are left when all of their names are is for the caller to drop.
    pub(crate) fn next(&mut self, most: usize) -> (Vec<Change>, Option<Arc<Topics>>) {
        if !self.changes.is_empty() {
            return (self.changes.drain(..most.min(self.changes.len())).collect(), None);
        }
        let Some(topics) = self.left.front() else { return (Vec::new(), None) };
        let names = topics.behind(self.last.as_ref(), most);
        let is_all = names.len() < most;
        self.last = names.last().cloned().filter(|_| !is_all);
        let left = is_all.then(|| self.left.pop_front()).flatten();
        (names.into_iter().map(|(topic, name)| (topic, name, false)).collect(), left)
    }
}

/// What is left to do of a command.
#[derive(Debug)]
pub(crate) enum Work {
    /// Names of SUBSCRIBE and its kin, from one on.
    Names { topic: Topic, word: String, is_in: bool, names: ArgumentsBuf, next: usize },
    /// All names of a topic: UNSUBSCRIBE and its kin without names.
    All { topic: Topic, word: String },
    /// The client is as its command has left it; the loop and the tree are not. Then comes this reply.
    Pending(Pending, Vec<u8>),
}

/// What is left to be done for a client that is parked.
#[derive(Debug)]
pub(crate) struct Leftovers {
    pub(crate) work: Work,
    /// Its loop knows.
    pub(crate) is_known: bool,
}

impl Leftovers {
    pub(crate) fn new(work: Work) -> Box<Leftovers> {
        Box::new(Leftovers { work, is_known: false })
    }

    /// What the loop and the tree do not know of yet, when the client has gone.
    pub(crate) fn into_pending(self) -> Pending {
        match self.work {
            Work::Names { .. } | Work::All { .. } => Pending::default(),
            Work::Pending(pending, _) => pending,
        }
    }
}
