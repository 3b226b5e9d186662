//! A copy written anew: as `DEST.partial`, which becomes DEST when it is whole and on the disk.
//!
//! Pages get their places of the original. Those that belong to the last checkpoint, too, are compared with
//! their sums, so that damage is found and not copied.
//!
//! What if we are killed? Before the rename DEST is what it was, and the next backup writes `DEST.partial`
//! anew; after it the new one counts, which was on disk before.

use std::path::Path;
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_shm::platform;
use perilune_store::Result;

use super::{BackupReport, Moment};
use crate::bulk::allocate;
use crate::image::{io_error, Image};
use crate::limits::{DAMAGES_NAMED, PAGE};
use crate::meta::info::{self, Entry, GenerationSum, InfoPage};
use crate::meta::{self, delta, left_over, space_error, sums, Meta};
use crate::open::Gate;

/// What there is at DEST.
pub(super) enum Place<'a> {
    /// Nothing, and the name is reserved.
    Vacant,
    /// An older copy, which is locked.
    Held(&'a Gate),
}

/// A copy being written.
struct Copy<'a> {
    moment: &'a Moment,
    target: &'a dyn DiskFile,
    target_path: &'a Path,
    report: BackupReport,
}

/// Writes the copy.
///
/// # Errors
/// As `backup`.
pub(super) fn write(
    image: &Arc<Image>,
    disk: &dyn Disk,
    dest: &Path,
    place: Place<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    let partial = meta::beside(dest, ".partial");
    let target = left_over::create(disk, &partial, image.own_access()?, None)?;
    let written = write_partial(image, disk, (&*target, &partial), progress).and_then(|report| {
        left_over::check_at(&partial, target.id().map_err(|source| io_error("look at", &partial, source))?)?;
        let renamed = match place {
            // NB: what has come there meanwhile is not replaced.
            Place::Vacant => disk.rename_new(&partial, dest),
            Place::Held(gate) => {
                gate.check_at(dest)?;
                disk.rename(&partial, dest)
            }
        };
        renamed.map_err(|source| io_error("rename", &partial, source))?;
        let directory = dest.parent().unwrap_or(Path::new("/"));
        disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))?;
        Ok(report)
    });
    match &written {
        Ok(_) => delta::remove_left_over(disk, dest),
        // NB: it is ours, made above.
        Err(_) => drop(disk.remove(&partial)),
    }
    written
}

fn write_partial(
    image: &Arc<Image>,
    disk: &dyn Disk,
    (target, partial): (&dyn DiskFile, &Path),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    let moment = Moment::pin(image, disk)?;
    let npages = moment.npages;
    allocate(disk, target, partial, npages)?;
    let report = BackupReport {
        generation: moment.generation.into(),
        bytes: npages * PAGE as u64,
        ..BackupReport::default()
    };
    let mut copy = Copy { moment: &moment, target, target_path: partial, report };
    let mut info_sum = GenerationSum::default();
    for place in info::Place::all(npages) {
        let info = copy.pages_of(place, progress)?;
        copy.put(&info.encode(place), place.offset(0))?;
        info_sum.add(info.generation);
    }
    target.sync_data().map_err(|source| space_error("sync", partial, source))?;
    let (stamp, info_sum) = (platform::random_u64(), info_sum.value());
    let meta = Meta { serial: 1, stamp, info_sum, ..moment.meta_of_copy(npages)? };
    meta::write(target, partial, 0, &meta)?;
    Ok(copy.report)
}

impl Copy<'_> {
    /// Copies the pages that an info page covers, and answers that info page.
    fn pages_of(&mut self, place: info::Place, progress: &mut dyn FnMut(u64, u64)) -> Result<InfoPage> {
        let before = self.moment.durable(place)?;
        let mut info = InfoPage { generation: self.moment.generation, ..InfoPage::empty() };
        let npages = self.moment.npages;
        let pages = place.pages(npages).zip(info.entries.iter_mut().zip(&before.entries));
        let (mut bytes, mut damaged) = (vec![0; PAGE], sums::Sums::default());
        for (number, (entry, before)) in pages {
            if number % 64 == 0 {
                progress(number, npages);
            }
            let Some((born, is_run)) = self.moment.page(number) else { continue };
            self.moment.read(number, &mut bytes)?;
            *entry = Entry { born, is_run, sum: crc32c::crc32c(&bytes) };
            if before.born == born {
                self.report.pages_compared += 1;
                damaged.compare(number, before, &bytes);
            } else {
                self.moment.check_proved(number)?;
            }
            self.put(&bytes, number * PAGE as u64)?;
            self.report.pages += 1;
            if damaged.damaged.len() >= DAMAGES_NAMED {
                break;
            }
        }
        damaged.into_result(&self.moment.image.path)?;
        Ok(info)
    }

    fn put(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.target.write_at(bytes, offset);
        written.map_err(|source| space_error("write", self.target_path, source))
    }
}
