//! Bytes written over a part of a long value.
//!
//! Problem: to change 100 bytes of a value of a megabyte, not all of its pages should be written anew. Idea: only
//! the pages that are touched move to new runs, with others of their block of [`PATCH_BLOCK`] pages, and the
//! value's list keeps the rest. A page that a patch has written in this generation is written in place.
//!
//! Example: a value has 128 pages in one run. A patch of 100 bytes at 300,000 touches page 36. Pages 32 to 39 move
//! to a new run, and the list has three runs then: 0 to 31, the new one, 40 to 127.
//!
//! A patch names absolute bytes at an absolute offset, so one that is applied twice is as good as applied once.
//! What lies between the end of a value and a patch behind it becomes zeros.
//!
//! Invariants
//! - Pages are written in place only if they were born in this generation *by a patch*: no generation that is kept
//!   has them, and no record of a ring names them, whose bytes the log still has to fetch ([`Life::was_run`] of a
//!   living page).
//! - Behind the end of a value such pages hold zeros.
//! - A list has at most [`VALUE_RUNS`] runs: where there would be more, the smallest neighbours become one.
//! - What a patch cuts off is what the old list names and the new one does not: fewer than [`FREED`] stretches.
//!
//! Deliberately absent: reading lists, latches, records of several operations.
//!
//! [`Life::was_run`]: crate::image::layout::Life
//! [`FREED`]: crate::limits::FREED

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use perilune_store::{Error, Result};

use super::extent::List;
use super::Seat;
use crate::error::Attempt;
use crate::image::layout::Run;
use crate::image::Image;
use crate::limits::{PAGE, PATCH_BLOCK, PATCH_SLACK, RUN_PAGES, VALUE_MAX, VALUE_RUNS};
use crate::proof;

/// Bytes at a place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch<'a> {
    pub(crate) offset: usize,
    pub(crate) bytes: &'a [u8],
}

impl Patch<'_> {
    fn end(&self) -> usize {
        self.offset.saturating_add(self.bytes.len())
    }
}

