//! Writing a run of ascending keys, leaf by leaf: the keys of a run that belong to one leaf cost one latch, one
//! record and one step together.
//!
//! Example: of 1,000 pairs the first 40 belong to leaf 57 and fit it. One attempt writes them and answers
//! `Done(40)`; the caller goes on with the rest. Such a part of a run is a *chunk*.
//!
//! Invariants
//! - A chunk is published at once and applied in one step, as a single write is. The next chunk is another
//!   operation.
//! - The keys of a run ascend strictly, and its values lie inline. Those of a chunk lie in the fences of its leaf
//!   and fit it, and the values that they replace lie inline, too.
//! - Where keys go to the end of a leaf only the page's head and slots are saved: what lies between slots and heap
//!   is nothing yet.
//!
//! What if we are killed? As in `write`: before the publication nothing has happened; after it repair takes back
//! the half step and applies the whole record.
//!
//! Deliberately absent: sorting, values in runs of pages, repeating (`access`).

use super::apply::change;
use super::write::admitted;
use super::{locate, Fingers, Seen, Which};
use crate::error::{Attempt, Stop};
use crate::image::layout::phase;
use crate::limits::{PAGE, PAGE_HEAD};
use crate::page::{self, find, leaf_count, Found, NoSave, Page, Save, RECORD_BIG};
use crate::session::record::{Kind, Op, HEADING};
use crate::session::{PageUndo, Seat};

/// Pairs of a key and its value. What `write_run` takes ascends strictly, its values lie inline.
pub(crate) type Pairs<'a> = [(&'a [u8], &'a [u8])];

/// What has come of an attempt at a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The first so many pairs are in the tree.
    Done(usize),
    /// The first pair must be written by itself: the value that it replaces is long, or the leaf worn out.
    Single,
    /// There is no room: the leaf must be split, as [`Draft::cut`] says.
    Part,
}

/// What an attempt gathers; kept from one to the next for its memory.
#[derive(Default)]
pub(crate) struct Draft<'a> {
    ops: Vec<Op<'a>>,
    fence: Vec<u8>,
    /// Bytes that the record may have.
    pub(crate) room: usize,
    /// The keys to split the leaf between: the second, and the first unless it is empty.
    pub(crate) cut: (Vec<u8>, Vec<u8>),
}

impl<'a> Draft<'a> {
    fn part(&mut self, before: &[u8], key: &[u8]) -> Progress {
        for (to, from) in [(&mut self.cut.0, before), (&mut self.cut.1, key)] {
            to.clear();
            to.extend_from_slice(from);
        }
        Progress::Part
    }
}

/// One attempt at the first pairs of a run, which is not empty. `seat` has entered the operation.
///
/// # Errors
/// As `write`, without `Split`.
pub(crate) fn write_run<'a>(
    seat: &Seat,
    fingers: &Fingers,
    pairs: &Pairs<'a>,
    draft: &mut Draft<'a>,
) -> Attempt<Progress> {
    let leaf = locate(&seat.image, fingers, Which::Main, pairs[0].0, 0)?;
    // A version near its end is a matter for the single write, which explains it.
    if Seat::version_exhausted(leaf.word) {
        return Ok(Progress::Single);
    }
    if !seat.try_latch(leaf.number, leaf.word) {
        return Err(Stop::Restart);
    }
    match write_latched(seat, leaf, pairs, draft) {
        Ok(Progress::Done(count)) => Ok(Progress::Done(count)),
        otherwise => {
            seat.release_unchanged(leaf.number);
            seat.forget_latch();
            otherwise
        }
    }
}

/// With the leaf latched; unless it answers `Done` the leaf is unchanged and still latched.
fn write_latched<'a>(seat: &Seat, leaf: Seen, pairs: &Pairs<'a>, draft: &mut Draft<'a>) -> Attempt<Progress> {
    let page = seat.image.page(leaf.number);
    let mut epoch = admitted(seat, leaf.number, Which::Main)?;
    let found = find(page, pairs[0].0);
    let at_end = found.index == leaf_count(page);
    let inside = inside(page, pairs, &mut draft.fence);
    let pairs = &pairs[..inside];
    if let Some(progress) = cut_empty(page, pairs, draft) {
        return Ok(progress);
    }
    let need = gather(page, pairs, at_end, draft.room, &mut draft.ops);
    if draft.ops.is_empty() {
        return Ok(make_room(page, pairs, found, draft));
    }
    let ops = &draft.ops;
    seat.set_seq(leaf.word.version());
    loop {
        let len = seat.write_record(epoch.generation, epoch.flush, ops, &[]);
        if seat.publish(len) {
            break;
        }
        epoch = admitted(seat, leaf.number, Which::Main)?;
    }
    seat.begin_step();
    let save = &mut PageUndo { seat, number: leaf.number };
    if at_end && need <= page::leaf_gap(page) {
        page::leaf_append(page, save, ops.iter().map(|op| (op.key, op.value)));
    } else {
        save.save(0, PAGE);
        for op in ops {
            change(page, &mut NoSave, find(page, op.key), op);
        }
    }
    seat.set_phase(phase::NONE);
    seat.set_applied();
    seat.release(leaf.number, 0);
    for op in ops {
        seat.notify(op.key, false);
    }
    Ok(Progress::Done(ops.len()))
}

