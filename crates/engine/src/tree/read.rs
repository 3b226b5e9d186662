//! Reading: a value, the neighbours of a key. Each function is one attempt.
//!
//! Problem: readers latch nothing, so what they read may change meanwhile, and a neighbour may lie in another leaf
//! than the key. Idea: every leaf passed is told to a [`Visit`] with the latch word under which it was read. After
//! the answer has been copied, all these words are checked again. If none has changed, the answer is that of one
//! moment; else the attempt ends with `Restart`.
//!
//! Example: the next key behind the last of leaf 57 is the first of leaf 90. The answer counts only if both words
//! are what they were.

use std::ops::Range;

use perilune_shm::{latch, words};
use perilune_store::{Error, Presence};

use super::gaps::Gaps;
use super::{descend, locate, Fingers, Seen, Which};
use crate::error::{Attempt, Stop};
use crate::image::layout::Run;
use crate::image::Image;
use crate::page::{self, find, leaf_count, Found, Page, RECORD_BIG};
use crate::session::extent;

/// Bytes of a long value that are copied between two checks.
const CHUNK: usize = 64 << 10;

/// Is told of the leaves that an answer rests on.
pub(crate) trait Visit {
    /// The answer rests on `leaf` as it was met.
    fn visit(&mut self, leaf: Seen);

    /// For so many leaves an answer may rest on; of more it makes nothing.
    #[inline(always)]
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Notes a leaf that the answer rests on, and the place of the answer in it: of the key asked for, or of its neighbour.
    #[inline(always)]
    fn visit_at(&mut self, leaf: Seen, _place: Found) {
        self.visit(leaf);
    }
}

impl Visit for () {
    #[inline(always)]
    fn visit(&mut self, _leaf: Seen) {}
}

impl Visit for Vec<Seen> {
    #[inline]
    fn visit(&mut self, leaf: Seen) {
        self.push(leaf);
    }
}

/// Where a value that is found goes, and how many of its bytes are copied at most.
pub(crate) struct Wanted<'a> {
    out: &'a mut Vec<u8>,
    most: usize,
}

impl<'a> Wanted<'a> {
    /// For all of it.
    #[inline]
    pub(crate) fn whole(out: &'a mut Vec<u8>) -> Wanted<'a> {
        Wanted { out, most: usize::MAX }
    }

    /// For its first bytes; `most` as in a question that is asked again.
    #[inline]
    pub(crate) fn first(out: &'a mut Vec<u8>, most: usize) -> Wanted<'a> {
        Wanted { out, most }
    }

    /// For another attempt.
    #[inline]
    pub(crate) fn again(&mut self) -> Wanted<'_> {
        Wanted { out: &mut *self.out, most: self.most }
    }

    /// How many bytes at most.
    #[inline]
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Copies as much of `value` as is wanted.
    pub(crate) fn put(&mut self, value: &[u8]) {
        value[..value.len().min(self.most)].clone_into(self.out);
    }

    /// Where it goes, and how much of it.
    pub(crate) fn parts(self) -> (&'a mut Vec<u8>, usize) {
        (self.out, self.most)
    }

    /// What has been copied.
    #[inline]
    pub(crate) fn copied(&self) -> &[u8] {
        self.out
    }
}

/// Which neighbour of a key is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Neighbour {
    /// The first key after it.
    Next,
    /// The first key not before it.
    AtOrNext,
    /// The last key before it.
    Previous,
}

impl Neighbour {
    /// Whether no neighbour of `from` on this side lies within `bound` (empty: none).
    #[inline]
    pub(crate) fn ends_before(self, from: &[u8], bound: &[u8]) -> bool {
        match self {
            _ if bound.is_empty() => false,
            Neighbour::Previous => from <= bound,
            _ => from >= bound,
        }
    }

