//! A mapping of a file, or of nothing, seen as atomic words.
//!
//! Invariants:
//! - The mapping lives exactly as long as the [`Region`]; its address never changes.
//! - Every access is bounds- and alignment-checked against the mapped length, then atomic. Other
//!   processes may store to the same bytes at any moment: values are hostile until validated.
//! - One byte is accessed with one size only: 8 bytes, or 4 for futex words ([`Region::word32`]).
//!
//! What it does not do: it does not know how much of the file is allocated. The mapping may be
//! longer than the file, which grows underneath. **Touching a page beyond the end of the file, or
//! a hole on a full disk, kills the process with SIGBUS**, so callers stay below the length they
//! have allocated ([`crate::platform::allocate`]) and never truncate a file while it is mapped.
//! Equally a store to a [`Access::ReadOnly`] region kills it with SIGSEGV. Both end the process;
//! neither lets a stray access through.
//!
//! A forked child keeps the mapping: what it may do with it is for [`crate::fork`] to say.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::sigbus::Named;

const WORD: usize = size_of::<u64>();
/// Bytes of a huge page on the machines that have them of this size; elsewhere only an alignment.
const HUGE: usize = 2 << 20;

/// How a file is mapped or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Shared: stores reach the file and the other processes.
    ReadWrite,
    /// Shared: loads only. A store ends the process.
    ReadOnly,
    /// Copy on write: stores stay in this mapping until [`Region::discard`]. For test instruments.
    Private,
}

/// A mapping of `len` bytes, accessed as atomic words.
#[derive(Debug)]
pub struct Region {
    address: NonNull<u8>,
    len: usize,
    access: Access,
    named: Option<Named>,
}

