//! The files of the log: their names, sizes and heads.
//!
//! `PATH-wal.N`, where N is the number of a *slot*, not an order: a segment whose batches are all part
//! of a checkpoint is used again under its name, with a new head.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perilune_disk::{Disk, DiskFile};
use perilune_store::{Error, Result};

use super::frame::{SegmentHead, BLOCK, FORMAT};
pub(super) use crate::image::log_path as path;
use crate::image::{io_error, is_no_file};
use crate::limits::{
    LOG_CHECKPOINT, LOG_CHECKPOINT_SEGMENTS, LOG_PART, LOG_SEGMENT, LOG_SEGMENT_LEAST, LOG_SLOTS,
};

/// Bytes of the file of slot `slot`, where so many bytes of log are enough for a checkpoint.
pub(super) fn bytes(slot: u32, enough: u64) -> u64 {
    let largest = (enough / LOG_CHECKPOINT_SEGMENTS).clamp(LOG_SEGMENT_LEAST, LOG_SEGMENT);
    (LOG_SEGMENT_LEAST << slot.min(32)).min(largest / BLOCK as u64 * BLOCK as u64)
}

/// Bytes of log after which a checkpoint is taken, on a file system of so many bytes: what a log takes of a small one is
/// missing for data.
pub(super) fn enough(capacity: u64) -> u64 {
    (capacity / LOG_PART).clamp(LOG_SEGMENT_LEAST, LOG_CHECKPOINT)
}

/// A segment found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: Arc<Path>,
    pub(super) head: SegmentHead,
}

/// The files that look like segments of the database at `path`, by slot.
///
/// # Errors
/// `Io`.
pub(super) fn files(disk: &dyn Disk, path: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = disk.names(directory).map_err(|source| io_error("list", directory, source))?;
    let stem = path.file_name().unwrap_or(OsStr::new("")).as_bytes();
    let mut found: Vec<(u32, PathBuf)> = names
        .iter()
        .filter_map(|name| {
            let number = name.as_bytes().strip_prefix(stem)?.strip_prefix(b"-wal.")?;
            let number = std::str::from_utf8(number).ok()?;
            let slot = number.parse().ok().filter(|slot| (*slot as usize) < LOG_SLOTS)?;
            (number == u32::to_string(&slot)).then(|| (slot, directory.join(name)))
        })
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// The segments beside the database at `path`, by sequence number, and the files that have no head.
///
/// # Errors
/// `Io`; `NotADatabase` when a segment has a newer format.
pub(super) fn found(disk: &dyn Disk, path: &Path) -> Result<(Vec<Found>, Vec<Arc<Path>>)> {
    let (mut segments, mut headless) = (Vec::new(), Vec::new());
    for (_, path) in files(disk, path)? {
        match disk.open(&path, false) {
            // The log has passed over it.
            Err(error) if is_no_file(&error) => {}
            Err(source) => return Err(io_error("read the log", &path, source)),
            Ok(file) => match segment_head(&*file, &path)? {
                Some(head) => segments.push(Found { path: path.into(), head }),
                None => headless.push(path.into()),
            },
        }
    }
    segments.sort_by_key(|segment| segment.head.sequence);
    Ok((segments, headless))
}

fn segment_head(file: &dyn DiskFile, path: &Path) -> Result<Option<SegmentHead>> {
    let failed = |source| io_error("read the log", path, source);
    if file.size().map_err(failed)? < BLOCK as u64 {
        return Ok(None);
    }
    let mut block = [0; BLOCK];
    file.read_at(&mut block, 0).map_err(failed)?;
    if let Some(format) = SegmentHead::other_format(&block) {
        return Err(Error::NotADatabase {
            place: path.into(),
            why: format!(
                "is a log of format {format}, this version reads formats up to {FORMAT}: use a newer version of Perilune"
            ),
        });
    }
    Ok(SegmentHead::decode(&block))
}
