//! Comparing a page with its sum when it is first touched after an open.
//!
//! Between two openings nobody guards the file: a disk may have lost bits, a program may have written into it. The
//! first process to attach therefore takes every page of the last checkpoint for *unproved*. Whoever then first
//! touches one, to read it or to change it, compares it with the sum in its info page and marks it proved; for all
//! later ones that is an ordinary page. What it costs is paid once a page: in the latch word, which everybody looks
//! at anyway, an unproved page of a tree is in a state of its own. A page of a run is guarded by its leaf's latch and
//! dies without having been read: of that a bit of the life word says so, which outlives it.
//!
//! Invariants
//! - An unproved page is latched by nobody: so nothing is changed, copied or summed anew that was not compared before.
//! - A page of the last checkpoint has one content as long as it lives, so its sum is that in any info page that names
//!   it with its birth; a page whose sum was dropped while it was unproved counts as damaged.
//! - A damaged page stays unproved: everybody is told of it, and what lies elsewhere can be read.
//! - A process that only reads cannot mark anything: it compares for itself (`image::proofs`).
//!
//! What if we are killed? Marking changes no content, and whoever attaches first marks all again.
//!
//! Deliberately absent: pages born since the last checkpoint, and those of the volatile tree, which have no sums.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{fence, AtomicU64};

use perilune_shm::latch::{self, LatchWord, State};
use perilune_store::{Error, Result};

use crate::error::{Attempt, Stop};
use crate::image::layout::{control, Life, Run};
use crate::image::Image;
use crate::limits::{PAGE, PAGE_WORDS, SEGMENT_RESERVED};
use crate::meta::info::{self, Entry, InfoPage, Place, HEAD, PER_SEGMENT};
use crate::meta::sums::{damaged_page, what_lies_there};
use crate::page::{self, InnerSlots, Page};

/// Takes every page of the last checkpoint for unproved; not after a recovery, which has compared them all. The caller
/// is the only process attached to write, holds the `open` lock, and no page is latched.
pub(crate) fn doubt_all(image: &Image) {
    let durable = image.control(control::DURABLE_GEN).load(Acquire) as u32;
    let end = image.control(control::FRONTIER).load(Acquire).min(image.npages());
    for number in SEGMENT_RESERVED as u32..end as u32 {
        let life = image.life(number);
        if life.born == 0 || life.born > durable || life.died != 0 {
            continue;
        }
        let word = image.latch(number);
        let seen = latch::load(word);
        match seen.state() {
            State::Tree => drop(latch::mark(word, seen, State::Unproved)),
            State::Extent if !life.is_unproved => {
                image.life_word(number).store(Life { is_unproved: true, ..life }.to_word(), Relaxed);
            }
            _ => {}
        }
    }
}

/// A page of a tree that was met with `seen`, unlocked, as it is to be read: with the word to be checked at the end.
///
/// # Errors
/// `Restart` if it is none, or no longer; `Corrupt`, `Lost`.
#[cold]
pub(crate) fn tree_page(image: &Image, number: u32, seen: LatchWord) -> Attempt<LatchWord> {
    if !matches!(seen.state(), State::Tree | State::Unproved) {
        return Err(Stop::Restart);
    }
    let born = image.life(number).born;
    let is_unproved = seen.state() == State::Unproved;
    if !image.proofs.is_wanted(number, born, is_unproved) {
        return Ok(seen);
    }
    let compared = compare(image, number, born);
    if !latch::validate(image.latch(number), seen) {
        return Err(Stop::Restart);
    }
    compared?;
    if image.proofs.is_own() {
        image.proofs.note(number, born);
        return Ok(seen);
    }
    // NB: whoever was faster has marked it the same.
    latch::mark(image.latch(number), seen, State::Tree);
    Ok(LatchWord::unlocked(State::Tree, seen.version()))
}

/// Proves the pages of a run that a leaf names, which is still to be checked.
///
/// # Errors
/// `Restart` if they have been freed; `Corrupt`.
#[inline]
pub(crate) fn run(image: &Image, run: Run) -> Attempt<()> {
    for number in run.first..run.first + run.pages {
        let word = image.life_word(number);
        let seen = word.load(Acquire);
        let life = Life::from_word(seen);
        if image.proofs.is_wanted(number, life.born, life.is_unproved) {
            if life.died != 0 {
                return Err(Stop::Restart);
            }
            run_page(image, number, seen)?;
        }
    }
    Ok(())
}

/// Proves the pages of a run of a pinned generation, which may have died since. Who only reads has no pins.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn pinned_run(image: &Image, run: Run) -> Result<()> {
    for number in run.first..run.first + run.pages {
        loop {
            let seen = image.life_word(number).load(Acquire);
            if !Life::from_word(seen).is_unproved {
                break;
            }
            match run_page(image, number, seen) {
                Err(Stop::Fail(error)) => return Err(error),
                // Proved, or it has died meanwhile, which leaves it as it was.
                _ => continue,
            }
        }
    }
    Ok(())
}

