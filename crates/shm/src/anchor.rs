//! The liveness anchor: a lock the kernel takes away exactly when this process dies.
//!
//! A lock on a byte of the database file says that a process lives. Held through a descriptor it
//! would lie in both directions: `closefrom` in the host program makes the living dead, a forked
//! child makes the dead living. So the lock is handed to a *mapping*: open the file, lock the
//! byte, map a page through that descriptor, exclude the mapping from children (`MADV_DONTFORK`),
//! close the descriptor. The mapping is then the only reference to the open file description.
//!
//! Invariants:
//! - The descriptor exists only in the table of a short-lived thread: neither a fork nor `vfork`,
//!   `posix_spawn` or a raw `clone` in another thread can copy it and with it the lock.
//! - From open to close forks are held off, so none copies the mapping before `MADV_DONTFORK`.
//! - The anchored page is never accessed, and inaccessible (`PROT_NONE`).
//! - A forked child never unmaps the address: it may belong to something else there.
//!
//! [`Probe`] asks whether a byte is locked. It keeps a descriptor, as it is asked often, and
//! checks each time that it is still its own; a wrong "nobody lives there" would be fatal.
//!
//! Not covered: a raw `clone` without CLONE_VM between mapping and `MADV_DONTFORK` keeps the lock.
//! Before Linux 5.9 the descriptor is the process's: any raw `clone` between open and close keeps
//! the lock, and `vfork` or `posix_spawn` keeps it until its exec.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::descriptor::Identity;
use crate::fork::{self, ForkMark};
use crate::lockbyte;
use crate::platform::{page_size, with_signals_blocked};
use crate::region::Access;

/// A locked byte that stays locked until the anchor is dropped or the process ends, however.
#[derive(Debug)]
pub struct Anchor {
    page: NonNull<libc::c_void>,
    len: usize,
    mark: ForkMark,
}

// SAFETY: the mapping belongs to the process, not a thread, and is never accessed, only unmapped.
unsafe impl Send for Anchor {}
// SAFETY: a shared `Anchor` offers nothing that touches the mapping.
unsafe impl Sync for Anchor {}

impl Anchor {
    /// Locks `byte` of the file at `path` without waiting; `None` if somebody holds it.
    ///
    /// The file must exist; it may be empty, and is not changed. Another anchor of this process
    /// conflicts like one of another. An exclusive lock (`shared` false) needs write access.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an exclusive lock without [`Access::ReadWrite`]; else what `open`,
    /// `fcntl` or `mmap` say.
    pub fn acquire(path: &Path, byte: u64, access: Access, shared: bool) -> io::Result<Option<Anchor>> {
        Anchor::acquire_in(None, path, byte, access, shared)
    }

    /// As [`Anchor::acquire`], but only if `path` leads to the file `only`: the byte of another is not touched.
    ///
    /// # Errors
    ///
    /// As [`Anchor::acquire`]; `NotFound` if it leads to another file.
    pub fn acquire_in(
        only: Option<Identity>,
        path: &Path,
        byte: u64,
        access: Access,
        shared: bool,
    ) -> io::Result<Option<Anchor>> {
        if !shared && access != Access::ReadWrite {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an exclusive lock needs the file open for writing: ask for a shared lock",
            ));
        }
        let mark = ForkMark::current();
        let forks = fork::hold_off();
        let anchor = with_own_descriptors(|| {
            // std opens with O_CLOEXEC.
            let file = OpenOptions::new().read(true).write(access == Access::ReadWrite).open(path)?;
            only.map_or(Ok(()), |only| only.check(file.as_raw_fd(), path))?;
            Anchor::through(&file, byte, shared, mark)
        });
        drop(forks);
        anchor
    }

    fn through(file: &File, byte: u64, shared: bool, mark: ForkMark) -> io::Result<Option<Anchor>> {
        if !lockbyte::try_lock(file.as_raw_fd(), byte, shared)? {
            return Ok(None);
        }
        let len = page_size();
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        let fd = file.as_raw_fd();
        // SAFETY: without MAP_FIXED no existing memory is affected.
        let page = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // From here on dropping `anchor` unmaps the page.
        let anchor = Anchor { page, len, mark };
        // SAFETY: the range is exactly the mapping just made.
        if unsafe { libc::madvise(page.as_ptr(), len, libc::MADV_DONTFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Some(anchor))
    }
}

