//! A session of a database behind a server: the operations of the storage trait as requests.
//!
//! Outside a transaction each operation is one request, which the server runs as one operation of the engine. Inside,
//! writes stay in the `Overlay`, what the server answers goes into the `Reads`, and the commit sends both.
//!
//! Example: `add` of 1 outside a transaction is the request INCR; inside, a GET if the value is not known, and a write in
//! the overlay.
//!
//! Invariant: what is refused here for its length is not sent.
//!
//! Deliberately absent: sharing a connection. A session is used by one thread at a time, and has its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use perilune_resp::Answer;
use perilune_store::{
    page_by_steps, transact, Added, Addition, Change, CommitHook, Decision, Error, Granularity, LockOwner,
    Page, Presence, Result, Session, Span, TransactionOptions, UpdateBuffer, WatchId,
};

use crate::ahead::Ahead;
use crate::bell::Bell;
use crate::link::{unexpected, Effect, Link};
use crate::overlay::Seen;
use crate::running::{Running, Series};
use crate::search::{Pair, Search};
use crate::shared::Shared;

/// A session behind a server.
pub struct RemoteSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
    pub(crate) running: Option<Running>,
    /// Walks under way.
    pub(crate) ahead: Ahead,
    /// Of the tries of a transaction.
    pub(crate) series: Option<Series>,
    pub(crate) hook: Option<CommitHook>,
    /// Which of this process's sessions it is, and how many owners of locks it has made.
    pub(crate) number: u32,
    pub(crate) owners: u32,
    /// Owners that have taken a lock.
    pub(crate) lockers: Vec<LockOwner>,
    pub(crate) watched: Vec<Watched>,
}

/// A watch of this session.
pub(crate) struct Watched {
    pub(crate) id: WatchId,
    /// Scope and key in turn, as they are sent.
    pub(crate) places: Vec<Vec<u8>>,
    /// Once its descriptor was asked for.
    pub(crate) bell: Option<Bell>,
}

/// Sessions that this process has had.
static SESSIONS: AtomicU32 = AtomicU32::new(1);

pub(crate) const NO_TRANSACTION: Error = Error::TransactionState("no transaction is open: begin one first");

fn copy(from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(from);
}

pub(crate) fn flag(truth: bool) -> &'static [u8] {
    if truth {
        b"1"
    } else {
        b"0"
    }
}