    /// Whether a neighbour with this key lies within `bound`: from it on, or below it.
    #[inline]
    pub(crate) fn is_within(self, key: &[u8], bound: &[u8]) -> bool {
        match self {
            _ if bound.is_empty() => true,
            Neighbour::Previous => key >= bound,
            _ => key < bound,
        }
    }
}

/// Who reads, and in which tree.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) image: &'a Image,
    pub(crate) fingers: &'a Fingers,
    pub(crate) which: Which,
    /// The seat of whoever holds latches meanwhile; 0: nobody does.
    pub(crate) me: u16,
}

/// A search for the neighbour of a key.
#[derive(Clone, Copy)]
pub(crate) struct Seek<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) side: Neighbour,
    /// What lies at or behind it is none; backwards, what lies before it. Empty: there is no bound.
    pub(crate) bound: &'a [u8],
}

/// A record of a leaf, as that was met.
#[derive(Clone, Copy)]
struct Record {
    leaf: Seen,
    index: usize,
}

impl Reader<'_> {
    /// The leaf that covers `key`.
    #[inline(always)]
    pub(super) fn locate(&self, key: &[u8]) -> Attempt<Seen> {
        locate(self.image, self.fingers, self.which, key, self.me)
    }

    /// The page of a leaf that was met.
    #[inline(always)]
    pub(super) fn page(&self, leaf: Seen) -> &Page {
        self.image.page(leaf.number)
    }
}

/// Copies the value at `key` into `out`; false when there is none.
#[inline]
pub(crate) fn get(
    reader: Reader<'_>,
    key: &[u8],
    out: &mut Vec<u8>,
    visit: &mut impl Visit,
) -> Attempt<bool> {
    let Reader { image, fingers, .. } = reader;
    let leaf = reader.locate(key)?;
    let found = fingers.find(leaf.number, image.page(leaf.number), key);
    out.clear();
    if found.equal {
        value_into(image, fingers, leaf, found.index, out)?;
    }
    leaf.check(image)?;
    visit.visit_at(leaf, found);
    Ok(found.equal)
}

/// Copies the value of record `index` of a leaf that was met before into `out`, if the leaf is still as it was then.
#[inline]
pub(crate) fn value_at(
    image: &Image,
    fingers: &Fingers,
    leaf: Seen,
    index: usize,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    out.clear();
    value_into(image, fingers, leaf, index, out)?;
    leaf.check(image)
}

/// Appends the value of record `index` to `out`; the leaf is still to be checked.
#[inline]
fn value_into(image: &Image, fingers: &Fingers, leaf: Seen, index: usize, out: &mut Vec<u8>) -> Attempt<()> {
    let flags = page::append_value(image.page(leaf.number), index, out);
    if flags & RECORD_BIG != 0 {
        leaf.check(image)?;
        long_value(image, fingers, leaf, out)?;
    }
    Ok(())
}

/// Replaces the list of runs in `out` by the value that lies there.
#[cold]
fn long_value(image: &Image, fingers: &Fingers, leaf: Seen, out: &mut Vec<u8>) -> Attempt<()> {
    let (len, runs) = extent::parse(image, out).ok_or(Stop::Restart)?;
    admit(fingers, len)?;
    out.clear();
    out.reserve(len);
    long_piece(image, leaf, &runs, 0..len, out)
}

/// Refuses to read more of a long value than the session reads at once.
fn admit(fingers: &Fingers, bytes: usize) -> Attempt<()> {
    if fingers.is_beyond(bytes) {
        return Err(Stop::Fail(Error::LongRead { bytes }));
    }
    Ok(())
}

/// Appends a piece of the value that lies in `runs` to `out`, as long as the leaf is as it was met.
fn long_piece(
    image: &Image,
    leaf: Seen,
    runs: &[Run],
    piece: Range<usize>,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    let mut at = piece.start;
    while at < piece.end {
        let end = (at + CHUNK).min(piece.end);
        extent::append_piece_proved(image, runs, at..end, out)?;
        leaf.check(image)?;
        at = end;
    }
    Ok(())
}