/// Proves a page of a tree of a pinned generation. One that has died was latched before, and so proved.
///
/// # Errors
/// `Corrupt`.
#[inline]
pub(crate) fn pinned_tree_page(image: &Image, number: u32) -> Result<()> {
    loop {
        let seen = latch::load(image.latch(number));
        if seen.state() != State::Unproved {
            return Ok(());
        }
        if let Err(Stop::Fail(error)) = tree_page(image, number, seen) {
            return Err(error);
        }
    }
}

/// Adds to the error about a damaged page, if it is that, which keys the page covers: `parent` names it.
#[cold]
pub(crate) fn with_range(error: Error, parent: &Page, child: u32) -> Error {
    let Error::Corrupt { place } = error else { return error };
    let slots = page::inner_count(parent);
    let (mut after, mut upto) = (Vec::new(), Vec::new());
    page::lo_fence(parent, &mut after);
    page::hi_fence(parent, &mut upto);
    if let Some(index) = (0..=slots).find(|index| page::child(parent, *index) == child) {
        if index > 0 {
            page::key_into::<InnerSlots>(parent, index - 1, &mut after);
        }
        if index < slots {
            page::key_into::<InnerSlots>(parent, index, &mut upto);
        }
    }
    Error::Lost { place, keys: Box::new((after, upto)) }
}

/// Compares a page of a run whose life word is `seen`.
#[cold]
fn run_page(image: &Image, number: u32, seen: u64) -> Attempt<()> {
    let life = Life::from_word(seen);
    let compared = compare(image, number, life.born);
    // Pairs with the release fence of whoever takes a page: bytes of its next content come with its death.
    fence(Acquire);
    let word: &AtomicU64 = image.life_word(number);
    if word.load(Relaxed) != seen {
        return Err(Stop::Restart);
    }
    compared?;
    if image.proofs.is_own() {
        image.proofs.note(number, life.born);
        return Ok(());
    }
    // NB: whoever marks the page dead meanwhile may undo this: then it is compared again.
    let proved = Life { is_unproved: false, ..life }.to_word();
    let _ = word.compare_exchange(seen, proved, AcqRel, Relaxed);
    Ok(())
}

/// Compares a page that was born in generation `born` with its sum.
fn compare(image: &Image, number: u32, born: u32) -> Result<()> {
    let damaged = |what: &str| damaged_page(&image.path, number.into(), what);
    let Some(entry) = entry_of(image, number, born)? else {
        return Err(damaged("its info page does not know it"));
    };
    let mut bytes = [[0; 8]; PAGE_WORDS];
    for (bytes, word) in bytes.iter_mut().zip(image.page(number)) {
        *bytes = word.load(Relaxed).to_le_bytes();
    }
    let bytes = bytes.as_flattened();
    if crc32c::crc32c(bytes) != entry.sum {
        let what = what_lies_there(&entry, bytes);
        return Err(damaged(&format!("{what}, whose bytes do not have their sum")));
    }
    Ok(())
}

/// What the info pages say of a page that was born in generation `born`; None: nothing.
fn entry_of(image: &Image, number: u32, born: u32) -> Result<Option<Entry>> {
    let place = Place::of(number.into());
    let (info, index) = (place.segment * PER_SEGMENT + place.index, Place::entry_of(number.into()));
    let at = HEAD / 8 + index;
    let of_word = |word: u64| Some(Entry::from_bytes(word.to_le_bytes())).filter(|entry| entry.born == born);
    if let Some(entry) = image.proofs.info_word(info, at).and_then(of_word) {
        return Ok(Some(entry));
    }
    let Some(bytes) = info_page(image, place)? else { return Ok(None) };
    let mut words = Box::new([0; PAGE_WORDS]);
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    let entry = words.get(at).copied().and_then(of_word);
    image.proofs.keep_info(info, words);
    Ok(entry)
}

/// The bytes of the info page at `place` that counts for the last checkpoint, read through the mapping: so it is that of
/// the file that is mapped. None: it was never written.
fn info_page(image: &Image, place: Place) -> Result<Option<Vec<u8>>> {
    let read = |slot: usize, bytes: usize| {
        let mut found = Vec::with_capacity(bytes);
        let words = image.db.slice(place.offset(slot) as usize, bytes / 8);
        words.iter().for_each(|word| found.extend_from_slice(&word.load(Relaxed).to_le_bytes()));
        found
    };
    loop {
        let durable = image.control(control::DURABLE_GEN).load(Acquire);
        let generations = [0, 1].map(|slot| info::generation_of(&read(slot, HEAD), place));
        let counting = info::counting(generations, durable as u32);
        let bytes = counting.map(|slot| read(slot, PAGE));
        fence(Acquire);
        // NB: no checkpoint writes a slot that counts for the one before it; once there is another, it may.
        if image.control(control::DURABLE_GEN).load(Relaxed) != durable {
            continue;
        }
        return match bytes {
            Some(bytes) if InfoPage::decode(&bytes, place).is_none() => Err(Error::Corrupt {
                place: format!(
                    "{}: info page {} of segment {} is bad: restore a backup",
                    image.path.display(),
                    place.index,
                    place.segment
                ),
            }),
            bytes => Ok(bytes),
        };
    }
}

#[cfg(test)]
pub(crate) mod tests;
