//! Counting: how many keys lie in a span, and which of them is the n-th. One attempt.
//!
//! A leaf knows how many records it has, so only the leaves at the ends are searched, and none is walked
//! through. The leaves below one lowest inner page are met one after another, without a descent each.
//!
//! Invariants
//! - Leaves that were met below one unchanged page stand side by side, those of two by their fences; all are
//!   checked again at the end, so that the answer is that of one moment.
//! - Each lowest inner page begins beyond the one before: a count ends even in a damaged tree.
//! - Nothing is copied or allocated for a key but the one that is answered.
//!
//! Deliberately absent: counts in inner pages, which each insertion would have to write.

use perilune_store::Span;

use super::read::{key_beyond, Seek};
use super::{meet_child, meet_root, Neighbour, Seen, Visit, Which};
use crate::error::{Attempt, Stop};
use crate::image::Image;
use crate::limits::HEIGHT_MAX;
use crate::page::{self, contains, find, find_child, inner_count, leaf_count, LEAF};

/// Counts the keys of `span`; the last one is copied into `key` if there are as many as it wants at most. More
/// leaves than `visit` has room for make no answer, but `visit` is told of them.
pub(crate) fn count(
    image: &Image,
    which: Which,
    span: &Span<'_>,
    me: u16,
    key: &mut Vec<u8>,
    visit: &mut impl Visit,
) -> Attempt<u64> {
    if span.low >= span.high || span.most == 0 {
        return Ok(0);
    }
    let mut walk = Walk { image, which, span, me, room: visit.room(), passed: Vec::new(), count: 0 };
    walk.go(key)?;
    for leaf in &walk.passed {
        leaf.check(image)?;
    }
    for leaf in walk.passed {
        visit.visit(leaf);
    }
    Ok(walk.count)
}

struct Walk<'a> {
    image: &'a Image,
    which: Which,
    span: &'a Span<'a>,
    me: u16,
    room: usize,
    passed: Vec<Seen>,
    count: u64,
}

impl Walk<'_> {
    fn go(&mut self, key: &mut Vec<u8>) -> Attempt<()> {
        let Span { low, high, backwards, most } = *self.span;
        let (side, bound) = if backwards { (Neighbour::Previous, low) } else { (Neighbour::AtOrNext, high) };
        let seek = Seek { from: low, side, bound };
        let mut at = if backwards { high } else { low }.to_vec();
        let mut beyond = Vec::new();
        loop {
            self.below_one(&at, key)?;
            let Some(last) = self.passed.last() else { return Err(Stop::Restart) };
            if self.count == most || self.is_full() {
                return Ok(());
            }
            if !key_beyond(self.image, *last, seek, &mut beyond)? {
                return Ok(());
            }
            let goes_on = if backwards { beyond < at } else { beyond > at };
            if !goes_on {
                return Err(Stop::Restart);
            }
            std::mem::swap(&mut at, &mut beyond);
        }
    }

    fn is_full(&self) -> bool {
        self.passed.len() > self.room
    }

    /// Counts in the leaves below one lowest inner page, from the one that covers `at` on.
    fn below_one(&mut self, at: &[u8], key: &mut Vec<u8>) -> Attempt<()> {
        let Span { low, high, backwards, most } = *self.span;
        let parent = self.lowest_inner(at)?;
        let page = self.image.page(parent.number);
        if page::kind(page) == LEAF {
            self.add(parent, (true, true), key);
            return Ok(());
        }
        let (has_low, has_high) = (contains(page, low), contains(page, high));
        let first = if has_low { find_child(page, low).0 } else { 0 };
        let last = if has_high { find_child(page, high).0 } else { inner_count(page) };
        let mut index = if backwards { last } else { first };
        let mut is_begun = false;
        loop {
            let leaf = meet_child(self.image, parent, page::child(page, index), self.me)?;
            let leaf_page = self.image.page(leaf.number);
            // NB: what was said of two pages may not be true of both at once, until this has looked.
            if page::kind(leaf_page) != LEAF || !is_begun && !contains(leaf_page, at) {
                return Err(Stop::Restart);
            }
            is_begun = true;
            self.add(leaf, (has_low && index == first, has_high && index == last), key);
            let ends = if backwards { index <= first } else { index >= last };
            if ends || self.count == most || self.is_full() {
                return Ok(());
            }
            index = if backwards { index - 1 } else { index + 1 };
        }
    }

    /// The inner page above the leaf that covers `key`, or that leaf if it is the root.
    fn lowest_inner(&self, key: &[u8]) -> Attempt<Seen> {
        let mut at = meet_root(self.image, self.which, self.me)?;
        for _ in 0..HEIGHT_MAX {
            let page = self.image.page(at.number);
            if page::level(page) <= 1 || page::kind(page) == LEAF {
                return Ok(at);
            }
            let (_, child) = find_child(page, key);
            at = meet_child(self.image, at, child, self.me)?;
        }
        Err(Stop::Restart)
    }

    /// Counts in one leaf, in which the span begins, ends, or does neither.
    fn add(&mut self, leaf: Seen, (has_low, has_high): (bool, bool), key: &mut Vec<u8>) {
        let page = self.image.page(leaf.number);
        let begin = if has_low { find(page, self.span.low).index } else { 0 };
        let end = if has_high { find(page, self.span.high).index } else { leaf_count(page) };
        let missing = self.span.most - self.count;
        let here = end.saturating_sub(begin) as u64;
        if here >= missing {
            let missing = missing as usize;
            let index = if self.span.backwards { end - missing } else { begin + missing - 1 };
            page::leaf_key(page, index, key);
        }
        self.count += here.min(missing);
        self.passed.push(leaf);
    }
}
