//! What the kernel tells and does of files: which file system, how much space, allocation, holes, links.
//!
//! Thin, safe wrappers, one system call each, retried when a signal interrupts it; `platform` offers them with the rest.
//! No policy: which file systems are refused, or what follows a failed sync, is the engine's business.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The kind of file system a path lies on, as `statfs` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, ext3 or ext4.
    Ext,
    /// XFS.
    Xfs,
    /// tmpfs, e.g. `/dev/shm`.
    Tmpfs,
    /// overlayfs: mappings of a file copied up later may show the old one.
    Overlay,
    /// btrfs.
    Btrfs,
    /// OpenZFS.
    Zfs,
    /// NFS.
    Nfs,
    /// Any FUSE file system.
    Fuse,
    /// 9p.
    NineP,
    /// Another one, by its magic number (`f_type`).
    Other(i64),
}

/// The file system `path` lies on.
///
/// # Errors
///
/// What `statfs` says, e.g. `NotFound`; `InvalidInput` if the path holds a zero byte.
pub fn filesystem(path: &Path) -> io::Result<FileSystem> {
    Ok(named(statfs(path)?.f_type))
}

/// Bytes of a file system.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// What it can hold, in use or not.
    pub whole: u64,
    /// What is left of it for users.
    pub left: u64,
}

/// The space of the file system `path` lies on.
///
/// # Errors
///
/// As [`filesystem`].
pub fn space(path: &Path) -> io::Result<Space> {
    let stat = statfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(u64::try_from(stat.f_bsize).unwrap_or(0));
    Ok(Space { whole: bytes(stat.f_blocks), left: bytes(stat.f_bavail) })
}

fn statfs(path: &Path) -> io::Result<libc::statfs> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `path` ends in a zero byte, `stat` is writable for its type.
    retry(|| unsafe { libc::statfs(path.as_ptr(), stat.as_mut_ptr()) })?;
    // SAFETY: statfs succeeded, so it has filled the struct.
    Ok(unsafe { stat.assume_init() })
}

fn named(magic: i64) -> FileSystem {
    match magic {
        0xEF53 => FileSystem::Ext,
        0x5846_5342 => FileSystem::Xfs,
        0x0102_1994 => FileSystem::Tmpfs,
        0x794C_7630 => FileSystem::Overlay,
        0x9123_683E => FileSystem::Btrfs,
        0x2FC1_2FC1 => FileSystem::Zfs,
        0x6969 => FileSystem::Nfs,
        0x6573_5546 => FileSystem::Fuse,
        0x0102_1997 => FileSystem::NineP,
        other => FileSystem::Other(other),
    }
}

/// Allocates disk space for `len` bytes from `off` and lengthens the file if needed.
///
/// Data stays, holes and the new end read as zeros; later writes there cannot run out of space.
/// Where the file system cannot (`EOPNOTSUPP`), zeros are written into the holes instead: the
/// caller must not let others write there meanwhile.
///
/// # Errors
///
/// `StorageFull` and what else `fallocate` says; `FileTooLarge` (`EFBIG`) behind [`file_limit`]. The length may then
/// have grown in part.
pub fn allocate(file: &File, off: u64, len: u64) -> io::Result<()> {
    longer_within_limit(file, off.saturating_add(len))?;
    match fallocate(file, 0, off, len) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => fill_holes(file, off, len),
        done => done,
    }
}

/// Makes a file `len` bytes long, without allocating space.
///
/// # Errors
///
/// What `ftruncate` says; `FileTooLarge` (`EFBIG`) behind [`file_limit`].
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    longer_within_limit(file, len)?;
    file.set_len(len)
}

