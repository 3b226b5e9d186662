//! Up to sixteen keys changed in one operation by a function of the records around them, which runs while their leaves
//! are latched.
//!
//! A transaction reads, and must check at its end that what it read still holds. Here the leaves are latched before
//! they are read, so nothing is checked again: whoever writes to the same leaves makes this wait, not fail.
//!
//! Invariants
//! - All leaves are met before one is latched, each with the word under which it was met: the places found are true.
//! - What the function is told is proved by a latched leaf; else it is told that nobody knows.
//! - What is written lies in a latched leaf.
//! - Who only looks latches nothing, and checks the words at the end.
//!
//! What if we are killed? As in a commit.
//!
//! Deliberately absent: a look at leaves beyond those beside the probes' own; long values.

use perilune_shm::words;
use perilune_store::{Probe, ProbeResult, ProbeTarget, Probed, ProbedChange, Result};

use super::latched::Latched;
use crate::access::{check_key, Access};
use crate::error::{Attempt, Stop};
use crate::image::Image;
use crate::limits::{
    FEW_PROBED_LEAVES, FEW_PROBES, INLINE_MAX, PROBED_LEAVES, PROBED_TRIES, PROBES, RECORD_INLINE_MAX,
};
use crate::page::{self, Coming, Found, RECORD_BIG};
use crate::repair::Patience;
use crate::session::record::{record_bytes, Kind, Op};
use crate::session::Counter;
use crate::tree::{self, Aim, Beside, Seen, Which};

/// Where a probe has led.
#[derive(Clone, Copy)]
struct Met {
    /// The leaf that covers the probe's key, and the place of that there, as [`tree::meet_probe`] tells it.
    home: u32,
    place: Found,
    /// The leaf of the record that it has stood at first, mostly the same, that record, and the one that it stands at.
    leaf: u32,
    first: Option<usize>,
    at: Option<usize>,
}

/// A write that was noted.
struct Write {
    kind: Kind,
    probe: usize,
    /// The leaf where it belongs, once that is known.
    leaf: u32,
    /// Ends of the key and of the value, one behind the other.
    key: usize,
    value: usize,
}

/// What an attempt gathers; its memory is kept for the next.
#[derive(Default)]
pub(crate) struct ProbedDraft {
    /// Where the probes' searches begin.
    aims: Vec<Aim>,
    met: Vec<Met>,
    /// The leaves that what is seen rests on.
    leaves: Vec<Seen>,
    writes: Vec<Write>,
    /// How many of them there may be.
    writes_most: usize,
    /// Keys and values of the writes.
    bytes: Vec<u8>,
    /// A key or value that was asked for.
    shown: Vec<u8>,
    /// Something was noted that cannot be written in this way.
    failed: bool,
}

impl ProbedDraft {
    /// The operations that were noted; how many.
    fn ops<'a>(&'a self, ops: &mut [Op<'a>]) -> usize {
        let mut start = 0;
        for (op, write) in ops.iter_mut().zip(&self.writes) {
            let (key, value) = (&self.bytes[start..write.key], &self.bytes[write.key..write.value]);
            *op = Op { kind: write.kind, key, value, ..*op };
            start = write.value;
        }
        self.writes.len()
    }

    /// Notes that what is seen rests on a leaf; false: it was met before, and has changed.
    #[inline]
    fn rest_on(&mut self, leaf: Seen) -> bool {
        match self.leaves.iter().find(|other| other.number == leaf.number) {
            Some(other) => other.word == leaf.word,
            None => {
                self.leaves.push(leaf);
                true
            }
        }
    }

    /// Forgets all that was met and noted.
    #[inline]
    fn clear(&mut self) {
        self.met.clear();
        self.leaves.clear();
        self.writes.clear();
        self.bytes.clear();
        self.failed = false;
    }

    fn note(&mut self, kind: Kind, probe: usize, key: &[u8], value: &[u8]) {
        let is_good = probe < self.met.len() && self.writes.len() < self.writes_most;
        if !is_good || value.len() > INLINE_MAX || check_key(key).is_err() {
            self.failed = true;
            return;
        }
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.writes.push(Write { kind, probe, leaf: 0, key: end, value: self.bytes.len() });
    }
}

/// What the function sees.
struct View<'a> {
    image: &'a Image,
    draft: &'a mut ProbedDraft,
    probes: &'a [Probe<'a>],
}