/// Appends the first bytes of the value of record `index` to `out`; the leaf is still to be checked.
fn first_into(
    image: &Image,
    fingers: &Fingers,
    leaf: Seen,
    index: usize,
    most: usize,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    let page = image.page(leaf.number);
    let (offset, len, flags) = page::value_place(page, index);
    if flags & RECORD_BIG == 0 {
        words::append(page, offset, len.min(most), out);
        return Ok(());
    }
    pieces_into(image, fingers, leaf, index, std::slice::from_ref(&(0..most)), out).map(drop)
}

/// Copies pieces of the value at `key` into `out`, the bytes of each range as far as there are such, and answers how many
/// bytes the value has; None when there is none.
pub(crate) fn pieces(
    reader: Reader<'_>,
    key: &[u8],
    pieces: &[Range<usize>],
    out: &mut Vec<u8>,
    visit: &mut impl Visit,
) -> Attempt<Option<usize>> {
    let Reader { image, fingers, .. } = reader;
    let leaf = reader.locate(key)?;
    let found = fingers.find(leaf.number, image.page(leaf.number), key);
    out.clear();
    let mut bytes = None;
    if found.equal {
        bytes = Some(pieces_into(image, fingers, leaf, found.index, pieces, out)?);
    }
    leaf.check(image)?;
    visit.visit_at(leaf, found);
    Ok(bytes)
}

/// Copies pieces of the value of record `index` of a leaf that was met before, if the leaf is still as it was then.
pub(crate) fn pieces_at(
    image: &Image,
    fingers: &Fingers,
    leaf: Seen,
    index: usize,
    pieces: &[Range<usize>],
    out: &mut Vec<u8>,
) -> Attempt<usize> {
    out.clear();
    let bytes = pieces_into(image, fingers, leaf, index, pieces, out)?;
    leaf.check(image)?;
    Ok(bytes)
}

/// Appends pieces of the value of record `index`; the leaf is still to be checked.
fn pieces_into(
    image: &Image,
    fingers: &Fingers,
    leaf: Seen,
    index: usize,
    pieces: &[Range<usize>],
    out: &mut Vec<u8>,
) -> Attempt<usize> {
    let page = image.page(leaf.number);
    let (offset, len, flags) = page::value_place(page, index);
    if flags & RECORD_BIG == 0 {
        for piece in pieces {
            let end = piece.end.min(len);
            let start = piece.start.min(end);
            words::append(page, offset + start, end - start, out);
        }
        return Ok(len);
    }
    let mut list = Vec::new();
    words::append(page, offset, len, &mut list);
    leaf.check(image)?;
    let (len, runs) = extent::parse(image, &list).ok_or(Stop::Restart)?;
    admit(fingers, pieces.iter().map(|piece| piece.end.min(len).saturating_sub(piece.start)).sum())?;
    for piece in pieces {
        let end = piece.end.min(len);
        out.reserve(end.saturating_sub(piece.start));
        long_piece(image, leaf, &runs, piece.start..end, out)?;
    }
    Ok(len)
}

/// The list of runs of the long value at `key`, and the leaf where it lies; None when there is none, or a short one.
pub(crate) fn list_of(
    image: &Image,
    fingers: &Fingers,
    which: Which,
    key: &[u8],
) -> Attempt<Option<(Vec<u8>, Seen)>> {
    let leaf = locate(image, fingers, which, key, 0)?;
    let page = image.page(leaf.number);
    let found = fingers.find(leaf.number, page, key);
    let mut list = Vec::new();
    let is_long = found.equal && page::append_value(page, found.index, &mut list) & RECORD_BIG != 0;
    leaf.check(image)?;
    Ok(is_long.then_some((list, leaf)))
}