/// The offset from which on this process may write into no file (`ulimit -f`); `u64::MAX`: there is none.
#[must_use]
pub fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a writable rlimit.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    match status {
        0 if limit.rlim_cur != libc::RLIM_INFINITY => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// Refuses to make a file longer than [`file_limit`]: the kernel answers that with SIGXFSZ, which ends a program that
/// does not expect it. One that others have made longer stays as long.
fn longer_within_limit(file: &File, end: u64) -> io::Result<()> {
    if end > file_limit() && end > file.metadata()?.len() {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

/// Gives the disk space of `len` bytes from `off` back; they read as zeros, the length stays.
///
/// # Errors
///
/// `Unsupported` (`EOPNOTSUPP`) on a file system that cannot, and what else `fallocate` says.
pub fn punch_hole(file: &File, off: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, off, len)
}

fn fallocate(file: &File, mode: libc::c_int, off: u64, len: u64) -> io::Result<()> {
    let (off, len) = (file_offset(off)?, file_offset(len)?);
    // SAFETY: the call takes no pointer.
    retry(|| unsafe { libc::fallocate(file.as_raw_fd(), mode, off, len) })
}

/// Writes zeros wherever `len` bytes from `off` hold no data yet.
fn fill_holes(file: &File, off: u64, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let end = file_offset(off)?.checked_add(file_offset(len)?).ok_or(io::ErrorKind::InvalidInput)? as u64;
    let mut position = off;
    while position < end {
        // Up to here there is data; from `hole` to `data` there is none.
        let hole = seek(file, position, libc::SEEK_HOLE)?.unwrap_or(position);
        let data = seek(file, hole.min(end), libc::SEEK_DATA)?.unwrap_or(end);
        let stop = data.min(end);
        position = hole;
        while position < stop {
            let count = (stop - position).min(ZEROS.len() as u64);
            if position + count > file_limit() {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
            file.write_all_at(&ZEROS[..count as usize], position)?;
            position += count;
        }
        position = position.max(stop);
    }
    Ok(())
}

/// The first offset of a hole or of data at or after `from`; `None` if `from` is past the end, or
/// no data follows.
fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: the call takes no pointer. It moves the file position, which nobody uses: all reads
    // and writes name their offset.
    let found = unsafe { libc::lseek(file.as_raw_fd(), file_offset(from)?, whence) };
    if let Ok(found) = u64::try_from(found) {
        return Ok(Some(found));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENXIO) => Ok(None),
        _ => Err(error),
    }
}

/// The ranges of the file that hold data, as (offset, length), in order. Holes read as zeros.
///
/// # Errors
///
/// What `lseek` says.
pub fn data_ranges(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut position = 0;
    while let Some(data) = seek(file, position, libc::SEEK_DATA)? {
        // A hole always follows: the end of the file counts as one, unless it was just cut.
        let Some(hole) = seek(file, data, libc::SEEK_HOLE)? else {
            break;
        };
        ranges.push((data, hole - data));
        position = hole;
    }
    Ok(ranges)
}

/// Writes the data of the file, also what was stored through mappings, to the disk.
///
/// # Errors
///
/// What `fdatasync` says. Whether data is on disk is then unknown, and a second call that
/// succeeds does not change that: stop writing.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

fn file_offset(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} lies beyond the largest file offset"))
    })
}

/// Repeats a call that returns 0 or -1 while signals interrupt it.
fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<()> {
    loop {
        if call() == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Gives the open file `file`, which was made under the name `made`, another name, which none has.
///
/// Not what `made` leads to by now: it may be another's.
///
/// # Errors
///
/// `AlreadyExists` if there is anything at `to`; `NotFound` if the file has lost its last name; what `linkat` says.
pub fn link(file: &File, made: &Path, to: &Path) -> io::Result<()> {
    if !Path::new("/proc/self/fd").exists() {
        return std::fs::hard_link(made, to);
    }
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let (at, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both paths are C strings that live until the call has returned.
    match unsafe { libc::linkat(at, from.as_ptr(), at, to.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fs::{remove_file, OpenOptions};

    /// The name under which a file was made is another's by now: that one must not get its new name.
    #[test]
    fn a_file_is_linked_itself_and_not_what_has_its_name() {
        let path =
            |name: &str| std::env::temp_dir().join(format!("perilune-shm-{name}-{}", std::process::id()));
        let (made, moved, to) = (path("made"), path("moved"), path("to"));
        let file = OpenOptions::new().write(true).create_new(true).open(&made).unwrap();
        file.write_all_at(b"ours", 0).unwrap();
        std::fs::rename(&made, &moved).unwrap();
        std::fs::write(&made, b"another's").unwrap();
        link(&file, &made, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"ours");
        assert_eq!(link(&file, &made, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        for path in [&to, &moved] {
            remove_file(path).unwrap();
        }
        assert_eq!(link(&file, &made, &to).unwrap_err().kind(), io::ErrorKind::NotFound);
        remove_file(&made).unwrap();
    }

    /// What `allocate` does without `fallocate`, which the test machine's file systems have.
    #[test]
    fn holes_are_filled_around_data() {
        let path = std::env::temp_dir().join(format!("perilune-shm-holes-{}", std::process::id()));
        let options = OpenOptions::new().read(true).write(true).create_new(true).clone();
        let file = options.open(&path).unwrap();
        remove_file(&path).unwrap();
        let data = vec![7_u8; 10_000];
        file.write_all_at(&data, 300_000).unwrap();
        file.set_len(1 << 20).unwrap();
        fill_holes(&file, 4096, (2 << 20) - 4096).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 << 20);
        let ranges = data_ranges(&file).unwrap();
        assert_eq!(ranges, [(4096, (2 << 20) - 4096)], "holes are left");
        let mut found = vec![1_u8; 2 << 20];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found[300_000..310_000], data);
        assert!(found[..300_000].iter().chain(&found[310_000..]).all(|&byte| byte == 0));
        // Again: nothing to fill, nothing lost.
        fill_holes(&file, 0, 2 << 20).unwrap();
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found[300_000..310_000], data);
    }
}
