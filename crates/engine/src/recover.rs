//! Filling a new `-shm` from the last checkpoint: page table, roots, counters. What recovery reports.
//!
//! Problem: a `-shm` of an earlier boot is worthless, and after a crash of the machine the pages of `x.db` may be of
//! any moment. Idea: meta and its info pages say which pages are the checkpoint's; the page table is filled from them
//! alone. Of the pages themselves only the root's head is looked at.
//!
//! Trusted: the newest good copy of meta, and for each info page the newest good slot up to meta's generation, if
//! together they have the sum that meta keeps. Pages outside the checkpoint are free, whatever they hold; those of
//! it are unproved, unless a recovery is to follow, which compares them all; versions begin at 0; the volatile tree
//! is a new empty leaf.
//!
//! What if we are killed? `-shm` is not READY yet: the next to come builds it anew.
//!
//! Deliberately absent: the order of a recovery (`open`).

use std::sync::atomic::Ordering::{Relaxed, Release};

use perilune_disk::DiskFile;
use perilune_shm::latch::{LatchWord, State};
use perilune_shm::region::Access;
use perilune_shm::words;
use perilune_store::{Error, Result};

use crate::image::layout::{control, Life};
use crate::image::Image;
use crate::limits::{SEGMENT_RESERVED, VOLATILE};
use crate::meta::info::{InfoPage, Place};
use crate::meta::{sums, Meta};
use crate::page::{self, FLAG_VOLATILE};

/// What the recovery of a database that was not closed has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryReport {
    /// Generation of the checkpoint that it began with.
    pub generation: u64,
    /// Pages of that checkpoint, all compared with their sums.
    pub pages: u64,
    /// Batches of the log replayed.
    pub batches: u64,
    /// Records replayed.
    pub records: u64,
    /// What was dropped of the log, and why; None if nothing was.
    pub dropped: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

impl std::fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "recovered after a crash: checkpoint {} ({} pages, all sound), {} records in {} batches replayed, ",
            self.generation, self.pages, self.records, self.batches
        )?;
        match &self.dropped {
            Some(dropped) => write!(f, "dropped {dropped}")?,
            None => write!(f, "nothing dropped")?,
        }
        write!(f, ", {:.3} s", self.seconds)
    }
}

/// Fills the zeroed `-shm` of `image`, allocated for `meta.npages` pages, from the checkpoint `meta`.
///
/// # Errors
/// `Corrupt` with the place; `NoSpace` when there is no room for the volatile root; `Io`.
pub(crate) fn fill(image: &Image, meta: &Meta, file: &dyn DiskFile) -> Result<()> {
    let mut table = Table { image, frontier: SEGMENT_RESERVED, used: 0 };
    let mut generations = Vec::new();
    for place in Place::all(meta.npages) {
        let page = sums::info_page(file, &image.path, meta, place)?;
        generations.push(page.generation);
        table.load(meta, place, &page)?;
    }
    sums::check_infos(&image.path, meta, generations.into_iter())?;
    check_root(image, meta)?;
    let free = (SEGMENT_RESERVED..table.frontier).filter(|page| Image::is_data_page(*page)).count() as u64;
    let put = |word: usize, value: u64| image.control(word).store(value, Relaxed);
    put(control::GEN, u64::from(meta.generation) + 1);
    put(control::DURABLE_GEN, meta.generation.into());
    put(control::ROOT, meta.root.into());
    put(control::FLUSH, 1);
    put(control::NPAGES, meta.npages);
    put(control::FRONTIER, table.frontier);
    put(control::DEAD_PAGES, free - table.used);
    if image.db.access() != Access::ReadOnly {
        plant_volatile_root(image)?;
    }
    Ok(())
}

/// The page table being filled.
struct Table<'a> {
    image: &'a Image,
    /// Behind the last page in use.
    frontier: u64,
    /// Pages in use.
    used: u64,
}

impl Table<'_> {
    fn load(&mut self, meta: &Meta, place: Place, page: &InfoPage) -> Result<()> {
        for (number, entry) in place.pages(meta.npages).zip(&page.entries) {
            if entry.born == 0 {
                continue;
            }
            if entry.born > meta.generation || !Image::is_data_page(number) {
                let what = format!("info page {place:?} says page {number} was born in {}", entry.born);
                return Err(damaged(self.image, what));
            }
            let state = match entry.is_run {
                true => State::Extent,
                // A recovery compares all pages itself, at once.
                false if meta.is_open => State::Tree,
                false => State::Unproved,
            };
            let is_unproved = entry.is_run && !meta.is_open;
            let life = Life { born: entry.born, is_unproved, ..Life::default() };
            self.image.latch(number as u32).store(LatchWord::unlocked(state, 0).raw(), Relaxed);
            self.image.life_word(number as u32).store(life.to_word(), Relaxed);
            self.frontier = number + 1;
            self.used += 1;
        }
        Ok(())
    }
}

fn check_root(image: &Image, meta: &Meta) -> Result<()> {
    if u64::from(meta.root) >= meta.npages || image.life(meta.root).born == 0 {
        return Err(damaged(image, format!("root {} is no page of its checkpoint", meta.root)));
    }
    let root = image.page(meta.root);
    if page::self_number(root) != meta.root || u32::from(page::level(root)) + 1 != meta.height {
        return Err(damaged(image, format!("page {} is not the root that meta names", meta.root)));
    }
    Ok(())
}

/// Makes an empty volatile tree in a free page. No session exists yet, so nothing is latched.
fn plant_volatile_root(image: &Image) -> Result<()> {
    let frontier = image.control(control::FRONTIER);
    if frontier.load(Relaxed) >= image.npages() {
        image.grow(1)?;
    }
    let mut number = frontier.load(Relaxed);
    while !Image::is_data_page(number) {
        number += 1;
        if number >= image.npages() {
            image.grow(1)?;
        }
    }
    let leaf = page::empty_leaf(FLAG_VOLATILE);
    page::put_identity(&leaf, number as u32, VOLATILE);
    words::copy(&leaf, image.page(number as u32));
    let life = Life { born: VOLATILE, died: VOLATILE, ..Life::default() };
    image.life_word(number as u32).store(life.to_word(), Relaxed);
    image.latch(number as u32).store(LatchWord::unlocked(State::Tree, 0).raw(), Release);
    frontier.store(number + 1, Relaxed);
    image.control(control::VROOT).store(number, Release);
    Ok(())
}

fn damaged(image: &Image, what: String) -> Error {
    Error::Corrupt { place: format!("{}: {what}", image.path.display()) }
}
