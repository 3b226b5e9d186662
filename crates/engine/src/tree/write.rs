//! Writing one key: latch its leaf, read the epoch, decide, publish the record, apply, release. One attempt.
//!
//! What is to be done is published before it is done: the record in the session's ring says which value the key is
//! to have. From then on it has happened, though the leaf still holds the old value; the latch keeps everybody from
//! seeing that.
//!
//! What if we are killed? Before the publication: repair releases the leaf, nothing has happened. After: repair
//! undoes the half step, applies the record, releases the leaf; it has happened. The order of the last steps
//! (applied, then release) is fixed: else repair would re-apply over newer data.

use perilune_shm::words;
use perilune_store::{Change, Decision, UpdateBuffer};

use super::apply::apply_found;
use super::{locate, Fingers, Seen, Which};
use crate::error::{Attempt, Stop};
use crate::image::layout::Run;
use crate::image::Image;
use crate::limits::INLINE_MAX;
use crate::page::{self, Found, Page, RECORD_BIG};
use crate::session::extent;
use crate::session::record::{record_bytes, Kind, Op};
use crate::session::{Epoch, Seat};

/// What is to happen at a key.
pub(crate) enum Action<'a> {
    /// The key gets this value; `big`: it is a list of runs.
    Set { value: &'a [u8], big: bool },
    /// The key gets this value, which lies inline, if it has one or no key lies between it and `end`.
    SetUnlessParent { value: &'a [u8], end: &'a [u8] },
    /// The key's value goes.
    Remove,
    /// A function of the value decides.
    Update(&'a mut Change<'a>),
    /// Makes a new value of the old one, if the key has a value or no key behind it begins with it.
    UpdateUnlessParent(&'a mut Change<'a>),
    /// The value becomes `new` if it is `expected`; both lie inline.
    Swap { expected: Option<&'a [u8]>, new: Option<&'a [u8]> },
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// There was a value before.
    pub(crate) existed: bool,
    /// The value was written or removed.
    pub(crate) changed: bool,
    /// The leaf has become sparse: merging it would be worth while.
    pub(crate) sparse: bool,
    /// The number of the flush that the operation belongs to.
    pub(crate) flush: u64,
}

/// One attempt at a write. `seat` has entered the operation.
///
/// # Errors
/// `Copy`, `Split`, `Lease`: do that first, then try again. `Fail`: the action's own error too.
#[inline]
pub(crate) fn write(
    seat: &Seat,
    fingers: &Fingers,
    which: Which,
    key: &[u8],
    action: &mut Action<'_>,
) -> Attempt<Outcome> {
    let leaf = locate(&seat.image, fingers, which, key, 0)?;
    if Seat::version_exhausted(leaf.word) {
        return Err(Stop::Fail(perilune_store::Error::Internal(
            "a page has reached its last version: close the database everywhere and open it again".into(),
        )));
    }
    // What is found is true of the page if it is latched with the word under which it was met.
    let found = fingers.find(leaf.number, seat.image.page(leaf.number), key);
    if !seat.try_latch(leaf.number, leaf.word) {
        return Err(Stop::Restart);
    }
    match write_latched(seat, leaf, found, which, key, action) {
        Ok(outcome) => Ok(outcome),
        Err(stop) => {
            seat.release_unchanged(leaf.number);
            seat.forget_latch();
            Err(stop)
        }
    }
}

/// With the leaf latched; after an error the leaf is unchanged and still latched.
#[inline]
fn write_latched(
    seat: &Seat,
    leaf: Seen,
    found: Found,
    which: Which,
    key: &[u8],
    action: &mut Action<'_>,
) -> Attempt<Outcome> {
    let page = seat.image.page(leaf.number);
    let mut epoch = admitted(seat, leaf.number, which)?;
    let mut buffer: UpdateBuffer = [0; 64];
    let mut outcome = Outcome { existed: found.equal, flush: epoch.flush, ..Outcome::default() };
    let Some((kind, len)) = decide(&seat.image, page, (key, found), action, &mut buffer)? else {
        seat.release_unchanged(leaf.number);
        seat.forget_latch();
        return Ok(outcome);
    };
    let (value, big) = match action {
        Action::Set { value, big } => (*value, *big),
        Action::SetUnlessParent { value, .. } => (*value, false),
        Action::Swap { new, .. } => (new.unwrap_or(&[]), false),
        _ => (&buffer[..len], false),
    };
    if kind == Kind::Remove && !found.equal {
        seat.release_unchanged(leaf.number);
        seat.forget_latch();
        return Ok(outcome);
    }
    if kind == Kind::Set && !fits(page, found, key, value) {
        return Err(Stop::Split);
    }
    let op = Op { kind, volatile: which == Which::Volatile, big, key, value };
    seat.set_seq(leaf.word.version());
    loop {
        let ops = std::slice::from_ref(&op);
        debug_assert!(record_bytes(ops) < crate::limits::RECORD_INLINE_MAX);
        let len = seat.write_record(epoch.generation, epoch.flush, ops, &[]);
        if seat.publish(len) {
            break;
        }
        epoch = admitted(seat, leaf.number, which)?;
    }
    let own = if big { super::apply::own_runs(std::slice::from_ref(&op), &seat.image) } else { Vec::new() };
    apply_found(seat, leaf.number, found, &op, epoch.generation, &own);
    seat.set_applied();
    outcome.sparse = kind == Kind::Remove && page::is_sparse(page);
    outcome.changed = true;
    outcome.flush = epoch.flush;
    seat.release(leaf.number, 0);
    seat.notify(key, false);
    Ok(outcome)
}

