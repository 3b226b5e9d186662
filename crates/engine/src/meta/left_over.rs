//! Files made beside a database under names of ours: `-new`, `-shm`, `-delta`, `-compact`, `.partial`.
//!
//! They are made anew each time, never written over: what lies there may be a link that somebody has put there, or
//! a file of the user's that happens to have the name. First, what a killed process of ours has left there is
//! removed, and nothing else.
//!
//! What is ours shows at the beginning of the file. An unfinished file has zeros there. A `-shm` or a delta begins
//! with its magic number; a `-shm` is also known by its length, since a power loss may leave anything in it. A database
//! that was finished just before its process was killed has never been opened, so only the first copy of meta is there:
//! one with both is somebody's, and stays.
//!
//! Whoever calls this has the name for himself, by a lock that all who make such a file take.

use std::io::ErrorKind;
use std::path::Path;

use perilune_disk::{Disk, DiskFile, FileAccess, FileId};
use perilune_store::{Error, Result};

use super::{space_error, MAGIC};
use crate::image::layout::PAGE_TABLE_AT;
use crate::image::{io_error, is_no_file};
use crate::limits::PAGE;

/// Makes the file `path` in place of what was left of such a file; `magic` as in [`is_left_over`].
///
/// # Errors
/// `CannotOpen` if something else is in the way; `NoSpace`, `Io`.
pub(crate) fn create(
    disk: &dyn Disk,
    path: &Path,
    access: FileAccess,
    magic: Option<u64>,
) -> Result<Box<dyn DiskFile>> {
    remove(disk, path, magic)?;
    disk.create(path, access).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => in_the_way(path),
        _ => space_error("create", path, source),
    })
}

/// Removes what was left of a file at `path`, if there is anything; `magic` as in [`is_left_over`].
///
/// # Errors
/// `CannotOpen` if something else is there; `NoSpace`, `Io`.
pub(crate) fn remove(disk: &dyn Disk, path: &Path, magic: Option<u64>) -> Result<()> {
    match disk.open(path, false) {
        Ok(file) if is_left_over(path, magic, &mut |bytes, at| file.read_at(bytes, at), file.size())? => {
            disk.remove(path).map(drop).map_err(|source| io_error("remove", path, source))
        }
        Ok(_) => Err(in_the_way(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if is_no_file(&error) => Err(in_the_way(path)),
        Err(source) => Err(space_error("open", path, source)),
    }
}

/// An error unless `path` still leads to `file`, which was made there and is to be renamed.
///
/// # Errors
/// `Io`.
pub(crate) fn check_at(path: &Path, file: FileId) -> Result<()> {
    match FileId::at(path) {
        Ok(found) if found == file => Ok(()),
        Ok(_) => Err(io_error("rename", path, ErrorKind::NotFound.into())),
        Err(source) => Err(io_error("rename", path, source)),
    }
}

/// The access of the file at `path`, for one that is to take its place or lie beside it.
///
/// # Errors
/// `Io`.
pub(crate) fn access_of(path: &Path) -> Result<FileAccess> {
    let found = std::fs::metadata(path).map_err(|source| io_error("look at", path, source))?;
    Ok(FileAccess::from(&found))
}

/// Whether a file of `size` bytes that `read` reads at offsets is what was left of one that begins with `magic`; None:
/// of a new database.
///
/// # Errors
/// `Io`.
pub(crate) fn is_left_over(
    path: &Path,
    magic: Option<u64>,
    read: &mut dyn FnMut(&mut [u8], u64) -> std::io::Result<()>,
    size: std::io::Result<u64>,
) -> Result<bool> {
    let failed = |source| io_error("read", path, source);
    let size = size.map_err(failed)?;
    let mut word = |at: u64| {
        let mut bytes = [0; 8];
        let there = &mut bytes[..size.saturating_sub(at).min(8) as usize];
        read(there, at).map_err(failed)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let first = word(0)?;
    Ok(match magic {
        _ if first == 0 => true,
        // NB: a power loss may leave anything in a `-shm`, and no other file of ours, nor hardly anybody's, is as long.
        Some(_) if size >= PAGE_TABLE_AT as u64 => true,
        Some(magic) => first == magic,
        // NB: meta in copy A, whole or torn, and nothing in B: the first who opens it writes that.
        None => first == MAGIC && word(PAGE as u64)? == 0,
    })
}

/// What to tell of something that is not ours to replace.
pub(crate) fn in_the_way(path: &Path) -> Error {
    let why = "is in the way: it is a link, or a file that Perilune did not leave there: move it away, or remove it";
    Error::CannotOpen { place: path.into(), why: why.to_owned() }
}
