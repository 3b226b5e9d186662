//! Taking and giving back pages and runs of pages, outside of any latch.
//!
//! A page is free when its latch word is unlocked in state DEAD and no generation that somebody still
//! needs contains it. It is taken by locking that word; until its content is published it stays
//! locked and DEAD, so that repair can tell a page that was taken from one that is in use.
//!
//! Example: page 57 was born in generation 5, was replaced by a copy and died in 9. It is taken once generation 9 is durable,
//! if no snapshot of the generations 5 to 8 is open. If no page is free, the frontier moves on; at its end the file grows.
//!
//! What if we are killed? The number is noted in the session before the word is locked: repair frees
//! it if, and only if, the word is locked by the dead session in state DEAD.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use perilune_shm::latch::{self, State};
use perilune_store::Error;

use super::layout::{control, Life, Run, FLAG_LEVEL, PINS_AT, PIN_BYTES};
use super::Image;
use crate::limits::{PINS, RESERVE_PAGES, SEGMENT_PAGES, SEGMENT_RESERVED, VOLATILE};

/// Page-table entries that one search for a free page looks at.
const SEARCH: u64 = 512;

/// Dead pages that are not free; see [`Image::kept`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) by_checkpoint: u64,
    pub(crate) by_snapshots: u64,
}

impl Image {
    /// Whether a dead page's content is needed by nobody any more.
    pub(crate) fn is_reusable(&self, life: Life) -> bool {
        // Born and freed in one generation, or never used: no snapshot can hold it.
        let is_brief = life.born >= life.died;
        if is_brief && !life.was_run {
            return true;
        }
        // NB: pins before DURABLE_GEN: a checkpoint stores that first, and drops its pin then. Whoever
        // marked the page dead in a newer generation saw the pin of the older one, and so do we.
        if !is_brief && self.pinned().any(|generation| life.is_in(generation)) {
            return false;
        }
        let durable = self.control(control::DURABLE_GEN).load(Acquire) as u32;
        if life.was_run && life.died > durable && self.control(control::FLAGS).load(Relaxed) & FLAG_LEVEL != 0
        {
            // A record that is not in the log yet may still name it.
            return false;
        }
        // NB: a checkpoint's owner may have died between meta and DURABLE_GEN, and his pin with him.
        let pending = self.control(control::PENDING_GEN).load(Acquire) as u32;
        let is_kept = |generation: u32| generation != 0 && life.is_in(generation);
        is_brief || !is_kept(durable) && !is_kept(pending)
    }