/// Whether there is a value at `key`.
pub(crate) fn has_value(reader: Reader<'_>, key: &[u8], visit: &mut impl Visit) -> Attempt<bool> {
    let leaf = reader.locate(key)?;
    let found = find(reader.page(leaf), key);
    leaf.check(reader.image)?;
    visit.visit_at(leaf, found);
    Ok(found.equal)
}

/// What lies at `key` and below it, if the leaf that covers it tells; None: what lies below may begin behind it.
#[inline]
pub(crate) fn presence(reader: Reader<'_>, key: &[u8]) -> Attempt<Option<Presence>> {
    let Reader { image, fingers, .. } = reader;
    let leaf = reader.locate(key)?;
    let page = image.page(leaf.number);
    let found = fingers.find(leaf.number, page, key);
    let next = found.index + usize::from(found.equal);
    let below = page::leads(page, next, key);
    leaf.check(image)?;
    Ok(below.map(|descendants| Presence { value: found.equal, descendants }))
}

/// Copies the neighbour's key into `key`, and its value into `value` if given; false when there is none
/// within `bound`. No leaf is visited that lies wholly outside.
#[inline]
pub(crate) fn neighbour(
    reader: Reader<'_>,
    seek: Seek<'_>,
    key: &mut Vec<u8>,
    mut value: Option<Wanted<'_>>,
    visit: &mut impl Visit,
) -> Attempt<bool> {
    let Reader { image, fingers, which, .. } = reader;
    let Seek { from, side, bound } = seek;
    if side.ends_before(from, bound) {
        return Ok(false);
    }
    if let Some((leaf, index)) = recalled(image, fingers, which, from, side) {
        return answer(reader, Record { leaf, index }, seek, key, value, visit);
    }
    let mut leaf = reader.locate(from)?;
    let mut index = place(image.page(leaf.number), from, side);
    if let Some(index) = index.filter(|_| side != Neighbour::Next) {
        let below = index + usize::from(side == Neighbour::Previous);
        fingers.gaps.note(image, Gaps::place(from), leaf.number, below);
    }
    let mut passed: Vec<Seen> = Vec::new();
    loop {
        if let Some(index) = index {
            for earlier in &passed {
                earlier.check(image)?;
            }
            let value = value.as_mut().map(Wanted::again);
            let found = answer(reader, Record { leaf, index }, seek, key, value, visit)?;
            for earlier in &passed {
                earlier.check(image)?;
                visit.visit(*earlier);
            }
            return Ok(found);
        }
        passed.push(leaf);
        match beyond(reader, leaf, seek, key)? {
            Some(next) => leaf = next,
            None => {
                for earlier in &passed {
                    earlier.check(image)?;
                    visit.visit(*earlier);
                }
                return Ok(false);
            }
        }
        let slots = leaf_count(image.page(leaf.number));
        index = match side {
            Neighbour::Previous => slots.checked_sub(1),
            _ => (slots > 0).then_some(0),
        };
    }
}

/// The index of the wanted record in the leaf that covers `from`, if it lies there.
#[inline]
pub(crate) fn place(page: &Page, from: &[u8], side: Neighbour) -> Option<usize> {
    let found = find(page, from);
    match side {
        Neighbour::Previous => found.index.checked_sub(1),
        Neighbour::Next if found.equal => Some(found.index + 1).filter(|index| *index < leaf_count(page)),
        _ => Some(found.index).filter(|index| *index < leaf_count(page)),
    }
}

/// The leaf beside `leaf`, or None at the edge of the tree or the bound. `scratch` is overwritten.
pub(super) fn beyond(
    reader: Reader<'_>,
    leaf: Seen,
    seek: Seek<'_>,
    scratch: &mut Vec<u8>,
) -> Attempt<Option<Seen>> {
    let Reader { image, which, me, .. } = reader;
    if !key_beyond(image, leaf, seek, scratch)? {
        return Ok(None);
    }
    let next = descend(image, which, scratch, me)?;
    leaf.check(image)?;
    // NB: each step leads to another leaf, so that a search ends even in a damaged tree.
    if !page::contains(image.page(next.number), scratch) {
        return Err(Stop::Restart);
    }
    Ok(Some(next))
}