impl View<'_> {
    /// The page of the record that `probe` stands at, and the index of that there.
    #[inline]
    fn record(&self, probe: usize) -> Option<(&page::Page, usize)> {
        let met = self.draft.met.get(probe)?;
        Some((self.image.page(met.leaf), met.at?))
    }
}

impl Probed for View<'_> {
    #[inline]
    fn found(&self, probe: usize) -> ProbeResult {
        let Some(met) = self.draft.met.get(probe) else { return ProbeResult::Unknown };
        match met.at {
            Some(_) => ProbeResult::Record,
            // NB: not where it has stepped out of the leaf.
            None if self.probes[probe].target == ProbeTarget::At && !met.place.equal => ProbeResult::Nothing,
            None => ProbeResult::Unknown,
        }
    }

    #[inline]
    fn is_at(&self, probe: usize, key: &[u8]) -> bool {
        self.record(probe).is_some_and(|(page, index)| page::is_key(page, index, key))
    }

    fn key(&mut self, probe: usize) -> &[u8] {
        let mut shown = std::mem::take(&mut self.draft.shown);
        match self.record(probe) {
            Some((page, index)) => page::leaf_key(page, index, &mut shown),
            None => shown.clear(),
        }
        self.draft.shown = shown;
        &self.draft.shown
    }

    fn key_behind(&mut self, probe: usize, start: &[u8]) -> Option<&[u8]> {
        // NB: compared where it lies: what has just been copied piece by piece is read late as a whole.
        let mut shown = std::mem::take(&mut self.draft.shown);
        let begins =
            self.record(probe).is_some_and(|(page, index)| page::key_behind(page, index, start, &mut shown));
        self.draft.shown = shown;
        begins.then_some(&self.draft.shown)
    }

    fn value(&mut self, probe: usize) -> Option<&[u8]> {
        let mut shown = std::mem::take(&mut self.draft.shown);
        shown.clear();
        let is_short = self.record(probe).is_some_and(|(page, index)| {
            let (offset, len, flags) = page::value_place(page, index);
            words::append(page, offset, len, &mut shown);
            flags & RECORD_BIG == 0
        });
        self.draft.shown = shown;
        is_short.then_some(&self.draft.shown)
    }

    fn step(&mut self, probe: usize) -> ProbeResult {
        let next = self.record(probe).and_then(|(page, index)| {
            let next = index + 1;
            (next < page::leaf_count(page)).then_some(next)
        });
        if let Some(met) = self.draft.met.get_mut(probe) {
            met.at = next;
        }
        if next.is_some() {
            ProbeResult::Record
        } else {
            ProbeResult::Unknown
        }
    }

    #[inline]
    fn set(&mut self, probe: usize, key: &[u8], value: &[u8]) {
        self.draft.note(Kind::Set, probe, key, value);
    }

    #[inline]
    fn remove(&mut self, probe: usize, key: &[u8]) {
        self.draft.note(Kind::Remove, probe, key, &[]);
    }
}

/// What has come of an attempt.
enum Outcome {
    /// The record is published; the leaf of this write has become sparse.
    Published(Option<usize>),
    /// Nothing was written, and latches are still held. True: nothing was to be.
    Nothing(bool),
}

/// Why an attempt has failed, and at which probe; a leaf to be split: at which write; one to be copied: which of those met.
type Failed = (Stop, usize);

