//! Futexes between two processes that map one file.

mod process;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use perilune_shm::futex::{wait, wake, Wait};
use perilune_shm::region::{Access, Region};
use process::{role, within, Helper, ScratchFile};

const LEN: usize = 8192;
const BELL: usize = 4100;
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn helper_process() {
    let Some((_, path)) = role() else { return };
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path);
    let region = Region::map(&file.unwrap(), LEN, Access::ReadWrite).unwrap();
    assert_eq!(wait(region.word32(BELL), 0, Some(LIMIT)), Wait::Woken);
    region.word32(BELL + 4).store(7, Ordering::Release);
}

#[test]
fn sleeper_in_another_process_is_woken() {
    let scratch = ScratchFile::of_len(LEN as u64);
    let region = Region::map(&scratch.open(), LEN, Access::ReadWrite).unwrap();
    let helper = Helper::start("sleep", &scratch.path);
    // The value stays 0, so that only a wake ends its sleep.
    let woken = within(LIMIT, || wake(region.word32(BELL), u32::MAX) == 1);
    assert!(woken, "nobody slept on the word");
    assert!(helper.finish().success());
    assert_eq!(region.word32(BELL + 4).load(Ordering::Acquire), 7);
}

#[test]
fn mismatch_and_timeout_are_told_apart() {
    let region = Region::anonymous(4096).unwrap();
    let word = region.word32(0);
    word.store(5, Ordering::Relaxed);
    assert_eq!(wait(word, 4, None), Wait::Mismatch);
    let limit = Duration::from_millis(3);
    let start = Instant::now();
    assert_eq!(wait(word, 5, Some(limit)), Wait::TimedOut);
    assert!(start.elapsed() >= limit);
    assert_eq!(wake(word, 1), 0);
}
