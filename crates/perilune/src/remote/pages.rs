//! Walks of a client over many nodes, answered a page at a time.
//!
//! Problem: a walk of a thousand steps would be a thousand round trips. Idea: one request asks for many steps, and
//! one reply holds as many as fit; they are read a leaf at a time.
//!
//! Invariant: a page has at least one step if there is any. It ends with the step that reaches [`PAGE_BYTES`], or
//! before a later one that is longer than that by itself.

use perilune_remote::wire::child_of;
use perilune_resp::Replies;
use perilune_store::{Bulk, Entries, Origin, Result as StoreResult, Scan, Session as StoreSession};

use super::fence::{Fence, Side};
use super::serve::{integer, invalid, truth, Peer};
use crate::{Result, Session};

/// Bytes of keys and values behind which a page ends.
const PAGE_BYTES: usize = 64 << 10;
/// Steps of a page at most, whatever is asked for.
const PAGE_STEPS: u64 = 4_096;
/// Entries that are read together at most.
const READ_MOST: usize = 1_024;
/// So many times as many are read the next time, where all of them were of use.
const READ_GROWTH: usize = 8;

/// Where a page is: its steps, each from what those before it have found.
struct Steps<'a> {
    fence: Option<&'a Fence>,
    /// Where the next reading begins, and whether the key there counts.
    from: Vec<u8>,
    inclusive: bool,
    /// From, to, values: of all readings.
    scan: Scan<'a>,
    /// The length of the key whose children are walked over.
    parent: Option<usize>,
    entries: Entries,
    /// Bytes of the present key that a step passes over with all below it; 0: the key alone.
    passed: usize,
    /// How many entries are read at once, and how many steps the present reading was good for.
    most: usize,
    gained: usize,
}

impl Steps<'_> {
    /// Steps to the next key that is not closed, of which `left` are wanted; false at the end.
    fn next(&mut self, database: &mut impl Bulk, left: usize) -> StoreResult<bool> {
        loop {
            if !self.advance(database) && !self.read(database, left)? {
                return Ok(false);
            }
            let side = if self.scan.backwards { Side::Before } else { Side::Behind };
            let Some(edge) = self.fence.and_then(|fence| fence.edge(self.entries.key(), side)) else {
                self.gained += 1;
                return Ok(true);
            };
            let is_over = match side {
                Side::Behind => edge >= self.scan.bound,
                Side::Before => edge <= self.scan.bound,
            };
            if is_over {
                return Ok(false);
            }
            edge.clone_into(&mut self.from);
            self.inclusive = true;
            self.entries.clear();
        }
    }

    /// Steps to an entry that was read together with the present one.
    fn advance(&mut self, database: &impl Bulk) -> bool {
        if self.entries.ahead() == 0 || !database.are_current(&self.entries) {
            return false;
        }
        if self.passed > 0 {
            return self.entries.advance_past(self.passed);
        }
        self.entries.advance()
    }

    /// Reads the entries that the walk goes on with.
    fn read(&mut self, database: &mut impl Bulk, left: usize) -> StoreResult<bool> {
        // Where all that was read lay below one child, more of that would be read in vain.
        let is_good = self.gained > 1 || self.most == 1;
        self.most = if is_good { self.most * READ_GROWTH } else { 1 };
        self.most = match self.parent {
            None => left.min(READ_MOST),
            Some(_) => self.most.min(READ_MOST),
        };
        self.gained = 0;
        let (from, inclusive, most) = (&self.from[..], self.inclusive, self.most);
        database.entries(&Scan { from, inclusive, most, ..self.scan }, &mut self.entries)
    }

    /// Notes that the walk goes on behind the present key, or behind the child that it lies in.
    fn go_behind(&mut self, child: Option<usize>) {
        let key = self.entries.key();
        self.passed = child.unwrap_or(0);
        self.from.clear();
        self.from.extend_from_slice(&key[..child.unwrap_or(key.len())]);
        // NB: no code begins with FF.
        self.from.extend_from_slice(if self.scan.backwards || child.is_none() { &[] } else { &[0xFF] });
        self.inclusive = child.is_some();
    }
}

/// Answers a page: whether there is no more behind it (1 or 0), then keys and values (null: not asked for, or of a
/// key below the child that is looked for; backward it is then the child's own, or if no values are asked for empty: it has
/// one). Its arguments: 1 for forward, where it begins, 1 if the key there counts,
/// the bound, 1 for values, the length of the parent's key whose children are walked over or nothing, steps.
pub(super) fn walk(
    session: &mut Session,
    peer: &Peer,
    given: &[&[u8]],
    replies: &mut Replies<'_>,
) -> Result<()> {
    let [forward, from, inclusive, bound, with_value, parent, count] = given else {
        return Err(invalid("a walk has seven arguments"));
    };
    let (forward, values) = (truth(forward)?, truth(with_value)?);
    let (from, inclusive, bound) = (peer.sought(from)?, truth(inclusive)?, peer.sought(bound)?);
    let parent = if parent.is_empty() { None } else { Some(integer(parent)? as usize) };
    let count = integer(count)?.clamp(1, PAGE_STEPS) as usize;
    // No key begins with 0 or FF: these are the ends of the tree.
    let bound = if bound.is_empty() { &[if forward { 0xFF } else { 0 }] } else { bound };
    let (backwards, after) = (!forward, Origin::default());
    let mut steps = Steps {
        fence: peer.fence(),
        from: from.to_vec(),
        inclusive,
        scan: Scan { from: &[], inclusive, bound, backwards, values, most: 1, after },
        parent,
        entries: Entries::default(),
        passed: 0,
        most: 1,
        gained: 0,
    };
    let (mut out, mut own) = (Vec::new(), Vec::new());
    let mut page = Replies::new(&mut out, replies.protocol());
    let (mut found, mut bytes, mut is_all) = (0, 0, false);
    let database = &mut session.trees.database;
    while found < count && bytes < PAGE_BYTES {
        if !steps.next(database, count - found)? {
            is_all = true;
            break;
        }
        let key = steps.entries.key();
        let child = match parent {
            // The parent itself lies before its children.
            Some(parent) if key.len() > parent => match child_of(key, parent) {
                Some(child) => Some(child.len()),
                None => return Err(invalid("a walk over children is over none")),
            },
            _ => None,
        };
        let value = match child {
            Some(child) if child < key.len() && forward => None,
            Some(child) if child < key.len() => {
                let has_own = database.get(peer.read(&key[..child])?, &mut own)?;
                has_own.then_some(if values { &own[..] } else { &[] })
            }
            _ => values.then(|| steps.entries.value()),
        };
        let more = key.len() + value.map_or(0, <[u8]>::len);
        if found > 0 && more > PAGE_BYTES {
            // What may never be looked at is not sent.
            break;
        }
        page.bulk(key);
        page.bulk_or_null(value);
        (found, bytes) = (found + 1, bytes + more);
        steps.go_behind(child);
    }
    replies.array(1 + 2 * found);
    replies.truth(is_all);
    replies.raw(&out);
    Ok(())
}
