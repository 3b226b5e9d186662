//! What has become of the pages that one info page covers, since the last checkpoint; and writing that info page
//! for the next.
//!
//! An info page has two slots; one counts for the last checkpoint. If no page that it covers was born or died
//! since, nothing is written. Else a new info page goes into the other slot: kept pages keep their sums, new ones
//! are summed.
//!
//! Invariants
//! - The generation written is pinned: its pages are not changed while they are summed.
//! - A page belongs to generation C if `born <= C < died`, also if it has died since the cut.
//! - A slot that is left over from a checkpoint which did not end is written, so that it never counts.
//! - An unproved page is never summed anew: damage would get a good sum. If a snapshot may still read it when its
//!   sum is dropped, it is compared with that first.
//!
//! Deliberately absent: when (`checkpoint`).

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use perilune_disk::DiskFile;
use perilune_shm::latch::{self, State};
use perilune_shm::words;
use perilune_store::{Error, Result};

use super::info::{self, Entry, InfoPage, Place};
use super::{space_error, sums, Meta};
use crate::image::layout::Life;
use crate::image::Image;
use crate::limits::{PAGE, VOLATILE};

/// One info page before a checkpoint.
pub(crate) struct Survey {
    place: Place,
    npages: u64,
    durable: u32,
    generations: [u32; 2],
    counting: Option<usize>,
    /// Slots that a checkpoint which did not end has left.
    left_over: [bool; 2],
}

impl Survey {
    /// Looks at the heads of an info page's two slots. `before` is the checkpoint before.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn of(
        image: &Image,
        file: &dyn DiskFile,
        place: Place,
        npages: u64,
        before: &Meta,
    ) -> Result<Survey> {
        let durable = before.generation;
        let generations = info::generations(file, &image.path, place)?;
        // NB: for pages beyond the end of the file, as the checkpoint before knows it, no slot counts, whatever its
        // generation: it may be of a checkpoint before a crash, after which the same number was used again.
        let is_known = place.is_in(before.npages);
        let counting = info::counting(generations, durable).filter(|_| is_known);
        let left_over = generations.map(|generation| generation > if is_known { durable } else { 0 });
        Ok(Survey { place, npages, durable, generations, counting, left_over })
    }

    /// The generation of the slot that counts for the checkpoint before; 0: none does.
    pub(crate) fn generation_before(&self) -> u32 {
        self.counting.map_or(0, |slot| self.generations[slot])
    }

    /// Whether a page that the info page covers was born or died after `durable`.
    pub(crate) fn is_changed(image: &Image, place: Place, npages: u64, durable: u32) -> bool {
        place.pages(npages).any(|number| {
            let Life { born, died, .. } = image.life(number as u32);
            let since = |generation: u32| generation > durable && generation != VOLATILE;
            since(born) || since(died)
        })
    }

    /// Writes the info page for `generation` if it has changed, and answers the generation of the
    /// slot that counts then. `rewrite`: writes the changed pages themselves too.
    ///
    /// # Errors
    /// `Corrupt` if the slot that counts is bad; `NoSpace`, `Io`.
    pub(crate) fn write(
        &self,
        image: &Image,
        file: &dyn DiskFile,
        generation: u32,
        rewrite: bool,
    ) -> Result<u32> {
        let mut targets: Vec<usize> = (0..2).filter(|slot| self.left_over[*slot]).collect();
        if targets.is_empty() {
            if !Survey::is_changed(image, self.place, self.npages, self.durable) {
                return Ok(self.generation_before());
            }
            targets.push(self.counting.map_or(0, |slot| 1 - slot));
        }
        let page = self.build(image, file, generation, rewrite)?.encode(self.place);
        for slot in targets {
            let written = file.write_at(&page, self.place.offset(slot));
            written.map_err(|source| space_error("write an info page", &image.path, source))?;
        }
        Ok(generation)
    }

    fn build(&self, image: &Image, file: &dyn DiskFile, generation: u32, rewrite: bool) -> Result<InfoPage> {
        let before = match self.counting {
            Some(slot) => {
                InfoPage::read(file, &image.path, self.place, slot)?.ok_or_else(|| Error::Corrupt {
                    place: format!("{}: info page {} is bad", image.path.display(), self.place.index),
                })?
            }
            None => InfoPage::empty(),
        };
        let mut page = InfoPage { generation, ..InfoPage::empty() };
        let entries = page.entries.iter_mut().zip(before.entries);
        for (number, (entry, before)) in self.place.pages(self.npages).zip(entries) {
            let number = number as u32;
            let Some((born, is_run)) = in_generation(image, number, generation) else {
                prove_for_snapshots(image, number, &before);
                continue;
            };
            *entry = Entry { born, is_run, sum: before.sum };
            if born > self.durable || before.born != born {
                if is_unproved(image, number) {
                    let what = "it has never been compared, and its info page does not know it";
                    return Err(sums::damaged_page(&image.path, number.into(), what));
                }
                let bytes = page_bytes(image, number);
                entry.sum = crc32c::crc32c(&bytes);
                if rewrite {
                    let written = file.write_at(&bytes, u64::from(number) * PAGE as u64);
                    written.map_err(|source| space_error("write a page", &image.path, source))?;
                }
            }
        }
        Ok(page)
    }
}

/// When a page was born and whether it is part of a run, if it belongs to the pinned `generation`.
pub(crate) fn in_generation(image: &Image, number: u32, generation: u32) -> Option<(u32, bool)> {
    let word = image.life_word(number);
    loop {
        let seen = word.load(Acquire);
        let life = Life::from_word(seen);
        if life.born == 0 || !life.is_in(generation) {
            return None;
        }
        let state = latch::load(image.latch(number)).state();
        // NB: a tree page that dies gets its death first and state DEAD then; a run that is cut off gets its state first.
        if word.load(Acquire) == seen {
            let is_tree = matches!(state, State::Tree | State::Unproved);
            let is_run = if life.died == 0 { !is_tree } else { life.was_run };
            return Some((life.born, is_run));
        }
    }
}

/// Whether a page was not compared with its sum since the file was opened; see `proof`.
fn is_unproved(image: &Image, number: u32) -> bool {
    latch::load(image.latch(number)).state() == State::Unproved || image.life(number).is_unproved
}

/// Compares a page of a run that is about to be known by no info page, if a snapshot may still read it: from then on there
/// is nothing to compare it with, and one that is unproved counts as damaged.
fn prove_for_snapshots(image: &Image, number: u32, before: &Entry) {
    let word = image.life_word(number);
    let seen = word.load(Acquire);
    let life = Life::from_word(seen);
    let is_read = life.is_unproved
        && life.born == before.born
        && image.snapshots().any(|generation| life.is_in(generation));
    if is_read && crc32c::crc32c(&page_bytes(image, number)) == before.sum {
        let proved = Life { is_unproved: false, ..life }.to_word();
        let _ = word.compare_exchange(seen, proved, AcqRel, Acquire);
    }
}

/// A copy of a page's bytes.
pub(crate) fn page_bytes(image: &Image, number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE);
    words::append(image.page(number), 0, PAGE, &mut bytes);
    debug_assert_eq!(bytes.len(), PAGE);
    bytes
}
