//! A database as a process sees it: the two mapped files with pages, page table, control words and processes; and
//! the taking of pages.
//!
//! Every process maps the same bytes and builds its own [`Image`] over them. All that is shared lies in the
//! mappings; what else is in an `Image` is this process's own and may be lost with it.
//!
//! Invariants
//! - A page number is below `npages`, outside the reserved start of its segment, and its page and its page-table
//!   entry are allocated on disk before `npages` says so: touching them never faults.
//! - The version in a page's latch word never decreases; equal word, equal content.
//! - `frontier <= npages`; pages from the frontier on have never been used.
//! - Who is alive is what the kernel says (see `perilune_shm::anchor`), never what a word says.
//!
//! Deliberately absent: how the files are opened and recovered (`open`), what pages hold (`page`).

mod advice;
mod ahead;
mod alloc;
pub(crate) mod bell;
mod failure;
mod home;
pub(crate) mod layout;
mod proofs;
pub(crate) mod wakeup;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use perilune_disk::Disk;
use perilune_shm::platform;
use perilune_shm::region::Region;
use perilune_store::Error;

use crate::limits::{
    GROWTH_LEAST, GROWTH_LEAVES, GROWTH_PAGES, PAGE, PROCESSES, SEGMENT_PAGES, SEGMENT_RESERVED,
};
use crate::page::Page;
pub(crate) use advice::Advice;
pub(crate) use ahead::Ahead;
pub(crate) use failure::{io_error, log_path, space_error};
pub(crate) use home::{is_no_file, Home};
use layout::{
    control, Life, Owner, ProcessState, PAGE_TABLE_AT, PAGE_TABLE_BLOCK, PROCESSES_AT, PROCESS_BYTES,
    PROCESS_PID,
};
pub(crate) use proofs::Proofs;

/// Answers whether the process in a slot lives.
pub(crate) type Liveness = Box<dyn Fn(usize) -> bool + Send + Sync>;

/// A database, mapped.
pub(crate) struct Image {
    pub(crate) db: Region,
    pub(crate) shm: Region,
    pub(crate) path: PathBuf,
    pub(crate) shm_path: PathBuf,
    /// Which files these paths led to.
    pub(crate) home: Home,
    pub(crate) read_only: bool,
    /// Who this process is among the attached.
    pub(crate) me: Owner,
    /// Pages that the mappings reach.
    pub(crate) pages_max: u64,
    pub(crate) liveness: Liveness,
    /// What the kernel was told of `db`.
    pub(crate) advice: Advice,
    /// What a thread of this process is to do for its writers.
    pub(crate) ahead: Ahead,
    /// What this process keeps to compare pages with their sums.
    pub(crate) proofs: Proofs,
    /// Files that are read and written by system calls.
    pub(crate) disk: Arc<dyn Disk>,
    /// Memory for the log's chunks; nothing is kept in it.
    pub(crate) buffer: Mutex<Vec<u8>>,
    /// How long one of this process waits for a page that another holds, unless it says otherwise.
    pub(crate) wait_limit: Duration,
    /// Whether it lets a stopped process go on that holds such a page (`session::wake`).
    pub(crate) wakes_stopped: bool,
    /// Keys of locks' queues that this process has left and could not remove in time.
    pub(crate) late: Mutex<Vec<Vec<u8>>>,
}

