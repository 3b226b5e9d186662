//! Taking a checkpoint, and saying in meta whether the file may have changed since.
//!
//! In this version a checkpoint is taken when the last process leaves, by that process, under the
//! exclusive `open` lock: nobody else is attached, nothing is half done. Order: cut; info pages into
//! slots that do not count; `fdatasync`, which flushes the mapped pages too; meta; `fdatasync`; only
//! then `DURABLE_GEN`. [`mark_open`] writes meta when the first process comes, before any change.
//!
//! Invariants
//! - Nothing that meta names is written after meta, until the next checkpoint is durable.
//! - The file's meta, not `-shm`, says which generation is durable; `DURABLE_GEN` never exceeds it.
//! - A slot of an info page with a generation above the durable one is left over from a checkpoint
//!   that did not end; the next checkpoint writes it, so that it can never be taken for a good one.
//!
//! What if we are killed? Before the copy of meta is whole: the old one counts, `-shm` is as good as
//! before, and the next to leave cuts again. After: [`mark_open`] of the next to come reads it and
//! corrects `DURABLE_GEN`.
//!
//! Deliberately absent: checkpoints while others write, and the log (durability issue).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_shm::latch::{self, State};
use perilune_shm::{platform, words};
use perilune_store::{Error, Result};

use crate::control::cut;
use crate::image::layout::{control, Life};
use crate::image::{io_error, Image};
use crate::limits::{PAGE, VOLATILE};
use crate::meta::info::{self, Entry, GenerationSum, InfoPage, Place};
use crate::meta::{self, space_error, Meta};
use crate::page;

/// Header word: stamp of the newest copy of meta that this `-shm` goes with.
pub(crate) const STAMP: usize = 88;
/// Header word: stamp of the copy of meta that is being written, or was last.
pub(crate) const NEXT_STAMP: usize = 96;
/// Header word: 1 when a sync has failed; the kernel may then take pages for written that are not.
pub(crate) const REWRITE: usize = 104;

/// Writes into meta that the file may change from now on. For the first process to attach, before it
/// changes anything.
///
/// # Errors
/// `NoSpace`, `Io`; what `meta::newest` answers.
pub(crate) fn mark_open(image: &Image, disk: &dyn Disk) -> Result<()> {
    let file = open(image, disk)?;
    let (slot, meta) = meta::newest(&*file, &image.path)?;
    image.control(control::DURABLE_GEN).store(meta.generation.into(), Release);
    if meta.is_open {
        return Ok(());
    }
    // The copy that counts may have been written by one who was killed before he could sync it.
    sync(image, &*file)?;
    write_meta(image, &*file, 1 - slot, Meta { is_open: true, ..meta })
}

/// Takes a checkpoint and writes into meta that the file is closed. The caller is the only process
/// attached, holds the `open` lock, and has no session.
///
/// # Errors
/// `NoSpace`, `Io`: the checkpoint before still counts, and `-shm` is good; `LimitReached` when the
/// generations are used up.
pub(crate) fn close(image: &Arc<Image>, disk: &dyn Disk) -> Result<()> {
    let file = open(image, disk)?;
    let (slot, meta) = meta::newest(&*file, &image.path)?;
    let durable = meta.generation;
    let npages = image.npages();
    let places = Place::all(npages)
        .map(|place| Survey::of(image, &*file, place, durable))
        .collect::<Result<Vec<_>>>()?;
    if !places.iter().any(|place| place.is_changed) {
        let closed = Meta { is_open: false, ..meta };
        return write_meta(image, &*file, 1 - slot, closed);
    }
    if image.generation() >= info::BORN_MAX {
        return Err(Error::LimitReached {
            what: "generations: dump and load it",
            limit: info::BORN_MAX.into(),
        });
    }
    let (generation, root) = cut(image, 0)?;
    let mut info_sum = GenerationSum::default();
    for place in &places {
        info_sum.add(place.write(image, &*file, durable, generation)?);
    }
    sync(image, &*file)?;
    let height = u32::from(page::level(image.page(root))) + 1;
    let closed =
        Meta { generation, root, height, npages, is_open: false, info_sum: info_sum.value(), ..meta };
    write_meta(image, &*file, 1 - slot, closed)?;
    image.control(control::DURABLE_GEN).store(generation.into(), Release);
    image.shm.word(REWRITE).store(0, Release);
    Ok(())
}

