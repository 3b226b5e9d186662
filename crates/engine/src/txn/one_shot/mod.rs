//! A one-shot transaction: one that is tried once, and validated by the versions of the leaves that it has read.
//!
//! Most transactions are like that, and the general way costs several times what they do: copies of questions and
//! digests of answers, a map of writes, waiting in order. Here a read is noted as the leaf and its word, a write as
//! some bytes in a buffer; at the end the words must be what they were. Whatever else is asked for, or meets somebody
//! else's work, makes it fail, and the caller runs a [`super::Transaction`] instead.
//!
//! Invariants
//! - Nothing shared is written before the end; a failed one has done nothing.
//! - The body may have seen halves of two states, until the end, or a check before it, says that it has not.
//! - Latches are only tried, never waited for. What a read waits for in vain makes it fail, whatever the body does about it.
//! - A leaf without room is split, and one of an earlier generation copied, by itself, without a latch of ours; what was
//!   read from it is true of its halves, or of the copy.
//!
//! What if we are killed? As in a commit: before the record is published nothing has happened but splits and copies, which
//! change nothing that anybody reads; after that repair applies it whole.
//!
//! Deliberately absent: levels, locks, messages, removals of prefixes, long values, the volatile tree.

mod ending;
mod leaves;
mod room;
mod unless_parent;
mod update;
mod writes;

use std::ops::Range;

use perilune_store::{Entries, Error, Result, Scan, Span};

use super::count::count_around;
use super::entries::span_of;
use super::places::Places;
use super::reads::Heads;
use crate::access::Access;
use crate::error::Stop;
use crate::limits::{INLINE_MAX, ONE_SHOT_COUNTED, ONE_SHOT_WRITES, RECORD_INLINE_MAX};
use crate::page::Found;
use crate::session::record::Kind;
use crate::session::sessions_ever;
use crate::tree::{self, Neighbour, Read, Seek, Seen, Visit, Wanted, Which};
use leaves::{Leaves, Noted};
use writes::{Write, Writes};

/// Leaves that are looked at for a key whose place no read has told.
const LOOKED_AT: usize = 12;

/// What a one-shot transaction has read and wants written. Its memory is kept for the next.
#[derive(Default)]
pub(crate) struct OneShot {
    open: bool,
    /// Only the general way is left.
    failed: bool,
    /// Others were at the same pages: another try may do.
    met: bool,
    /// Others kept all writers out, or checkpoints made pages old faster than they were copied: that ends by itself.
    kept_out: bool,
    leaves: Leaves,
    /// What is read is one state at each moment, and not only at the end: whoever reads is told of nothing else.
    steady: bool,
    /// A leaf has come to those read, so that the others are to be looked at again.
    is_due: bool,
    heads: Heads,
    /// Leaves whose records were counted; some may be among the others, too.
    counted: Vec<Seen>,
    /// The leaf and the place in it that the last question has found, and whether no other leaf was looked at.
    answer: Option<(usize, Found, bool)>,
    places: Places,
    writes: Writes,
}

impl Visit for OneShot {
    #[inline]
    fn visit_at(&mut self, leaf: Seen, place: Found) {
        self.visit(leaf);
        self.answer = Some((self.leaves.last(), place, true));
    }

    #[inline]
    fn visit(&mut self, leaf: Seen) {
        if let Some((_, _, alone)) = &mut self.answer {
            *alone = false;
        }
        match self.leaves.note(leaf) {
            Noted::Known => {}
            Noted::New => self.is_due = true,
            Noted::Changed => (self.failed, self.met) = (true, true),
            Noted::Full => self.failed = true,
        }
    }
}

/// Takes the leaves of a count.
struct Counted<'a> {
    leaves: &'a mut Vec<Seen>,
    failed: &'a mut bool,
}

impl Visit for Counted<'_> {
    #[inline]
    fn visit(&mut self, leaf: Seen) {
        if self.room() > 0 {
            self.leaves.push(leaf);
        } else {
            *self.failed = true;
        }
    }

    #[inline]
    fn room(&self) -> usize {
        ONE_SHOT_COUNTED - self.leaves.len().min(ONE_SHOT_COUNTED)
    }
}

/// Whether an error of a read makes the transaction fail: not one that says that more was asked for than is read at once.
fn fails(error: &Error) -> bool {
    !matches!(error, Error::LongRead { .. })
}

impl OneShot {
    pub(crate) fn begin(&mut self) {
        self.open = true;
        self.failed = false;
        (self.met, self.kept_out) = (false, false);
        self.leaves.clear();
        self.heads.clear();
        (self.steady, self.is_due) = (false, false);
        self.counted.clear();
        self.places.clear();
        self.writes.clear();
    }

