//! The disk as the operating system offers it: [`RealDisk`].
//!
//! A process may be forbidden to make files larger than a limit (`ulimit -f`). The kernel answers a write beyond
//! that with SIGXFSZ, which ends the process. So such a write is refused here before, with EFBIG.
//!
//! Asking for the limit takes unsafe code, which this crate does not have: whoever uses it hands in a function that
//! asks ([`limit_files`]). Until then nothing is refused.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

use crate::{create_new, open_there, zeros_by, Disk, DiskFile, FileAccess, FileId};

/// The file systems of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// Tells from which offset on this process may write into no file.
static LIMIT: OnceLock<fn() -> u64> = OnceLock::new();

/// Has `limit` asked before each write from now on. The first function that is given stays.
pub fn limit_files(limit: fn() -> u64) {
    let _ = LIMIT.set(limit);
}

fn within_limit(offset: u64, bytes: u64) -> io::Result<()> {
    let limit = LIMIT.get().map_or(u64::MAX, |limit| limit());
    if offset.saturating_add(bytes) > limit {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

#[derive(Debug)]
struct RealFile(File);

impl RealFile {
    /// This file, opened again to be written past the page cache; an error where the file system does not do that.
    fn direct(&self) -> io::Result<File> {
        let name = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        File::options().write(true).custom_flags(libc::O_DIRECT).open(name)
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(open_there(path, write)?)))
    }

    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>> {
        // NB: it may have become another file's, of whatever kind: opening that must not wait for anybody.
        let name = format!("/proc/self/fd/{descriptor}");
        let file = File::options().read(true).write(write).custom_flags(libc::O_NONBLOCK).open(name)?;
        Ok(Box::new(RealFile(file)))
    }

    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(create_new(path, access)?)))
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)?;
        fs::remove_file(from)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        within_limit(offset, bytes.len() as u64)?;
        self.0.write_all_at(bytes, offset)
    }

    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        within_limit(offset, bytes)?;
        let by = |file: &File| zeros_by(|zeros, at| file.write_all_at(zeros, at), offset, bytes);
        match self.direct().and_then(|direct| by(&direct)) {
            // EINVAL: not on this file system, or not with this alignment; ENOENT: no /proc.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => by(&self.0),
            written => written,
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn id(&self) -> io::Result<FileId> {
        FileId::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_written_where_they_belong() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("perilune-zeros-{}", std::process::id()));
        fs::write(&path, [7; 3 * 4096])?;
        // More than one call writes, and the file grows.
        let bytes = 2 * crate::ZEROS + 4096;
        RealDisk.open(&path, true)?.write_zeros(4096, bytes)?;
        let content = fs::read(&path)?;
        assert_eq!(content.len() as u64, 4096 + bytes);
        assert!(
            content[..4096].iter().all(|byte| *byte == 7) && content[4096..].iter().all(|byte| *byte == 0)
        );
        fs::remove_file(&path)
    }
}
