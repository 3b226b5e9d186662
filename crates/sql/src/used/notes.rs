//! What statements that read have found, and how that is written behind them.
//!
//! A row that a statement has found by its key or through an index is noted with the count that this connection knows of it. It is
//! *due* when its stamp is older than now, or when what was added would put it into the next bucket of LFU; all other reads of it
//! write nothing. Due rows are written in one-shot transactions, some rows in each, which are tried a few times and then left to a
//! later read.
//!
//! Invariants
//! - No statement fails or runs again for a note; what cannot be written is not. At durability `fsync` it waits for the disk, as
//!   any commit does.
//! - A row's count has less waiting than would make it a bucket more, in each connection.
//! - Notes are of the tables of one version of the schema.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use perilune::{Error as EngineError, NodeRef, Serving, Session, TransactionOptions, ValueRef as NodeValue};

use super::{change, kept};
use crate::error::Result;
use crate::limits::{FOUND_ROWS, NOTED_ROWS, STAMPED_ROWS, STAMP_TIME, STAMP_TRIES};
use crate::schema::{bucket, Table, UsageKind};

/// A row that a statement has found.
pub(crate) struct Found {
    pub(crate) table: Rc<Table>,
    /// The bytes of its node's key, and where what names the row begins in them.
    pub(crate) key: Vec<u8>,
    pub(crate) root: usize,
}

/// What is known of a row.
struct Note {
    table: Rc<Table>,
    root: usize,
    /// Its stamp and count, as far as they are known.
    last: Option<i64>,
    count: Option<i64>,
    /// How often it was found since.
    more: i64,
    is_due: bool,
}

impl Note {
    fn has(&self, kind: UsageKind) -> bool {
        self.table.usage.iter().any(|usage| usage.kind == kind)
    }

    fn is_due(&self, now: i64) -> bool {
        let is_older = || self.last.is_none_or(|last| last < now);
        let is_next = || self.count.is_none_or(|count| bucket(count + self.more) != bucket(count));
        self.has(UsageKind::Last) && is_older() || self.has(UsageKind::Often) && is_next()
    }
}

/// What a transaction has made of a row; none: it is gone.
type Written = Option<(Option<i64>, Option<i64>, i64)>;

/// See the head of the module.
#[derive(Default)]
pub(crate) struct Notes {
    found: Vec<Found>,
    /// By the key of the row's node.
    known: HashMap<Vec<u8>, Note>,
    due: Vec<Vec<u8>>,
    random: RandomState,
}

impl Notes {
    /// A statement begins, perhaps anew: what it has found before does not count.
    pub(crate) fn begin(&mut self) {
        self.found.clear();
    }

    /// Whether the statement may note more rows.
    pub(crate) fn has_room(&self) -> bool {
        self.found.len() < FOUND_ROWS
    }

    /// A statement has found a row.
    pub(crate) fn find(&mut self, found: Found) {
        self.found.push(found);
    }

    /// Forgets a row, which is written or goes; answers how often it was found since its count was written.
    pub(crate) fn forget(&mut self, key: &[u8]) -> i64 {
        self.known.remove(key).map_or(0, |note| note.more)
    }

    /// Forgets all: the schema is another one.
    pub(crate) fn clear(&mut self) {
        self.found.clear();
        self.known.clear();
        self.due.clear();
    }

    /// The statement has answered: what it has found counts.
    pub(crate) fn take_in(&mut self, now: impl Fn() -> i64) {
        if self.found.is_empty() {
            return;
        }
        let now = now();
        for Found { table, key, root } in std::mem::take(&mut self.found) {
            if !self.known.contains_key(&key) && self.known.len() >= NOTED_ROWS {
                self.make_room();
            }
            if let Some(note) = self.known.get_mut(&key) {
                note.more += 1;
                if !note.is_due && note.is_due(now) {
                    note.is_due = true;
                    self.due.push(key);
                }
            } else {
                self.due.push(key.clone());
                self.known.insert(key, Note { table, root, last: None, count: None, more: 1, is_due: true });
            }
        }
    }