impl RemoteSession {
    pub(crate) fn new(shared: &Arc<Shared>) -> RemoteSession {
        let shared = Arc::clone(shared);
        RemoteSession {
            link: Link::new(&shared.address, shared.options.timeout),
            shared,
            running: None,
            ahead: Ahead::default(),
            series: None,
            hook: None,
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            owners: 0,
            lockers: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Writes go to the server at once, and nobody is to see them first.
    pub(crate) fn is_plain(&self) -> bool {
        self.running.is_none() && self.hook.is_none() && !self.shared.options.fsync
    }

    pub(crate) fn ask(&mut self, name: &str, arguments: &[&[u8]], effect: Effect) -> Result<Answer> {
        self.link.call(name, arguments, effect, Duration::ZERO)
    }

    /// A request after which nothing is known ahead.
    pub(crate) fn call(
        &mut self,
        name: &str,
        arguments: &[&[u8]],
        effect: Effect,
        wait: Duration,
    ) -> Result<Answer> {
        self.ahead.clear();
        self.link.call(name, arguments, effect, wait)
    }

    /// A request that changes what lies between `key` and `end`.
    pub(crate) fn change(
        &mut self,
        name: &str,
        arguments: &[&[u8]],
        key: &[u8],
        end: &[u8],
    ) -> Result<Answer> {
        self.ahead.touch(key, end);
        self.ask(name, arguments, Effect::Change)
    }

    /// Copies what a search finds, the value if it is wanted; false: nothing.
    pub(crate) fn search(
        &mut self,
        search: &Search<'_>,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        // One byte more: where a search behind a subtree begins.
        self.check_key(search.from, 1)?;
        if self.running.is_none() {
            // NB: a step inside a page takes no memory of its own.
            if let Some(known) = self.ahead.answer(search, true) {
                let Some((found_key, found_value)) = known else { return Ok(false) };
                copy(found_key, key);
                value.into_iter().for_each(|value| copy(found_value, value));
                return Ok(true);
            }
        }
        let found = match (&self.running, search.forward) {
            (None, _) => self.base(search, search.bound)?,
            (Some(_), true) => self.seen_first(search)?,
            (Some(_), false) => self.seen_last(search)?,
        };
        Ok(give(found, key, value))
    }

    /// Refuses a key of more bytes than the limit and so many more.
    pub(crate) fn check_key(&self, key: &[u8], more: usize) -> Result<()> {
        let limit = self.shared.limits.key_bytes;
        match key.len() > limit + more {
            true => Err(Error::KeyTooLong { bytes: key.len(), limit }),
            false => Ok(()),
        }
    }

    /// What the engine would refuse is refused here, before it is part of a transaction.
    pub(crate) fn check_write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let limits = &self.shared.limits;
        if self.shared.options.read_only
            || self.running.as_ref().is_some_and(|running| running.options.read_only)
        {
            return Err(Error::ReadOnly);
        }
        self.check_key(key, 0)?;
        if value.len() > limits.value_bytes {
            return Err(Error::ValueTooLong { bytes: value.len(), limit: limits.value_bytes });
        }
        Ok(())
    }

    /// Runs one write as a transaction of its own.
    pub(crate) fn in_own_transaction<R>(
        &mut self,
        body: impl FnMut(&mut RemoteSession) -> Result<R>,
    ) -> Result<R> {
        transact(self, &TransactionOptions::default(), body)
    }
}

fn give(found: Option<Pair>, key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> bool {
    let Some((found_key, found_value)) = found else { return false };
    *key = found_key;
    if let Some(value) = value {
        *value = found_value;
    }
    true
}

impl Session for RemoteSession {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.check_key(key, 0)?;
        if self.running.is_some() {
            let running = self.growing()?;
            let known = match running.overlay.get(key) {
                Seen::Value(found) => Some(Some(found)),
                Seen::Absent => Some(None),
                Seen::Unknown => running.reads.get(key),
            };
            if let Some(known) = known {
                known.iter().for_each(|found| copy(found, value));
                return Ok(known.is_some());
            }
        }
        let found = match self.look("GET", &[key])? {
            Answer::Bulk(found) => Some(found),
            Answer::Null => None,
            _ => return Err(unexpected("GET")),
        };
        if let Some(running) = &mut self.running {
            running.reads.value(key, found.as_deref());
        }
        let is_there = found.is_some();
        found.into_iter().for_each(|found| *value = found);
        Ok(is_there)
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        self.check_key(key, 0)?;
        match self.running {
            None => self.base_presence(key),
            Some(_) => self.seen_presence(key),
        }
    }

    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let granularity = Granularity::Whole;
        let with_value = value.is_some();
        let search = Search { forward: true, from, inclusive, bound: end, with_value, granularity };
        self.search(&search, key, value)
    }

    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let granularity = Granularity::Whole;
        let with_value = value.is_some();
        let search = Search { forward: false, from, inclusive: false, bound: begin, with_value, granularity };
        self.search(&search, key, value)
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        if self.running.is_some() {
            return page_by_steps(self, span, with_values, page);
        }
        self.base_page(span, with_values, page)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(key, value)?;
        if self.is_plain() {
            return self.change("SET", &[key, value], key, key).map(drop);
        }
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.set(key, value));
        }
        self.growing()?.overlay.set(key, Some(value));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.check_write(key, &[])?;
        if self.is_plain() {
            return match self.change("DEL", &[key], key, key)? {
                Answer::Integer(removed) => Ok(removed == 1),
                _ => Err(unexpected("DEL")),
            };
        }
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.remove(key));
        }
        let there = self.sees_value(key)?;
        if there {
            self.growing()?.overlay.set(key, None);
        }
        Ok(there)
    }

    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.check_write(prefix, &[])?;
        if self.is_plain() {
            let end = [prefix, &[0xFF]].concat();
            return self.change("KILL", &[prefix], prefix, &end).map(drop);
        }
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.remove_prefix(prefix));
        }
        self.growing()?.overlay.remove_prefix(prefix);
        Ok(())
    }

    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added> {
        if !self.is_plain() {
            return self.update(key, addition.sum).map(|()| Added::Here);
        }
        let mut by = Vec::new();
        (addition.by)(&mut by);
        self.check_write(key, &by)?;
        match self.change("INCR", &[key, &by, flag(addition.truncating)], key, key)? {
            Answer::Bulk(sum) => Ok(Added::There(sum)),
            _ => Err(unexpected("INCR")),
        }
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.update(key, change));
        }
        self.check_write(key, &[])?;
        let (mut value, mut buffer): (Vec<u8>, UpdateBuffer) = (Vec::new(), [0; 64]);
        let current = self.get(key, &mut value)?.then_some(&value[..]);
        let shown = current.map(|value| &value[..value.len().min(self.shared.limits.update_bytes)]);
        match change(shown, &mut buffer)? {
            Decision::Keep => Ok(()),
            Decision::Remove => self.remove(key).map(drop),
            Decision::Write(bytes) => match buffer.get(..bytes) {
                Some(value) => self.set(key, value),
                None => Err(Error::Internal("an update wrote past its buffer".to_owned())),
            },
        }
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.check_write(key, new.unwrap_or(&[]))?;
        if self.is_plain() {
            let arguments = [
                key,
                flag(expected.is_some()),
                expected.unwrap_or(&[]),
                flag(new.is_some()),
                new.unwrap_or(&[]),
            ];
            return match self.change("CAS", &arguments, key, key)? {
                Answer::Integer(done) => Ok(done == 1),
                _ => Err(unexpected("CAS")),
            };
        }
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.compare_and_set(key, expected, new));
        }
        let mut value = Vec::new();
        let current = self.get(key, &mut value)?.then_some(&value[..]);
        if current != expected {
            return Ok(false);
        }
        match new {
            Some(new) => self.set(key, new)?,
            None => drop(self.remove(key)?),
        }
        Ok(true)
    }

    fn set_commit_hook(&mut self, hook: Option<CommitHook>) {
        self.hook = hook;
    }
}
