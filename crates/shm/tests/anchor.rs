//! The liveness anchor: it goes when its process goes, and not before.

mod process;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perilune_shm::anchor::{Anchor, Probe};
use perilune_shm::lockbyte;
use perilune_shm::region::Access;
use process::{directories, fork, role, say, succeeded, within, Helper, ScratchFile};

const BYTE: u64 = (1 << 62) + 17;

fn exclusive(path: &Path) -> Option<Anchor> {
    Anchor::acquire(path, BYTE, Access::ReadWrite, false).unwrap()
}

fn shared(path: &Path) -> Option<Anchor> {
    Anchor::acquire(path, BYTE, Access::ReadOnly, true).unwrap()
}

/// Closes all descriptors but standard input, output and error.
fn close_from_three() {
    // SAFETY: called in a single-threaded helper whose remaining descriptors all belong to the
    // code under test, which claims to bear this.
    let status = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    assert_eq!(status, 0, "close_range failed");
}

#[test]
fn helper_process() {
    let Some((role, path)) = role() else { return };
    match role.as_str() {
        "hold and close descriptors" => {
            let anchor = exclusive(&path).unwrap();
            close_from_three();
            say("ready");
            process::wait_for_end_of_input();
            drop(anchor);
        }
        "hold and leave a child" => {
            let _anchor = exclusive(&path).unwrap();
            let child = fork(|| {
                process::wait_for_end_of_input();
                true
            });
            say(&format!("child {child}"));
            process::wait_for_end_of_input();
        }
        "probe without descriptors" => probe_without_descriptors(&path),
        "fork against a thread" => fork_against_a_thread(&path),
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn anchors_of_one_process_conflict() {
    for directory in directories() {
        let file = ScratchFile::new(directory);
        let first = exclusive(&file.path).expect("nobody holds it");
        assert!(exclusive(&file.path).is_none());
        assert!(shared(&file.path).is_none());
        let other = Anchor::acquire(&file.path, BYTE + 1, Access::ReadWrite, false);
        assert!(other.unwrap().is_some(), "another byte was locked too");
        drop(first);

        let readers = [shared(&file.path).unwrap(), shared(&file.path).unwrap()];
        assert!(exclusive(&file.path).is_none());
        drop(readers);
        assert!(exclusive(&file.path).is_some());
    }
}

#[test]
fn exclusive_anchor_needs_write_access() {
    let file = ScratchFile::of_len(0);
    for access in [Access::ReadOnly, Access::Private] {
        let error = Anchor::acquire(&file.path, BYTE, access, false).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[test]
fn other_opens_see_the_anchor() {
    for directory in directories() {
        let file = ScratchFile::new(directory);
        let open = file.open();
        let read_only = File::open(&file.path).unwrap();
        let probe = Probe::new(&file.path).unwrap();
        for take in [exclusive, shared] {
            let anchor = take(&file.path).unwrap();
            assert!(lockbyte::holder_exists(&open, BYTE).unwrap());
            assert!(lockbyte::holder_exists(&read_only, BYTE).unwrap());
            assert!(probe.is_held(BYTE).unwrap());
            assert!(!probe.is_held(BYTE - 1).unwrap());
            assert!(!probe.is_held(BYTE + 1).unwrap());
            assert!(!lockbyte::try_exclusive(&open, BYTE).unwrap());
            drop(anchor);
            assert!(!lockbyte::holder_exists(&open, BYTE).unwrap());
            assert!(!probe.is_held(BYTE).unwrap());
        }
    }
}

#[test]
fn anchor_survives_closefrom() {
    for directory in directories() {
        let file = ScratchFile::new(directory);
        let mut holder = Helper::start("hold and close descriptors", &file.path);
        holder.expect("ready");
        assert!(exclusive(&file.path).is_none(), "closefrom took the lock");
        assert!(Probe::new(&file.path).unwrap().is_held(BYTE).unwrap());
        assert!(holder.finish().success());
        assert!(exclusive(&file.path).is_some());
    }
}

#[test]
fn kill_frees_the_anchor_though_a_child_lives() {
    for directory in directories() {
        let file = ScratchFile::new(directory);
        let probe = Probe::new(&file.path).unwrap();
        let mut holder = Helper::start("hold and leave a child", &file.path);
        let child: libc::pid_t = holder.expect("child").parse().unwrap();
        assert!(probe.is_held(BYTE).unwrap());
        holder.kill();
        let freed = within(Duration::from_secs(1), || !probe.is_held(BYTE).unwrap());
        assert!(freed, "the lock outlived its process by a second");
        assert!(exclusive(&file.path).is_some());
        // SAFETY: signal 0 only asks; the child is not reaped before `finish` ends its input.
        let lives = unsafe { libc::kill(child, 0) } == 0;
        assert!(lives, "the child ended, so the test shows nothing");
        holder.finish();
    }
}

/// In the child the address is free, so the kernel may give it to something else.
#[test]
fn child_that_drops_an_anchor_touches_nothing() {
    let file = ScratchFile::of_len(0);
    let anchor = exclusive(&file.path).unwrap();
    let address = mapped_at(&file.path);
    let mut copy = Some(anchor);
    let child = fork(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: NOREPLACE leaves what exists alone; the page is this child's own.
        let page = unsafe { libc::mmap(address as _, 4096, libc::PROT_READ, flags, -1, 0) };
        drop(copy.take());
        let mut resident = 0_u8;
        // SAFETY: one page, one byte of answer; an unmapped page is an error.
        let lives = unsafe { libc::mincore(page, 4096, &raw mut resident) } == 0;
        page as usize == address && lives && exclusive(&file.path).is_none()
    });
    assert!(succeeded(child), "the child unmapped a stranger's page, or took the lock away");
    assert!(exclusive(&file.path).is_none());
    drop(copy);
    assert!(exclusive(&file.path).is_some());
}

/// Where the only mapping of the file begins.
fn mapped_at(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path = path.to_str().unwrap();
    let line = maps.lines().find(|line| line.ends_with(path)).expect("the file is not mapped");
    usize::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()
}

#[test]
fn probe_survives_closefrom_and_reused_numbers() {
    let file = ScratchFile::of_len(0);
    let _anchor = exclusive(&file.path).unwrap();
    let helper = Helper::start("probe without descriptors", &file.path);
    assert!(helper.finish().success());
}

fn probe_without_descriptors(path: &Path) {
    let probe = Probe::new(path).unwrap();
    assert!(probe.is_held(BYTE).unwrap());
    close_from_three();
    assert!(probe.is_held(BYTE).unwrap(), "after closefrom");
    close_from_three();
    // Takes the number the probe had. A lock on it would be no lock on our file.
    let stranger = File::open("/dev/null").unwrap();
    assert!(probe.is_held(BYTE).unwrap(), "after the number was reused");
    assert!(!probe.is_held(BYTE + 1).unwrap());
    close_from_three();
    let again = File::open("/dev/null").unwrap();
    assert_eq!(stranger.as_raw_fd(), again.as_raw_fd());
    drop(probe);
    assert!(again.metadata().is_ok(), "the probe closed a stranger's file");
    std::mem::forget(stranger);
}

#[test]
fn probe_refuses_a_replaced_file() {
    let file = ScratchFile::of_len(0);
    let probe = Probe::new(&file.path).unwrap();
    // Still open: the probe answers for the file it knows.
    std::fs::remove_file(&file.path).unwrap();
    assert!(!probe.is_held(BYTE).unwrap());
    File::create(&file.path).unwrap();
    let child = fork(|| {
        // SAFETY: in a forked child, which does nothing else but ask the probe.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        let answer = probe.is_held(BYTE);
        matches!(answer, Err(error) if error.kind() == std::io::ErrorKind::NotFound)
    });
    assert!(succeeded(child), "it answered for another file");
}

/// A child forked while another thread is between open and close must not get the descriptor.
#[test]
fn forks_in_other_threads_do_not_copy_the_lock() {
    let file = ScratchFile::of_len(0);
    let helper = Helper::start("fork against a thread", &file.path);
    assert!(helper.finish().success());
}

fn fork_against_a_thread(path: &Path) {
    const FORKS: usize = 200;
    std::thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then the thread ends.
        let going_on = Arc::new(());
        let is_going_on = Arc::downgrade(&going_on);
        let anchors = scope.spawn(move || {
            let mut count = 0_u64;
            while is_going_on.strong_count() > 0 {
                // None only if a child has got a copy of the lock.
                let anchor = exclusive(path);
                assert!(anchor.is_some(), "a child holds the lock");
                count += 1;
            }
            count
        });
        let file = File::open(path).unwrap();
        for _ in 0..FORKS {
            // The child asks before it exits, which would close its copy.
            let child = fork(|| open_copies(&file) == 1);
            assert!(succeeded(child), "a child got the descriptor");
        }
        drop(going_on);
        assert!(anchors.join().unwrap() > 0);
    });
}

/// std spawns by `vfork`, which runs no fork handlers: the child had all descriptors until its
/// exec, and with one of them a lock that its owner had just dropped.
#[test]
fn spawns_in_other_threads_do_not_keep_the_lock() {
    let file = ScratchFile::of_len(0);
    std::thread::scope(|scope| {
        let path = &file.path;
        let going_on = Arc::new(());
        let is_going_on = Arc::downgrade(&going_on);
        let anchors = scope.spawn(move || {
            let mut kept = 0;
            while is_going_on.strong_count() > 0 {
                kept += u32::from(exclusive(path).is_none());
            }
            kept
        });
        for _ in 0..200 {
            std::process::Command::new("true").status().unwrap();
        }
        drop(going_on);
        assert_eq!(anchors.join().unwrap(), 0, "spawned children kept the lock for a while");
    });
}

/// How many of the first descriptors are `file`. Allocates nothing.
fn open_copies(file: &File) -> usize {
    let wanted = inode(file.as_raw_fd());
    (0..64).filter(|&fd| inode(fd) == wanted).count()
}

fn inode(fd: libc::c_int) -> Option<(u64, u64)> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `stat` is writable; it is read only if fstat has filled it.
    unsafe {
        if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return None;
        }
        let stat = stat.assume_init();
        Some((stat.st_dev, stat.st_ino))
    }
}
