//! Writing a database anew without the space that nothing uses, while nobody has it open.
//!
//! The database is opened and closed first, so that it is recovered and all of it is one checkpoint. Its nodes
//! are copied to `PATH-compact`, which takes the place of the file by a rename. The new file has a uuid of its
//! own: neither a `-shm` nor a log of before is taken for its own, and the files of that log are removed.
//!
//! What if we are killed? Before the rename the old file is untouched, and the next to compact writes
//! `PATH-compact` anew; after it the new one counts, which was on disk before, and some files of the old log
//! may be left, which the next log passes over.
//!
//! Deliberately absent: compacting under others; mending (`salvage`).

use std::path::Path;
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_store::{Error, Result};

use crate::bulk::Bulk;
use crate::image::io_error;
use crate::log::{self, LogId};
use crate::offline::OfflineFile;
use crate::open::{Attachment, Gate, OpenOptions, Site};
use crate::{meta, salvage};

/// What a compaction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes_after: u64,
    /// Nodes in it.
    pub nodes: u64,
}

/// Compacts the database at `path`. `progress` is told pages done and pages in all.
///
/// # Errors
/// `CannotOpen` if somebody has it open; `Corrupt` with the first damaged page; `NoSpace`, `Io`: the file is
/// what it was.
pub(crate) fn compact(
    path: &Path,
    options: &OpenOptions,
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CompactReport> {
    let options = OpenOptions { create: false, read_only: false, ..options.clone() };
    Attachment::open_on(path, &options, Arc::clone(disk))?.close()?;
    let path = Site::find(path, &options)?.path;
    let gate = Gate::enter(&path, false, options.timeout)?;
    let refused = |why: &str| Error::CannotOpen { place: (&path).into(), why: why.to_owned() };
    if !gate.attached(&path)?.is_empty() || gate.is_read(&path)? {
        return Err(refused("is in use: end the processes that have it open, then compact it"));
    }
    let file = gate.open_on(&**disk, &path, false)?;
    let (_, meta) = meta::newest(&*file, &path)?;
    if meta.is_open {
        return Err(refused("was opened meanwhile by a process that was killed: try again"));
    }
    let bytes_before = file.size().map_err(|source| io_error("find out the size", &path, source))?;
    let offline = OfflineFile::open(file, &path, meta)?;
    let new = meta::beside(&path, "-compact");
    let replaced = replace(&offline, &gate, &**disk, &path, &new, progress);
    drop(gate);
    replaced.map(|(nodes, bytes_after)| CompactReport { bytes_before, bytes_after, nodes })
}

fn replace(
    offline: &OfflineFile,
    gate: &Gate,
    disk: &dyn Disk,
    path: &Path,
    new: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(u64, u64)> {
    let mut found =
        salvage::SalvageReport { generation: offline.meta.generation.into(), ..Default::default() };
    let bulk = Bulk::create(disk, new, path)?;
    let written = salvage::copy(offline, disk, bulk, &mut found, progress)
        .and_then(|()| check_complete(offline, path, &found))
        .and_then(|()| gate.check_at(path))
        .and_then(|()| disk.rename(new, path).map_err(|source| io_error("rename", new, source)));
    if written.is_err() {
        // NB: it is ours, made above.
        let _ = disk.remove(new);
    }
    written?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))?;
    // What cannot be removed is passed over by the log to come: the new file is whole without it.
    let _ = log::remove_files(disk, path, LogId { uuid: offline.meta.uuid, mark: 0 });
    Ok((found.nodes, found.bytes))
}

/// Whether the new file has all that the old one had.
///
/// # Errors
/// `Corrupt` if anything of the old one cannot be read.
fn check_complete(offline: &OfflineFile, path: &Path, found: &salvage::SalvageReport) -> Result<()> {
    let is_lost = offline.lost_infos().next().is_some() || offline.npages() < offline.meta.npages;
    if is_lost || !found.is_complete() {
        let what = match found.pages.first() {
            Some(lost) => format!("page {} (byte {}): {}", lost.page, lost.byte, lost.why),
            None => "an info page is bad, or the file was cut".to_owned(),
        };
        return Err(Error::Corrupt {
            place: format!(
                "{}: {what}: what else it holds can be copied with `perilune salvage`, or restore a backup",
                path.display()
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
