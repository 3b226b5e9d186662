//! Telling the kernel how much of the file to read around a page that is missing in memory.
//!
//! Problem: by default the kernel reads a missing page with its neighbours, up to megabytes at once. If the whole
//! file fits in memory that is right: the first gets bring in what later gets need. If it does not fit, each get
//! reads megabytes and pushes as much out.
//!
//! Idea: a file of more than half the memory counts as one that does not fit, since others want memory, too. For
//! such a file the kernel is told to expect random access (`MADV_RANDOM`). For one that fits, huge pages are asked
//! for, if nothing is flushed before the last process closes the file.
//!
//! Example: with 8 GiB of memory the advice is given when the file grows beyond 4 GiB.
//!
//! Invariants
//! - Each process advises for its own mapping, when it opens the file and when it sees that the file has grown.
//! - Advice for random access is given once and never taken back: a file shrinks only when it is written anew.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::platform;
use perilune_shm::region::Region;

use super::Image;
use crate::limits::PAGE;

/// What this process has told the kernel.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    is_random: AtomicBool,
}

impl Advice {
    /// Advice for a file of `bytes` bytes. Huge pages suit only who flushes when the last process closes:
    /// what is written back is 2 MiB for each page.
    pub(crate) fn give(db: &Region, bytes: u64, flushes_at_close: bool) -> Advice {
        let advice = Advice::default();
        if !advice.follow(db, bytes, platform::memory_bytes()) && flushes_at_close {
            db.prefer_huge_pages();
        }
        advice
    }

    /// Whether the file counts as larger than `memory`; says so to the kernel, once.
    fn follow(&self, db: &Region, bytes: u64, memory: u64) -> bool {
        let is_random = self.is_random.load(Relaxed) || bytes > memory / 2;
        if is_random && !self.is_random.swap(true, Relaxed) {
            db.expect_random_access();
        }
        is_random
    }
}

impl Image {
    /// Looks whether the file has outgrown the memory.
    pub(crate) fn follow_growth(&self) {
        self.advice.follow(&self.db, self.npages() * PAGE as u64, platform::memory_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perilune_shm::region::Access;

    /// The flags of the mapping of a file, as the kernel shows them.
    fn flags(name: &str) -> String {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let lines = text.lines().skip_while(|line| !line.ends_with(name));
        lines.skip(1).find_map(|line| line.strip_prefix("VmFlags:")).unwrap().to_owned()
    }

    #[test]
    fn a_file_that_outgrows_the_memory_is_read_page_by_page() {
        let name = format!("perilune-advice-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        let region = Region::map(&file, 8 << 20, Access::ReadWrite).unwrap();
        let advice = Advice::give(&region, 0, true);
        assert!(!flags(&name).contains(" rr"), "{}", flags(&name));
        assert!(!advice.follow(&region, 4 << 20, 8 << 20));
        assert!(!flags(&name).contains(" rr"));
        assert!(advice.follow(&region, (4 << 20) + 1, 8 << 20));
        assert!(flags(&name).contains(" rr") && !flags(&name).contains(" hg"), "{}", flags(&name));
        // It does not come back by itself: the file shrinks only when it is written anew.
        assert!(advice.follow(&region, 0, 8 << 20));
        std::fs::remove_file(&path).unwrap();
    }
}
