//! An open transaction behind a server: what it sees, and how its commit is asked for.
//!
//! Invariants
//! - What the body sees is its own writes over answers of the server; what it looks at of each of these is a
//!   condition of the commit.
//! - A range is read no further than what is answered, so that what others write behind it is no conflict.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use perilune_resp::Answer;
use perilune_store::{
    Durability, Error, LockOwner, Page, Presence, Result, Session, Span, TransactionOptions, Write, Writes,
};

use super::link::{unexpected, Effect};
use super::overlay::{Overlay, Seen};
use super::reads::{self, Reads};
use super::search::{Glance, Pair, Search};
use super::session::{flag, RemoteSession, NO_TRANSACTION};
use crate::limits::{WIRE_TRANSACTION_BYTES, WIRE_TRANSACTION_READS};

/// A key that a walk has come to, and its value.
type Step = (Vec<u8>, Option<Vec<u8>>);

/// Steps that are asked for at once at most.
const PAGE_STEPS: usize = 1_024;

/// An open transaction.
#[derive(Default)]
pub(super) struct Running {
    pub(super) options: TransactionOptions,
    pub(super) overlay: Overlay,
    pub(super) reads: Reads,
    /// The level in which a lock was taken, by whom, and its name.
    pub(super) locks: Vec<(usize, LockOwner, Vec<u8>)>,
    /// The level in which a message was posted, its channel and body.
    pub(super) posts: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

/// The tries of one transaction.
pub(super) struct Series {
    pub(super) limit: Duration,
    pub(super) deadline: Instant,
    pub(super) tries: u32,
}

impl Series {
    pub(super) fn new(limit: Duration) -> Series {
        Series { limit, deadline: Instant::now() + limit, tries: 0 }
    }

    /// Waits up to 25 ms, the longer the more tries there were, and not as long as whoever it met.
    pub(super) fn back_off(&mut self) {
        self.tries += 1;
        let most = 100_u64 << self.tries.min(7);
        let chance = RandomState::new().hash_one(self.tries) % most;
        std::thread::sleep(Duration::from_micros(most + chance));
    }
}

impl RemoteSession {
    /// The open transaction, if it can still grow.
    pub(super) fn growing(&mut self) -> Result<&mut Running> {
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        if self.link.is_forked() {
            return Err(Error::Forked);
        }
        if let Some(series) = self.series.as_ref().filter(|series| Instant::now() >= series.deadline) {
            return Err(Error::TransactionTimeout { limit: series.limit, holder: None });
        }
        if running.overlay.bytes() + running.reads.bytes() > WIRE_TRANSACTION_BYTES {
            let limit = WIRE_TRANSACTION_BYTES as u64;
            return Err(Error::LimitReached { what: "bytes in one transaction over the wire", limit });
        }
        if running.overlay.len() + running.reads.len() > WIRE_TRANSACTION_READS {
            let limit = WIRE_TRANSACTION_READS as u64;
            return Err(Error::LimitReached {
                what: "reads and writes in one transaction over the wire",
                limit,
            });
        }
        Ok(running)
    }

    /// What the server has for a search: as it was read ahead, or by a request. `reach`: where a page may end, which
    /// the search's own bound may be short of.
    pub(super) fn base(&mut self, search: &Search<'_>, reach: &[u8]) -> Result<Option<Pair>> {
        let is_alone = self.running.is_none();
        if let Some(known) = self.ahead.answer(search, is_alone) {
            return Ok(known);
        }
        if let Some(count) = self.ahead.page_for(search) {
            self.read_ahead(search, reach, count)?;
            if let Some(known) = self.ahead.answer(search, false) {
                return Ok(known);
            }
        }
        let (from, bound, with_value) = (search.from, search.bound, flag(search.with_value));
        let answer = if search.forward {
            self.ask("NEXT", &[from, flag(search.inclusive), bound, with_value], Effect::None)?
        } else {
            self.ask("PREV", &[from, bound, with_value], Effect::None)?
        };
        let found = pair_of(answer)?;
        self.ahead.note(search, found.as_ref().map(|(key, _)| key.as_slice()));
        Ok(found)
    }

    /// Asks for a page of a walk.
    fn read_ahead(&mut self, search: &Search<'_>, reach: &[u8], count: usize) -> Result<()> {
        let (found, is_all) = self.walk(search, reach, count)?;
        self.ahead.fill(search, reach, count, found, is_all);
        Ok(())
    }

    /// Reads entries of a range, as many as one answer of the server holds.
    pub(super) fn base_page(&mut self, span: &Span<'_>, with_value: bool, page: &mut Page) -> Result<()> {
        page.clear();
        let (from, bound) = if span.backwards { (span.high, span.low) } else { (span.low, span.high) };
        let (forward, glance) = (!span.backwards, Glance::Whole);
        let search = Search { forward, from, inclusive: forward, bound, with_value, glance };
        let count = usize::try_from(span.most).unwrap_or(usize::MAX).min(PAGE_STEPS);
        if span.low >= span.high {
            page.end();
            return Ok(());
        }
        if count == 0 {
            return Ok(());
        }
        let (found, is_all) = self.walk(&search, bound, count)?;
        for (key, value) in found {
            page.push(&key, &value.unwrap_or_default());
        }
        if is_all {
            page.end();
        }
        Ok(())
    }

