//! A brief transaction: one that reads and writes few leaves, tried once.
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
//! - A leaf without room is split by itself, without a latch of ours; what was read from it is true of its halves.
//!
//! What if we are killed? As in a commit: before the record is published nothing has happened but splits, which change
//! nothing that anybody reads; after that repair applies it whole.
//!
//! Deliberately absent: levels, locks, messages, removals of prefixes, long values, the volatile tree.

mod alone;

use std::ops::Range;

use perilune_shm::latch;
use perilune_store::{Entries, Error, Result, Scan, Span};

use super::count::count_around;
use super::entries::span_of;
use super::latched::Latched;
use super::spots::Spots;
use crate::access::Access;
use crate::error::Stop;
use crate::limits::{BRIEF_COUNTED, BRIEF_LEAVES, BRIEF_SPLITS, BRIEF_WRITES, INLINE_MAX, RECORD_INLINE_MAX};
use crate::page::{self, Found};
use crate::session::record::{op_bytes, Kind, Op, HEADING};
use crate::session::{Counter, Seat};
use crate::tree::{self, Halves, Neighbour, Read, Seen, Visit, Wanted, Which};

struct Write {
    kind: Kind,
    key: Range<usize>,
    value: Range<usize>,
    /// The leaf that was read last before it, by its index: what is written has mostly been looked for.
    near: usize,
    /// Where the key stands in that leaf, if a read has told.
    place: Option<Found>,
}

/// What a brief transaction has read and wants written. Its memory is kept for the next.
#[derive(Default)]
pub(crate) struct Brief {
    open: bool,
    /// Only the general way is left.
    failed: bool,
    /// Others were at the same pages: another try may do.
    met: bool,
    leaves: Vec<Seen>,
    /// The index of the leaf that was read last.
    last: usize,
    /// Leaves whose records were counted; some may be among the others, too.
    counted: Vec<Seen>,
    /// The leaf and the place in it that the last question has found, and whether no other leaf was looked at.
    answer: Option<(usize, Found, bool)>,
    spots: Spots,
    writes: Vec<Write>,
    bytes: Vec<u8>,
}

impl Visit for Brief {
    #[inline]
    fn visit_at(&mut self, leaf: Seen, place: Found) {
        self.visit(leaf);
        self.answer = Some((self.last, place, true));
    }

    #[inline]
    fn visit(&mut self, leaf: Seen) {
        if let Some((_, _, alone)) = &mut self.answer {
            *alone = false;
        }
        match self.leaves.iter().position(|seen| seen.number == leaf.number) {
            Some(index) => {
                if self.leaves[index].word != leaf.word {
                    (self.failed, self.met) = (true, true);
                }
                self.last = index;
            }
            None if self.leaves.len() < BRIEF_LEAVES => {
                self.last = self.leaves.len();
                self.leaves.push(leaf);
            }
            None => self.failed = true,
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
        BRIEF_COUNTED - self.leaves.len().min(BRIEF_COUNTED)
    }
}

/// Whether an error of a read makes the transaction fail: not one that says that more was asked for than is read at once.
fn fails(error: &Error) -> bool {
    !matches!(error, Error::LongRead { .. })
}

impl Brief {
    pub(crate) fn begin(&mut self) {
        self.open = true;
        self.failed = false;
        self.met = false;
        self.leaves.clear();
        self.last = 0;
        self.counted.clear();
        self.spots.clear();
        self.writes.clear();
        self.bytes.clear();
    }

    pub(crate) fn end(&mut self) {
        self.open = false;
    }

    /// There is none to be begun, whoever is met.
    pub(crate) fn refuse(&mut self) {
        self.met = false;
    }

    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it has failed because others were at the same pages, and not for what it asked.
    #[inline]
    pub(crate) fn has_met(&self) -> bool {
        self.met
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

    fn key(&self, write: &Write) -> &[u8] {
        &self.bytes[write.key.clone()]
    }

    /// Its own writes in `from..end`.
    fn written_within<'a>(&'a self, from: &'a [u8], end: &'a [u8]) -> impl Iterator<Item = &'a Write> {
        let lies = move |key: &[u8]| from <= key && (end.is_empty() || key < end);
        self.writes.iter().filter(move |write| lies(self.key(write)))
    }