fn open(image: &Image, disk: &dyn Disk) -> Result<Box<dyn DiskFile>> {
    disk.open(&image.path, true).map_err(|source| io_error("open", &image.path, source))
}

/// Makes everything written to the file durable.
fn sync(image: &Image, file: &dyn DiskFile) -> Result<()> {
    file.sync_data().map_err(|source| {
        image.shm.word(REWRITE).store(1, Release);
        space_error("sync data", &image.path, source)
    })
}

/// Writes the next copy of meta, and notes in `-shm` that it goes with it.
fn write_meta(image: &Image, file: &dyn DiskFile, slot: usize, meta: Meta) -> Result<()> {
    let meta = Meta { serial: meta.serial + 1, stamp: platform::random_u64(), ..meta };
    image.shm.word(NEXT_STAMP).store(meta.stamp, Release);
    meta::write(file, &image.path, slot, &meta)?;
    image.shm.word(STAMP).store(meta.stamp, Release);
    Ok(())
}

/// One info page before a checkpoint.
struct Survey {
    place: Place,
    generations: [u32; 2],
    counting: Option<usize>,
    is_changed: bool,
}

impl Survey {
    fn of(image: &Image, file: &dyn DiskFile, place: Place, durable: u32) -> Result<Survey> {
        let generations = info::generations(file, &image.path, place)?;
        let is_changed = place.pages(image.npages()).any(|number| {
            let Life { born, died } = image.life(number as u32);
            let since = |generation: u32| generation > durable && generation != VOLATILE;
            since(born) || since(died)
        });
        Ok(Survey { place, generations, counting: info::counting(generations, durable), is_changed })
    }

    /// Writes the info page for `generation` if it has changed, and answers the generation of the
    /// slot that counts then.
    fn write(&self, image: &Image, file: &dyn DiskFile, durable: u32, generation: u32) -> Result<u32> {
        let left_over = |slot: &usize| self.generations[*slot] > durable;
        let mut targets: Vec<usize> = (0..2).filter(left_over).collect();
        if targets.is_empty() {
            if !self.is_changed {
                return Ok(self.counting.map_or(0, |slot| self.generations[slot]));
            }
            targets.push(self.counting.map_or(0, |slot| 1 - slot));
        }
        let page = self.build(image, file, durable, generation)?.encode(self.place);
        for slot in targets {
            let written = file.write_at(&page, self.place.offset(slot));
            written.map_err(|source| space_error("write an info page", &image.path, source))?;
        }
        Ok(generation)
    }

    fn build(&self, image: &Image, file: &dyn DiskFile, durable: u32, generation: u32) -> Result<InfoPage> {
        let before = match self.counting {
            Some(slot) => {
                InfoPage::read(file, &image.path, self.place, slot)?.ok_or_else(|| Error::Corrupt {
                    place: format!("{}: info page {} is bad", image.path.display(), self.place.index),
                })?
            }
            None => InfoPage::empty(),
        };
        let rewrite = image.shm.word(REWRITE).load(Acquire) != 0;
        let mut page = InfoPage { generation, ..InfoPage::empty() };
        let entries = page.entries.iter_mut().zip(before.entries);
        for (number, (entry, before)) in self.place.pages(image.npages()).zip(entries) {
            let number = number as u32;
            let life = image.life(number);
            if life.born == 0 || !life.is_in(generation) {
                continue;
            }
            let is_run = latch::load(image.latch(number)).state() == State::Extent;
            *entry = Entry { born: life.born, is_run, sum: before.sum };
            if life.born > durable || before.born != life.born {
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

/// A copy of a page's bytes.
pub(crate) fn page_bytes(image: &Image, number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE);
    words::append(image.page(number), 0, PAGE, &mut bytes);
    debug_assert_eq!(bytes.len(), PAGE);
    bytes
}

/// Whether this `-shm` goes with a copy of meta.
pub(crate) fn goes_with(stamp: u64, next_stamp: u64, meta: &Meta) -> bool {
    meta.stamp == stamp || meta.stamp == next_stamp
}

/// Notes in a new `-shm` which copy of meta it was made from.
pub(crate) fn adopt(image: &Image, meta: &Meta) {
    image.shm.word(STAMP).store(meta.stamp, Relaxed);
    image.shm.word(NEXT_STAMP).store(meta.stamp, Relaxed);
}
