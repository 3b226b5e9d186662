//! An open transaction: its levels, and the reads that must still hold when it commits.
//!
//! Invariants
//! - A read that a rolled-back level made stays: what the body did next may rest on it.
//! - Once a read no longer holds the transaction is doomed, even if the old answer comes back.

use std::collections::BTreeMap;

use perilune_store::{Error, LockOwner, Presence, Result, TransactionOptions};

use crate::fault::Fault;
use crate::overlay::Overlay;
use crate::query::{Answer, Query};
use crate::state::State;

/// What a level adds to its parent, if it is committed.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) overlay: Overlay,
    /// Messages to post: channel and body, in order.
    pub(crate) posts: Vec<(Vec<u8>, Vec<u8>)>,
    /// Messages taken away: channel and number.
    pub(crate) taken: Vec<(Vec<u8>, u64)>,
    /// Locks to release if this level is rolled back. Not copied from the parent.
    pub(crate) locks: Vec<(LockOwner, Vec<u8>)>,
}

#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) options: TransactionOptions,
    pub(crate) levels: Vec<Level>,
    reads: BTreeMap<Query, Answer>,
    /// The version of the state at which all reads held.
    version: u64,
    doomed: bool,
}

impl Transaction {
    pub(crate) fn new(options: TransactionOptions, version: u64) -> Self {
        Transaction {
            options,
            levels: vec![Level::default()],
            reads: BTreeMap::new(),
            version,
            doomed: false,
        }
    }

    pub(crate) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("an open transaction has a level")
    }

    pub(crate) fn begin_level(&mut self) {
        let parent = self.level();
        let child = Level {
            overlay: parent.overlay.clone(),
            posts: parent.posts.clone(),
            taken: parent.taken.clone(),
            locks: Vec::new(),
        };
        self.levels.push(child);
    }

    /// Merges the innermost level into its parent.
    pub(crate) fn commit_level(&mut self) {
        let child = self.levels.pop().expect("an open transaction has a level");
        let parent = self.level();
        parent.overlay = child.overlay;
        parent.posts = child.posts;
        parent.taken = child.taken;
        parent.locks.extend(child.locks);
    }

    /// Forgets one lock: it was released before its level ended.
    pub(crate) fn forget_lock(&mut self, owner: LockOwner, name: &[u8]) {
        for level in self.levels.iter_mut().rev() {
            if let Some(at) = level.locks.iter().rposition(|(o, n)| *o == owner && n == name) {
                level.locks.remove(at);
                return;
            }
        }
    }

    /// The level to write in.
    pub(crate) fn writable(&mut self) -> Result<&mut Level> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        Ok(self.level())
    }

    /// Checks that all reads would be answered the same now.
    pub(crate) fn check(&mut self, state: &State) -> Result<()> {
        if self.version != state.version && !self.doomed {
            self.doomed = self.reads.iter().any(|(query, answer)| query.run(state) != *answer);
            self.version = state.version;
        }
        if self.doomed {
            return Err(Error::Conflict);
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, state: &State, query: Query) -> Result<Answer> {
        if state.fault != Some(Fault::BlindReads) {
            self.check(state)?;
        }
        let answer = query.run(state);
        if state.fault != Some(Fault::MissedPhantoms) || matches!(query, Query::Value(_)) {
            self.reads.insert(query, answer.clone());
        }
        Ok(answer)
    }

    pub(crate) fn get(&mut self, state: &State, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.level().overlay.decides(key) {
            return Ok(value.cloned());
        }
        Ok(self.read(state, Query::Value(key.to_vec()))?.map(|(_, value)| value))
    }

    pub(crate) fn presence(&mut self, state: &State, key: &[u8]) -> Result<Presence> {
        let value = self.get(state, key)?.is_some();
        let descendants = if self.level().overlay.touches(key) {
            self.next(state, key, false, false)?.is_some_and(|(next, _)| next.starts_with(key))
        } else {
            self.read(state, Query::Descendants(key.to_vec()))?.is_some()
        };
        Ok(Presence { value, descendants })
    }

    /// The first visible key after `from`: the overlay's or the first of the state's that the overlay
    /// does not decide.
    pub(crate) fn next(
        &mut self,
        state: &State,
        from: &[u8],
        inclusive: bool,
        with_value: bool,
    ) -> Result<Answer> {
        let mine =
            self.level().overlay.next(from, inclusive).map(|(key, value)| (key.clone(), value.clone()));
        let mut query = Query::Next { from: from.to_vec(), inclusive, with_value };
        loop {
            match self.read(state, query)? {
                Some((key, value)) if mine.as_ref().is_none_or(|(first, _)| key < *first) => {
                    if self.level().overlay.decides(&key).is_none() {
                        return Ok(Some((key, value)));
                    }
                    query = Query::Next { from: key, inclusive: false, with_value };
                }
                _ => return Ok(mine),
            }
        }
    }

    /// The last visible key before `from`, as [`Transaction::next`].
    pub(crate) fn previous(&mut self, state: &State, from: &[u8], with_value: bool) -> Result<Answer> {
        let mine = self.level().overlay.previous(from).map(|(key, value)| (key.clone(), value.clone()));
        let mut query = Query::Previous { from: from.to_vec(), with_value };
        loop {
            match self.read(state, query)? {
                Some((key, value)) if mine.as_ref().is_none_or(|(last, _)| key > *last) => {
                    if self.level().overlay.decides(&key).is_none() {
                        return Ok(Some((key, value)));
                    }
                    query = Query::Previous { from: key, with_value };
                }
                _ => return Ok(mine),
            }
        }
    }
}