/// Replaces `key` by one that the leaf beside `leaf` covers; false at the edge of the tree or the bound.
pub(super) fn key_beyond(
    image: &Image,
    leaf: Seen,
    Seek { side, bound, .. }: Seek<'_>,
    key: &mut Vec<u8>,
) -> Attempt<bool> {
    let page = image.page(leaf.number);
    if side == Neighbour::Previous {
        page::lo_fence(page, key);
    } else {
        page::hi_fence(page, key);
    }
    leaf.check(image)?;
    if key.is_empty() {
        return Ok(false);
    }
    if side != Neighbour::Previous {
        // The smallest key above the inclusive fence.
        key.push(0);
    }
    Ok(side.is_within(key, bound))
}

/// The wanted record, if it stands beside the one that was answered last, or where it stood when it was asked for before.
#[inline]
pub(super) fn recalled(
    image: &Image,
    fingers: &Fingers,
    which: Which,
    from: &[u8],
    side: Neighbour,
) -> Option<(Seen, usize)> {
    let again = || {
        let aim = fingers.gaps.aim(image, from);
        let (leaf, below) = fingers.gaps.find(image, which, from, aim)?;
        let index = if side == Neighbour::Previous { below.checked_sub(1)? } else { below };
        let is_there = index < leaf_count(image.page(leaf.number));
        is_there.then(|| {
            fingers.point(which, leaf.number);
            (leaf, index)
        })
    };
    match side {
        Neighbour::Next => beside(image, fingers, which, from, side),
        // Mostly the head of a subtree.
        Neighbour::AtOrNext => again().or_else(|| beside(image, fingers, which, from, side)),
        Neighbour::Previous => beside(image, fingers, which, from, side).or_else(again),
    }
}

/// The wanted record, if it stands beside the one that was answered last and its leaf is unchanged.
#[inline]
fn beside(
    image: &Image,
    fingers: &Fingers,
    which: Which,
    from: &[u8],
    side: Neighbour,
) -> Option<(Seen, usize)> {
    let (number, raw, index) = fingers.place.get();
    if number == 0 {
        return None;
    }
    let word = latch::load(image.latch(number));
    let page = image.page(number);
    if word.raw() != raw || page::flags(page) != which.page_flags() {
        return None;
    }
    let found = match side {
        Neighbour::Next => page::next_is(page, index, from, false),
        Neighbour::AtOrNext => page::next_is(page, index, from, true),
        Neighbour::Previous => page::previous_is(page, index, from),
    };
    found.map(|index| (Seen { number, word }, index))
}

/// Copies record `index` out and remembers the place; false if it lies outside the bound.
#[inline]
fn answer(
    reader: Reader<'_>,
    record: Record,
    Seek { side, bound, .. }: Seek<'_>,
    key: &mut Vec<u8>,
    value: Option<Wanted<'_>>,
    visit: &mut impl Visit,
) -> Attempt<bool> {
    let (Reader { image, fingers, .. }, Record { leaf, index }) = (reader, record);
    page::leaf_key(image.page(leaf.number), index, key);
    if !side.is_within(key, bound) {
        leaf.check(image)?;
        visit.visit(leaf);
        return Ok(false);
    }
    if let Some(Wanted { out, most }) = value {
        out.clear();
        if most == usize::MAX {
            value_into(image, fingers, leaf, index, out)?;
        } else {
            first_into(image, fingers, leaf, index, most, out)?;
        }
    }
    leaf.check(image)?;
    if !leaf.word.locked() {
        fingers.place.set((leaf.number, leaf.word.raw(), index));
    }
    visit.visit_at(leaf, Found { index, equal: true });
    Ok(true)
}
