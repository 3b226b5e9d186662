//! The files of the log: their names and sizes.
//!
//! `PATH-wal.N`, where N is the number of a *slot*, not an order: a segment whose batches are all part
//! of a checkpoint is used again under its name, with a new head.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use perilune_disk::Disk;
use perilune_store::Result;

use crate::image::io_error;
pub(super) use crate::image::log_path as path;
use crate::limits::{LOG_SEGMENT, LOG_SEGMENT_LEAST, LOG_SLOTS};

/// Bytes of the file of slot `slot`.
pub(super) fn bytes(slot: u32) -> u64 {
    (LOG_SEGMENT_LEAST << slot.min(32)).min(LOG_SEGMENT)
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
