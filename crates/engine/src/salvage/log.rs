//! What the log of a damaged database holds beyond its checkpoint, applied to the copy.
//!
//! The copy is opened like any database, at durability none, and gets record after record, up to the log's end
//! or to what cannot be read of it. A record sets and removes nodes by their keys, so it needs nothing that may
//! be lost of the checkpoint.
//!
//! When both copies of meta are lost, nobody says where the log is to begin. All of it is applied then: what the
//! checkpoint has of it already is set once more, and set again by what follows, if the log goes beyond the checkpoint.
//! One that does not (the database was closed, or went on without a log) is left out.
//!
//! Invariants
//! - What is applied is a prefix of the log: the first damage ends it. Only if that is asked for, the batches that
//!   lie whole behind it are applied, too: then what a commit relied on may be missing.
//! - The damaged database and its log are only read.

use std::path::Path;
use std::sync::Arc;

use perilune_disk::{Disk, RealDisk};
use perilune_shm::platform;
use perilune_store::Result;

use super::SalvageReport;
use crate::image::io_error;
use crate::image::layout::SHM_MAGIC;
use crate::log::{self, End};
use crate::meta::{self, left_over, Meta};
use crate::offline::OfflineFile;
use crate::open::{self, Attachment, OpenOptions, Site};
use crate::page::{self, LEAF};

/// Applies the log of the database at `path`, whose checkpoint is `offline`, to its closed copy at `partial`.
///
/// # Errors
/// `NoSpace`, `Io` of the copy. What is wrong with the log is told in `report`.
pub(super) fn apply(
    disk: &Arc<dyn Disk>,
    options: &OpenOptions,
    path: &Path,
    offline: &OfflineFile,
    partial: &Path,
    report: &mut SalvageReport,
) -> Result<()> {
    let meta = match named(&**disk, path, offline) {
        Ok(Some(meta)) => meta,
        Ok(None) => return Ok(()),
        Err(error) => {
            report.log_damage = Some(error.to_string());
            return Ok(());
        }
    };
    let meta = &meta;
    let options = OpenOptions { create: false, read_only: false, durability: None, ..options.clone() };
    let applied = replay(disk, &options, path, meta, partial, report);
    // This `-shm` belongs to the name `.partial`, by which nobody will open the copy.
    let _ = left_over::remove(&RealDisk, &Site::find(partial, &options)?.shm_path, Some(SHM_MAGIC));
    applied?;
    count(&**disk, partial, report)
}

/// Meta as it names the log that is to be applied; None: none is.
///
/// # Errors
/// What is wrong with a log that meta does not name.
fn named(disk: &dyn Disk, path: &Path, offline: &OfflineFile) -> Result<Option<Meta>> {
    let meta = &offline.meta;
    if meta.uuid != [0; 16] {
        return Ok((meta.is_open && meta.wal_batch != 0).then(|| meta.clone()));
    }
    let durable = offline.newest_generation();
    let Some(found) = log::unnamed(disk, path)? else { return Ok(None) };
    let goes_beyond = found.generation > durable || found.generation == durable && found.is_whole;
    // Records of all generations are to be applied.
    let (uuid, log_mark) = (found.id.uuid, found.id.mark);
    let meta = Meta { uuid, log_mark, wal_batch: found.first, generation: 0, ..meta.clone() };
    Ok(goes_beyond.then_some(meta))
}

fn replay(
    disk: &Arc<dyn Disk>,
    options: &OpenOptions,
    path: &Path,
    meta: &Meta,
    partial: &Path,
    report: &mut SalvageReport,
) -> Result<()> {
    // The copy is not to have a log of its own meanwhile.
    set_level(&**disk, partial, 0)?;
    let attachment = Attachment::open_on(partial, options, Arc::clone(disk))?;
    let replayed = open::replay(attachment.image()?, &**disk, path, meta, options.behind_damage)?;
    attachment.close()?;
    set_level(&**disk, partial, meta.level)?;
    report.log_records = Some(replayed.records);
    report.log_records_behind = replayed.behind;
    report.log_damage = match replayed.end {
        Ok(End { damage: Some(damage), .. }) => Some(damage.to_string()),
        Ok(_) => replayed.lost.map(|lost| lost.to_string()),
        Err(error) => Some(error.to_string()),
    };
    Ok(())
}

/// Writes the durability level into the meta of a closed database.
fn set_level(disk: &dyn Disk, path: &Path, level: u32) -> Result<()> {
    let file = disk.open(path, true).map_err(|source| io_error("open", path, source))?;
    let (slot, meta) = meta::newest(&*file, path)?;
    let meta = Meta { serial: meta.serial + 1, stamp: platform::random_u64(), level, ..meta };
    meta::write(&*file, path, 1 - slot, &meta)
}

/// Counts nodes and bytes of the copy, which have changed.
fn count(disk: &dyn Disk, path: &Path, report: &mut SalvageReport) -> Result<()> {
    let file = disk.open(path, false).map_err(|source| io_error("open", path, source))?;
    report.bytes = file.size().map_err(|source| io_error("find out the size", path, source))?;
    let (_, meta) = meta::newest(&*file, path)?;
    let offline = OfflineFile::open(file, path, meta)?;
    let pages = offline.tree_pages().filter_map(|number| offline.tree_page(number).ok());
    let leaves = pages.filter(|(page, _)| page::kind(page) == LEAF);
    report.nodes = leaves.map(|(page, _)| page::leaf_count(&page) as u64).sum();
    Ok(())
}
