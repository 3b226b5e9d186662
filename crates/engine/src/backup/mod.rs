//! Copying a database that others are using, as it was at one moment.
//!
//! Problem: copied byte by byte, a file that changes meanwhile is a mixture of states. Idea: a snapshot is pinned,
//! so that its pages stay as they are, and a checkpoint is taken, so that they have sums and a crash never undoes
//! that state. Then the copy is made [`whole`], or an older copy is brought up to date ([`update`]).
//!
//! Invariants
//! - The pages of a pinned generation do not change: they are read by system calls, so that a bad sector is an
//!   error and not the end of the process.
//! - The copy is a closed database with the uuid of the original. Its generation is one that the original never
//!   returns behind: of every page born up to then the copy has what the original has.
//! - Ended at any moment, DEST opens as the old or the new state. The pin goes with its process.

mod update;
mod whole;

use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_store::{Error, Result};

use crate::checkpoint;
use crate::image::layout::control;
use crate::image::{io_error, Image};
use crate::limits::PAGE;
use crate::meta::info::{self, InfoPage, Place};
use crate::meta::survey::in_generation;
use crate::meta::{self, sums, Meta};
use crate::open::{Gate, OpenOptions, Reserved, Site};
use crate::page;
use crate::pin::{self, Pin, Purpose};

/// What a backup is to do with a copy that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackupKind {
    /// Replace it.
    #[default]
    Whole,
    /// Bring it up to date by the pages that are new; if there is none, make one.
    Incremental,
}

/// What a backup has copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The generation of the copy.
    pub generation: u64,
    /// Pages copied.
    pub pages: u64,
    /// Of them, those that were compared with a sum.
    pub pages_compared: u64,
    /// Pages that an older copy had already.
    pub pages_kept: u64,
    /// Bytes of the copy.
    pub bytes: u64,
}

/// Copies the database to `dest`, which may be a database that nobody has open. `progress` is told pages done
/// and pages in all.
///
/// # Errors
/// `ReadOnly`; `LimitReached` at 255 snapshots; `CannotOpen` if `dest` is in use, being made, or the database itself, or
/// not an older copy that could be brought up to date; `NotADatabase` if `dest` is another file; `Corrupt`
/// with the damaged page; `NoSpace`, `Io`. `dest` is then what it was.
pub(crate) fn backup(
    image: &Arc<Image>,
    disk: &dyn Disk,
    dest: &Path,
    kind: BackupKind,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    if image.read_only {
        return Err(Error::ReadOnly);
    }
    let dest = Site::find(dest, options)?.path;
    let refused = |why: &str| Error::CannotOpen { place: (&dest).into(), why: why.to_owned() };
    if dest == image.path {
        return Err(refused("is the database itself: give another path"));
    }
    if !dest.exists() {
        // NB: two at once would write into one file, and a database made meanwhile would be replaced.
        if let Some(_reserved) = Reserved::take(&dest)? {
            return whole::write(image, disk, &dest, whole::Place::Vacant, progress);
        }
    }
    let gate = Gate::enter(&dest, false, options.timeout)?;
    let file = gate.open_on(disk, &dest, true)?;
    let (slot, meta) = meta::newest(&*file, &dest)?;
    if !gate.attached(&dest)?.is_empty() || gate.is_read(&dest)? {
        return Err(refused("is in use: end the processes that have it open, or give another path"));
    }
    match kind {
        BackupKind::Whole => whole::write(image, disk, &dest, whole::Place::Held(&gate), progress),
        BackupKind::Incremental => {
            update::write(image, disk, update::Base { file: &*file, path: &dest, slot, meta }, progress)
        }
    }
}

/// The state to be copied.
struct Moment {
    image: Arc<Image>,
    source: Box<dyn DiskFile>,
    pin: Pin,
    /// The generation of the copy.
    generation: u32,
    npages: u64,
}

