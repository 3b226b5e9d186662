//! Who holds and who waits for what, as one attempt at a lock sees it: one state of the tree.
//!
//! Invariants
//! - Entries of dead processes are absent: they are not answered, and noted to be swept.
//! - A waiter waits for the holders in conflict with it and for every earlier waiter in conflict, but
//!   not for an earlier one who waits for it, at once or by way of others: passing then delays nobody.
//!   So the queue alone closes no circle; a deadlock is one of holders.
//!
//! Deliberately absent: waiting, writing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use perilune_store::{Error, Result};

use super::entry::{self, tag, Holder, Parts, Want};
use crate::access::Access;
use crate::image::layout::Owner;
use crate::tree::{removal_end, Neighbour, Seek, Wanted, Which};
use crate::txn::Transaction;

/// A lock held, or a place in a queue.
#[derive(Debug)]
struct Entry {
    holder: Holder,
    ticket: u64,
    exclusive: bool,
}

/// Entries of a name, its ancestors and its descendants.
#[derive(Debug, Default)]
struct Related {
    held: Vec<Entry>,
    waiting: Vec<Entry>,
}

/// For whom somebody has to wait.
#[derive(Debug, Default)]
pub(super) struct Blockers {
    /// Those who hold a lock in conflict.
    pub(super) holders: BTreeSet<Holder>,
    /// Those who hold no lock in conflict, but wait for one and came earlier.
    pub(super) earlier: BTreeSet<Holder>,
    /// Which of the wants is the first to wait.
    pub(super) first: usize,
}

impl Blockers {
    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.earlier.is_empty()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Holder> + '_ {
        self.holders.iter().chain(&self.earlier).copied()
    }
}

/// Is shown an entry, taken apart, with its key and its value; true ends the scan.
type Visit<'v, 'a> = dyn FnMut(&mut View<'a>, Parts<'_>, &[u8], &[u8]) -> bool + 'v;

/// One attempt's view.
pub(super) struct View<'a> {
    access: &'a Access,
    pub(super) txn: &'a mut Transaction,
    related: BTreeMap<Vec<u8>, Rc<Related>>,
    wants: BTreeMap<(Holder, u64), Rc<Vec<Want>>>,
    living: Vec<(Owner, bool)>,
    /// Keys of entries of the dead.
    dead: Vec<Vec<u8>>,
}