    /// The steps that a walk takes from a search on, each with the value if that is asked for and of the key that is looked for;
    /// and whether there are no more.
    fn walk(&mut self, search: &Search<'_>, reach: &[u8], count: usize) -> Result<(Vec<Step>, bool)> {
        let parent = search.glance.parent().map_or_else(String::new, |parent| parent.to_string());
        let arguments = [
            flag(search.forward),
            search.from,
            flag(search.inclusive),
            reach,
            flag(search.with_value),
            parent.as_bytes(),
            &count.to_string().into_bytes(),
        ];
        let Answer::Array(parts) = self.ask("WALK", &arguments, Effect::None)? else {
            return Err(unexpected("WALK"));
        };
        let mut parts = parts.into_iter();
        let Some(Answer::Integer(is_all)) = parts.next() else { return Err(unexpected("WALK")) };
        let mut found = Vec::with_capacity(parts.len() / 2);
        loop {
            match (parts.next(), parts.next()) {
                (None, _) => return Ok((found, is_all == 1)),
                (Some(Answer::Bulk(key)), Some(Answer::Bulk(value))) => found.push((key, Some(value))),
                (Some(Answer::Bulk(key)), Some(Answer::Null)) => found.push((key, None)),
                _ => return Err(unexpected("WALK")),
            }
        }
    }

    /// What the server has for a search of the open transaction.
    fn read(&mut self, search: &Search<'_>, reach: &[u8]) -> Result<Option<Pair>> {
        let found = self.base(search, reach)?;
        let Running { overlay, reads, .. } = self.growing()?;
        let masked = found.as_ref().is_some_and(|(key, _)| overlay.get(key) != Seen::Unknown);
        reads.found(search, found.as_ref(), masked);
        if let (Glance::Entry(_), Some((key, _)), false) = (search.glance, &found, masked || !search.forward)
        {
            // The child has no value of its own, or the key would have been it. (Backward it is asked for.)
            let child = search.glance.part(key);
            if child.len() < key.len() && overlay.get(child) == Seen::Unknown {
                reads.existence(child, false);
            }
        }
        Ok(found)
    }

    /// Whether there is a value at `key`, if the open transaction knows.
    fn knows(&self, key: &[u8]) -> Option<bool> {
        let running = self.running.as_ref()?;
        match running.overlay.get(key) {
            Seen::Value(_) => Some(true),
            Seen::Absent => Some(false),
            Seen::Unknown => running.reads.has(key),
        }
    }

    /// Whether the open transaction sees a value at `key`.
    pub(super) fn sees_value(&mut self, key: &[u8]) -> Result<bool> {
        if let Some(known) = self.knows(key) {
            return Ok(known);
        }
        let is_there = self.base_presence(key)?.value;
        self.growing()?.reads.existence(key, is_there);
        Ok(is_there)
    }

    /// What the open transaction sees at and below `key`.
    pub(super) fn seen_presence(&mut self, key: &[u8]) -> Result<Presence> {
        if !self.growing()?.overlay.is_over(key) {
            let known = self.knows(key);
            let Presence { value, descendants } = self.base_presence(key)?;
            let reads = &mut self.growing()?.reads;
            reads.existence(key, value);
            reads.descendants(key, descendants);
            return Ok(Presence { value: known.unwrap_or(value), descendants });
        }
        let value = self.sees_value(key)?;
        let (end, glance) = ([key, &[0xFF]].concat(), Glance::Start(key.len()));
        let search =
            Search { forward: true, from: key, inclusive: false, bound: &end, with_value: false, glance };
        Ok(Presence { value, descendants: self.seen_first(&search)?.is_some() })
    }

    /// The first pair of a range as the open transaction sees it.
    pub(super) fn seen_first(&mut self, search: &Search<'_>) -> Result<Option<Pair>> {
        let overlay = &self.growing()?.overlay;
        let end = Some(search.bound).filter(|end| !end.is_empty());
        let own = overlay.after(search.from, search.inclusive, end);
        let own = own.map(|(key, value)| (key.to_vec(), value.to_vec()));
        // Behind what this transaction has written itself nothing is read.
        let bound = own.as_ref().map_or(search.bound, |(key, _)| match search.glance {
            Glance::Child(_) | Glance::Start(_) => search.glance.part(key),
            Glance::Whole | Glance::Entry(_) => key,
        });
        let (mut from, mut inclusive) = (search.from.to_vec(), search.inclusive);
        loop {
            if !bound.is_empty() && from.as_slice() >= bound {
                return Ok(own);
            }
            let narrow = Search { from: &from, inclusive, bound, ..*search };
            let Some((key, value)) = self.read(&narrow, search.bound)? else { return Ok(own) };
            let overlay = &self.growing()?.overlay;
            match overlay.get(&key) {
                Seen::Unknown => return Ok(Some((key, value))),
                _ => match overlay.removed_prefix(&key) {
                    Some(prefix) => {
                        from = prefix.to_vec();
                        from.push(0xFF);
                        inclusive = true;
                    }
                    None => {
                        from = key;
                        inclusive = false;
                    }
                },
            }
        }
    }

