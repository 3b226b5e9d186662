//! Where a database lies: its paths, the file system below, and the making of a new file.
//!
//! A new database is made under the name `PATH-new`, whole and durable, and then renamed: a file under
//! the final name is always a whole database. Creators exclude each other by the `open` lock on
//! `PATH-new`; who finds that name gone, or leading elsewhere, after waiting starts again.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use perilune_disk::{Disk, DiskFile, FileAccess, FileId};
use perilune_shm::platform::{self, FileSystem};
use perilune_store::{Durability, Error, Result};

use super::claim::{claim, Claimed};
use super::gate;
use super::OpenOptions;
use crate::image::io_error;
use crate::limits::{PAGE, SEGMENT_RESERVED};
use crate::meta::info::{Entry, GenerationSum, InfoPage, Place};
use crate::meta::{self, space_error, Meta, FIRST_GENERATION};
use crate::page;

/// Pages of a new file.
pub(crate) const INITIAL_PAGES: u64 = (2 << 20) / PAGE as u64;
const ROOT: u32 = SEGMENT_RESERVED as u32;

const _: () = assert!(INITIAL_PAGES > SEGMENT_RESERVED + 1);

/// The absolute paths of a database, all on file systems that will do.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) path: PathBuf,
    pub(crate) shm_path: PathBuf,
}

impl Site {
    /// Finds the paths, and checks the file systems.
    ///
    /// # Errors
    /// `CannotOpen`, `NotADatabase`, `Io`.
    pub(crate) fn find(path: &Path, options: &OpenOptions) -> Result<Site> {
        let path = absolute(path)?;
        let refused = |why: String| Error::CannotOpen { place: (&path).into(), why };
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refused("is no name of a file: give the path of a file".to_owned()));
        };
        check_filesystem(directory, &path, options)?;
        let mut shm_name = name.to_owned();
        shm_name.push("-shm");
        let shm_path = match &options.shm_dir {
            Some(directory) => {
                let found = directory.canonicalize().ok().filter(|found| found.is_dir());
                let directory = found
                    .ok_or_else(|| refused(format!("shm_dir {} is no directory", directory.display())))?;
                check_filesystem(&directory, &path, options)?;
                directory.join(shm_name)
            }
            None => directory.join(shm_name),
        };
        Ok(Site { path, shm_path })
    }

    /// Makes the database if it is missing, or an empty file.
    ///
    /// # Errors
    /// `CannotOpen`, `NotADatabase`, `NoSpace`, `Io`.
    pub(crate) fn create_if_missing(&self, options: &OpenOptions, disk: &dyn Disk) -> Result<()> {
        let deadline = Instant::now() + options.timeout;
        while self.is_missing()? {
            if self.create(options, disk, deadline)? {
                break;
            }
        }
        Ok(())
    }

    fn is_missing(&self) -> Result<bool> {
        match fs::metadata(&self.path) {
            Ok(found) if found.is_file() => Ok(found.len() == 0),
            Ok(found) => {
                let what = if found.is_dir() {
                    "a directory"
                } else if found.file_type().is_fifo() {
                    "a pipe"
                } else {
                    "no regular file"
                };
                let why = format!("is {what}: give the path of a file");
                Err(Error::NotADatabase { place: (&self.path).into(), why })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(gate::open_error(&self.path, true, error)),
        }
    }

    /// Makes the database under another name and renames it; false when somebody else was at it.
    fn create(&self, options: &OpenOptions, disk: &dyn Disk, deadline: Instant) -> Result<bool> {
        let new = meta::beside(&self.path, "-new");
        let access = FileAccess { mode: options.file_mode, owner: None };
        let refused = |source| self.create_error(source);
        let file = match claim(&new, access, None, deadline, &|_| Ok(()), &refused)? {
            Claimed::Ours(file) => file,
            Claimed::Busy => return Err(gate::busy(&new)),
        };
        let made = if self.is_missing()? { self.fill(&file, &new, options, disk) } else { Ok(false) };
        if gate::is_same_file(&file, &new) {
            let _ = fs::remove_file(&new);
        }
        // Explicitly: a child forked meanwhile by another thread has a copy of the descriptor.
        let _ = perilune_shm::lockbyte::unlock(&file, gate::OPEN);
        made
    }

    fn fill(&self, file: &File, new: &Path, options: &OpenOptions, disk: &dyn Disk) -> Result<bool> {
        let space = |source| space_error("create", &self.path, source);
        let bytes = INITIAL_PAGES * PAGE as u64;
        disk.allocate(bytes, &|bytes| platform::allocate(file, 0, bytes)).map_err(space)?;
        let target = disk.open(new, true).map_err(space)?;
        if FileId::of(file).map_err(space)? != target.id().map_err(space)? {
            return Err(gate::moved(new));
        }
        write_empty(&*target, new, options.durability.unwrap_or_default())?;
        if !self.is_missing()? {
            return Ok(false);
        }
        // NB: a file that has come there meanwhile, a backup say, is not replaced; an empty one is. And it is this file
        // that gets the name: `new` may lead to that of another creator, if the directory was renamed.
        let named = if !self.path.exists() {
            disk.link(&|| platform::link(file, new, &self.path))
        } else if gate::is_same_file(file, new) {
            disk.rename(new, &self.path)
        } else {
            return Ok(false);
        };
        match named {
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
                return Ok(false)
            }
            named => named.map_err(|source| io_error("create", &self.path, source))?,
        }
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))?;
        Ok(true)
    }

    fn create_error(&self, source: std::io::Error) -> Error {
        let why = match source.kind() {
            ErrorKind::PermissionDenied => {
                "cannot be created: no permission to write its directory: change the directory's mode, or \
                 give another path"
            }
            ErrorKind::ReadOnlyFilesystem => {
                "cannot be created: the file system is read-only: give another path"
            }
            _ => return space_error("create", &self.path, source),
        };
        Error::CannotOpen { place: (&self.path).into(), why: why.to_owned() }
    }
}