/// Reads the epoch, the leaf being latched.
///
/// # Errors
/// `Lease`, `Fail`; `Copy` when the leaf belongs to an earlier generation.
#[inline(always)]
pub(super) fn admitted(seat: &Seat, number: u32, which: Which) -> Attempt<Epoch> {
    let epoch = Epoch::read(&seat.image);
    if which == Which::Volatile {
        epoch.admits_volatile(seat.id)?;
        return Ok(epoch);
    }
    epoch.admits(seat)?;
    if seat.image.life(number).born != epoch.generation {
        return Err(Stop::Copy);
    }
    Ok(epoch)
}

/// What the action wants with the value found; None: nothing.
#[inline]
fn decide(
    image: &Image,
    page: &Page,
    (key, found): (&[u8], Found),
    action: &mut Action<'_>,
    buffer: &mut UpdateBuffer,
) -> Attempt<Option<(Kind, usize)>> {
    match action {
        Action::Set { .. } => Ok(Some((Kind::Set, 0))),
        // What lies between would stand in this leaf, behind the key's place, if the leaf covers the end.
        Action::SetUnlessParent { end, .. } => {
            let alone =
                found.equal || page::contains(page, end) && page::find(page, end).index == found.index;
            Ok(alone.then_some((Kind::Set, 0)))
        }
        Action::Remove => Ok(Some((Kind::Remove, 0))),
        Action::UpdateUnlessParent(_)
            if !found.equal && page::leads(page, found.index, key) != Some(false) =>
        {
            Ok(None)
        }
        Action::Update(change) | Action::UpdateUnlessParent(change) => {
            let mut current = [0; 64];
            let current =
                if found.equal { Some(beginning(image, page, found.index, &mut current)?) } else { None };
            match change(current, buffer)? {
                Decision::Keep => Ok(None),
                Decision::Write(len) => Ok(Some((Kind::Set, len.min(buffer.len())))),
                Decision::Remove => Ok(Some((Kind::Remove, 0))),
            }
        }
        Action::Swap { expected, new } => {
            let same = match expected {
                None => !found.equal,
                Some(_) if !found.equal => false,
                Some(expected) => is_inline(page, found.index) && value_is(page, found.index, expected),
            };
            let kind = if new.is_some() { Kind::Set } else { Kind::Remove };
            Ok(same.then_some((kind, 0)))
        }
    }
}

/// The first bytes of a value, wherever it lies.
#[inline]
fn beginning<'a>(image: &Image, page: &Page, index: usize, bytes: &'a mut UpdateBuffer) -> Attempt<&'a [u8]> {
    let (offset, len, flags) = page::value_place(page, index);
    if flags & RECORD_BIG == 0 {
        let shown = &mut bytes[..len.min(64)];
        words::read(page, offset, shown);
        return Ok(shown);
    }
    let (mut list, mut start) = (Vec::new(), Vec::new());
    words::append(page, offset, len, &mut list);
    if let Some((len, runs)) = extent::parse(image, &list) {
        extent::append_proved(image, &runs, len.min(64), &mut start)?;
    }
    let shown = &mut bytes[..start.len()];
    shown.copy_from_slice(&start);
    Ok(shown)
}

fn is_inline(page: &Page, index: usize) -> bool {
    page::value_place(page, index).2 & RECORD_BIG == 0
}

fn value_is(page: &Page, index: usize, value: &[u8]) -> bool {
    let (offset, len, _) = page::value_place(page, index);
    words::compare(page, offset, len, value).is_eq()
}

/// Whether the value fits into the leaf, after compaction if need be.
#[inline]
fn fits(page: &Page, found: Found, key: &[u8], value: &[u8]) -> bool {
    let need = page::need(page, key, value.len());
    let free = page::leaf_free(page);
    if found.equal {
        need <= free + page::taken(page, found.index)
    } else {
        need + 8 <= free
    }
}

/// Puts a value where it belongs: inline, or (given back as a list) in runs.
///
/// # Errors
/// `ValueTooLong`, `NoSpace`.
pub(crate) fn place_value(seat: &Seat, value: &[u8]) -> perilune_store::Result<Option<extent::List>> {
    if value.len() <= INLINE_MAX {
        return Ok(None);
    }
    extent::store(seat, value).map(Some)
}

/// The runs of a placed value.
pub(crate) fn placed_runs(list: &Option<extent::List>) -> &[Run] {
    list.as_ref().map_or(&[], |list| &list.runs)
}
