//! What the kernel tells and does: identity of the boot, clocks, file systems, file space.
//!
//! Thin, safe wrappers, one system call each, retried when a signal interrupts it. No policy:
//! which file systems are refused, or what follows a failed sync, is the engine's business.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

pub use crate::event::EventFd;
pub use crate::files::{
    allocate, data_ranges, file_limit, filesystem, link, punch_hole, set_len, space, sync_data, FileSystem,
    Space,
};

/// The random id of the running boot.
///
/// # Errors
///
/// If `/proc` is not mounted or holds no id: what reading says, or `InvalidData`.
pub fn boot_id() -> io::Result<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    parse_uuid(text.trim()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/sys/kernel/random/boot_id holds no id but {text:?}: mount /proc"),
        )
    })
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u32> =
        text.chars().filter(|&c| c != '-').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let mut id = [0; 16];
    if digits.len() != 2 * id.len() {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] << 4 | pair[1]) as u8;
    }
    Some(id)
}

/// A number from the kernel's random generator, for ids and seeds.
pub fn random_u64() -> u64 {
    let mut number = 0_u64;
    loop {
        // SAFETY: `number` is writable for its eight bytes.
        let filled = unsafe { libc::getrandom((&raw mut number).cast(), size_of::<u64>(), 0) };
        if filled == size_of::<u64>() as isize {
            return number;
        }
        if filled >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    // A sandbox without the call. Process and time, so that a forked child draws another one.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(pid());
    hasher.write_u64(monotonic_nanos());
    hasher.finish()
}

/// The process id. For display only: whether a process lives is for [`crate::anchor`] to say.
pub fn pid() -> u32 {
    std::process::id()
}

/// Nanoseconds of the monotonic clock, the same for all processes of one boot.
pub fn monotonic_nanos() -> u64 {
    clock_nanos(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time the calling thread has used.
pub fn thread_cpu_nanos() -> u64 {
    clock_nanos(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable timespec. The two clocks exist on every Linux.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(status, 0, "clock {clock} is missing");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The memory that this process may have, in bytes, as it was at the first call: that of the machine, or of
/// the cgroup with the least of those it is in. 0 if the system does not say.
pub fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        // SAFETY: the call takes no pointer.
        let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
        let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(page_size() as u64);
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        memory_limit(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |limit| limit.min(machine))
    })
}

/// The lowest limit of the memory cgroups that `groups` (the text of /proc/PID/cgroup) names, and of those
/// above them; None if there is none.
fn memory_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, name) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // NB: inside a container the path may be one that only its host sees; its root is ours then.
        let path = root.join(path.trim_start_matches('/'));
        let within = path.ancestors().take_while(|path| path.starts_with(&root));
        within.filter_map(|path| std::fs::read_to_string(path.join(name)).ok()?.trim().parse().ok()).min()
    });
    limits.min()
}

/// The size of a hardware page in bytes.
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    let mut size = SIZE.load(Ordering::Relaxed);
    if size == 0 {
        // SAFETY: sysconf takes no pointer.
        let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        size = usize::try_from(answer).unwrap_or(4096).max(4096);
        SIZE.store(size, Ordering::Relaxed);
    }
    size
}

/// Tells the processor that the caller spins (x86 `pause`, arm64 `isb`).
#[inline]
pub fn spin_pause() {
    std::hint::spin_loop();
}

/// Lets other threads run on this processor.
pub fn yield_now() {
    std::thread::yield_now();
}

/// Sleeps for `time`, through signals.
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Runs `start`, which starts a maintenance thread, so that this thread never runs a signal handler of the host program.
///
/// A thread begins with the signal mask of the one that starts it. So the signals are blocked here, before it exists, and
/// unblocked when `start` returns: a thread that blocked them itself could get one before it came to that. A signal to the
/// calling thread waits meanwhile.
///
/// Signals a thread causes itself (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT) stay
/// open, so that crash reporters work.
pub fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    /// Brings the mask back also when `start` panics.
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the set is what the system has filled; a null old set is allowed.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
    let own =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is writable and filled by sigfillset before anything reads it; the signal numbers are valid. With a
    // valid way to change it and a valid set the call cannot fail, so `before` is filled. Blocking signals in our own
    // thread breaks no memory.
    let _before = unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in own {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
        Before(before.assume_init())
    };
    start()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_all_cgroups_counts() {
        let root = std::env::temp_dir().join(format!("perilune-shm-cgroup-{}", pid()));
        let limit = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        limit("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        limit("memory/a/memory.limit_in_bytes", "536870912\n");
        limit("one/memory.max", "max\n");
        limit("one/two/memory.max", "4096\n");
        let old = "5:cpu:/x\n4:memory:/a/b\n0::/\n";
        assert_eq!(memory_limit(old, &root), Some(536_870_912));
        assert_eq!(memory_limit("0::/one/two", &root), Some(4096));
        assert_eq!(memory_limit("0::/one", &root), None);
        limit("memory/memory.limit_in_bytes", "1000\n");
        assert_eq!(memory_limit("4:memory:/seen/by/the/host", &root), Some(1000));
        for nothing in ["", "garbage", "4:memory", "1:cpu:/a"] {
            assert_eq!(memory_limit(nothing, &root), None, "{nothing}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn ids_are_parsed_or_refused() {
        let id = parse_uuid("00112233-4455-6677-8899-aabbccddeeff").unwrap();
        assert_eq!(id[..4], [0x00, 0x11, 0x22, 0x33]);
        assert_eq!(id[15], 0xff);
        for wrong in ["", "0011", "00112233-4455-6677-8899-aabbccddeefg", &"0".repeat(34)] {
            assert_eq!(parse_uuid(wrong), None, "{wrong}");
        }
    }
}