impl Image {
    /// Memory for the log's chunks.
    pub(crate) fn log_buffer(&self) -> MutexGuard<'_, Vec<u8>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves keys to be removed from the volatile tree later, by a thread of this process.
    pub(crate) fn note_late(&self, mut keys: Vec<Vec<u8>>) {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).append(&mut keys);
    }

    /// The keys that [`Image::note_late`] was given, once.
    pub(crate) fn take_late(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The control word at a byte offset of `layout::control`.
    #[inline(always)]
    pub(crate) fn control(&self, offset: usize) -> &AtomicU64 {
        self.shm.word(offset)
    }

    /// The current generation.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u32 {
        self.control(control::GEN).load(Acquire) as u32
    }

    /// Pages that exist.
    #[inline(always)]
    pub(crate) fn npages(&self) -> u64 {
        self.control(control::NPAGES).load(Acquire)
    }

    /// The bytes of page `number`, which is below `npages`.
    #[inline(always)]
    pub(crate) fn page(&self, number: u32) -> &Page {
        self.db.block(number as usize * PAGE)
    }

    #[inline(always)]
    fn entry(number: u32) -> usize {
        let number = u64::from(number);
        let inside = number % PAGE_TABLE_BLOCK;
        let permuted = (inside & 63) << 6 | inside >> 6;
        PAGE_TABLE_AT + ((number - inside + permuted) as usize) * 16
    }

    /// The latch word of page `number`.
    #[inline(always)]
    pub(crate) fn latch(&self, number: u32) -> &AtomicU64 {
        self.shm.word(Self::entry(number))
    }

    /// The life word of page `number`.
    #[inline(always)]
    pub(crate) fn life_word(&self, number: u32) -> &AtomicU64 {
        self.shm.word(Self::entry(number) + 8)
    }

    /// The generations of page `number`.
    #[inline(always)]
    pub(crate) fn life(&self, number: u32) -> Life {
        Life::from_word(self.life_word(number).load(Relaxed))
    }

    /// Byte offset up to which `-shm` must be allocated for `pages` pages.
    pub(crate) fn shm_bytes(pages: u64) -> usize {
        PAGE_TABLE_AT + (pages.next_multiple_of(PAGE_TABLE_BLOCK) as usize) * 16
    }

    /// Whether a page number can name a page of data.
    pub(crate) fn is_data_page(number: u64) -> bool {
        number % SEGMENT_PAGES >= SEGMENT_RESERVED
    }

    /// The word of process `slot`.
    pub(crate) fn process_word(&self, slot: usize) -> &AtomicU64 {
        self.shm.word(PROCESSES_AT + slot * PROCESS_BYTES)
    }

    /// The state of process `slot`.
    pub(crate) fn process(&self, slot: usize) -> ProcessState {
        ProcessState::from_word(self.process_word(slot).load(Acquire))
    }

    /// The pid of process `slot`, as that process sees it; for display.
    pub(crate) fn pid(&self, slot: usize) -> u32 {
        let at = PROCESSES_AT + slot.min(PROCESSES - 1) * PROCESS_BYTES + PROCESS_PID;
        self.shm.word(at).load(Acquire) as u32
    }

    /// Whether `owner` lives: its slot is in that life, and the kernel says somebody is in it.
    pub(crate) fn is_alive(&self, owner: Owner) -> bool {
        if owner == self.me {
            return true;
        }
        usize::from(owner.slot) < PROCESSES
            && self.process(owner.slot.into()) == (ProcessState::Live { incarnation: owner.incarnation })
            && (self.liveness)(owner.slot.into())
    }

    /// Whether no other process is attached, not even a dead one that nobody has repaired.
    pub(crate) fn is_only_process(&self) -> bool {
        (0..PROCESSES).all(|slot| {
            slot == usize::from(self.me.slot) || matches!(self.process(slot), ProcessState::Free { .. })
        })
    }

    /// Makes the files longer. Fails before anything is written.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Replaced`, or `LimitReached` at `max_size`.
    pub(crate) fn grow(&self, least: u64) -> Result<(), Error> {
        let old = self.npages();
        if self.kept().by_checkpoint > old / 4 {
            // The next checkpoint frees more than this.
            self.control(control::CHECKPOINT_WANTED).store(1, Relaxed);
        }
        let step = old.max((4 << 20) / PAGE as u64).min(GROWTH_PAGES).max(least + SEGMENT_RESERVED);
        let new = (old + step).min(self.pages_max);
        if new < old + least {
            let is_own = self.pages_max < self.db.len() as u64 / PAGE as u64;
            let what = if is_own {
                "bytes in the database: open it with a higher max_size"
            } else {
                "bytes in the database: end all who have it open, then open it with a higher max_size"
            };
            return Err(Error::LimitReached { what, limit: self.pages_max * PAGE as u64 });
        }
        // What does not fit may fit in part: each try asks for half as much, down to what is needed, and leaves others
        // the room to come and remove something.
        let (mut new, fewest) = (new, new.min(old + least.max(GROWTH_LEAST)));
        loop {
            let failed = match self.lengthen(old, new) {
                Err(error @ Error::NoSpace { .. }) if new > fewest => error,
                done => return done,
            };
            let left = platform::space(&self.path).map_or(0, |space| space.left);
            let most = old + left.saturating_sub(GROWTH_LEAVES) / PAGE as u64;
            new = (old + (new - old) / 2).min(most).max(fewest);
            if new > most {
                return Err(failed);
            }
        }
    }

    /// Allocates the pages from `old` up to `new` in both files, and says so.
    fn lengthen(&self, old: u64, new: u64) -> Result<(), Error> {
        let shm_old = Self::shm_bytes(old) as u64;
        self.extend(&self.shm_path, shm_old, Self::shm_bytes(new) as u64 - shm_old)?;
        self.extend(&self.path, old * PAGE as u64, (new - old) * PAGE as u64)?;
        // NB: failing means that somebody else grew the file; so much the better.
        let _ = self.control(control::NPAGES).compare_exchange(old, new, AcqRel, Acquire);
        Ok(())
    }

    /// Allocates bytes of a file. It is opened anew: no descriptor is kept that a host could close.
    pub(crate) fn extend(&self, path: &Path, offset: u64, len: u64) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        let file = self.growing_file(path)?;
        let grown = self.disk.allocate(len, &|len| platform::allocate(&file, offset, len));
        grown.map_err(|source| space_error("allocate space", path, source))
    }
}