    /// The last pair of a range as the open transaction sees it.
    pub(super) fn seen_last(&mut self, search: &Search<'_>) -> Result<Option<Pair>> {
        let own = self.growing()?.overlay.before(search.from, search.bound);
        let own = own.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let bound = own.as_ref().map_or(search.bound, |(key, _)| key.as_slice());
        let mut from = search.from.to_vec();
        loop {
            let narrow = Search { from: &from, bound, ..*search };
            let Some((key, value)) = self.read(&narrow, search.bound)? else { return Ok(own) };
            let overlay = &self.growing()?.overlay;
            match overlay.get(&key) {
                Seen::Unknown => return Ok(Some((key, value))),
                // The key that this transaction overwrites is the first of the range.
                _ if own.as_ref().is_some_and(|(own, _)| *own == key) => return Ok(own),
                _ => from = overlay.removed_prefix(&key).map_or(key.clone(), <[u8]>::to_vec),
            }
        }
    }

    /// Sends what was read and written; true if it is one state still, and so it was written.
    pub(super) fn send_commit(&mut self, with_writes: bool) -> Result<bool> {
        let left = self
            .series
            .as_ref()
            .map_or(self.shared.timeout, |series| series.deadline.saturating_duration_since(Instant::now()));
        let Some(running) = &self.running else { return Err(NO_TRANSACTION) };
        let writes = with_writes && running.overlay.len() + running.posts.len() > 0;
        if with_writes && left.is_zero() {
            let limit = self.series.as_ref().map_or(left, |series| series.limit);
            return Err(Error::TransactionTimeout { limit, holder: None });
        }
        // One answer is of one moment anyway.
        if !writes && running.reads.len() <= 1 {
            return Ok(true);
        }
        let milliseconds = left.as_millis().max(1).to_string();
        let fsync = running.options.durability == Some(Durability::Fsync)
            || running.options.durability.is_none() && self.shared.fsync;
        let mut arguments: Vec<&[u8]> = vec![flag(writes), flag(fsync), milliseconds.as_bytes()];
        arguments.extend(running.reads.conditions().as_arguments().iter());
        if writes {
            let (prefixes, entries) = running.overlay.parts();
            prefixes.iter().for_each(|prefix| arguments.extend([reads::KILL, prefix]));
            for (key, value) in entries {
                match value {
                    Some(value) => arguments.extend([reads::SET, key, value]),
                    None => arguments.extend([reads::REMOVE, key]),
                }
            }
            running.posts.iter().for_each(|(_, name, body)| arguments.extend([reads::POST, name, body]));
        }
        let effect = if writes { Effect::Change } else { Effect::None };
        match self.link.call("COMMIT", &arguments, effect, left) {
            Ok(_) => Ok(true),
            Err(Error::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn run_hook(&mut self) -> Result<()> {
        let Some(mut hook) = self.hook.take() else { return Ok(()) };
        let writes = self.running.as_ref().is_some_and(|running| running.overlay.len() > 0);
        let outcome = if writes { hook(&mut HookWrites(self)) } else { Ok(()) };
        self.hook = Some(hook);
        outcome
    }

    /// The rest of the time of the open transaction, and when it ends.
    pub(super) fn time_left(&self) -> Option<(Duration, Instant)> {
        let series = self.series.as_ref().filter(|_| self.running.is_some())?;
        Some((series.deadline.saturating_duration_since(Instant::now()), series.deadline))
    }

    /// Ends the tries, which have taken too long.
    pub(super) fn out_of_time(&mut self) -> Error {
        let limit = self.series.take().map_or(Duration::ZERO, |series| series.limit);
        Error::TransactionTimeout { limit, holder: None }
    }
}

fn pair_of(answer: Answer) -> Result<Option<Pair>> {
    match answer {
        Answer::Null => Ok(None),
        Answer::Array(parts) => {
            let mut parts = parts.into_iter();
            match (parts.next(), parts.next()) {
                (Some(Answer::Bulk(key)), None) => Ok(Some((key, Vec::new()))),
                (Some(Answer::Bulk(key)), Some(Answer::Bulk(value))) => Ok(Some((key, value))),
                _ => Err(unexpected("NEXT")),
            }
        }
        _ => Err(unexpected("NEXT")),
    }
}

/// The writes of a transaction as a commit hook sees them.
struct HookWrites<'s>(&'s mut RemoteSession);

impl Writes for HookWrites<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        let Some(running) = &self.0.running else { return };
        let (prefixes, entries) = running.overlay.parts();
        prefixes.iter().for_each(|prefix| visit(Write::RemovePrefix(prefix)));
        for (key, value) in entries {
            visit(value.as_ref().map_or(Write::Remove(key), |value| Write::Set(key, value)));
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        if let Some(running) = &mut self.0.running {
            running.overlay.set(key, Some(value));
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(running) = &mut self.0.running {
            running.overlay.set(key, None);
        }
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Session::get(self.0, key, value)
    }
}
