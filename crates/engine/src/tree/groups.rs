//! Counting groups of keys that begin alike: the children of a node, each counted once, however much lies below it.
//! Each leaf is an attempt of its own.
//!
//! Invariants
//! - The answer is not of one moment: each leaf counts as it was when it was read. So writers do not wait and are not
//!   waited for. A group that exists all the time is counted once.
//! - Only the first key of a group is looked at; the rest of the group is jumped over, however many leaves it has.
//! - Each attempt begins beyond the one before: a count ends even in a damaged tree.
//!
//! Deliberately absent: what makes keys a group, which the caller says; an answer of one moment (`count`).

use perilune_store::Span;

use super::{descend, Which};
use crate::error::{Attempt, Stop};
use crate::image::Image;
use crate::page::{self, contains, find, leaf_count, leaf_key, Page};

/// A count under way.
pub(crate) struct Groups<'a> {
    which: Which,
    high: &'a [u8],
    most: u64,
    /// How many of its first bytes tell a key's group; asked about torn bytes as well.
    group: &'a dyn Fn(&[u8]) -> usize,
    /// What lies before it has been counted.
    at: Vec<u8>,
    count: u64,
    /// The first key of the group that was counted last.
    first: Vec<u8>,
    /// The first key of the last group of the leaf that is being looked at.
    last: Vec<u8>,
    key: Vec<u8>,
    beyond: Vec<u8>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(which: Which, span: &Span<'a>, group: &'a dyn Fn(&[u8]) -> usize) -> Groups<'a> {
        let Span { low, high, most, .. } = *span;
        let (first, last, key, beyond) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Groups { which, high, most, group, at: low.to_vec(), count: 0, first, last, key, beyond }
    }

    /// How many were counted; the first key of the last one is copied into `key` if they are as many as are wanted.
    pub(crate) fn end(self, key: &mut Vec<u8>) -> u64 {
        if self.count == self.most {
            *key = self.first;
        }
        self.count
    }

    /// Counts in one leaf; false: that was the last one.
    pub(crate) fn step(&mut self, image: &Image) -> Attempt<bool> {
        if self.count == self.most || self.at.as_slice() >= self.high {
            return Ok(false);
        }
        let leaf = descend(image, self.which, &self.at, 0)?;
        let page = image.page(leaf.number);
        let has_high = contains(page, self.high);
        let end = if has_high { find(page, self.high).index } else { leaf_count(page) };
        let (count, group) = self.within(page, end);
        page::hi_fence(page, &mut self.key);
        leaf.check(image)?;
        self.count += count;
        if count > 0 {
            std::mem::swap(&mut self.first, &mut self.last);
        }
        if has_high || self.key.is_empty() {
            return Ok(false);
        }
        // The smallest key above the fence, which is the leaf's.
        self.key.push(0);
        if group > 0 && behind(&self.first[..group], &mut self.beyond) && self.beyond > self.key {
            std::mem::swap(&mut self.key, &mut self.beyond);
        }
        if self.key <= self.at {
            return Err(Stop::Restart);
        }
        std::mem::swap(&mut self.key, &mut self.at);
        Ok(true)
    }

    /// Counts the records of a leaf before `end`: how many groups, and how many bytes tell the last one (0: no others are of it).
    fn within(&mut self, page: &Page, end: usize) -> (u64, usize) {
        let (mut count, mut group) = (0, 0);
        let mut index = find(page, &self.at).index;
        while index < end {
            leaf_key(page, index, &mut self.key);
            index += 1;
            if group > 0 && self.key.get(..group) == self.last.get(..group) {
                // NB: its end may lie beyond the page, where a search would find anything.
                let is_here = behind(&self.last[..group], &mut self.beyond) && contains(page, &self.beyond);
                index = if is_here { find(page, &self.beyond).index.max(index) } else { end };
                continue;
            }
            if count == self.most - self.count {
                break;
            }
            group = (self.group)(&self.key).min(self.key.len());
            count += 1;
            std::mem::swap(&mut self.key, &mut self.last);
        }
        (count, group)
    }
}

/// Replaces `out` by the smallest key behind all that begin with `start`; false if there is none.
fn behind(start: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let Some(last) = start.iter().rposition(|byte| *byte != 0xFF) else { return false };
    out.extend_from_slice(&start[..=last]);
    out[last] += 1;
    true
}
