//! Which file a name leads to, and making files that nobody else can open before they have their owner and mode.
//!
//! A name says nothing: it may lead to another file by now, or through a symbolic link that somebody has put there.
//! Device and inode of an *opened* file identify it, as long as the comparer keeps the inode in use (by a mapping,
//! say): else another file may get its number.
//!
//! Invariants
//! - No symbolic link is followed: a name that is one is an error.
//! - A new file is its owner's alone until it has its group, and then gets its mode.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device's number.
    pub device: u64,
    /// The inode's number.
    pub inode: u64,
}

impl FileId {
    /// Device and inode of an open file.
    ///
    /// # Errors
    /// What `fstat` says.
    pub fn of(file: &File) -> io::Result<FileId> {
        Ok(FileId::from(&file.metadata()?))
    }

    /// Device and inode of what is at `path`; of a symbolic link itself, if it is one.
    ///
    /// # Errors
    /// What `lstat` says.
    pub fn at(path: &Path) -> io::Result<FileId> {
        Ok(FileId::from(&fs::symlink_metadata(path)?))
    }
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> FileId {
        FileId { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Who may do what with a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// Permissions, whatever the umask.
    pub mode: u32,
    /// User and group that it gets, as far as that is allowed; None: those of the process.
    pub owner: Option<(u32, u32)>,
}

impl From<&Metadata> for FileAccess {
    /// The access that a file has.
    fn from(metadata: &Metadata) -> FileAccess {
        let owner = Some((metadata.uid(), metadata.gid()));
        FileAccess { mode: metadata.permissions().mode() & 0o777, owner }
    }
}

/// Opens an existing file, for writing too if `write`.
///
/// # Errors
/// What `open` says: ELOOP if `path` is a symbolic link.
pub fn open_there(path: &Path, write: bool) -> io::Result<File> {
    // NB: nobody's pipe makes us wait.
    File::options().read(true).write(write).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Makes a new file.
///
/// Where the group cannot be given, the file's group is that of the process, to which `access` says nothing: it gets
/// no permissions then.
///
/// # Errors
/// `AlreadyExists` if there is anything at `path`, be it a symbolic link; else what `open` and `chmod` say.
pub fn create_new(path: &Path, access: FileAccess) -> io::Result<File> {
    // O_EXCL follows no link.
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(access.mode & 0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let mut mode = access.mode;
    if let Some((user, group)) = access.owner {
        let is_given = fchown(&file, Some(user), Some(group)).is_ok()
            || fchown(&file, None, Some(group)).is_ok()
            || file.metadata()?.gid() == group;
        if !is_given {
            mode &= !0o070;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_link_nor_a_file_that_is_there_is_opened_or_made() {
        let directory = std::env::temp_dir().join(format!("perilune-identity-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (victim, link, new) = (directory.join("victim"), directory.join("link"), directory.join("new"));
        fs::write(&victim, "as it is").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let access = FileAccess { mode: 0o666, owner: None };
        for path in [&victim, &link] {
            let made = create_new(path, access).unwrap_err();
            assert_eq!(made.kind(), io::ErrorKind::AlreadyExists, "{path:?}");
        }
        assert_eq!(open_there(&link, true).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_ne!(FileId::at(&link).unwrap(), FileId::at(&victim).unwrap());
        let made = create_new(&new, access).unwrap();
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o666);
        assert_eq!(FileId::of(&made).unwrap(), FileId::at(&new).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "as it is");
        fs::remove_dir_all(&directory).unwrap();
    }
}