    /// Whether something is to be written.
    pub(crate) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Drops what need not be written. Reads that wait count by chance, so that on the whole they count: one in as many as the
    /// bucket is wide puts its row into the next one.
    fn make_room(&mut self) {
        let (random, due) = (&self.random, &mut self.due);
        self.known.retain(|key, note| {
            let (Some(count), false) = (note.count, note.is_due) else { return note.is_due };
            let width = 1_i64 << (bucket(count) - 1);
            let chance = random.hash_one((&key, note.more, due.len())) % width.unsigned_abs();
            if !note.has(UsageKind::Often) || chance >= note.more.unsigned_abs() {
                return false;
            }
            note.more = width;
            note.is_due = true;
            due.push(key.clone());
            true
        });
        if self.known.len() >= NOTED_ROWS {
            // They could not be written for long, as in a transaction that reads much.
            self.known.clear();
            self.due.clear();
        }
    }

    /// Writes what is due, some rows in each transaction; `is_current` says whether the schema still is the one of the notes.
    pub(crate) fn write(
        &mut self,
        session: &mut Session,
        now: i64,
        is_current: impl Fn(&mut Session) -> Result<bool>,
    ) {
        let due = std::mem::take(&mut self.due);
        for keys in due.chunks(STAMPED_ROWS) {
            let rows: Vec<&Vec<u8>> = keys.iter().filter(|key| self.known.contains_key(*key)).collect();
            let written = self.attempts(session, now, &rows, &is_current);
            for (at, key) in rows.into_iter().enumerate() {
                let Some(note) = self.known.get_mut(key) else { continue };
                note.is_due = false;
                match written.as_ref().map(|written| written[at]) {
                    // It is due again when it is found again.
                    None => {}
                    Some(None) => {
                        self.known.remove(key);
                    }
                    Some(Some((last, count, more))) => {
                        (note.last, note.count, note.more) = (last, count, more)
                    }
                }
            }
        }
    }

    /// What a transaction has made of these rows; none: it has not happened.
    fn attempts(
        &self,
        session: &mut Session,
        now: i64,
        keys: &[&Vec<u8>],
        is_current: &impl Fn(&mut Session) -> Result<bool>,
    ) -> Option<Vec<Written>> {
        let write = |session: &mut Session| {
            if !is_current(session)? {
                return Err(EngineError::Rollback);
            }
            let row = |key: &&Vec<u8>| Ok(write_row(session, key, &self.known[*key], now)?);
            keys.iter().map(row).collect::<perilune::Result<Vec<Written>>>()
        };
        for _ in 0..STAMP_TRIES {
            match session.attempt(write) {
                Ok(Some(written)) => return Some(written),
                Ok(None) if session.was_disturbed() => {}
                // It takes more, or the database is behind a server.
                Ok(None) => {
                    let options = TransactionOptions {
                        timeout: STAMP_TIME,
                        never_exclusive: true,
                        ..TransactionOptions::default()
                    };
                    return session.transaction_with(&options, write).ok();
                }
                Err(_) => return None,
            }
        }
        None
    }
}

/// Stamps a row that was found, and adds to its count if that puts it into another bucket.
fn write_row(session: &mut Session, key: &[u8], note: &Note, now: i64) -> Result<Written> {
    let table = &*note.table;
    let suffix = &key[note.root..];
    if !matches!(session.get_ref(NodeRef::from_encoded(key, false))?, Some(NodeValue::Record(_))) {
        return Ok(None);
    }
    let (mut last, mut count, mut more) = (None, None, 0);
    for usage in &table.usage {
        let before = kept(session, usage, suffix)?;
        match usage.kind {
            UsageKind::Last => {
                last = Some(before.unwrap_or(usage.since).max(now));
                if before.unwrap_or(usage.since) < now {
                    change(session, table, usage, suffix, (before, now))?;
                }
            }
            UsageKind::Often => {
                let there = before.unwrap_or(1);
                let sum = there.saturating_add(note.more);
                if bucket(sum) == bucket(there) {
                    (count, more) = (Some(there), note.more);
                } else {
                    count = Some(sum);
                    change(session, table, usage, suffix, (before, sum))?;
                }
            }
        }
    }
    Ok(Some((last, count, more)))
}