/// Runs `body` on a thread whose descriptors nobody else has, so that no child can copy them.
///
/// `body` closes what it opens: joining does not wait until the kernel has dropped the table.
/// Without a thread, or before Linux 5.9, it runs with the descriptors of the process.
fn with_own_descriptors<T: Send>(body: impl Fn() -> io::Result<T> + Sync) -> io::Result<T> {
    let isolated = || {
        // SAFETY: takes no pointer. With UNSHARE only the table of this thread, which owns no
        // descriptor yet, becomes empty; where the flag is unknown the call fails.
        unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
        body()
    };
    std::thread::scope(|scope| {
        let name = "perilune-attach".to_owned();
        let builder = std::thread::Builder::new().name(name);
        match with_signals_blocked(|| builder.spawn_scoped(scope, isolated)) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => body(),
        }
    })
}

impl Drop for Anchor {
    fn drop(&mut self) {
        // In a child the mapping does not exist and the lock is its parent's.
        if self.mark.is_same_process() {
            // SAFETY: this process made the mapping at this address and length, and unmaps it
            // only here.
            let status = unsafe { libc::munmap(self.page.as_ptr(), self.len) };
            debug_assert_eq!(status, 0, "munmap of an anchor failed");
        }
    }
}

/// Tells which bytes of a file are locked by anybody, also by anchors of this process.
///
/// Usable from several threads at once, and in forked children.
#[derive(Debug)]
pub struct Probe {
    path: PathBuf,
    identity: Identity,
    /// Ours as long as it is `identity`; else the host program has closed it.
    fd: AtomicI32,
}

impl Probe {
    /// A probe of the existing file at `path`, which it opens read-only.
    ///
    /// # Errors
    ///
    /// What `open` and `fstat` say.
    pub fn new(path: &Path) -> io::Result<Probe> {
        // Absolute, as the host program may change its working directory.
        let path = path.canonicalize()?;
        let file = File::open(&path)?;
        let identity = Identity::of(file.as_raw_fd())?;
        Ok(Probe { path, identity, fd: AtomicI32::new(file.into_raw_fd()) })
    }

    /// The file that it probes.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The descriptor of the file, whatever names it still has; None if the host program has closed it.
    ///
    /// The host program may close the descriptor at any moment. So whoever opens the file through it compares the file that
    /// was opened with the one that was meant.
    #[must_use]
    pub fn descriptor(&self) -> Option<RawFd> {
        Some(self.fd.load(Ordering::Acquire)).filter(|fd| self.identity.is(*fd))
    }

    /// Whether anybody holds `byte`, shared or exclusive. About 0.4 us.
    ///
    /// # Errors
    ///
    /// If the host program has closed our descriptor and the path no longer leads to the same
    /// file (`NotFound` or what `open` says); what `fcntl` says.
    pub fn is_held(&self, byte: u64) -> io::Result<bool> {
        for _ in 0..ATTEMPTS {
            let fd = self.fd.load(Ordering::Acquire);
            if !self.identity.is(fd) {
                self.reopen(fd)?;
                continue;
            }
            let held = lockbyte::is_held(fd, byte);
            // "Not held" said about another file would bury a living process: only an answer
            // between two looks at the same file counts.
            if self.identity.is(fd) {
                return held;
            }
        }
        Err(io::Error::other(
            "the descriptor of the database is closed again and again: \
             find out which thread of the program closes files it has not opened",
        ))
    }

    /// Replaces the lost descriptor `lost`, which is not ours to close.
    fn reopen(&self, lost: RawFd) -> io::Result<()> {
        let file = File::open(&self.path)?;
        self.identity.check(file.as_raw_fd(), &self.path)?;
        let fd = file.into_raw_fd();
        // AcqRel: the winner's number is used by others only after its open.
        let swapped = self.fd.compare_exchange(lost, fd, Ordering::AcqRel, Ordering::Acquire);
        // `lost == fd` when the kernel has given us the old number again: then it is installed.
        if swapped.is_err() {
            // SAFETY: `fd` was opened above and given to nobody, as another thread has won.
            drop(unsafe { File::from_raw_fd(fd) });
        }
        Ok(())
    }
}

/// How often [`Probe::is_held`] tries to get an undisturbed answer.
const ATTEMPTS: usize = 8;

impl Drop for Probe {
    fn drop(&mut self) {
        let fd = *self.fd.get_mut();
        if self.identity.is(fd) {
            // SAFETY: the descriptor is still the file we opened, and nobody else has its number.
            drop(unsafe { File::from_raw_fd(fd) });
        }
    }
}