impl Moment {
    /// Pins the database as it is now.
    ///
    /// # Errors
    /// `LimitReached`, `Io`.
    fn pin(image: &Arc<Image>, disk: &dyn Disk) -> Result<Moment> {
        let pin = pin::cut(image, 0, Purpose::Snapshot)?;
        let npages = image.npages();
        // A database that can take no checkpoint now is all the more worth a copy; only, if the machine
        // crashes before it can, the copy is of a state that is gone, and cannot be brought up to date.
        let changed = checkpoint::take(image, &*image.disk, 0);
        let mut generation = pin.generation();
        if let Ok(false) = changed {
            // NB: a recovery would give the numbers after the last checkpoint's to other states.
            let durable = image.control(control::DURABLE_GEN).load(Acquire);
            generation = generation.min(u32::try_from(durable).unwrap_or(u32::MAX));
        }
        // NB: also if the name leads elsewhere by now: what others have had no chance to close can be rescued so.
        let source = image.own_database(disk, false)?;
        let moment = Moment { image: Arc::clone(image), source, pin, generation, npages };
        moment.check_infos()?;
        Ok(moment)
    }

    /// When a page was born and whether it is part of a run, if it belongs to the state.
    fn page(&self, number: u64) -> Option<(u32, bool)> {
        let number = u32::try_from(number).ok().filter(|_| number < self.npages)?;
        in_generation(&self.image, number, self.pin.generation())
    }

    /// Reads a page of the state.
    ///
    /// # Errors
    /// `Io`.
    fn read(&self, number: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.source.read_at(bytes, number * PAGE as u64);
        read.map_err(|source| io_error("read a page", &self.image.path, source))
    }

    /// The info page at `place` of the last checkpoint, whichever that is now: a page of the state that it
    /// names with the same birth is the same.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn durable(&self, place: Place) -> Result<InfoPage> {
        if !place.is_in(self.npages) {
            return Ok(InfoPage::empty());
        }
        loop {
            let (_, meta) = self.meta()?;
            let found = sums::info_page(&*self.source, &self.image.path, &meta, place);
            // NB: a checkpoint may have been taken meanwhile, and the slot written again.
            if self.meta()?.1.generation == meta.generation {
                return found;
            }
        }
    }

    /// Whether the info pages are those of the last checkpoint, whichever that is now.
    ///
    /// # Errors
    /// `Corrupt` if not; `Io`.
    fn check_infos(&self) -> Result<()> {
        let (source, path) = (&*self.source, &self.image.path);
        loop {
            let (_, meta) = self.meta()?;
            let counting = |place| {
                let found = info::generations(source, path, place)?;
                Ok(info::counting(found, meta.generation).map_or(0, |slot| found[slot]))
            };
            let generations = Place::all(meta.npages).map(counting).collect::<Result<Vec<u32>>>()?;
            let checked = sums::check_infos(path, &meta, generations.into_iter());
            if checked.is_ok() || self.meta()?.1.generation == meta.generation {
                return checked;
            }
        }
    }

    /// Checks a page that cannot be compared, as the last checkpoint does not name it with its birth.
    ///
    /// # Errors
    /// `Corrupt` if nobody has compared it as long as that could be done.
    fn check_proved(&self, number: u64) -> Result<()> {
        let is_lost = u32::try_from(number).is_ok_and(|number| self.image.life(number).is_unproved);
        let what = "part of a long value that is damaged";
        if is_lost {
            Err(sums::damaged_page(&self.image.path, number, what))
        } else {
            Ok(())
        }
    }

    fn meta(&self) -> Result<(usize, Meta)> {
        meta::newest(&*self.source, &self.image.path)
    }

    /// The meta of the copy, but for `serial`, `stamp` and `info_sum`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn meta_of_copy(&self, npages: u64) -> Result<Meta> {
        let root = self.pin.root();
        let height = u32::from(page::level(self.image.page(root))) + 1;
        let (generation, (_, now)) = (self.generation, self.meta()?);
        let closed =
            Meta { is_open: false, has_delta: false, wal_batch: 0, log_segment: 0, log_mark: 0, ..now };
        Ok(Meta { generation, root, height, npages, ..closed })
    }
}

#[cfg(test)]
mod tests;
