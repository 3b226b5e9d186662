//! Regions: what is shared, what is private, and where they end.

mod process;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::region::{Access, Region};
use process::{fork, succeeded, ScratchFile};

const LEN: usize = 16384;

/// Whether `access` panics.
fn refused<T>(access: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(|| {
        access();
    }))
    .is_err()
}

#[test]
fn stores_reach_file_and_other_mappings() {
    let scratch = ScratchFile::of_len(LEN as u64);
    let one = Region::map(&scratch.open(), LEN, Access::ReadWrite).unwrap();
    let two = Region::map(&File::open(&scratch.path).unwrap(), LEN, Access::ReadOnly).unwrap();
    one.word(8184).store(0x0807_0605_0403_0201, Relaxed);
    assert_eq!(two.word(8184).load(Relaxed), 0x0807_0605_0403_0201);
    assert_eq!(two.word32(8188).load(Relaxed), 0x0807_0605);
    let mut bytes = [0; 8];
    scratch.open().read_exact_at(&mut bytes, 8184).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(two.block::<2>(8176)[1].load(Relaxed), 0x0807_0605_0403_0201);
    assert_eq!(two.slice(8184, 2)[0].load(Relaxed), 0x0807_0605_0403_0201);
    assert_eq!((two.len(), two.access()), (LEN, Access::ReadOnly));
}

#[test]
fn private_stores_stay_until_discarded() {
    let scratch = ScratchFile::of_len(LEN as u64);
    let shared = Region::map(&scratch.open(), LEN, Access::ReadWrite).unwrap();
    let private = Region::map(&File::open(&scratch.path).unwrap(), LEN, Access::Private).unwrap();
    shared.word(0).store(1, Relaxed);
    private.word(0).store(2, Relaxed);
    private.word(LEN - 8).store(3, Relaxed);
    assert_eq!(shared.word(0).load(Relaxed), 1);
    shared.word(0).store(4, Relaxed);
    assert_eq!(private.word(0).load(Relaxed), 2);
    private.discard().unwrap();
    assert_eq!(private.word(0).load(Relaxed), 4);
    assert_eq!(private.word(LEN - 8).load(Relaxed), 0);
    assert!(shared.discard().is_err(), "a shared region was discarded");
    assert_eq!(shared.word(0).load(Relaxed), 4);
}

#[test]
fn mapping_longer_than_the_file_shows_its_growth() {
    let scratch = ScratchFile::of_len(4096);
    let region = Region::map(&scratch.open(), 1 << 40, Access::ReadWrite).unwrap();
    region.word(0).store(1, Relaxed);
    scratch.open().set_len(1 << 21).unwrap();
    region.populate_write((1 << 20) + 5, 1 << 16);
    // Half of it beyond the end: the rest is skipped, not fatal.
    region.populate_write((1 << 21) - 4096, 8192);
    region.populate_write(usize::MAX, usize::MAX);
    region.word((1 << 21) - 8).store(2, Relaxed);
    assert_eq!(region.word((1 << 20) + 8).load(Relaxed), 0);
}

#[test]
fn anonymous_region_is_shared_with_a_child() {
    let region = Region::anonymous(4096).unwrap();
    let child = fork(|| {
        region.word(8).store(9, Relaxed);
        true
    });
    assert!(succeeded(child));
    assert_eq!(region.word(8).load(Relaxed), 9);
}

#[test]
fn accesses_outside_panic() {
    let region = Region::anonymous(LEN).unwrap();
    assert!(!refused(|| region.word(LEN - 8).load(Relaxed)));
    assert!(!refused(|| region.word32(LEN - 4).load(Relaxed)));
    assert!(!refused(|| region.block::<4>(LEN - 32)[3].load(Relaxed)));
    assert!(!refused(|| region.slice(LEN - 16, 2)[1].load(Relaxed)));
    assert!(!refused(|| assert!(region.slice(LEN, 0).is_empty())));

    for off in [LEN, LEN - 4, 1, 4, LEN + 8, usize::MAX, usize::MAX - 7] {
        assert!(refused(|| region.word(off).load(Relaxed)), "word at {off}");
    }
    for off in [LEN, LEN - 2, 2, usize::MAX, usize::MAX - 3] {
        assert!(refused(|| region.word32(off).load(Relaxed)), "word32 at {off}");
    }
    for off in [LEN - 24, 4, usize::MAX - 7] {
        assert!(refused(|| region.block::<4>(off)[0].load(Relaxed)), "block at {off}");
    }
    for (off, words) in [
        (LEN - 8, 2),
        (LEN + 8, 0),
        (4, 1),
        (0, LEN / 8 + 1),
        (8, usize::MAX),
        (8, usize::MAX / 8),
        (0, 1 << 61),
    ] {
        assert!(refused(|| region.slice(off, words).len()), "slice {off} {words}");
    }
    assert!(refused(|| region.block::<4096>(0)[0].load(Relaxed)));
}

#[test]
fn impossible_lengths_are_errors() {
    let file = ScratchFile::of_len(4096).open();
    for len in [0, 4, 4097, usize::MAX - 7, isize::MAX as usize - 7] {
        assert!(Region::map(&file, len, Access::ReadWrite).is_err(), "{len}");
    }
    let scratch = ScratchFile::of_len(4096);
    let read_only = File::open(&scratch.path).unwrap();
    assert!(Region::map(&read_only, 4096, Access::ReadWrite).is_err());
}
