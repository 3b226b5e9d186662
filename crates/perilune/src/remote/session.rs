//! A session of a database behind a server: the operations of the storage trait as requests.
//!
//! Outside a transaction each operation is one request, which the server runs as one operation of the
//! engine. Inside, writes stay in the `Overlay`, what the server answers goes into the `Reads`, and the
//! commit sends both.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_resp::Answer;
use perilune_store::{
    copy_pieces, count_by_entries, entry_by_step, page_by_steps, put_piece, transact, Added, Addition, Bulk,
    Change, CommitHook, Decision, Durability, Entries, Error, LockOwner, Page, Presence, Result, Scan,
    Session, Span, TransactionOptions, Transactions, UpdateBuffer,
};

use super::ahead::Ahead;
use super::database::{RemoteDatabase, Shared};
use super::link::{unexpected, Effect, Link};
use super::overlay::Seen;
use super::running::{Running, Series};
use super::search::{Glance, Pair, Search};
use crate::limits::VALUE_BYTES;

/// A session behind a server.
pub(crate) struct RemoteSession {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    pub(super) running: Option<Running>,
    /// Walks under way.
    pub(super) ahead: Ahead,
    /// Of the tries of a transaction.
    pub(super) series: Option<Series>,
    pub(super) hook: Option<CommitHook>,
    /// Owners of locks are numbered by the client.
    pub(super) owners: u64,
    /// Owners that have taken a lock.
    pub(super) lockers: Vec<LockOwner>,
}

pub(super) const NO_TRANSACTION: Error = Error::TransactionState("no transaction is open: begin one first");

fn copy(from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(from);
}

pub(super) fn flag(truth: bool) -> &'static [u8] {
    if truth {
        b"1"
    } else {
        b"0"
    }
}

impl RemoteSession {
    pub(super) fn new(database: &RemoteDatabase) -> RemoteSession {
        let shared = Arc::clone(&database.shared);
        RemoteSession {
            link: Link::new(&shared.address, shared.timeout),
            shared,
            running: None,
            ahead: Ahead::default(),
            series: None,
            hook: None,
            owners: 0,
            lockers: Vec::new(),
        }
    }