    fn written(&self, key: &[u8]) -> Option<usize> {
        self.writes.iter().position(|write| self.key(write) == key)
    }

    fn checked<T>(&mut self, answer: T) -> Result<T> {
        if self.failed {
            return self.fail();
        }
        Ok(answer)
    }

    /// As [`Access::get`]; its own writes are seen.
    #[inline]
    pub(crate) fn get(&mut self, access: &Access, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if let Some(own) = self.written(key) {
            let own = &self.writes[own];
            out.clear();
            out.extend_from_slice(&self.bytes[own.value.clone()]);
            return Ok(own.kind == Kind::Set);
        }
        if let Some((leaf, place)) = self.spots.place_of(key) {
            out.clear();
            self.last = leaf;
            let (image, leaf) = (&access.seat.image, self.leaves[leaf]);
            if place.equal {
                match tree::value_at(image, &access.fingers, leaf, place.index, out) {
                    Ok(()) => {}
                    Err(Stop::Fail(error)) => return Err(error),
                    Err(_) => return self.fail(),
                }
            }
            return self.checked(place.equal);
        }
        self.answer = None;
        let found =
            access.get(Which::Main, key, out, self).inspect_err(|error| self.failed |= fails(error))?;
        self.note_answer(key, None);
        self.checked(found)
    }

    /// As [`Access::pieces`]; its own writes are seen.
    pub(crate) fn pieces(
        &mut self,
        access: &Access,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        if let Some(own) = self.written(key) {
            let own = &self.writes[own];
            let value = &self.bytes[own.value.clone()];
            perilune_store::copy_pieces(value, pieces, out);
            return Ok((own.kind == Kind::Set).then_some(value.len()));
        }
        if let Some((leaf, place)) = self.spots.place_of(key) {
            self.last = leaf;
            if !place.equal {
                return self.checked(None);
            }
            let (image, leaf) = (&access.seat.image, self.leaves[leaf]);
            return match tree::pieces_at(image, &access.fingers, leaf, place.index, pieces, out) {
                Ok(bytes) => self.checked(Some(bytes)),
                Err(Stop::Fail(error)) => Err(error),
                Err(_) => self.fail(),
            };
        }
        self.answer = None;
        let bytes = access.pieces(Which::Main, key, pieces, out, self)?;
        self.note_answer(key, None);
        self.checked(bytes)
    }

    /// Remembers the place of `key`, at which the last question has ended; a neighbour was asked for `from`.
    #[inline]
    fn note_answer(&mut self, key: &[u8], from: Option<(&[u8], Neighbour)>) {
        if let Some((leaf, found, alone)) = self.answer {
            self.spots.note(leaf, found, key, from.filter(|_| alone));
        }
    }

    /// As [`Access::neighbour`]; values that it has set are seen, but not those before `from`.
    #[inline]
    pub(crate) fn neighbour(
        &mut self,
        access: &Access,
        from: &[u8],
        side: Neighbour,
        bound: &[u8],
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let (low, high) = if side == Neighbour::Previous { (bound, from) } else { (from, bound) };
        let blind = |own: &Write| side == Neighbour::Previous || own.kind != Kind::Set;
        if !self.writes.is_empty() && self.written_within(low, high).any(blind) {
            return self.fail();
        }
        self.answer = None;
        let wanted = value.as_mut().map(Wanted::again);
        let found = access.neighbour(Which::Main, from, side, bound, key, wanted, self);
        let found = found.inspect_err(|error| self.failed |= fails(error))?;
        if found {
            self.note_answer(key, Some((from, side)));
        }
        let found = self.checked(found)?;
        if side == Neighbour::Previous || self.writes.is_empty() {
            return Ok(found);
        }
        let behind = |own: &&Write| side == Neighbour::AtOrNext || self.key(own) != from;
        let own = self
            .written_within(low, high)
            .filter(behind)
            .min_by(|one, other| self.key(one).cmp(self.key(other)));
        let Some(own) = own.filter(|own| !found || self.key(own) <= key.as_slice()) else { return Ok(found) };
        key.clear();
        key.extend_from_slice(self.key(own));
        if let Some(mut value) = value {
            value.put(&self.bytes[own.value.clone()]);
        }
        Ok(true)
    }