impl Access {
    /// As [`perilune_store::Optimistic::change_probed`].
    ///
    /// # Errors
    /// The function's own; else as [`Access::set`].
    pub(crate) fn change_probed(
        &self,
        probes: &[Probe<'_>],
        change: &mut ProbedChange<'_>,
        draft: &mut ProbedDraft,
    ) -> Result<bool> {
        // NB: to prepare what many probes need takes longer than the rest of a small change.
        if probes.len() <= FEW_PROBES {
            return self.change::<FEW_PROBED_LEAVES>(probes, change, draft);
        }
        if probes.len() > PROBES {
            return Ok(false);
        }
        self.change::<PROBED_LEAVES>(probes, change, draft)
    }

    /// Changes up to `N` keys, of as many leaves.
    fn change<const N: usize>(
        &self,
        probes: &[Probe<'_>],
        change: &mut ProbedChange<'_>,
        draft: &mut ProbedDraft,
    ) -> Result<bool> {
        draft.writes_most = N;
        self.make_room(RECORD_INLINE_MAX)?;
        let _operation = self.operation();
        let mut patience = Patience::new();
        for _ in 0..PROBED_TRIES {
            let mut held = Latched::<N>::new(&self.seat);
            let failed = match self.try_probed(probes, change, draft, &mut held) {
                Ok(Outcome::Published(sparse)) => {
                    self.seat.count(Counter::Commits);
                    if let Some(at) = sparse {
                        self.tidy(Which::Main, draft.write_at(at).key);
                    }
                    return Ok(true);
                }
                Ok(Outcome::Nothing(done)) => {
                    held.release_unchanged();
                    return Ok(done);
                }
                Err(failed) => failed,
            };
            held.release_unchanged();
            self.overcome_probed(failed, probes, draft, &mut patience)?;
        }
        Ok(false)
    }

    /// As [`perilune_store::Optimistic::look_probed`].
    ///
    /// # Errors
    /// The function's own; I/O and damage.
    pub(crate) fn look_probed(
        &self,
        probes: &[Probe<'_>],
        look: &mut ProbedChange<'_>,
        draft: &mut ProbedDraft,
    ) -> Result<bool> {
        let image = &self.seat.image;
        if probes.len() > PROBES {
            return Ok(false);
        }
        draft.writes_most = 0;
        self.read(|| {
            self.meet_probes(probes, draft).map_err(|(stop, _)| stop)?;
            let answer = look(&mut View { image, draft, probes });
            // NB: an error, too, may rest on what never was.
            draft.leaves.iter().try_for_each(|leaf| leaf.check(image))?;
            Ok(answer? && draft.writes.is_empty() && !draft.failed)
        })
    }

    /// Does what an attempt asked for before it can be repeated. No latch is held.
    #[cold]
    fn overcome_probed(
        &self,
        (stop, at): Failed,
        probes: &[Probe<'_>],
        draft: &ProbedDraft,
        patience: &mut Patience,
    ) -> Result<()> {
        let first = probes.first().map_or(&[][..], |probe| probe.key);
        let key = match stop {
            Stop::Split => draft.write_at(at).key,
            Stop::Copy => {
                let copied = self.copy_met(probes, draft, at);
                return copied.or_else(|stop| self.overcome(stop, Which::Main, first, patience));
            }
            stop => {
                let key = probes.get(at).map_or(first, |probe| probe.key);
                return self.overcome(stop, Which::Main, key, patience);
            }
        };
        let ahead = |at: usize| (at < draft.writes.len()).then(|| draft.write_at(at));
        match tree::split(&self.seat, Which::Main, key, 0, Beside::Operations(at, &ahead)) {
            Ok(_) => Ok(()),
            Err(stop) => self.overcome(stop, Which::Main, key, patience),
        }
    }

    /// One attempt; unless it has published, latches are still held and nothing has happened.
    fn try_probed<const N: usize>(
        &self,
        probes: &[Probe<'_>],
        change: &mut ProbedChange<'_>,
        draft: &mut ProbedDraft,
        held: &mut Latched<'_, N>,
    ) -> std::result::Result<Outcome, Failed> {
        self.meet_probes(probes, draft)?;
        if !draft.leaves.iter().all(|leaf| held.try_latch(*leaf)) {
            return Err((Stop::Restart, 0));
        }
        let mut view = View { image: &self.seat.image, draft, probes };
        let is_wanted = change(&mut view).map_err(|error| (Stop::Fail(error), 0))?;
        if !is_wanted || draft.failed || draft.writes.is_empty() {
            return Ok(Outcome::Nothing(is_wanted && !draft.failed));
        }
        let mut last: &[u8] = &[];
        let mut start = 0;
        for (at, write) in draft.writes.iter_mut().enumerate() {
            let key = &draft.bytes[start..write.key];
            let (probe, met) = (&probes[write.probe], &draft.met[write.probe]);
            let place = self.place_of(probe, met, key).filter(|_| last < key);
            let Some((leaf, place)) = place else { return Ok(Outcome::Nothing(false)) };
            write.leaf = leaf;
            held.assign(at, leaf);
            held.put(at, place);
            (last, start) = (key, write.value);
        }
        let nothing = Op { kind: Kind::Remove, volatile: false, big: false, key: &[], value: &[] };
        let mut ops = [nothing; N];
        let count = draft.ops(&mut ops);
        let ops = &ops[..count];
        if record_bytes(ops) >= RECORD_INLINE_MAX {
            return Ok(Outcome::Nothing(false));
        }
        let epoch = held.epoch().map_err(|stop| (stop, self.first_foreign_met(draft)))?;
        if let Some(at) = held.short_of_room(ops) {
            return Err((Stop::Split, at));
        }
        let len = self.seat.write_ops(ops);
        let sparse = held.publish(ops, len, epoch).map_err(|stop| (stop, self.first_foreign_met(draft)))?;
        Ok(Outcome::Published(sparse))
    }

    /// Meets the leaves of all probes.
    #[inline]
    fn meet_probes(&self, probes: &[Probe<'_>], draft: &mut ProbedDraft) -> std::result::Result<(), Failed> {
        let (image, fingers) = (&self.seat.image, &self.fingers);
        draft.clear();
        let mut aims = std::mem::take(&mut draft.aims);
        aims.clear();
        aims.extend(probes.iter().map(|probe| tree::aim_probe(image, fingers, probe)));
        draft.aims = aims;
        for (at, probe) in probes.iter().enumerate() {
            let aim = draft.aims[at];
            let (leaf, place) = tree::meet_probe(image, fingers, probe, aim).map_err(|stop| (stop, at))?;
            let first = match probe.target {
                ProbeTarget::At => place.equal.then_some(place.index),
                ProbeTarget::AtOrNext => {
                    Some(place.index).filter(|index| *index < page::leaf_count(image.page(leaf.number)))
                }
                ProbeTarget::Previous => place.index.checked_sub(1),
            };
            let mut met = Met { home: leaf.number, place, leaf: leaf.number, first, at: first };
            let mut holds = draft.rest_on(leaf);
            if first.is_none() && probe.target != ProbeTarget::At {
                let beside = tree::meet_beside(image, fingers, leaf, probe.target, &mut draft.shown);
                if let Some((leaf, index)) = beside.map_err(|stop| (stop, at))? {
                    met = Met { leaf: leaf.number, first: Some(index), at: Some(index), ..met };
                    holds &= draft.rest_on(leaf);
                }
            }
            if !holds {
                return Err((Stop::Restart, at));
            }
            draft.met.push(met);
        }
        Ok(())
    }

    /// Where `key` belongs, of the leaves of a probe, and its place there; none: elsewhere.
    #[inline]
    fn place_of(&self, probe: &Probe<'_>, met: &Met, key: &[u8]) -> Option<(u32, Found)> {
        if probe.target == ProbeTarget::At && key == probe.key {
            return Some((met.home, met.place));
        }
        let page = self.seat.image.page(met.leaf);
        // Mostly it is the record that the probe has stood at, or would stand beside it.
        if let Some(found) = page::place_near(page, key, met.first.unwrap_or(met.place.index)) {
            return Some((met.leaf, found));
        }
        if page::contains(page, key) {
            return Some((met.leaf, page::find(page, key)));
        }
        let home = self.seat.image.page(met.home);
        (met.home != met.leaf && page::contains(home, key)).then(|| (met.home, page::find(home, key)))
    }

    /// The first leaf that was met and belongs to another generation, if there is one.
    #[cold]
    fn first_foreign_met(&self, draft: &ProbedDraft) -> usize {
        let generation = crate::session::Epoch::read(&self.seat.image).generation;
        let foreign = |leaf: &Seen| self.seat.image.life(leaf.number).born != generation;
        draft.leaves.iter().position(foreign).unwrap_or(0)
    }

    /// Copies the path to a leaf that was met.
    fn copy_met(&self, probes: &[Probe<'_>], draft: &ProbedDraft, at: usize) -> Attempt<()> {
        let leaf = draft.leaves[at];
        if let Some(probe) = draft.met.iter().position(|met| met.home == leaf.number) {
            return self.copy_path(probes[probe].key);
        }
        // One beside a probe's own has a record.
        let mut key = Vec::new();
        page::leaf_key(self.seat.image.page(leaf.number), 0, &mut key);
        leaf.check(&self.seat.image)?;
        self.copy_path(&key)
    }
}

impl ProbedDraft {
    /// What a write asks of its leaf.
    #[cold]
    fn write_at(&self, at: usize) -> Coming<'_> {
        let start = at.checked_sub(1).map_or(0, |before| self.writes[before].value);
        let write = &self.writes[at];
        let value = write.kind.sets().then_some(write.value - write.key);
        Coming { key: &self.bytes[start..write.key], value }
    }
}