    /// Has the server run `program` as a transaction, and answers what it says.
    pub(crate) fn run(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>> {
        if self.running.is_some() || self.hook.is_some() {
            return Err(Error::Invalid(
                "a function runs at the server as a transaction of its own, and without a commit hook"
                    .to_owned(),
            ));
        }
        let fsync = options.durability.map_or(self.shared.fsync, |level| level == Durability::Fsync);
        let read_only = options.read_only || self.shared.read_only;
        let milliseconds = options.timeout.as_millis().to_string();
        let arguments = [flag(read_only), flag(fsync), milliseconds.as_bytes(), program];
        match self.call("RUN", &arguments, Effect::Change, options.timeout)? {
            Answer::Bulk(answer) => Ok(answer),
            _ => Err(unexpected("RUN")),
        }
    }

    /// Writes go to the server at once, and nobody is to see them first.
    fn is_plain(&self) -> bool {
        self.running.is_none() && self.hook.is_none() && !self.shared.fsync
    }

    pub(super) fn ask(&mut self, name: &str, arguments: &[&[u8]], effect: Effect) -> Result<Answer> {
        self.link.call(name, arguments, effect, Duration::ZERO)
    }

    /// What the server has at and below `key`.
    pub(super) fn base_presence(&mut self, key: &[u8]) -> Result<Presence> {
        match self.ask("DATA", &[key], Effect::None)? {
            Answer::Integer(data @ (0 | 1 | 10 | 11)) => {
                Ok(Presence { value: data % 10 == 1, descendants: data >= 10 })
            }
            _ => Err(unexpected("DATA")),
        }
    }

    /// A request after which nothing is known ahead.
    pub(super) fn call(
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
    fn change(&mut self, name: &str, arguments: &[&[u8]], key: &[u8], end: &[u8]) -> Result<Answer> {
        self.ahead.touch(key, end);
        self.ask(name, arguments, Effect::Change)
    }

    fn search(&mut self, search: &Search<'_>) -> Result<Option<Pair>> {
        match (&self.running, search.forward) {
            (None, _) => self.base(search, search.bound),
            (Some(_), true) => self.seen_first(search),
            (Some(_), false) => self.seen_last(search),
        }
    }

    /// As [`Session::next_within`] (`end` empty: anywhere), for a caller that looks at so much of the key.
    pub(crate) fn glance_next(
        &mut self,
        (from, inclusive, end): (&[u8], bool, &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let with_value = value.is_some();
        let search = Search { forward: true, from, inclusive, bound: end, with_value, glance };
        Ok(give(self.search(&search)?, key, value))
    }

    /// As [`Session::previous_within`], for a caller that looks at so much of the key.
    pub(crate) fn glance_previous(
        &mut self,
        (from, begin): (&[u8], &[u8]),
        glance: Glance,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let with_value = value.is_some();
        let search = Search { forward: false, from, inclusive: false, bound: begin, with_value, glance };
        Ok(give(self.search(&search)?, key, value))
    }

    /// The value of the child that the last step of a walk back has come to by a key below it, copied if it is wanted.
    pub(crate) fn own_value(
        &mut self,
        child: &[u8],
        (value, is_wanted): (&mut Vec<u8>, bool),
    ) -> Result<bool> {
        let is_seen = |running: &Running| {
            running.overlay.get(child) != Seen::Unknown || running.reads.has(child).is_some()
        };
        if self.running.as_ref().is_some_and(is_seen) {
            return self.get(child, value);
        }
        let Some(found) = self.ahead.own_value(child, is_wanted) else { return self.get(child, value) };
        let is_there = found.is_some();
        if self.running.is_some() {
            let reads = &mut self.growing()?.reads;
            if is_there && !is_wanted {
                reads.existence(child, true);
            } else {
                reads.value(child, found.as_deref());
            }
        }
        found.into_iter().for_each(|found| *value = found);
        Ok(is_there)
    }

    /// What the engine would refuse is refused here, before it is part of a transaction.
    pub(super) fn check_write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let limits = &self.shared.limits;
        if self.shared.read_only || self.running.as_ref().is_some_and(|running| running.options.read_only) {
            return Err(Error::ReadOnly);
        }
        if key.len() > limits.key_bytes {
            return Err(Error::KeyTooLong { bytes: key.len(), limit: limits.key_bytes });
        }
        if value.len() > limits.value_bytes {
            return Err(Error::ValueTooLong { bytes: value.len(), limit: limits.value_bytes });
        }
        Ok(())
    }

    /// Runs one write as a transaction of its own.
    fn alone<R>(&mut self, body: impl FnMut(&mut RemoteSession) -> Result<R>) -> Result<R> {
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
        let found = match self.ask("GET", &[key], Effect::None)? {
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
        self.glance_next((from, inclusive, end), Glance::Whole, key, value)
    }

    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.glance_previous((from, begin), Glance::Whole, key, value)
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
            return self.alone(|session| session.set(key, value));
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
            return self.alone(|session| session.remove(key));
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
            return self.alone(|session| session.remove_prefix(prefix));
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
            return self.alone(|session| session.update(key, change));
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
            return self.alone(|session| session.compare_and_set(key, expected, new));
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

impl Bulk for RemoteSession {
    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        entry_by_step(self, scan, out)
    }

    fn are_current(&self, _entries: &Entries) -> bool {
        false
    }

    fn get_pieces(
        &mut self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        if self.running.is_some() {
            let running = self.growing()?;
            let known = match running.overlay.get(key) {
                Seen::Value(found) => Some(Some(found)),
                Seen::Absent => Some(None),
                Seen::Unknown => running.reads.get(key),
            };
            if let Some(known) = known {
                known.iter().for_each(|found| copy_pieces(found, pieces, out));
                return Ok(known.map(<[u8]>::len));
            }
        }
        let places: Vec<Vec<u8>> = pieces
            .iter()
            .flat_map(|piece| [piece.start, piece.end])
            // NB: no value is that long, and the number stays one that the server reads.
            .map(|at| at.min(VALUE_BYTES).to_string().into())
            .collect();
        let arguments: Vec<&[u8]> =
            std::iter::once(key).chain(places.iter().map(|place| &place[..])).collect();
        let found = match self.ask("PIECES", &arguments, Effect::None)? {
            Answer::Null => None,
            Answer::Array(parts) => match <[Answer; 2]>::try_from(parts) {
                Ok([Answer::Integer(length), Answer::Bulk(bytes)]) => {
                    *out = bytes;
                    Some(usize::try_from(length).map_err(|_| unexpected("PIECES"))?)
                }
                _ => return Err(unexpected("PIECES")),
            },
            _ => return Err(unexpected("PIECES")),
        };
        let Some(running) = &mut self.running else { return Ok(found) };
        let Some(length) = found else {
            running.reads.value(key, None);
            return Ok(None);
        };
        let mut rest = &out[..];
        for piece in pieces {
            let end = piece.end.min(length);
            let (own, behind) = rest.split_at(end.saturating_sub(piece.start).min(rest.len()));
            rest = behind;
            running.reads.piece(key, piece, length, own);
        }
        if pieces.is_empty() {
            running.reads.piece(key, &(0..0), length, &[]);
        }
        Ok(found)
    }

    fn glance_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self.next_within(from, inclusive, end, key, Some(value))?;
        value.truncate(self.shared.limits.update_bytes);
        Ok(found)
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        self.check_write(key, bytes)?;
        if self.is_plain() {
            let offset = offset.to_string();
            return match self.change("PATCH", &[key, offset.as_bytes(), bytes], key, key)? {
                Answer::Integer(length) => Ok(usize::try_from(length).ok()),
                Answer::Null => Ok(None),
                _ => Err(unexpected("PATCH")),
            };
        }
        if self.running.is_none() {
            return self.alone(|session| session.set_piece(key, offset, bytes));
        }
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(None);
        }
        let length = put_piece(&mut value, offset, bytes, self.shared.limits.value_bytes)?;
        self.set(key, &value)?;
        Ok(Some(length))
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        if !self.is_plain() {
            return pairs.iter().try_for_each(|(key, value)| self.set(key, value));
        }
        let good = pairs.iter().position(|(key, value)| self.check_write(key, value).is_err());
        let (good, rest) = pairs.split_at(good.unwrap_or(pairs.len()));
        good.iter().for_each(|(key, _)| self.ahead.touch(key, key));
        self.link.call_each("SET", good.iter().map(|(key, value)| [*key, *value]))?;
        rest.first().map_or(Ok(()), |(key, value)| self.check_write(key, value))
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        count_by_entries(self, span, key)
    }

    fn count_groups(
        &mut self,
        _span: &Span<'_>,
        _group: &dyn Fn(&[u8]) -> usize,
        _key: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl Transactions for RemoteSession {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        let limit = self.shared.limits.transaction_depth;
        if self.depth() >= limit {
            return Err(Error::LimitReached { what: "levels of transactions", limit: limit as u64 });
        }
        if self.running.is_some() && self.link.is_forked() {
            return Err(Error::Forked);
        }
        if self.running.is_none() {
            self.series.get_or_insert_with(|| Series::new(options.timeout));
            self.running = Some(Running { options: options.clone(), ..Running::default() });
            self.ahead.clear();
        }
        if let Some(running) = &mut self.running {
            running.overlay.begin();
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let forked = self.link.is_forked();
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        let depth = running.overlay.depth();
        if depth > 1 {
            running.overlay.merge();
            running.locks.iter_mut().for_each(|lock| lock.0 = lock.0.min(depth - 1));
            running.posts.iter_mut().for_each(|post| post.0 = post.0.min(depth - 1));
            return Ok(());
        }
        if forked {
            self.running = None;
            return Err(Error::Forked);
        }
        let sent = self.run_hook().and_then(|()| self.send_commit(true));
        self.ahead.clear();
        match sent {
            Ok(true) => {
                self.running = None;
                self.series = None;
                Ok(())
            }
            Ok(false) => {
                self.rollback()?;
                Err(Error::Conflict)
            }
            Err(error) => {
                self.rollback()?;
                Err(error)
            }
        }
    }

    fn rollback(&mut self) -> Result<()> {
        let forked = self.link.is_forked();
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        let depth = running.overlay.depth();
        running.overlay.rollback();
        running.posts.retain(|post| post.0 < depth);
        let taken: Vec<_> = running.locks.extract_if(.., |lock| lock.0 >= depth).collect();
        if depth == 1 {
            self.running = None;
            self.ahead.clear();
        }
        if !forked {
            self.release(taken.iter().map(|(_, owner, name)| (*owner, name.as_slice())));
        }
        Ok(())
    }

    fn depth(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.overlay.depth())
    }

    fn validate(&mut self) -> Result<()> {
        if self.send_commit(false)? {
            Ok(())
        } else {
            Err(Error::Conflict)
        }
    }

    fn retry(&mut self) -> Result<()> {
        let Some(series) = &mut self.series else { return Ok(()) };
        if Instant::now() >= series.deadline {
            return Err(self.out_of_time());
        }
        series.back_off();
        Ok(())
    }

    fn give_up(&mut self) {
        self.series = None;
    }

    fn restarts(&self) -> u32 {
        self.series.as_ref().map_or(0, |series| series.tries)
    }
}