    /// As [`Access::entries`]; where it has written itself, the next entry is to be read by itself.
    pub(crate) fn entries(&mut self, access: &Access, scan: &Scan<'_>, out: &mut Entries) -> Result<Read> {
        if !self.writes.is_empty() {
            let (low, high) = span_of(scan);
            if self.written_within(&low, &high).next().is_some() {
                return Ok(Read::Single);
            }
        }
        let read = access.entries(Which::Main, scan, out, self);
        let read = read.inspect_err(|error| self.failed |= fails(error))?;
        self.checked(read)
    }

    /// As [`Access::count`]; its own writes are seen.
    pub(crate) fn count(&mut self, access: &Access, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        let own = |brief: &Brief, low: &[u8], high: &[u8]| {
            let order = |one: &&Write, other: &&Write| brief.key(one).cmp(brief.key(other));
            let within = brief.written_within(low, high);
            let first = if span.backwards { within.max_by(order) } else { within.min_by(order) }?;
            Some((brief.key(first).to_vec(), first.kind == Kind::Set))
        };
        count_around(self, span, key, own, |brief, span, key| {
            let mut counted = Counted { leaves: &mut brief.counted, failed: &mut brief.failed };
            let count = access.count(Which::Main, span, key, &mut counted);
            let count = count.inspect_err(|error| brief.failed |= fails(error))?;
            brief.checked(count)
        })
    }

    /// Notes a value; `None` removes it.
    #[inline]
    pub(crate) fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let long = value.is_some_and(|value| value.len() > INLINE_MAX);
        if long || self.bytes.len() > RECORD_INLINE_MAX {
            return self.fail();
        }
        let kind = if value.is_some() { Kind::Set } else { Kind::Remove };
        let bytes = value.unwrap_or(&[]);
        if let Some(own) = self.written(key) {
            let own = &mut self.writes[own];
            // What it takes back may never have been there.
            if kind != Kind::Set || own.kind != Kind::Set {
                return self.fail();
            }
            if own.value.len() == bytes.len() {
                self.bytes[own.value.clone()].copy_from_slice(bytes);
            } else {
                own.value = self.bytes.len()..self.bytes.len() + bytes.len();
                self.bytes.extend_from_slice(bytes);
            }
            return Ok(());
        }
        if self.writes.len() >= BRIEF_WRITES {
            return self.fail();
        }
        let spot = self.spots.place_of(key);
        let (near, place) = spot.map_or((self.last, None), |(leaf, place)| (leaf, Some(place)));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let (key, value) = (start..middle, middle..self.bytes.len());
        self.writes.push(Write { kind, key, value, near, place });
        Ok(())
    }

    /// Removes a value; true when there was one.
    pub(crate) fn remove(&mut self, access: &Access, key: &[u8]) -> Result<bool> {
        if self.written(key).is_some() {
            return self.fail();
        }
        let there = match self.spots.place_of(key) {
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
        if there {
            self.write(key, None)?;
        }
        self.checked(there)
    }

    /// Brings the writes into the order of keys.
    fn sort_writes(&mut self) {
        let Brief { writes, bytes, .. } = self;
        writes.sort_unstable_by(|one, other| bytes[one.key.clone()].cmp(&bytes[other.key.clone()]));
    }

    /// Bytes of the record of its writes.
    fn record_bytes(&self) -> usize {
        let bytes = |write: &Write| op_bytes(write.key.len(), write.value.len());
        HEADING + self.writes.iter().map(bytes).sum::<usize>()
    }

    /// Notes that a page was split, if it has been read: all that was read of it is true of its halves together. False: it
    /// was no longer what was read.
    fn follow(&mut self, halves: &Halves) -> bool {
        let has_room = self.leaves.len() < BRIEF_LEAVES;
        if let Some(index) = self.leaves.iter().position(|seen| seen.number == halves.old.number) {
            if self.leaves[index] != halves.old || !has_room {
                return false;
            }
            self.leaves[index] = halves.left;
            self.leaves.push(halves.right);
            // Places are those in the old page.
            let moved = self.writes.iter_mut().filter(|write| write.near == index);
            moved.for_each(|write| write.place = None);
        }
        let mut counted = self.counted.iter_mut().filter(|seen| seen.number == halves.old.number);
        if let Some(seen) = counted.next() {
            if *seen != halves.old || counted.next().is_some() {
                return false;
            }
            *seen = halves.left;
            self.counted.push(halves.right);
        }
        true
    }

    /// Whether all that was read is still there.
    fn holds(&self, seat: &Seat, held: &Held) -> bool {
        let is_same = |seen: &Seen| {
            let word = seat.image.latch(seen.number);
            if held.has(seen.number) {
                // NB: one that was located anew for a write may have been latched later than it was read.
                return latch::load(word).version() == seen.word.version();
            }
            latch::validate(word, seen.word)
        };
        self.leaves.iter().all(is_same) && self.counted.iter().all(is_same)
    }
}

