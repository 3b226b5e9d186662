//! Reading many records one behind another: those of a leaf are copied at once. One attempt.
//!
//! A walk over 10,000 nodes would descend for each. Instead a reading copies as many records as one leaf has, and
//! says in which leaf, under which word, it ended. The next reading begins there: if the leaf has still that word,
//! nothing is searched for. Else the place is found as for a single neighbour.
//!
//! Invariants
//! - What is read stood in the leaf under one word. What lies between `from` and its first key (or its last one,
//!   backwards) lies in leaves that are checked again at the end. So all is of one moment, and nothing in between
//!   is missing.
//! - Each leaf passed is another one: a search ends even in a damaged tree.
//!
//! Deliberately absent: long values, before which a reading ends.

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Entries, Origin, Scan};

use super::read::{beyond, place, recalled, Reader, Seek};
use super::{Neighbour, Seen, Visit};
use crate::error::Attempt;
use crate::page::{contains, copy_records, find, leaf_count, Page};

/// The neighbour that a reading begins with.
#[inline]
pub(crate) fn side_of(scan: &Scan<'_>) -> Neighbour {
    match (scan.backwards, scan.inclusive) {
        (true, _) => Neighbour::Previous,
        (false, true) => Neighbour::AtOrNext,
        (false, false) => Neighbour::Next,
    }
}

/// What a reading has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Some entries, all of one leaf; forwards the index of the first record behind them, backwards of the last one read.
    Some(Seen, usize),
    /// There is none.
    None,
    /// The next entry is to be read by itself: it has a long value, or something is in the way.
    Single,
}

/// Appends the entries that `scan` asks for to `out`, as many as one leaf has.
pub(crate) fn entries(
    reader: Reader<'_>,
    scan: &Scan<'_>,
    out: &mut Entries,
    visit: &mut impl Visit,
) -> Attempt<Read> {
    let Reader { image, fingers, which, .. } = reader;
    let side = side_of(scan);
    let seek = Seek { from: scan.from, side, bound: scan.bound };
    if side.ends_before(scan.from, scan.bound) {
        return Ok(Read::None);
    }
    let (mut leaf, mut index) = begin(reader, scan)?;
    let (mut passed, mut scratch) = (Vec::new(), Vec::new());
    while index.is_none() {
        passed.push(leaf);
        let Some(next) = beyond(reader, leaf, seek, &mut scratch)? else { break };
        leaf = next;
        let slots = leaf_count(image.page(leaf.number));
        index = if scan.backwards { slots.checked_sub(1) } else { (slots > 0).then_some(0) };
    }
    let read = match index {
        Some(index) => copy_entries(image.page(leaf.number), leaf, index, scan, out),
        None => Read::None,
    };
    for earlier in &passed {
        earlier.check(image)?;
    }
    if index.is_some() {
        leaf.check(image)?;
        fingers.point(which, leaf.number);
        passed.push(leaf);
    }
    passed.into_iter().for_each(|leaf| visit.visit(leaf));
    Ok(read)
}

/// The leaf in which a reading begins, and the index of its first record if that lies there.
#[inline]
fn begin(reader: Reader<'_>, scan: &Scan<'_>) -> Attempt<(Seen, Option<usize>)> {
    let Reader { image, fingers, which, .. } = reader;
    let side = side_of(scan);
    let Origin { place: number, version, next, .. } = scan.after;
    let word = LatchWord::from_raw(version);
    if number != 0 && !word.locked() && latch::load(image.latch(number as u32)) == word {
        let leaf = Seen { number: number as u32, word };
        return Ok((leaf, index_after(image.page(leaf.number), scan.backwards, next)));
    }
    if let Some((leaf, index)) = recalled(image, fingers, which, scan.from, side) {
        return Ok((leaf, Some(index)));
    }
    let leaf = reader.locate(scan.from)?;
    Ok((leaf, place(image.page(leaf.number), scan.from, side)))
}

/// The record of a leaf with which a reading goes on that has ended there; None: it lies in another leaf.
#[inline]
pub(crate) fn index_after(page: &Page, backwards: bool, next: usize) -> Option<usize> {
    if backwards {
        return next.checked_sub(1);
    }
    Some(next).filter(|next| *next < leaf_count(page))
}

/// Copies the entries of a leaf from record `index` on; what is answered counts once the leaf has been checked.
pub(crate) fn copy_entries(
    page: &Page,
    leaf: Seen,
    index: usize,
    scan: &Scan<'_>,
    out: &mut Entries,
) -> Read {
    let edge = |otherwise: usize| match contains(page, scan.bound) {
        true => find(page, scan.bound).index,
        false => otherwise,
    };
    let (bytes, ends) = out.many();
    let (wanted, copied) = if scan.backwards {
        let end = index + 1;
        let indices = edge(0).max(end.saturating_sub(scan.most))..end;
        (indices.len(), copy_records(page, indices.rev(), scan.values, bytes, ends))
    } else {
        let indices = index..edge(leaf_count(page)).min(index.saturating_add(scan.most));
        (indices.len(), copy_records(page, indices, scan.values, bytes, ends))
    };
    match copied {
        0 if wanted == 0 => Read::None,
        0 => Read::Single,
        _ if scan.backwards => Read::Some(leaf, index + 1 - copied),
        _ => Read::Some(leaf, index + copied),
    }
}