/// Writes an empty database into an allocated file of zeros, and makes it durable.
fn write_empty(file: &dyn DiskFile, path: &Path, level: Durability) -> Result<()> {
    let write_error = |source| space_error("create", path, source);
    let leaf = page::empty_leaf(0);
    page::put_identity(&leaf, ROOT, FIRST_GENERATION);
    let mut bytes = Vec::with_capacity(PAGE);
    perilune_shm::words::append(&leaf, 0, PAGE, &mut bytes);
    file.write_at(&bytes, u64::from(ROOT) * PAGE as u64).map_err(write_error)?;
    let mut info_sum = GenerationSum::default();
    for place in Place::all(INITIAL_PAGES) {
        let mut info = InfoPage { generation: FIRST_GENERATION, ..InfoPage::empty() };
        let pages = place.pages(INITIAL_PAGES);
        if pages.contains(&ROOT.into()) {
            let entry = &mut info.entries[(u64::from(ROOT) - pages.start) as usize];
            *entry = Entry { born: FIRST_GENERATION, is_run: false, sum: crc32c::crc32c(&bytes) };
        }
        file.write_at(&info.encode(place), place.offset(0)).map_err(write_error)?;
        info_sum.add(FIRST_GENERATION);
    }
    let info_sum = info_sum.value();
    let (height, npages, level) = (1, INITIAL_PAGES, level as u32);
    let meta = Meta { root: ROOT, height, npages, info_sum, level, ..Meta::of_new_file() };
    meta::write(file, path, 0, &meta)
}

/// The absolute path, symbolic links resolved; the file itself may be missing.
fn absolute(path: &Path) -> Result<PathBuf> {
    let refused = |why: &str| Error::CannotOpen { place: path.into(), why: why.to_owned() };
    let Some(name) = path.file_name() else {
        return Err(refused("is no name of a file: give the path of a file"));
    };
    match path.canonicalize() {
        Ok(found) => return Ok(found),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(gate::open_error(path, true, error)),
    }
    if path.is_symlink() {
        return Err(refused("is a symbolic link that leads nowhere: remove it, or create what it names"));
    }
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    match directory.canonicalize() {
        Ok(directory) => Ok(directory.join(name)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(refused(&format!("its directory {} does not exist: create it", directory.display())))
        }
        Err(error) => Err(gate::open_error(path, true, error)),
    }
}

fn check_filesystem(directory: &Path, path: &Path, options: &OpenOptions) -> Result<()> {
    let found = platform::filesystem(directory);
    let found = found.map_err(|source| io_error("find the file system of", directory, source))?;
    match refusal(found, options) {
        Some(why) => Err(Error::CannotOpen { place: path.into(), why }),
        None => Ok(()),
    }
}

/// Why a file system does not do, if so.
pub(super) fn refusal(found: FileSystem, options: &OpenOptions) -> Option<String> {
    match found {
        FileSystem::Nfs | FileSystem::Fuse | FileSystem::NineP => Some(format!(
            "lies on {found:?}, where processes on several machines, or none, share memory and locks as they \
             should: put it on a local file system (ext4, xfs, tmpfs)"
        )),
        FileSystem::Btrfs | FileSystem::Zfs if !options.allow_any_filesystem => Some(format!(
            "lies on {found:?}, which copies each page it writes: put it on ext4, xfs or tmpfs, or open it \
             with the option any_filesystem (Rust: allow_any_filesystem)"
        )),
        _ => None,
    }
}