/// Why a brief transaction was not published.
enum Refusal {
    /// Somebody was faster, or is in the way.
    Changed,
    /// Something must be done first that a brief transaction does not do: copy a leaf, or wait for whoever keeps
    /// writers out.
    Barred,
    /// The leaf of write `at` has no room for it and those before it there; `beside`: there is one.
    Short { at: usize, beside: bool },
}

/// The leaves of its writes.
type Held<'a> = Latched<'a, BRIEF_WRITES>;

impl Access {
    /// Checks that all that a brief transaction has read until now is one state.
    ///
    /// # Errors
    /// `Conflict` when it is not: it has failed.
    pub(crate) fn validate_brief(&self, brief: &mut Brief) -> Result<()> {
        if brief.failed || !self.is_one_state(brief) {
            return brief.fail();
        }
        Ok(())
    }

    /// Whether all that was read is still there; no leaf is latched.
    fn is_one_state(&self, brief: &mut Brief) -> bool {
        let holds = brief.holds(&self.seat, &Held::new(&self.seat));
        brief.met |= !holds;
        holds
    }

    /// Ends a brief transaction, with its writes if they are to be kept; false: it has done nothing, and
    /// what it saw may never have been one state.
    ///
    /// # Errors
    /// `WritesStopped`, `NoSpace`, `Io`: the log takes nothing now.
    pub(crate) fn end_brief(&self, brief: &mut Brief, keep: bool) -> Result<bool> {
        if brief.failed {
            return Ok(false);
        }
        if !keep || brief.writes.is_empty() {
            return Ok(self.is_one_state(brief));
        }
        brief.sort_writes();
        if brief.record_bytes() >= RECORD_INLINE_MAX {
            return Ok(false);
        }
        self.make_room(RECORD_INLINE_MAX)?;
        let _operation = self.operation();
        for _ in 0..=BRIEF_SPLITS {
            match self.publish_brief(brief) {
                Ok(()) => {
                    self.seat.count(Counter::Commits);
                    return Ok(true);
                }
                Err(Refusal::Short { at, beside }) if self.split_for(brief, at, beside) => {}
                Err(refusal) => {
                    brief.met = !matches!(refusal, Refusal::Barred);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Latches, checks, publishes, applies, releases.
    fn publish_brief(&self, brief: &Brief) -> std::result::Result<(), Refusal> {
        let Brief { writes, bytes, .. } = brief;
        let nothing: &[u8] = &[];
        let mut ops = [Op { kind: Kind::Remove, volatile: false, big: false, key: nothing, value: nothing };
            BRIEF_WRITES];
        for (op, write) in ops.iter_mut().zip(writes) {
            let (key, value) = (&bytes[write.key.clone()], &bytes[write.value.clone()]);
            *op = Op { kind: write.kind, key, value, ..*op };
        }
        let ops = &ops[..writes.len()];
        let mut held = Held::new(&self.seat);
        self.publish_ops(brief, ops, &mut held).inspect_err(|_| held.release_unchanged())
    }

    /// Latches, checks and publishes these operations, and applies them; after a refusal latches are still held.
    fn publish_ops(
        &self,
        brief: &Brief,
        ops: &[Op<'_>],
        held: &mut Held<'_>,
    ) -> std::result::Result<(), Refusal> {
        // NB: what needs no latch is done before the first, for which others wait from then on.
        let len = self.seat.write_ops(ops);
        for (at, op) in ops.iter().enumerate() {
            let leaf = self.leaf_for(brief, &brief.writes[at], op.key).ok_or(Refusal::Changed)?;
            if !held.has(leaf.number) && !held.try_latch(leaf) {
                return Err(Refusal::Changed);
            }
            held.assign(at, leaf.number);
        }
        let epoch = held.epoch().map_err(|_| Refusal::Barred)?;
        // NB: that what was read is still so makes the places that reads have told good.
        if !brief.holds(&self.seat, held) {
            return Err(Refusal::Changed);
        }
        for (at, (op, write)) in ops.iter().zip(&brief.writes).enumerate() {
            let leaf = held.leaf_of(at);
            held.put(at, write.place.unwrap_or_else(|| page::find(self.seat.image.page(leaf), op.key)));
        }
        if let Some(at) = held.short_of_room(ops) {
            let beside = at > 0 && held.leaf_of(at - 1) == held.leaf_of(at);
            return Err(Refusal::Short { at, beside });
        }
        let sparse = held.publish(ops, len, epoch).map_err(|_| Refusal::Barred)?;
        if let Some(at) = sparse {
            self.tidy(Which::Main, ops[at].key);
        }
        Ok(())
    }

    /// Splits the leaf of write `at`, or a page above it that has no room for that; `beside`: the write before it belongs to
    /// the same leaf. False: somebody was in the way, or has changed the leaf.
    #[cold]
    fn split_for(&self, brief: &mut Brief, at: usize, beside: bool) -> bool {
        // NB: parting two keys of a leaf makes sure of progress even in one without records.
        let before = beside.then(|| brief.key(&brief.writes[at - 1]));
        let key = brief.key(&brief.writes[at]);
        match tree::split(&self.seat, Which::Main, key, 0, before) {
            Ok(halves) => brief.follow(&halves),
            Err(_) => false,
        }
    }

    /// The leaf where `key` belongs: one that was read, as a rule the one before the write.
    fn leaf_for(&self, brief: &Brief, write: &Write, key: &[u8]) -> Option<Seen> {
        // What a page that was read says is true of it if it is latched under the word it was read with.
        let covers = |seen: &&Seen| page::contains(self.seat.image.page(seen.number), key);
        let near = brief.leaves.get(write.near).filter(|seen| write.place.is_some() || covers(seen));
        let leaf = match near.or_else(|| brief.leaves.iter().find(covers)) {
            Some(leaf) => *leaf,
            None => tree::locate(&self.seat.image, &self.fingers, Which::Main, key, self.seat.id).ok()?,
        };
        self.fingers.point(Which::Main, leaf.number);
        Some(leaf)
    }
}