    /// Begins one of which all that is read is one state at each moment.
    pub(crate) fn begin_steady(&mut self) {
        self.begin();
        self.steady = true;
    }

    /// Whether it has written nothing.
    pub(crate) fn is_reading(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether all that it writes is removals.
    pub(crate) fn is_removing(&self) -> bool {
        self.writes.all().iter().all(|write| write.kind == Kind::Remove)
    }

    pub(crate) fn end(&mut self) {
        self.open = false;
    }

    /// There is none to be begun, whoever is met.
    pub(crate) fn refuse(&mut self) {
        (self.met, self.kept_out) = (false, false);
    }

    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it has failed because others were at the same pages, and not for what it asked.
    #[inline]
    pub(crate) fn was_disturbed(&self) -> bool {
        self.met
    }

    /// Whether it has failed because nobody could write just then. A whole transaction waits for the end of that, and can go on
    /// with what this one has done; another try may do as well.
    pub(crate) fn was_kept_out(&self) -> bool {
        self.kept_out
    }

    /// Gives up.
    ///
    /// # Errors
    /// `Conflict`, always.
    #[cold]
    pub(crate) fn fail<T>(&mut self) -> Result<T> {
        self.failed = true;
        Err(Error::Conflict)
    }

    #[inline]
    fn checked<T>(&mut self, access: &Access, answer: T) -> Result<T> {
        if self.failed {
            return self.fail();
        }
        if self.is_due && self.steady {
            self.look_again(access)?;
        }
        Ok(answer)
    }

    /// Looks at all leaves again, unless nobody has published anything since the last look.
    ///
    /// # Errors
    /// `Conflict`: they are no longer what was read.
    fn look_again(&mut self, access: &Access) -> Result<()> {
        self.is_due = false;
        let (image, leaves) = (&access.seat.image, self.leaves.all().len() + self.counted.len());
        let is_dear = leaves > usize::from(sessions_ever(image));
        if leaves == 1 || is_dear && self.heads.are_same(image) || access.is_one_state(self) {
            return Ok(());
        }
        self.fail()
    }

    /// As [`Access::get`]; its own writes are seen.
    #[inline]
    pub(crate) fn get(&mut self, access: &Access, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if let Ok(own) = self.writes.find(key) {
            let own = &self.writes.all()[own];
            out.clear();
            out.extend_from_slice(self.writes.value(own));
            return Ok(own.kind == Kind::Set);
        }
        if let Some((leaf, place)) = self.places.place_of(key) {
            out.clear();
            self.leaves.set_last(leaf);
            let (image, leaf) = (&access.seat.image, self.leaves.all()[leaf]);
            if place.equal {
                match tree::value_at(image, &access.fingers, leaf, place.index, out) {
                    Ok(()) => {}
                    Err(Stop::Fail(error)) => return Err(error),
                    Err(_) => return self.fail(),
                }
            }
            return self.checked(access, place.equal);
        }
        self.answer = None;
        let found =
            access.get(Which::Main, key, out, self).inspect_err(|error| self.failed |= fails(error))?;
        self.note_answer(key, None);
        self.checked(access, found)
    }

    /// As [`Access::pieces`]; its own writes are seen.
    pub(crate) fn pieces(
        &mut self,
        access: &Access,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        if let Ok(own) = self.writes.find(key) {
            let own = &self.writes.all()[own];
            let value = self.writes.value(own);
            perilune_store::copy_pieces(value, pieces, out);
            return Ok((own.kind == Kind::Set).then_some(value.len()));
        }
        if let Some((leaf, place)) = self.places.place_of(key) {
            self.leaves.set_last(leaf);
            if !place.equal {
                return self.checked(access, None);
            }
            let (image, leaf) = (&access.seat.image, self.leaves.all()[leaf]);
            return match tree::pieces_at(image, &access.fingers, leaf, place.index, pieces, out) {
                Ok(bytes) => self.checked(access, Some(bytes)),
                Err(Stop::Fail(error)) => Err(error),
                Err(_) => self.fail(),
            };
        }
        self.answer = None;
        let bytes = access.pieces(Which::Main, key, pieces, out, self)?;
        self.note_answer(key, None);
        self.checked(access, bytes)
    }

    /// Remembers the place of `key`, at which the last question has ended; a neighbour was asked for `from`.
    #[inline]
    fn note_answer(&mut self, key: &[u8], from: Option<(&[u8], Neighbour)>) {
        if let Some((leaf, found, alone)) = self.answer {
            self.places.note(leaf, found, key, from.filter(|_| alone));
        }
    }

    /// As [`Access::neighbour`]; values that it has set are seen, but not those before `from`.
    #[inline]
    pub(crate) fn neighbour(
        &mut self,
        access: &Access,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let Seek { from, side, bound } = seek;
        let (low, high) = if side == Neighbour::Previous { (bound, from) } else { (from, bound) };
        let blind = |own: &Write| side == Neighbour::Previous || own.kind != Kind::Set;
        if !self.writes.is_empty() && self.writes.within(low, high).any(blind) {
            return self.fail();
        }
        self.answer = None;
        let wanted = value.as_mut().map(Wanted::again);
        let found = access.neighbour(Which::Main, seek, key, wanted, self);
        let found = found.inspect_err(|error| self.failed |= fails(error))?;
        if found {
            self.note_answer(key, Some((from, side)));
        }
        let found = self.checked(access, found)?;
        if side == Neighbour::Previous || self.writes.is_empty() {
            return Ok(found);
        }
        let writes = &self.writes;
        let behind = |own: &&Write| side == Neighbour::AtOrNext || writes.key(own) != from;
        let own = writes.within(low, high).find(behind);
        let Some(own) = own.filter(|own| !found || writes.key(own) <= key.as_slice()) else {
            return Ok(found);
        };
        key.clear();
        key.extend_from_slice(writes.key(own));
        if let Some(mut value) = value {
            value.put(writes.value(own));
        }
        Ok(true)
    }

    /// As [`Access::entries`]; where it has written itself, the next entry is to be read by itself.
    pub(crate) fn entries(&mut self, access: &Access, scan: &Scan<'_>, out: &mut Entries) -> Result<Read> {
        if !self.writes.is_empty() {
            let (low, high) = span_of(scan);
            if self.writes.within(&low, &high).next().is_some() {
                return Ok(Read::Single);
            }
        }
        let read = access.entries(Which::Main, scan, out, self);
        let read = read.inspect_err(|error| self.failed |= fails(error))?;
        self.checked(access, read)
    }

    /// As [`Access::count`]; its own writes are seen.
    pub(crate) fn count(&mut self, access: &Access, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        let own = |one_shot: &OneShot, low: &[u8], high: &[u8]| {
            let mut within = one_shot.writes.within(low, high);
            let first = if span.backwards { within.next_back() } else { within.next() }?;
            Some((one_shot.writes.key(first).to_vec(), first.kind == Kind::Set))
        };
        count_around(self, span, key, own, |one_shot, span, key| {
            let mut counted = Counted { leaves: &mut one_shot.counted, failed: &mut one_shot.failed };
            let count = access.count(Which::Main, span, key, &mut counted);
            let count = count.inspect_err(|error| one_shot.failed |= fails(error))?;
            one_shot.is_due = true;
            one_shot.checked(access, count)
        })
    }

    /// Notes a value; `None` removes it.
    #[inline]
    pub(crate) fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let long = value.is_some_and(|value| value.len() > INLINE_MAX);
        if long || self.writes.bytes() > RECORD_INLINE_MAX {
            return self.fail();
        }
        let kind = if value.is_some() { Kind::Set } else { Kind::Remove };
        let value = value.unwrap_or(&[]);
        match self.writes.find(key) {
            // NB: what it has removed was there: that was read, and the leaf is looked at again. So either kind may follow it.
            Ok(own) => self.writes.change(own, kind, value),
            Err(_) if self.writes.len() >= ONE_SHOT_WRITES => return self.fail(),
            Err(order) => {
                let known = self.places.place_of(key);
                let (near, found) =
                    known.map_or((self.leaves.last(), None), |(leaf, found)| (leaf, Some(found)));
                self.writes.add(order, kind, [key, value], near, found);
            }
        }
        Ok(())
    }

    /// Removes a value; true when there was one.
    pub(crate) fn remove(&mut self, access: &Access, key: &[u8]) -> Result<bool> {
        let own = self.writes.find(key).ok();
        let removed = own.map(|own| &self.writes.all()[own]).filter(|own| own.kind == Kind::Remove);
        if let Some(removed) = removed {
            self.leaves.set_last(removed.near);
            return self.checked(access, false);
        }
        let there = match self.places.place_of(key) {
            Some((_, place)) => place.equal,
            None => {
                self.answer = None;
                let there = access
                    .has_value(Which::Main, key, self)
                    .inspect_err(|error| self.failed |= fails(error))?;
                self.note_answer(key, None);
                there
            }
        };
        match own {
            // What was not there before it was set here is as it was.
            Some(own) if !there => self.writes.take(own),
            _ if there => self.write(key, None)?,
            _ => {}
        }
        self.checked(access, there || own.is_some())
    }
}