impl<'a> View<'a> {
    pub(super) fn new(access: &'a Access, txn: &'a mut Transaction) -> View<'a> {
        View {
            access,
            txn,
            related: BTreeMap::new(),
            wants: BTreeMap::new(),
            living: Vec::new(),
            dead: Vec::new(),
        }
    }

    fn is_alive(&mut self, process: Owner) -> bool {
        if process == self.access.seat.image.me {
            return true;
        }
        if let Some((_, alive)) = self.living.iter().find(|(other, _)| *other == process) {
            return *alive;
        }
        let alive = self.access.seat.image.is_alive(process);
        self.living.push((process, alive));
        alive
    }

    /// Calls `visit` with the entries under `tag` of the name wanted, its descendants and ancestors;
    /// stops when it answers true.
    fn scan(&mut self, tag: u8, want: &Want, visit: &mut Visit<'_, 'a>) -> Result<bool> {
        let mut start = Vec::new();
        entry::begin_range(&mut start, tag, &want.name);
        if self.scan_range(&start, want.name.len()..usize::MAX, visit)? {
            return Ok(true);
        }
        for ancestor in want.ancestors() {
            entry::begin_range(&mut start, tag, ancestor);
            start.push(0);
            if self.scan_range(&start, ancestor.len()..ancestor.len() + 1, visit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entries whose keys begin with `start` and whose names have a length in `lengths`.
    fn scan_range(
        &mut self,
        start: &[u8],
        lengths: std::ops::Range<usize>,
        visit: &mut Visit<'_, 'a>,
    ) -> Result<bool> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut from = std::borrow::Cow::Borrowed(start);
        let mut side = Neighbour::AtOrNext;
        let access = self.access;
        let end = removal_end(start);
        let which = Which::Volatile;
        while access.txn_neighbour(
            self.txn,
            which,
            Seek { from: &from, side, bound: &end },
            &mut key,
            Some(Wanted::whole(&mut value)),
        )? {
            let parts = entry::parts(&key).ok_or_else(|| damaged("lock's key"))?;
            if lengths.contains(&parts.name.len()) && visit(self, parts, &key, &value) {
                return Ok(true);
            }
            let past = from.to_mut();
            past.clear();
            past.extend_from_slice(&key);
            side = Neighbour::Next;
        }
        Ok(false)
    }

    /// Whether nobody but `me`, dead or alive, holds a lock in conflict with `want`.
    pub(super) fn is_free(&mut self, me: Holder, want: &Want) -> Result<bool> {
        let taken = self.scan(tag::LOCK, want, &mut |_, parts, _, value| {
            parts.holder != me && (want.exclusive || entry::held(value).is_none_or(|held| held.exclusive))
        })?;
        Ok(!taken)
    }

    fn related(&mut self, want: &Want) -> Result<Rc<Related>> {
        if let Some(known) = self.related.get(&want.name) {
            return Ok(known.clone());
        }
        let mut related = Related::default();
        for (tag, list) in [(tag::LOCK, &mut related.held), (tag::QUEUE, &mut related.waiting)] {
            self.scan(tag, want, &mut |view, parts, key, value| {
                let Parts { holder, ticket, .. } = parts;
                if view.is_alive(holder.process()) {
                    list.push(Entry { holder, ticket, exclusive: value.first() != Some(&0) });
                } else {
                    view.dead.push(key.to_vec());
                    if tag == tag::QUEUE {
                        view.dead.push(entry::waiter_key(holder, ticket));
                    }
                }
                false
            })?;
        }
        let related = Rc::new(related);
        self.related.insert(want.name.clone(), related.clone());
        Ok(related)
    }

    /// What `holder` wants by `ticket`.
    fn wants(&mut self, holder: Holder, ticket: u64) -> Result<Rc<Vec<Want>>> {
        if let Some(known) = self.wants.get(&(holder, ticket)) {
            return Ok(known.clone());
        }
        let mut value = Vec::new();
        let key = entry::waiter_key(holder, ticket);
        let found = self.access.txn_get(self.txn, Which::Volatile, &key, &mut value)?;
        let wants = if found { entry::wants(&value) } else { None };
        let wants = Rc::new(wants.ok_or_else(|| damaged("waiter"))?);
        self.wants.insert((holder, ticket), wants.clone());
        Ok(wants)
    }

    /// Those for whom `holder` has to wait if it wants `wants` by `ticket`.
    ///
    /// # Errors
    /// `Conflict`; `Corrupt`.
    pub(super) fn blockers(&mut self, holder: Holder, wants: &[Want], ticket: u64) -> Result<Blockers> {
        let mut blockers = Blockers::default();
        for (index, want) in wants.iter().enumerate() {
            let was_empty = blockers.is_empty();
            let related = self.related(want)?;
            let in_conflict = |entry: &&Entry| entry.holder != holder && (entry.exclusive || want.exclusive);
            blockers.holders.extend(related.held.iter().filter(in_conflict).map(|entry| entry.holder));
            for earlier in related.waiting.iter().filter(in_conflict).filter(|entry| entry.ticket < ticket) {
                if !blockers.holders.contains(&earlier.holder) && !self.keeps_waiting(holder, earlier)? {
                    blockers.earlier.insert(earlier.holder);
                }
            }
            if was_empty && !blockers.is_empty() {
                blockers.first = index;
            }
        }
        Ok(blockers)
    }

    /// Whether something that `holder` holds is in conflict with what a waiter wants.
    fn keeps_waiting(&mut self, holder: Holder, waiter: &Entry) -> Result<bool> {
        for want in self.wants(waiter.holder, waiter.ticket)?.iter() {
            let related = self.related(want)?;
            let mut held = related.held.iter().filter(|held| held.holder == holder);
            if held.any(|held| held.exclusive || want.exclusive) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `holder`, waiting for the holders of what it wants, would wait for what it holds itself.
    ///
    /// # Errors
    /// As [`View::blockers`].
    pub(super) fn closes_circle(&mut self, holder: Holder, blockers: &Blockers) -> Result<bool> {
        self.reach(blockers.holders.iter().copied().collect(), holder, false)
    }

    /// Lets `holder`, whom no other holder blocks, pass those who came earlier and wait for it. Nobody
    /// waits by way of others for one who holds nothing, so only holders need to ask.
    ///
    /// # Errors
    /// As [`View::blockers`].
    pub(super) fn pass(&mut self, holder: Holder, blockers: &mut Blockers) -> Result<()> {
        for earlier in blockers.earlier.clone() {
            if self.reach(vec![earlier], holder, true)? {
                blockers.earlier.remove(&earlier);
            }
        }
        Ok(())
    }

    /// Whether one of `from` waits for `target`, at once or by way of others; `queue`: also by its place
    /// in a queue.
    fn reach(&mut self, from: Vec<Holder>, target: Holder, queue: bool) -> Result<bool> {
        let mut reached: BTreeSet<Holder> = from.iter().copied().collect();
        let mut to_visit = from;
        while let Some(waiter) = to_visit.pop() {
            for ticket in self.tickets(waiter)? {
                let wants = self.wants(waiter, ticket)?;
                let blockers = self.blockers(waiter, &wants, ticket)?;
                let earlier = blockers.earlier.into_iter().filter(|_| queue);
                for next in blockers.holders.into_iter().chain(earlier) {
                    if next == target {
                        return Ok(true);
                    }
                    if reached.insert(next) {
                        to_visit.push(next);
                    }
                }
            }
        }
        Ok(false)
    }

    /// The tickets by which `holder` waits: one, or several if threads share it.
    fn tickets(&mut self, holder: Holder) -> Result<Vec<u64>> {
        let range = entry::waiter_range(holder);
        let (mut key, mut from) = (Vec::new(), range.clone());
        let mut tickets = Vec::new();
        let (side, end) = (Neighbour::Next, removal_end(&range));
        while self.access.txn_neighbour(
            self.txn,
            Which::Volatile,
            Seek { from: &from, side, bound: &end },
            &mut key,
            None,
        )? {
            tickets.push(entry::ticket_of(&key).ok_or_else(|| damaged("waiter's key"))?);
            from.clone_from(&key);
        }
        Ok(tickets)
    }

    /// Removes the entries of the dead that were met.
    pub(super) fn sweep(&mut self) {
        for key in self.dead.drain(..) {
            self.txn.remove(Which::Volatile, &key);
        }
    }
}

/// Bytes of the volatile tree are not what was written.
pub(crate) fn damaged(what: &str) -> Error {
    Error::Corrupt { place: format!("a {what} in the volatile tree: close the database everywhere") }
}
