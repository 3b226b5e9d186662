//! A disk whose n-th call fails, for tests that try every n.
//!
//! Problem: whether the engine survives a full disk depends on which of many calls meets it. Idea: count the calls,
//! and let one fail as told. A test runs its work again and again, with n = 1, 2, 3 and so on, until the work ends
//! before call n is reached.
//!
//! Example: `FaultyDisk::new(Fault::ShortWrite)` with `fail_call(2)`: the second call from now on, if it is a write
//! of 4 bytes, writes 2 of them and answers EIO. With [`FaultyDisk::fail_from_call`] all later calls fail, too:
//! what is in the files then is what a killed process leaves.

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

use crate::{Disk, DiskFile, FileAccess, FileId, RealDisk};

/// How the chosen call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// ENOSPC; nothing is done.
    NoSpace,
    /// EIO; nothing is done.
    Io,
    /// EIO after half the bytes of a write or an allocation; nothing is done by other calls.
    ShortWrite,
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::NoSpace => io::Error::from_raw_os_error(28),
            Fault::Io | Fault::ShortWrite => io::Error::from_raw_os_error(5),
        }
    }
}

/// The real disk, except that one call fails. Calls of all its files are counted together; clones
/// count with the original.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    calls: AtomicU64,
    failing: AtomicU64,
    /// Whether all calls after it fail, too.
    is_gone: AtomicBool,
    fault: Fault,
}

impl Plan {
    /// Counts a call that would change something; the fault if it is the chosen one.
    fn next(&self) -> Result<(), Fault> {
        let call = self.calls.fetch_add(1, SeqCst) + 1;
        let failing = self.failing.load(SeqCst);
        if call == failing || failing > 0 && call > failing && self.is_gone.load(SeqCst) {
            return Err(self.fault);
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.next().map_err(Fault::error)
    }
}

impl FaultyDisk {
    /// A disk that does not fail until told to by [`FaultyDisk::fail_call`].
    #[must_use]
    pub fn new(fault: Fault) -> FaultyDisk {
        let (calls, failing) = (AtomicU64::new(0), AtomicU64::new(0));
        let plan = Plan { calls, failing, is_gone: AtomicBool::new(false), fault };
        FaultyDisk { plan: Arc::new(plan) }
    }

    /// Lets the `number`-th call from now on fail, and all that follow: what is left in the files is what a
    /// process leaves that is killed there.
    pub fn fail_from_call(&self, number: u64) {
        self.plan.is_gone.store(true, SeqCst);
        self.fail_call(number);
    }

    /// Lets the `number`-th call from now on fail (1 is the next one, 0 none).
    pub fn fail_call(&self, number: u64) {
        let failing = if number == 0 { 0 } else { self.plan.calls.load(SeqCst) + number };
        self.plan.failing.store(failing, SeqCst);
    }

    /// Calls made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.plan.calls.load(SeqCst)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn DiskFile>,
    plan: Arc<Plan>,
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        self.plan.check()?;
        let file = RealDisk.open(path, write)?;
        Ok(Box::new(FaultyFile { file, plan: Arc::clone(&self.plan) }))
    }

    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>> {
        self.plan.check()?;
        let file = RealDisk.open_held(descriptor, write)?;
        Ok(Box::new(FaultyFile { file, plan: Arc::clone(&self.plan) }))
    }

    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>> {
        self.plan.check()?;
        let file = RealDisk.create(path, access)?;
        Ok(Box::new(FaultyFile { file, plan: Arc::clone(&self.plan) }))
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        self.plan.check()?;
        RealDisk.remove(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.plan.check()?;
        RealDisk.names(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.check()?;
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.check()?;
        RealDisk.rename_new(from, to)
    }

    fn link(&self, link: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        self.plan.check()?;
        link()
    }

    fn allocate(&self, bytes: u64, allocate: &dyn Fn(u64) -> io::Result<()>) -> io::Result<()> {
        if let Err(fault) = self.plan.next() {
            if fault == Fault::ShortWrite && bytes > 1 {
                allocate(bytes / 2)?;
            }
            return Err(fault.error());
        }
        allocate(bytes)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.plan.check()?;
        RealDisk.sync_directory(path)
    }
}

impl DiskFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.plan.check()?;
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(fault) = self.plan.next() {
            if fault == Fault::ShortWrite {
                self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
            }
            return Err(fault.error());
        }
        self.file.write_at(bytes, offset)
    }

    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if let Err(fault) = self.plan.next() {
            if fault == Fault::ShortWrite {
                self.file.write_zeros(offset, bytes / 8192 * 4096)?;
            }
            return Err(fault.error());
        }
        self.file.write_zeros(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plan.check()?;
        self.file.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        self.plan.check()?;
        self.file.size()
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.plan.check()?;
        self.file.cut(bytes)
    }

    fn id(&self) -> io::Result<FileId> {
        // Looked at each time a file is opened, which has been counted.
        self.file.id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_call_fails_and_no_other() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("perilune-disk-{}", std::process::id()));
        std::fs::write(&path, [0; 8])?;
        let disk = FaultyDisk::new(Fault::ShortWrite);
        let file = disk.open(&path, true)?;
        disk.fail_call(2);
        file.write_at(&[1; 4], 0)?;
        assert_eq!(file.write_at(&[2; 4], 4).unwrap_err().raw_os_error(), Some(5));
        file.sync_data()?;
        let mut bytes = [9; 8];
        file.read_at(&mut bytes, 0)?;
        assert_eq!(bytes, [1, 1, 1, 1, 2, 2, 0, 0], "half of the failed write is there");
        assert_eq!(disk.calls(), 5);
        std::fs::remove_file(&path)
    }
}
