//! Byte locks: who conflicts with whom.

mod process;

use std::fs::File;

use perilune_shm::lockbyte::{
    exclusive_blocking, holder_exists, shared_blocking, try_exclusive, try_shared, unlock,
};
use process::ScratchFile;

const BYTE: u64 = 1 << 62;

#[test]
fn opens_of_one_process_conflict() {
    let scratch = ScratchFile::of_len(0);
    let (first, second) = (scratch.open(), scratch.open());
    assert!(try_exclusive(&first, BYTE).unwrap());
    assert!(try_exclusive(&first, BYTE).unwrap(), "its own lock stood in the way");
    assert!(!holder_exists(&first, BYTE).unwrap(), "it saw its own lock");
    assert!(holder_exists(&second, BYTE).unwrap());
    assert!(!try_exclusive(&second, BYTE).unwrap());
    assert!(!try_shared(&second, BYTE).unwrap());
    assert!(try_exclusive(&second, BYTE + 1).unwrap());

    unlock(&first, BYTE).unwrap();
    assert!(!holder_exists(&second, BYTE).unwrap());
    assert!(try_shared(&second, BYTE).unwrap());
    assert!(try_shared(&first, BYTE).unwrap());
    assert!(holder_exists(&first, BYTE).unwrap());
    assert!(!try_exclusive(&first, BYTE).unwrap());
    drop(second);
    assert!(try_exclusive(&first, BYTE).unwrap());
}

#[test]
fn blocking_lock_waits_for_its_turn() {
    let scratch = ScratchFile::of_len(0);
    for block in [exclusive_blocking, shared_blocking] {
        let (holder, waiter) = (scratch.open(), scratch.open());
        assert!(try_exclusive(&holder, BYTE).unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| block(&waiter, BYTE).unwrap());
            unlock(&holder, BYTE).unwrap();
            waiting.join().unwrap();
            assert!(!try_exclusive(&holder, BYTE).unwrap(), "the waiter has no lock");
        });
    }
}

#[test]
fn misuse_is_an_error() {
    let scratch = ScratchFile::of_len(0);
    let read_only = File::open(&scratch.path).unwrap();
    assert!(try_exclusive(&read_only, BYTE).is_err());
    assert!(try_shared(&read_only, BYTE).unwrap());
    let last = i64::MAX as u64 - 1;
    assert!(try_shared(&read_only, last).unwrap());
    for beyond in [last + 1, 1 << 63, u64::MAX] {
        let error = try_shared(&read_only, beyond).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}
