//! What commands do besides their replies and their nodes, and what happens only if they commit.
//!
//! Invariant: nothing here has happened while the transaction is open; a level that is taken back takes
//! its effects along ([`Effects::mark`], [`Effects::rewind`]).

use crate::mailbox::Letter;

/// The effects of the commands of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// For event loops of this server, by number.
    pub(crate) letters: Vec<(usize, Letter)>,
}

/// How far the effects went at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    letters: usize,
}

impl Effects {
    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { letters: self.letters.len() }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.letters.truncate(mark.letters);
    }
}
