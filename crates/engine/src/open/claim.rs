//! Making a file under a name that several processes want: `PATH-new` and `-shm`.
//!
//! Who has made one locks its `open` byte, and has the name for himself as long as he holds that. Who finds a file
//! there waits for its lock, and then removes it, if it may be removed, before he makes his own. So a file is never
//! written over, and never removed while somebody is making it, whichever databases the two are of.
//!
//! What if we are killed? Made and not locked, or locked: a file that the next one locks and removes.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use perilune_disk::{create_new, open_there, FileAccess};
use perilune_store::{Error, Result};

use super::gate;
use crate::image::{io_error, is_no_file};
use crate::meta::left_over;

/// What has become of a claim.
pub(super) enum Claimed {
    /// The file, locked.
    Ours(File),
    /// Somebody else has held the name until the deadline.
    Busy,
}

/// Makes an empty file at `path` and locks its `open` byte. One that is there is removed, under its lock, if it was
/// left by a process of ours (`magic` as in [`left_over::is_left_over`]) and `may_replace` agrees; that is asked again
/// for the new file, with None. `refused` says why a file cannot be made.
///
/// # Errors
/// What `may_replace` answers; `CannotOpen` if something else is in the way; `Io`.
pub(super) fn claim(
    path: &Path,
    access: FileAccess,
    magic: Option<u64>,
    deadline: Instant,
    may_replace: &dyn Fn(Option<&File>) -> Result<()>,
    refused: &dyn Fn(std::io::Error) -> Error,
) -> Result<Claimed> {
    loop {
        match create_new(path, access) {
            Ok(file) => {
                if !gate::is_locked_by(&file, path, false, deadline)? {
                    return Ok(Claimed::Busy);
                }
                if gate::is_same_file(&file, path) {
                    return match may_replace(None) {
                        Ok(()) => Ok(Claimed::Ours(file)),
                        Err(error) => {
                            let _ = fs::remove_file(path);
                            Err(error)
                        }
                    };
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !remove(path, magic, deadline, may_replace)? {
                    return Ok(Claimed::Busy);
                }
            }
            Err(error) => return Err(refused(error)),
        }
    }
}

/// Removes what was left at `path`, if it is still there once it is locked; false if it is locked by somebody else.
fn remove(
    path: &Path,
    magic: Option<u64>,
    deadline: Instant,
    may_replace: &dyn Fn(Option<&File>) -> Result<()>,
) -> Result<bool> {
    let file = match open_there(path, true) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) if is_no_file(&error) => return Err(left_over::in_the_way(path)),
        Err(error) => return Err(gate::open_error(path, false, error)),
    };
    if !gate::is_locked_by(&file, path, false, deadline)? {
        return Ok(false);
    }
    if !gate::is_same_file(&file, path) {
        return Ok(true);
    }
    may_replace(Some(&file))?;
    let found = file.metadata().map_err(|source| io_error("find out the size of", path, source))?;
    let read = &mut |bytes: &mut [u8], at: u64| file.read_exact_at(bytes, at);
    // NB: of a file with another name besides only this one goes.
    if !(found.is_file() && left_over::is_left_over(path, magic, read, Ok(found.len()))? || found.nlink() > 1)
    {
        return Err(left_over::in_the_way(path));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", path, error)),
        _ => Ok(true),
    }
}