/// How many of the first pairs belong to the leaf, as far as it could hold them at all.
fn inside(page: &Page, pairs: &Pairs<'_>, fence: &mut Vec<u8>) -> usize {
    let most = pairs.len().min(PAGE / page::record_bytes(0, 1));
    page::hi_fence(page, fence);
    if fence.is_empty() {
        return most;
    }
    pairs[..most].partition_point(|(key, _)| *key <= &fence[..])
}

/// Collects the operations that fit the leaf now; answers the bytes they need.
fn gather<'a>(page: &Page, pairs: &Pairs<'a>, at_end: bool, room: usize, ops: &mut Vec<Op<'a>>) -> usize {
    let free = page::leaf_free(page);
    let (mut need, mut record) = (0, HEADING);
    ops.clear();
    for (key, value) in pairs {
        let mut more = page::need(page, key, value.len()) + 8;
        if !at_end {
            let found = find(page, key);
            if found.equal {
                if page::value_place(page, found.index).2 & RECORD_BIG != 0 {
                    break;
                }
                more = (more - 8).saturating_sub(page::taken(page, found.index));
            }
        }
        let op = Op { kind: Kind::Set, volatile: false, big: false, key, value };
        record += op.bytes();
        if need + more > free || record > room {
            break;
        }
        need += more;
        ops.push(op);
    }
    need
}

/// Cuts an empty leaf to what its run will fill, before anything lies in it: nothing moves, and what
/// the keys share need not be stored.
fn cut_empty(page: &Page, pairs: &Pairs<'_>, draft: &mut Draft<'_>) -> Option<Progress> {
    if leaf_count(page) > 0 {
        return None;
    }
    let fill = fill(page, pairs, &mut draft.fence);
    (1..pairs.len()).contains(&fill).then(|| draft.part(pairs[fill - 1].0, pairs[fill].0))
}

/// What to do about a leaf that takes not even the first pair.
fn make_room(page: &Page, pairs: &Pairs<'_>, found: Found, draft: &mut Draft<'_>) -> Progress {
    let (first, _) = pairs[0];
    if found.equal && page::value_place(page, found.index).2 & RECORD_BIG != 0 {
        return Progress::Single;
    }
    let (slots, next) = (leaf_count(page), found.index + usize::from(found.equal));
    if slots == 0 || found.equal && next == slots {
        return draft.part(&[], first);
    }
    let mut neighbour = std::mem::take(&mut draft.fence);
    let progress = if next == slots {
        page::leaf_key(page, slots - 1, &mut neighbour);
        draft.part(if many(pairs) { &neighbour } else { &[] }, first)
    } else {
        page::leaf_key(page, next, &mut neighbour);
        let gap = &pairs[..pairs.partition_point(|(key, _)| *key < &neighbour[..])];
        match gap.last() {
            Some((last, _)) if many(gap) => draft.part(last, &neighbour),
            _ => draft.part(&[], first),
        }
    };
    draft.fence = neighbour;
    progress
}

/// Whether pairs are enough to clear a place for them, rather than to split a leaf in the middle.
fn many(pairs: &Pairs<'_>) -> bool {
    let mut bytes = 0;
    pairs.iter().any(|(key, value)| {
        bytes += 8 + key.len() + value.len();
        bytes > PAGE / 4
    })
}

/// How many of the pairs fill an empty leaf whose upper fence is put right behind them.
fn fill(page: &Page, pairs: &Pairs<'_>, lo: &mut Vec<u8>) -> usize {
    page::lo_fence(page, lo);
    let shared = |key: &[u8]| page::common(key, lo);
    // About as many of the first one's size, so that the first guess is good as a rule.
    let about =
        pairs.first().map_or(0, |(key, value)| PAGE / (page::record_bytes(key.len(), value.len()) + 8));
    let mut prefix = pairs.get(about.min(pairs.len().saturating_sub(1))).map_or(0, |(key, _)| shared(key));
    // NB: the lower fence lies below all keys, so what they share with it only shrinks; so does `fit`.
    loop {
        let mut free = PAGE - PAGE_HEAD - lo.len();
        let fit = pairs
            .iter()
            .take_while(|(key, value)| {
                let need = page::record_bytes(key.len().saturating_sub(prefix), value.len()) + 8;
                let fits = need + key.len() + 8 <= free;
                free -= need.min(free);
                fits
            })
            .count();
        let last = pairs.get(fit).or(pairs.last()).map_or(0, |(key, _)| shared(key));
        if last >= prefix {
            return fit;
        }
        prefix = last;
    }
}
