//! An older copy brought up to date: only pages born since it was made are read and written.
//!
//! They are gathered in `DEST-delta`, which is then put into DEST ([`delta`]).
//!
//! Invariants
//! - A page is taken for one that DEST has only if DEST's info page says the same of it as the original's:
//!   generation of birth, and checksum. If any page born before DEST was made is another one there, DEST is
//!   of another line of the database's history, and nothing is changed.
//! - DEST has all space it will need before it is changed.
//!
//! What if we are killed? See [`delta`]: DEST is the old state, or becomes the new one when it is used next.
//!
//! Deliberately absent: reading the pages that DEST has already (`perilune check DEST` compares all of them
//! with their sums).

use std::path::Path;
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_shm::platform;
use perilune_store::{Error, Result};

use super::{BackupReport, Moment};
use crate::bulk::allocate;
use crate::image::{io_error, Image};
use crate::limits::{DAMAGES_NAMED, PAGE};
use crate::meta::delta::{self, Gathering};
use crate::meta::info::{self, Entry, GenerationSum, InfoPage, Place};
use crate::meta::{sums, Meta};

/// The copy as it is.
pub(super) struct Base<'a> {
    pub(super) file: &'a dyn DiskFile,
    pub(super) path: &'a Path,
    /// The slot of its meta page, and what that says.
    pub(super) slot: usize,
    pub(super) meta: Meta,
}

/// An update being gathered.
struct Update<'a> {
    moment: &'a Moment,
    base: &'a Base<'a>,
    gathering: Gathering,
    npages: u64,
    report: BackupReport,
}

/// Brings the copy up to date.
///
/// # Errors
/// As `backup`.
pub(super) fn write(
    image: &Arc<Image>,
    disk: &dyn Disk,
    mut base: Base<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    if base.meta.has_delta {
        (base.slot, base.meta) = delta::put_in(disk, base.path, base.file, base.slot, &base.meta, progress)?;
    }
    let moment = Moment::pin(image, disk)?;
    base.check(&moment)?;
    let stamp = platform::random_u64();
    let waiting = Meta { serial: base.meta.serial + 1, stamp, has_delta: true, ..base.meta.clone() };
    let gathering = Gathering::create(disk, base.path)?;
    let gathered = gather((&moment, gathering), disk, &base, &waiting, progress);
    if gathered.is_err() {
        // NB: it is ours, made above.
        let _ = disk.remove(&delta::path(base.path));
    }
    let mut report = gathered?;
    drop(moment);
    let (from, all) = (report.bytes / PAGE as u64, report.bytes / PAGE as u64 + report.pages);
    let mut progress = |done: u64, _: u64| progress((from + done).min(all), all);
    delta::put_in(disk, base.path, base.file, 1 - base.slot, &waiting, &mut progress)?;
    report.bytes = base.file.size().map_err(|source| io_error("find out the size", base.path, source))?;
    Ok(report)
}

impl Base<'_> {
    /// Refuses a copy that is none, or is ahead.
    fn check(&self, moment: &Moment) -> Result<()> {
        let (_, now) = moment.meta()?;
        if self.meta.uuid != now.uuid {
            return Err(self.refused(
                "is a copy of another database, or of this one before it was compacted or salvaged: give another \
                 path, or replace it by a whole backup",
            ));
        }
        if self.meta.is_open {
            return Err(self.refused(
                "was in use when its process or the machine ended: open and close it (`perilune check` does), or \
                 replace it by a whole backup",
            ));
        }
        if self.meta.generation > moment.generation {
            return Err(self.refused(
                "is newer than the database, which was restored from an older backup, or the copy was written \
                 to: give another path, or replace it by a whole backup",
            ));
        }
        Ok(())
    }

    fn refused(&self, why: &str) -> Error {
        Error::CannotOpen { place: self.path.into(), why: why.to_owned() }
    }
}

/// Gathers what the copy does not have.
fn gather(
    (moment, gathering): (&Moment, Gathering),
    disk: &dyn Disk,
    base: &Base<'_>,
    waiting: &Meta,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    // A copy that was written to may have grown by itself.
    let npages = moment.npages.max(base.meta.npages);
    allocate(disk, base.file, base.path, npages)?;
    let report = BackupReport {
        generation: moment.generation.into(),
        bytes: npages * PAGE as u64,
        ..BackupReport::default()
    };
    let mut update = Update { moment, base, gathering, npages, report };
    let mut info_sum = GenerationSum::default();
    for place in Place::all(npages) {
        info_sum.add(update.pages_of(place, progress)?);
    }
    let next = Meta {
        serial: waiting.serial + 1,
        stamp: platform::random_u64(),
        info_sum: info_sum.value(),
        ..moment.meta_of_copy(npages)?
    };
    update.gathering.seal(disk, base.path, waiting, next)?;
    Ok(update.report)
}

impl Update<'_> {
    /// Gathers what is new among the pages that an info page covers, and answers that info page's
    /// generation.
    fn pages_of(&mut self, place: Place, progress: &mut dyn FnMut(u64, u64)) -> Result<u32> {
        let before = self.moment.durable(place)?;
        let (file, path, is_known) = (self.base.file, self.base.path, place.is_in(self.base.meta.npages));
        let there =
            if is_known { sums::info_page(file, path, &self.base.meta, place)? } else { InfoPage::empty() };
        let mut info = InfoPage { generation: self.moment.generation, ..InfoPage::empty() };
        let entries = info.entries.iter_mut().zip(before.entries.iter().zip(&there.entries));
        let (mut bytes, mut damaged) = (vec![0; PAGE], sums::Sums::default());
        for (number, (entry, (before, there))) in place.pages(self.npages).zip(entries) {
            if number % 64 == 0 {
                progress(number, self.npages);
            }
            let Some((born, is_run)) = self.moment.page(number) else { continue };
            let is_new = born > self.base.meta.generation;
            if is_new || before.born != born {
                self.moment.read(number, &mut bytes)?;
                *entry = Entry { born, is_run, sum: crc32c::crc32c(&bytes) };
            } else {
                *entry = Entry { born, is_run, sum: before.sum };
            }
            if !is_new {
                if entry != there {
                    return Err(self.base.refused(
                        "is a copy of another line of the database's history (the copy was written to, or the \
                         database was restored from an older backup): give another path, or replace it by a \
                         whole backup",
                    ));
                }
                self.report.pages_kept += 1;
                continue;
            }
            if before.born == born {
                self.report.pages_compared += 1;
                damaged.compare(number, before, &bytes);
            } else {
                self.moment.check_proved(number)?;
            }
            if damaged.damaged.len() >= DAMAGES_NAMED {
                break;
            }
            self.gathering.put(number, &bytes)?;
            self.report.pages += 1;
        }
        damaged.into_result(&self.moment.image.path)?;
        if is_known && info.entries == there.entries && !self.has_left_over(place)? {
            return Ok(there.generation);
        }
        // Both, so that nothing else can count.
        for slot in 0..2 {
            self.gathering.put(place.offset(slot) / PAGE as u64, &info.encode(place))?;
        }
        Ok(info.generation)
    }

    /// Whether a slot holds what a checkpoint that did not end has left in the copy, and what would count for
    /// a later generation.
    fn has_left_over(&self, place: Place) -> Result<bool> {
        let generations = info::generations(self.base.file, self.base.path, place)?;
        Ok(generations.into_iter().any(|generation| generation > self.base.meta.generation))
    }
}

#[cfg(test)]
mod power;
#[cfg(test)]
mod tests;