// SAFETY: the mapping belongs to the process, not to a thread; unmapping it from another thread is
// allowed, and `Region` owns it alone.
unsafe impl Send for Region {}
// SAFETY: through a shared `Region` memory is reached only as atomics, which are `Sync`; `discard`
// and `populate_write` only make system calls on the range, and a word whose page is discarded
// changes value like one another process stores to.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `len` bytes of `file`; `len` is a positive multiple of 8.
    ///
    /// `len` may exceed the length of the file: address space is reserved, no memory or swap.
    /// The mapping does not need `file` to stay open.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `len` is zero, no multiple of 8 or beyond the address space; else what
    /// `mmap` says, e.g. `PermissionDenied` if `file` is not open for `access`.
    pub fn map(file: &File, len: usize, access: Access) -> io::Result<Region> {
        let (protection, sharing) = match access {
            Access::ReadWrite => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED),
            Access::ReadOnly => (libc::PROT_READ, libc::MAP_SHARED),
            Access::Private => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE),
        };
        Region::reserve(len, protection, sharing, file.as_raw_fd(), access)
    }

    /// Maps `len` zero bytes that no file backs, shared with children forked later. For tests.
    ///
    /// # Errors
    ///
    /// As [`Region::map`].
    pub fn anonymous(len: usize) -> io::Result<Region> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let sharing = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        Region::reserve(len, protection, sharing, -1, Access::ReadWrite)
    }

    fn reserve(
        len: usize,
        protection: libc::c_int,
        sharing: libc::c_int,
        fd: libc::c_int,
        access: Access,
    ) -> io::Result<Region> {
        if len == 0 || !len.is_multiple_of(WORD) || len > isize::MAX as usize {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a region of {len} bytes: its length must be a positive multiple of 8"),
            ));
        }
        let flags = sharing | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses an unused range, so no existing memory is
        // affected; a wrong `fd` is an error, not unsafety.
        let map = |len, protection, flags, fd| unsafe {
            checked(libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0))
        };
        if len < HUGE {
            let address = map(len, protection, flags, fd)?;
            return Ok(Region { address, len, access, named: None });
        }
        // Room in which an aligned range of `len` bytes lies; nothing in it can be touched.
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let room = map(len + HUGE, libc::PROT_NONE, nothing, -1)?;
        let before = room.as_ptr().align_offset(HUGE);
        // SAFETY: `before < HUGE`, so the fixed range lies inside `room`, which is ours and holds
        // nothing; what is unmapped before and after it is the rest of `room`, in whole pages,
        // since `room` begins at a page and `end` is rounded up to one.
        unsafe {
            let start = room.as_ptr().add(before);
            let fixed = libc::mmap(start.cast(), len, protection, flags | libc::MAP_FIXED, fd, 0);
            let address = checked(fixed).inspect_err(|_| {
                libc::munmap(room.as_ptr().cast(), len + HUGE);
            })?;
            let end = before + len.next_multiple_of(crate::platform::page_size());
            if before > 0 {
                libc::munmap(room.as_ptr().cast(), before);
            }
            if end < len + HUGE {
                libc::munmap(room.as_ptr().add(end).cast(), len + HUGE - end);
            }
            Ok(Region { address, len, access, named: None })
        }
    }

    /// Asks for huge pages where the kernel and the file system have them for files; a region of 2 MiB
    /// or more is aligned for them. Best effort.
    ///
    /// A kernel that grants it reads and writes back 2 MiB at once where anything of them is touched.
    pub fn prefer_huge_pages(&self) {
        // SAFETY: the range is exactly our mapping; the advice changes no content.
        unsafe {
            libc::madvise(self.address.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE);
        }
    }

    /// The region, of which [`crate::sigbus`] then knows that it maps the file at `path`.
    #[must_use]
    pub fn named(mut self, path: &Path) -> Region {
        // NB: the old name first, if there is one: so its place can be taken.
        self.named = None;
        self.named = Named::new(self.address.as_ptr() as usize, self.len, path);
        self
    }

    /// Says that what will be touched next does not lie beside what was touched last: the kernel then reads
    /// single pages, instead of megabytes around each that is missing, and gives up huge ones. Best effort.
    pub fn expect_random_access(&self) {
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_RANDOM] {
            // SAFETY: the range is exactly our mapping; the advice changes no content.
            unsafe {
                libc::madvise(self.address.as_ptr().cast(), self.len, advice);
            }
        }
    }

    /// The mapped length in bytes, a positive multiple of 8.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // A region is never empty.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How it was mapped.
    #[inline]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The word at byte offset `off`.
    ///
    /// # Panics
    ///
    /// If `off` is no multiple of 8 or the word does not lie inside the region.
    #[inline]
    pub fn word(&self, off: usize) -> &AtomicU64 {
        let address = self.at(off, WORD, WORD);
        // SAFETY: `at` has checked that the eight bytes lie inside the mapping and are aligned;
        // the mapping is readable, initialised by the kernel, and lives as long as `self`, to
        // which the result is tied. All accesses anywhere to these bytes are atomic, of this
        // size. A store to a read-only mapping faults (see the module's head).
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }

    /// The futex word of 4 bytes at byte offset `off`.
    ///
    /// Only for bytes that are never reached through [`Region::word`] by anybody, unless both
    /// uses are atomic and the owner of the layout documents the overlap.
    ///
    /// # Panics
    ///
    /// If `off` is no multiple of 4 or the word does not lie inside the region.
    #[inline]
    pub fn word32(&self, off: usize) -> &AtomicU32 {
        let address = self.at(off, size_of::<u32>(), size_of::<u32>());
        // SAFETY: as in `word`, for four bytes aligned to four.
        unsafe { AtomicU32::from_ptr(address.cast()) }
    }

    /// The `N` words from byte offset `off` on, e.g. a page or a header.
    ///
    /// # Panics
    ///
    /// If `off` is no multiple of 8 or the words do not all lie inside the region.
    #[inline]
    pub fn block<const N: usize>(&self, off: usize) -> &[AtomicU64; N] {
        let address = self.at(off, const { N * WORD }, WORD);
        // SAFETY: as in `word`, for `N` consecutive words, which is the layout of the array.
        unsafe { &*address.cast::<[AtomicU64; N]>() }
    }

    /// The `words` words from byte offset `off` on.
    ///
    /// # Panics
    ///
    /// If `off` is no multiple of 8 or the words do not all lie inside the region.
    #[inline]
    pub fn slice(&self, off: usize, words: usize) -> &[AtomicU64] {
        let address = self.at(off, words.saturating_mul(WORD), WORD);
        // SAFETY: as in `word`, for `words` consecutive words; a product that saturated would
        // have failed the bounds check, and the length fits `isize` as the region's does.
        unsafe { std::slice::from_raw_parts(address.cast::<AtomicU64>(), words) }
    }

    /// Drops all private copies: the region shows the file again, as it is now.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless the region is [`Access::Private`].
    pub fn discard(&self) -> io::Result<()> {
        if self.access != Access::Private {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "only a private region can be discarded: map the file with Access::Private",
            ));
        }
        let address = self.address.as_ptr().cast();
        // SAFETY: the range is exactly our mapping. Its words change value, which shared words may
        // do at any time: all references into it are to atomics.
        let status = unsafe { libc::madvise(address, self.len, libc::MADV_DONTNEED) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Makes the pages that touch `len` bytes from `off` writable now rather than at first touch.
    ///
    /// Best effort: what cannot be done, also beyond the end of the file, is left to the first
    /// touch. Cuts the range at the end of the region; does nothing on a read-only one.
    pub fn populate_write(&self, off: usize, len: usize) {
        let end = off.saturating_add(len).min(self.len);
        let start = off - off % crate::platform::page_size();
        if self.access == Access::ReadOnly || start >= end {
            return;
        }
        // SAFETY: `start < end <= self.len`, so the range begins inside our mapping and ends
        // inside its last page. The advice changes no content; failure is harmless.
        unsafe {
            let address = self.address.as_ptr().add(start);
            libc::madvise(address.cast(), end - start, libc::MADV_POPULATE_WRITE);
        }
    }

    /// The address of `size` bytes at `off`, checked.
    #[inline]
    fn at(&self, off: usize, size: usize, align: usize) -> *mut u8 {
        if !off.is_multiple_of(align) || size > self.len || off > self.len - size {
            outside(off, size, self.len);
        }
        // SAFETY: `off <= self.len - size`, so the result points into the mapping, or one past its
        // end when `size` is 0; `self.len` fits `isize`.
        unsafe { self.address.as_ptr().add(off) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Before another mapping can have the address.
        self.named = None;
        // SAFETY: the range is exactly the mapping made in `reserve`, nobody else unmaps it, and
        // all references into it borrowed `self`, so none is left.
        let status = unsafe { libc::munmap(self.address.as_ptr().cast(), self.len) };
        debug_assert_eq!(status, 0, "munmap of a region failed");
    }
}

/// What `mmap` answered, as an address or its error.
fn checked(mapped: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

#[cold]
#[inline(never)]
fn outside(off: usize, size: usize, len: usize) -> ! {
    panic!("access of {size} bytes at offset {off} is unaligned or outside a region of {len} bytes");
}