/// Appends patches to `out`, as they lie in the log: `{offset u64, length u64, bytes}` each.
pub(crate) fn encode<'a>(patches: impl IntoIterator<Item = Patch<'a>>, out: &mut Vec<u8>) {
    for Patch { offset, bytes } in patches {
        out.extend_from_slice(&(offset as u64).to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// The patches that [`encode`] has written; None if these bytes are none, or reach beyond what a value may have.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Patch<'_>>> {
    let mut patches = Vec::new();
    while !bytes.is_empty() {
        let (offset, rest) = bytes.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let [offset, length] = [offset, length].map(|word| usize::try_from(u64::from_le_bytes(*word)));
        let (own, rest) = rest.split_at_checked(length.ok()?)?;
        let patch = Patch { offset: offset.ok()?, bytes: own };
        if patch.end() > VALUE_MAX {
            return None;
        }
        patches.push(patch);
        bytes = rest;
    }
    Some(patches)
}

/// Writes patches over a value that lies in memory.
pub(crate) fn apply_to_bytes(patches: &[Patch<'_>], value: &mut Vec<u8>) {
    for Patch { offset, bytes } in patches {
        value.resize(value.len().max(offset + bytes.len()), 0);
        value[*offset..*offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// The value of an operation that patches, as it lies in a ring: `{list, count u64, runs u64 x count, patches}`,
/// where the list is the new one, and the runs are those in it that the old list had not.
pub(crate) struct Parts<'a> {
    pub(crate) list: &'a [u8],
    pub(crate) fresh: Vec<Run>,
    /// As [`decode`] takes them.
    pub(crate) patches: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The parts of an operation's value; None if it is none.
    pub(crate) fn of(value: &'a [u8]) -> Option<Parts<'a>> {
        let (list, rest) = value.split_at_checked(list_bytes(value)?)?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count <= VALUE_RUNS)?;
        let (words, patches) = rest.split_at_checked(8 * count)?;
        let (words, _) = words.as_chunks::<8>();
        let fresh = words.iter().map(|word| Run::from_word(u64::from_le_bytes(*word))).collect();
        Some(Parts { list, fresh, patches })
    }
}

/// How many bytes the list has that `value` begins with.
pub(crate) fn list_bytes(value: &[u8]) -> Option<usize> {
    let count = u64::from_le_bytes(value.get(8..16)?.try_into().ok()?);
    usize::try_from(count).ok().filter(|count| *count <= VALUE_RUNS).map(|count| 16 + 8 * count)
}

/// How the pages of a value will lie.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// Bytes of the value.
    length: usize,
    parts: Vec<Part>,
}

/// Pages one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Kept(Run),
    Fresh(u32),
}

impl Part {
    fn pages(self) -> u32 {
        match self {
            Part::Kept(run) => run.pages,
            Part::Fresh(pages) => pages,
        }
    }
}

/// Pages `range` of the value in `runs`, each with its number.
fn pages_of(runs: &[Run], range: Range<usize>) -> impl Iterator<Item = (usize, u32)> + '_ {
    let mut begin = 0;
    runs.iter().flat_map(move |run| {
        let (from, end) = (begin, begin + run.pages as usize);
        begin = end;
        (range.start.max(from)..range.end.min(end)).map(move |page| (page, run.first + (page - from) as u32))
    })
}

/// Sorts ranges, and makes one of those that meet.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

/// Which of the `pages` pages of a value patches write to, and what lies between its end and theirs.
fn touched(len: usize, length: usize, pages: usize, patches: &[Patch<'_>]) -> Vec<Range<usize>> {
    let range = |from: usize, to: usize| from / PAGE..to.div_ceil(PAGE).min(pages);
    let mut all: Vec<Range<usize>> = patches.iter().map(|patch| range(patch.offset, patch.end())).collect();
    if length > len {
        all.push(range(len, length));
    }
    joined(all)
}

/// How a value of `len` bytes in `runs` will lie when `patches` have been written over it.
fn lay_out(len: usize, runs: &[Run], patches: &[Patch<'_>], is_private: impl Fn(u32) -> bool) -> Layout {
    let pages: usize = runs.iter().map(|run| run.pages as usize).sum();
    let length = patches.iter().map(Patch::end).max().unwrap_or(0).max(len);
    let mut fresh = Vec::new();
    for range in touched(len, length, pages, patches) {
        for (page, _) in pages_of(runs, range).filter(|(_, number)| !is_private(*number)) {
            let block = page / PATCH_BLOCK * PATCH_BLOCK;
            fresh.push(block..(block + PATCH_BLOCK).min(pages));
        }
    }
    let needed = length.div_ceil(PAGE);
    if needed > pages {
        fresh.push(pages..needed + PATCH_SLACK.min(needed / 4 + 1));
    }
    let mut fresh = joined(fresh);
    let mut parts = parts_of(runs, &fresh);
    while parts.len() > VALUE_RUNS {
        let Some(range) = smallest_pair(&parts) else { break };
        fresh.push(range);
        fresh = joined(fresh);
        parts = parts_of(runs, &fresh);
    }
    Layout { length, parts }
}

/// The pages of the two neighbours that take fewest, and fit a run.
fn smallest_pair(parts: &[Part]) -> Option<Range<usize>> {
    let mut begin = 0;
    let mut best: Option<Range<usize>> = None;
    for pair in parts.windows(2) {
        let pages = (pair[0].pages() + pair[1].pages()) as usize;
        if pages <= RUN_PAGES as usize && best.as_ref().is_none_or(|best| pages < best.len()) {
            best = Some(begin..begin + pages);
        }
        begin += pair[0].pages() as usize;
    }
    best
}

/// The parts of a value in `runs` of which the pages `fresh`, in order, move.
fn parts_of(runs: &[Run], fresh: &[Range<usize>]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let keep = |parts: &mut Vec<Part>, range: Range<usize>| {
        let mut begin = 0;
        for run in runs {
            let end = begin + run.pages as usize;
            let (from, to) = (range.start.max(begin), range.end.min(end));
            if from < to {
                let (first, pages) = (run.first + (from - begin) as u32, (to - from) as u32);
                match parts.last_mut() {
                    Some(Part::Kept(last)) if last.first + last.pages == first => last.pages += pages,
                    _ => parts.push(Part::Kept(Run { first, pages })),
                }
            }
            begin = end;
        }
    };
    let mut at = 0;
    for range in fresh {
        keep(&mut parts, at..range.start);
        let mut left = range.len();
        while left > 0 {
            let pages = left.min(RUN_PAGES as usize);
            parts.push(Part::Fresh(pages as u32));
            left -= pages;
        }
        at = range.end;
    }
    keep(&mut parts, at..usize::MAX);
    parts
}

/// Whether nobody but the value has a page as it is in `generation`: it is written in place.
fn is_private(image: &Image, number: u32, generation: u32) -> bool {
    let life = image.life(number);
    life.is_patched() && life.born == generation
}

/// How one value is to be patched.
pub(crate) struct Plan {
    /// The list that it is made for.
    before: Vec<u8>,
    /// The generation that it is made in.
    generation: u32,
    old: (usize, Vec<Run>),
    runs: Vec<Run>,
    fresh: Vec<Run>,
    /// The pages that are written where they are.
    in_place: Vec<u32>,
    /// The operation's value.
    pub(crate) value: Vec<u8>,
}

impl Plan {
    /// Makes a plan for the value that `list` names, and takes the runs that it needs.
    ///
    /// # Errors
    /// `ValueTooLong`; `Corrupt` if the list is none; as `extent::take`.
    pub(crate) fn make(seat: &Seat, list: Vec<u8>, generation: u32, patches: &[u8]) -> Result<Plan> {
        let damaged = || Error::Corrupt { place: "a long value that is to be patched".to_owned() };
        let (len, runs) = super::extent::parse(&seat.image, &list).ok_or_else(damaged)?;
        let decoded = decode(patches).ok_or_else(damaged)?;
        let layout = lay_out(len, &runs, &decoded, |number| is_private(&seat.image, number, generation));
        let (mut new, mut fresh) = (Vec::new(), Vec::new());
        for part in &layout.parts {
            match part {
                Part::Kept(run) => new.push(*run),
                Part::Fresh(pages) => match seat.take_run(*pages) {
                    Ok(run) => {
                        new.push(run);
                        fresh.push(run);
                    }
                    Err(error) => {
                        seat.give_back_runs(&fresh);
                        return Err(error);
                    }
                },
            }
        }
        let mut in_place: Vec<u32> = touched(len, layout.length, usize::MAX, &decoded)
            .into_iter()
            .flat_map(|range| pages_of(&new, range).map(|(_, number)| number))
            .collect();
        in_place
            .retain(|number| !fresh.iter().any(|run| (run.first..run.first + run.pages).contains(number)));
        let mut value = List::new(layout.length, new.clone()).as_bytes().to_vec();
        value.extend_from_slice(&(fresh.len() as u64).to_le_bytes());
        fresh.iter().for_each(|run| value.extend_from_slice(&run.to_word().to_le_bytes()));
        value.extend_from_slice(patches);
        Ok(Plan { before: list, generation, old: (len, runs), runs: new, fresh, in_place, value })
    }

    /// Whether it is for a value with this list, in this generation. The value does not change meanwhile.
    pub(crate) fn is_for(&self, image: &Image, list: &[u8], generation: u32) -> bool {
        // NB: the same pages may have come back with a value that was set since.
        self.before == list
            && self.generation == generation
            && self.in_place.iter().all(|number| is_private(image, *number, generation))
    }

    /// Gives back what it has taken.
    pub(crate) fn give_back(&self, seat: &Seat) {
        seat.give_back_runs(&self.fresh);
    }

    /// Compares the pages that are to be copied with their sums, if nobody has yet: what is copied gets a sum of its own.
    ///
    /// # Errors
    /// `Restart` if the value's pages have been freed meanwhile; `Corrupt`.
    pub(crate) fn prove(&self, image: &Image) -> Attempt<()> {
        let (len, old) = &self.old;
        let mut begin = 0;
        for run in &self.runs {
            let end = begin + run.pages as usize;
            if self.fresh.contains(run) {
                for (_, first) in pages_of(old, begin..end.min(len.div_ceil(PAGE))) {
                    proof::run(image, Run { first, pages: 1 })?;
                }
            }
            begin = end;
        }
        Ok(())
    }

    /// Fills the new runs with what lies at their places now, and zeros behind the end. The value does not change meanwhile.
    pub(crate) fn fill(&self, image: &Image) {
        let (len, old) = &self.old;
        let mut begin = 0;
        for run in &self.runs {
            let end = begin + run.pages as usize;
            if self.fresh.contains(run) {
                let mut copied = begin;
                for (page, number) in pages_of(old, begin..end.min(len.div_ceil(PAGE))) {
                    copy_page(
                        image,
                        number,
                        run.first + (page - begin) as u32,
                        (len - page * PAGE).min(PAGE),
                    );
                    copied = page + 1;
                }
                for page in copied..end {
                    copy_page(image, run.first, run.first + (page - begin) as u32, 0);
                }
            }
            begin = end;
        }
    }
}

/// Copies the first bytes of a page; the others become zeros.
fn copy_page(image: &Image, from: u32, to: u32, bytes: usize) {
    let page = |number: u32| image.db.slice(number as usize * PAGE, PAGE / 8);
    for (at, (from, to)) in page(from).iter().zip(page(to)).enumerate() {
        let left = bytes.saturating_sub(8 * at);
        let word = match left {
            0 => 0,
            1..8 => from.load(Relaxed) & ((1 << (8 * left)) - 1),
            _ => from.load(Relaxed),
        };
        to.store(word, Relaxed);
    }
}

/// Writes patches over the value in `runs`, whose pages nobody else writes.
pub(crate) fn write(image: &Image, runs: &[Run], patches: &[Patch<'_>]) {
    for Patch { offset, bytes } in patches {
        let mut begin = 0;
        for run in runs {
            let end = begin + run.pages as usize * PAGE;
            let (from, to) = ((*offset).max(begin), (offset + bytes.len()).min(end));
            if from < to {
                write_at(image, run.first as usize * PAGE + from - begin, &bytes[from - offset..to - offset]);
            }
            begin = end;
        }
    }
}

/// Writes bytes to `offset` (any) of the image on.
fn write_at(image: &Image, mut offset: usize, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (word, skipped) = (image.db.word(offset & !7), offset % 8);
        let count = bytes.len().min(8 - skipped);
        let mut whole = word.load(Relaxed).to_le_bytes();
        whole[skipped..skipped + count].copy_from_slice(&bytes[..count]);
        word.store(u64::from_le_bytes(whole), Relaxed);
        offset += count;
        bytes = &bytes[count..];
    }
}

/// The stretches of `old` that `new` does not name.
pub(crate) fn without(old: &[Run], new: &[Run]) -> Vec<Run> {
    let mut kept: Vec<Run> = new.to_vec();
    kept.sort_unstable_by_key(|run| run.first);
    let mut cut = Vec::new();
    for run in old {
        let (mut at, end) = (run.first, run.first + run.pages);
        let next = kept.partition_point(|kept| kept.first + kept.pages <= at);
        for kept in &kept[next..] {
            if kept.first >= end || at >= end {
                break;
            }
            if kept.first > at {
                cut.push(Run { first: at, pages: kept.first - at });
            }
            at = at.max(kept.first + kept.pages);
        }
        if at < end {
            cut.push(Run { first: at, pages: end - at });
        }
    }
    cut
}

#[cfg(test)]
mod tests;
