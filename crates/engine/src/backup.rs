//! Copying a database that others are using, as it was at one moment.
//!
//! A snapshot is pinned, and the pages of its generation are copied to their places in `DEST.partial`, which
//! becomes DEST when it is whole and on the disk. Those that belong to the last checkpoint, too, are compared
//! with their sums, so that damage is found and not copied.
//!
//! Invariants
//! - The pages of a pinned generation do not change: they are read by system calls, so that a bad sector is
//!   an error and not the end of the process.
//! - DEST is a closed database with the uuid and the generation of what was copied.
//!
//! What if we are killed? Before the rename DEST is what it was, and the next backup writes `DEST.partial`
//! anew; after it the new one counts, which was on disk before. The pin goes with its process.
//!
//! Deliberately absent: bringing an older backup up to date.

use std::path::Path;
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_shm::platform;
use perilune_store::{Error, Result};

use crate::bulk::allocate;
use crate::image::{io_error, Image};
use crate::limits::{DAMAGES_NAMED, PAGE};
use crate::meta::info::{Entry, GenerationSum, InfoPage, Place};
use crate::meta::survey::in_generation;
use crate::meta::{self, space_error, sums, Meta};
use crate::open::{Gate, OpenOptions, Site};
use crate::page;
use crate::pin::{self, Purpose};
use crate::still::beside;

/// What a backup has copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The generation copied.
    pub generation: u64,
    /// Pages copied.
    pub pages: u64,
    /// Of them, those that were compared with a sum.
    pub pages_compared: u64,
    /// Bytes of the copy.
    pub bytes: u64,
}

/// A copy being written.
struct Copy<'a> {
    image: &'a Image,
    source: &'a dyn DiskFile,
    target: &'a dyn DiskFile,
    target_path: &'a Path,
    generation: u32,
    npages: u64,
    report: BackupReport,
}

/// Copies the database to `dest`, replacing what is there if that is a database which nobody has open.
/// `progress` is told pages done and pages in all.
///
/// # Errors
/// `ReadOnly`; `LimitReached` at 255 snapshots; `CannotOpen` if `dest` is in use or the database itself;
/// `NotADatabase` if `dest` is another file; `Corrupt` with the damaged page; `NoSpace`, `Io`. `dest` is then
/// what it was.
pub(crate) fn backup(
    image: &Arc<Image>,
    disk: &dyn Disk,
    dest: &Path,
    options: &OpenOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    if image.read_only {
        return Err(Error::ReadOnly);
    }
    let dest = Site::find(dest, options)?.path;
    let refused = |why: &str| Error::CannotOpen { path: dest.clone(), why: why.to_owned() };
    if dest == image.path {
        return Err(refused("is the database itself: give another path"));
    }
    let gate = if dest.exists() { Some(Gate::enter(&dest, false, options.timeout)?) } else { None };
    if let Some(gate) = &gate {
        let file = disk.open(&dest, false).map_err(|source| io_error("open", &dest, source))?;
        meta::newest(&*file, &dest)?;
        if !gate.attached(&dest)?.is_empty() || gate.is_read(&dest)? {
            return Err(refused("is in use: end the processes that have it open, or give another path"));
        }
    }
    let partial = beside(&dest, ".partial");
    let written = write(image, disk, &partial, progress).and_then(|report| {
        disk.rename(&partial, &dest).map_err(|source| io_error("rename", &partial, source))?;
        let directory = dest.parent().unwrap_or(Path::new("/"));
        disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))?;
        Ok(report)
    });
    if written.is_err() {
        let _ = disk.remove(&partial);
    }
    written
}

fn write(
    image: &Arc<Image>,
    disk: &dyn Disk,
    partial: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    let pin = pin::cut(image, 0, Purpose::Snapshot)?;
    let (generation, root, npages) = (pin.generation(), pin.root(), image.npages());
    let source = disk.open(&image.path, false).map_err(|error| io_error("open", &image.path, error))?;
    let target = disk.create(partial, &image.path).map_err(|error| space_error("create", partial, error))?;
    allocate(partial, npages)?;
    let report = BackupReport {
        generation: generation.into(),
        bytes: npages * PAGE as u64,
        ..BackupReport::default()
    };
    let (source, target) = (&*source, &*target);
    let mut copy = Copy { image, source, target, target_path: partial, generation, npages, report };
    let mut info_sum = GenerationSum::default();
    for place in Place::all(npages) {
        let info = copy.pages_of(place, progress)?;
        copy.put(&info.encode(place), place.offset(0))?;
        info_sum.add(generation);
    }
    let sync = |error| space_error("sync", partial, error);
    target.sync_data().map_err(sync)?;
    let height = u32::from(page::level(image.page(root))) + 1;
    let (_, now) = meta::newest(source, &image.path)?;
    let meta = Meta {
        serial: 1,
        stamp: platform::random_u64(),
        generation,
        root,
        height,
        is_open: false,
        npages,
        wal_batch: 0,
        info_sum: info_sum.value(),
        ..now
    };
    meta::write(target, partial, 0, &meta)?;
    drop(pin);
    Ok(copy.report)
}

impl Copy<'_> {
    /// Copies the pages that an info page covers, and answers that info page.
    fn pages_of(&mut self, place: Place, progress: &mut dyn FnMut(u64, u64)) -> Result<InfoPage> {
        let before = self.durable(place)?;
        let mut info = InfoPage { generation: self.generation, ..InfoPage::empty() };
        let pages = place.pages(self.npages).zip(info.entries.iter_mut().zip(&before.entries));
        let (mut bytes, mut damaged) = (vec![0; PAGE], sums::Sums::default());
        for (number, (entry, before)) in pages {
            if number % 64 == 0 {
                progress(number, self.npages);
            }
            let Some((born, is_run)) = in_generation(self.image, number as u32, self.generation) else {
                continue;
            };
            let offset = number * PAGE as u64;
            let read = self.source.read_at(&mut bytes, offset);
            read.map_err(|source| io_error("read a page", &self.image.path, source))?;
            *entry = Entry { born, is_run, sum: crc32c::crc32c(&bytes) };
            if before.born == born {
                self.report.pages_compared += 1;
                damaged.compare(number, before, &bytes);
            }
            self.put(&bytes, offset)?;
            self.report.pages += 1;
            if damaged.damaged.len() >= DAMAGES_NAMED {
                break;
            }
        }
        damaged.into_result(&self.image.path)?;
        Ok(info)
    }

    /// The info page at `place` of the last checkpoint, whichever that is now: a page of the snapshot that it
    /// names with the same birth is the same.
    fn durable(&self, place: Place) -> Result<InfoPage> {
        loop {
            let (_, meta) = meta::newest(self.source, &self.image.path)?;
            let found = sums::info_page(self.source, &self.image.path, &meta, place);
            // NB: a checkpoint may have been taken meanwhile, and the slot written again.
            if meta::newest(self.source, &self.image.path)?.1.generation == meta.generation {
                return found;
            }
        }
    }

    fn put(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.target.write_at(bytes, offset);
        written.map_err(|source| space_error("write", self.target_path, source))
    }
}

#[cfg(test)]
mod tests;
