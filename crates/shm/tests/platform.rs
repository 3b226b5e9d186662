//! What the kernel tells: boot, clocks, file systems, file space, event descriptors.

mod process;

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use perilune_shm::platform::{
    allocate, boot_id, data_ranges, filesystem, monotonic_nanos, page_size, pid, punch_hole, random_u64,
    sleep, sync_data, thread_cpu_nanos, with_signals_blocked, EventFd, FileSystem,
};
use process::{fork, succeeded, ScratchFile};

#[test]
fn boot_id_is_stable_and_the_kernels() {
    let id = boot_id().unwrap();
    assert_eq!(id, boot_id().unwrap());
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digits, text.trim().replace('-', ""));
}

#[test]
fn random_numbers_differ_also_in_a_child() {
    let one = random_u64();
    assert_ne!(one, random_u64());
    let seen = random_u64();
    assert!(succeeded(fork(|| random_u64() != seen && random_u64() != one)));
    assert_eq!(pid(), std::process::id());
}

#[test]
fn clocks_advance() {
    let (wall, own) = (monotonic_nanos(), thread_cpu_nanos());
    sleep(Duration::from_millis(5));
    assert!(monotonic_nanos() - wall >= 5_000_000);
    assert!(thread_cpu_nanos() - own < 5_000_000, "sleeping took processor time");
}

#[test]
fn file_systems_are_named() {
    assert_eq!(filesystem(Path::new("/dev/shm")).unwrap(), FileSystem::Tmpfs);
    assert!(matches!(filesystem(Path::new("/proc")).unwrap(), FileSystem::Other(0x9FA0)));
    let missing = filesystem(Path::new("/dev/shm/perilune/is/not/here"));
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert!(filesystem(Path::new("a\0b")).is_err());
}

#[test]
fn allocation_keeps_data_and_takes_space() {
    let scratch = ScratchFile::of_len(0);
    let file = scratch.open();
    file.write_all_at(b"kept", 4096).unwrap();
    allocate(&file, 0, 1 << 20).unwrap();
    let stat = file.metadata().unwrap();
    assert_eq!(stat.len(), 1 << 20);
    assert!(stat.blocks() * 512 >= 1 << 20, "{} blocks", stat.blocks());
    let mut found = [0; 4];
    file.read_exact_at(&mut found, 4096).unwrap();
    assert_eq!(&found, b"kept");
    sync_data(&file).unwrap();

    punch_hole(&file, 0, 1 << 19).unwrap();
    let stat = file.metadata().unwrap();
    assert_eq!(stat.len(), 1 << 20);
    assert!(stat.blocks() * 512 < 1 << 20, "no space came back");
    file.read_exact_at(&mut found, 4096).unwrap();
    assert_eq!(found, [0; 4]);
    assert!(allocate(&file, u64::MAX, 1).is_err());
    assert!(allocate(&File::open(&scratch.path).unwrap(), 0, 1).is_err());
}

#[test]
fn data_ranges_skip_holes() {
    let scratch = ScratchFile::of_len(4 << 20);
    let file = scratch.open();
    assert_eq!(data_ranges(&file).unwrap(), []);
    let page = page_size() as u64;
    for off in [1 << 20, (4 << 20) - page] {
        file.write_all_at(&vec![1; page as usize], off).unwrap();
    }
    let ranges = data_ranges(&file).unwrap();
    assert_eq!(ranges, [(1 << 20, page), ((4 << 20) - page, page)]);
}

fn readable(event: &EventFd) -> bool {
    let mut poll = libc::pollfd { fd: event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one writable pollfd; timeout 0.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 && poll.revents & libc::POLLIN != 0 }
}

#[test]
fn event_is_readable_from_notify_to_clear() {
    let event = EventFd::new().unwrap();
    assert!(!readable(&event));
    event.clear().unwrap();
    event.notify().unwrap();
    event.notify().unwrap();
    assert!(readable(&event));
    event.clear().unwrap();
    assert!(!readable(&event));
}

#[test]
fn event_closed_by_the_program_is_left_alone() {
    let event = EventFd::new().unwrap();
    let victim = ScratchFile::of_len(0);
    let child = fork(|| {
        // SAFETY: in a forked child; the descriptor is the one under test.
        unsafe { libc::close(event.as_raw_fd()) };
        if event.notify().is_ok() {
            return false;
        }
        let file = victim.open();
        // SAFETY: takes no pointer; gives the victim the number of the event.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), event.as_raw_fd()) };
        event.notify().is_err() && event.clear().is_err()
    });
    assert!(succeeded(child));
    assert_eq!(victim.open().metadata().unwrap().len(), 0, "a stranger's file was written");
}

/// Whether the calling thread blocks a signal.
fn blocks(signal: i32) -> bool {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: a null new set only asks; the old one is filled before it is read.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), signal) == 1
    }
}

#[test]
fn a_thread_starts_with_only_self_inflicted_signals_open() {
    let outer = blocks(libc::SIGTERM);
    let thread = with_signals_blocked(|| {
        std::thread::spawn(|| {
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGPROF] {
                assert!(blocks(signal), "{signal} is open");
            }
            for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT] {
                assert!(!blocks(signal), "{signal} is blocked");
            }
        })
    });
    assert_eq!(blocks(libc::SIGTERM), outer, "the caller's mask is what it was");
    thread.join().unwrap();
    let panics =
        std::panic::catch_unwind(|| with_signals_blocked::<()>(|| panic!("as the start of a thread may")));
    assert!(panics.is_err() && blocks(libc::SIGTERM) == outer, "also after a panic");
}