    /// The generations held by pins.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = u32> + '_ {
        self.pinned_from(0)
    }

    /// The generations held by snapshots: by all pins but the first, which is the checkpoint's.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = u32> + '_ {
        self.pinned_from(1)
    }

    fn pinned_from(&self, first: usize) -> impl Iterator<Item = u32> + '_ {
        let high = (self.control(control::PINS_HIGH).load(Acquire) as usize).min(PINS);
        let generation = |pin: usize| self.shm.word(PINS_AT + pin * PIN_BYTES).load(Acquire) as u32;
        (first..high).map(generation).filter(|generation| *generation != 0)
    }

    /// Counts the dead pages that older generations still need.
    pub(crate) fn kept(&self) -> Kept {
        let snapshots: Vec<u32> = self.snapshots().collect();
        let durable = self.control(control::DURABLE_GEN).load(Acquire) as u32;
        let frontier = self.control(control::FRONTIER).load(Acquire).min(self.npages());
        let mut kept = Kept::default();
        for number in (SEGMENT_RESERVED..frontier).filter(|number| Image::is_data_page(*number)) {
            let life = self.life(number as u32);
            if life.born >= life.died {
                continue;
            }
            if durable != 0 && life.is_in(durable) {
                kept.by_checkpoint += 1;
            } else if snapshots.iter().any(|generation| life.is_in(*generation)) {
                kept.by_snapshots += 1;
            }
        }
        kept
    }

    /// Takes one page for session `id`. `note` is called with each candidate before it is locked. With `frees`, of what
    /// frees space, also one of those that are kept for that, if the file cannot grow.
    pub(crate) fn take_page(
        &self,
        id: u16,
        frees: bool,
        cursor: &mut u64,
        mut note: impl FnMut(u32),
    ) -> Result<u32, Error> {
        let mut keeps = true;
        loop {
            let npages = self.npages();
            let end = if keeps { self.end_but_reserve() } else { npages };
            let frontier = self.control(control::FRONTIER).load(Acquire);
            // NB: as many dead pages as have been taken of the reserve stay unused, in its place.
            let dead = self.control(control::DEAD_PAGES).load(Relaxed);
            let dead = dead.saturating_sub(if keeps { frontier.saturating_sub(end) } else { 0 });
            let (worth, effort) = match (frontier < end, keeps) {
                (true, _) => ((npages / 8).max(8), SEARCH),
                (false, true) => ((npages / 64).max(8), npages),
                (false, false) => (0, npages),
            };
            if dead > worth && dead < npages {
                if let Some(page) = self.search_page(id, cursor, effort, &mut note) {
                    return Ok(page);
                }
            }
            match self.take_frontier(1, end)? {
                Some(first) => {
                    note(first);
                    if self.lock_free(first, id) {
                        return Ok(first);
                    }
                }
                None => match self.grow(1) {
                    Err(_) if frees && keeps => {
                        keeps = false;
                        // What is copied now becomes free with the next checkpoint.
                        self.control(control::CHECKPOINT_WANTED).store(1, Relaxed);
                    }
                    grown => grown?,
                },
            }
        }
    }

    /// The end of the file but for the pages that are kept for what frees space: the first change of a page after a
    /// checkpoint copies it.
    fn end_but_reserve(&self) -> u64 {
        let npages = self.npages();
        npages - (npages / 16).min(RESERVE_PAGES)
    }

    /// Looks at `effort` entries from the cursor on for a free page and takes it.
    fn search_page(&self, id: u16, cursor: &mut u64, effort: u64, note: &mut impl FnMut(u32)) -> Option<u32> {
        let end = self.control(control::FRONTIER).load(Acquire);
        for _ in 0..effort.min(end) {
            *cursor = if *cursor + 1 >= end { SEGMENT_RESERVED } else { *cursor + 1 };
            if self.is_free(*cursor) {
                note(*cursor as u32);
                if self.lock_free(*cursor as u32, id) {
                    self.count_dead(-1);
                    return Some(*cursor as u32);
                }
            }
        }
        None
    }

    fn is_free(&self, number: u64) -> bool {
        if !Image::is_data_page(number) {
            return false;
        }
        let word = latch::load(self.latch(number as u32));
        !word.locked() && word.state() == State::Dead && self.is_reusable(self.life(number as u32))
    }

    /// Locks a free page's word; false when somebody was faster.
    fn lock_free(&self, number: u32, id: u16) -> bool {
        let word = self.latch(number);
        let seen = latch::load(word);
        !seen.locked()
            && seen.state() == State::Dead
            && self.is_reusable(self.life(number))
            && latch::try_lock(word, seen, id)
    }

    /// Moves the frontier over `pages` pages of one segment, not beyond `end`; None when the file must grow.
    fn take_frontier(&self, pages: u64, end: u64) -> Result<Option<u32>, Error> {
        let frontier = self.control(control::FRONTIER);
        loop {
            let at = frontier.load(Acquire);
            let mut first = at.max(SEGMENT_RESERVED);
            let inside = first % SEGMENT_PAGES;
            if inside < SEGMENT_RESERVED {
                first += SEGMENT_RESERVED - inside;
            } else if inside + pages > SEGMENT_PAGES {
                first += SEGMENT_PAGES - inside + SEGMENT_RESERVED;
            }
            if first + pages > end {
                return Ok(None);
            }
            if frontier.compare_exchange(at, first + pages, AcqRel, Acquire).is_ok() {
                self.prepare(first, pages);
                return Ok(Some(first as u32));
            }
        }
    }

    /// Takes a run of `pages` pages inside one segment. `note` is called with it before it is locked.
    pub(crate) fn take_run(&self, id: u16, pages: u32, mut note: impl FnMut(Run)) -> Result<Run, Error> {
        loop {
            let dead = self.control(control::DEAD_PAGES).load(Relaxed);
            if dead < self.npages() && dead >= 2 * u64::from(pages) {
                if let Some(run) = self.search_run(id, pages, &mut note) {
                    return Ok(run);
                }
            }
            match self.take_frontier(pages.into(), self.end_but_reserve())? {
                Some(first) => {
                    let run = Run { first, pages };
                    note(run);
                    if self.lock_run(run, id) {
                        return Ok(run);
                    }
                }
                None => self.grow(pages.into())?,
            }
        }
    }

    /// First fit over the used part of the file.
    fn search_run(&self, id: u16, pages: u32, note: &mut impl FnMut(Run)) -> Option<Run> {
        let end = self.control(control::FRONTIER).load(Acquire);
        let mut length = 0;
        for number in SEGMENT_RESERVED..end {
            length = if self.is_free(number) { length + 1 } else { 0 };
            if length == pages {
                let run = Run { first: number as u32 + 1 - pages, pages };
                note(run);
                if self.lock_run(run, id) {
                    self.count_dead(-i64::from(pages));
                    return Some(run);
                }
                length = 0;
            }
        }
        None
    }

    /// Locks all pages of a run or none.
    fn lock_run(&self, run: Run, id: u16) -> bool {
        for count in 0..run.pages {
            if !self.lock_free(run.first + count, id) {
                self.free_locked(Run { pages: count, ..run }, id, None);
                return false;
            }
        }
        true
    }

    /// Frees those pages of a run that session `id` holds in state DEAD: part of a value until generation
    /// `died`, or never published.
    pub(crate) fn free_locked(&self, run: Run, id: u16, died: Option<u32>) {
        let mut freed = 0;
        for number in run.first..run.first + run.pages {
            if u64::from(number) >= self.npages() {
                break;
            }
            let word = self.latch(number);
            let seen = latch::load(word);
            if seen.is_locked_by(id) && seen.state() == State::Dead {
                match died {
                    Some(died) => self.note_death(number, died, true),
                    None => self.life_word(number).store(Life::default().to_word(), Relaxed),
                }
                latch::release(word, State::Dead, seen.version() + 1);
                freed += 1;
            }
        }
        self.count_dead(freed);
    }

    /// Writes a page's death into its life word.
    pub(crate) fn note_death(&self, number: u32, died: u32, was_run: bool) {
        let before = self.life(number);
        // NB: a patched page that dies in the generation of its birth is in no checkpoint, and no record names it.
        let was_run = was_run && !(before.is_patched() && before.born >= died);
        let life = if before.born == VOLATILE {
            Life { died: VOLATILE, was_run: false, ..before }
        } else {
            // NB: a page that dies unproved stays so, since a snapshot may still read it.
            Life { died, was_run, ..before }
        };
        self.life_word(number).store(life.to_word(), Relaxed);
    }

    /// Keeps the rough count of free pages that makes searching worth while.
    pub(crate) fn count_dead(&self, change: i64) {
        if change != 0 {
            self.control(control::DEAD_PAGES).fetch_add(change as u64, Relaxed);
        }
    }
}
