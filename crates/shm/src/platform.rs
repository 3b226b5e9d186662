//! What the kernel tells and does: identity of the boot, clocks, file systems, file space.
//!
//! Thin, safe wrappers, one system call each, retried when a signal interrupts it. No policy:
//! which file systems are refused, or what follows a failed sync, is the engine's business.

use std::collections::hash_map::RandomState;
use std::ffi::CString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

pub use crate::event::EventFd;

/// The kind of file system a path lies on, as `statfs` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, ext3 or ext4.
    Ext,
    /// XFS.
    Xfs,
    /// tmpfs, e.g. `/dev/shm`.
    Tmpfs,
    /// overlayfs: mappings of a file copied up later may show the old one.
    Overlay,
    /// btrfs.
    Btrfs,
    /// OpenZFS.
    Zfs,
    /// NFS.
    Nfs,
    /// Any FUSE file system.
    Fuse,
    /// 9p.
    NineP,
    /// Another one, by its magic number (`f_type`).
    Other(i64),
}

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

/// The file system `path` lies on.
///
/// # Errors
///
/// What `statfs` says, e.g. `NotFound`; `InvalidInput` if the path holds a zero byte.
pub fn filesystem(path: &Path) -> io::Result<FileSystem> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `path` ends in a zero byte, `stat` is writable for its type.
    retry(|| unsafe { libc::statfs(path.as_ptr(), stat.as_mut_ptr()) })?;
    // SAFETY: statfs succeeded, so it has filled the struct.
    let stat = unsafe { stat.assume_init() };
    Ok(named(stat.f_type))
}

fn named(magic: i64) -> FileSystem {
    match magic {
        0xEF53 => FileSystem::Ext,
        0x5846_5342 => FileSystem::Xfs,
        0x0102_1994 => FileSystem::Tmpfs,
        0x794C_7630 => FileSystem::Overlay,
        0x9123_683E => FileSystem::Btrfs,
        0x2FC1_2FC1 => FileSystem::Zfs,
        0x6969 => FileSystem::Nfs,
        0x6573_5546 => FileSystem::Fuse,
        0x0102_1997 => FileSystem::NineP,
        other => FileSystem::Other(other),
    }
}

/// Allocates disk space for `len` bytes from `off` and lengthens the file if needed.
///
/// Data stays, holes and the new end read as zeros; later writes there cannot run out of space.
/// Where the file system cannot (`EOPNOTSUPP`), zeros are written into the holes instead: the
/// caller must not let others write there meanwhile.
///
/// # Errors
///
/// `StorageFull` and what else `fallocate` says; `FileTooLarge` (`EFBIG`) behind [`file_limit`]. The length may then
/// have grown in part.
pub fn allocate(file: &File, off: u64, len: u64) -> io::Result<()> {
    longer_within_limit(file, off.saturating_add(len))?;
    match fallocate(file, 0, off, len) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => fill_holes(file, off, len),
        done => done,
    }
}

/// Makes a file `len` bytes long, without allocating space.
///
/// # Errors
///
/// What `ftruncate` says; `FileTooLarge` (`EFBIG`) behind [`file_limit`].
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    longer_within_limit(file, len)?;
    file.set_len(len)
}

/// The offset from which on this process may write into no file (`ulimit -f`); `u64::MAX`: there is none.
#[must_use]
pub fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a writable rlimit.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    match status {
        0 if limit.rlim_cur != libc::RLIM_INFINITY => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// Refuses to make a file longer than [`file_limit`]: the kernel answers that with SIGXFSZ, which ends a program that
/// does not expect it. One that others have made longer stays as long.
fn longer_within_limit(file: &File, end: u64) -> io::Result<()> {
    if end > file_limit() && end > file.metadata()?.len() {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

/// Gives the disk space of `len` bytes from `off` back; they read as zeros, the length stays.
///
/// # Errors
///
/// `Unsupported` (`EOPNOTSUPP`) on a file system that cannot, and what else `fallocate` says.
pub fn punch_hole(file: &File, off: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, off, len)
}

fn fallocate(file: &File, mode: libc::c_int, off: u64, len: u64) -> io::Result<()> {
    let (off, len) = (file_offset(off)?, file_offset(len)?);
    // SAFETY: the call takes no pointer.
    retry(|| unsafe { libc::fallocate(file.as_raw_fd(), mode, off, len) })
}

/// Writes zeros wherever `len` bytes from `off` hold no data yet.
fn fill_holes(file: &File, off: u64, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let end = file_offset(off)?.checked_add(file_offset(len)?).ok_or(io::ErrorKind::InvalidInput)? as u64;
    let mut position = off;
    while position < end {
        // Up to here there is data; from `hole` to `data` there is none.
        let hole = seek(file, position, libc::SEEK_HOLE)?.unwrap_or(position);
        let data = seek(file, hole.min(end), libc::SEEK_DATA)?.unwrap_or(end);
        let stop = data.min(end);
        position = hole;
        while position < stop {
            let count = (stop - position).min(ZEROS.len() as u64);
            if position + count > file_limit() {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
            file.write_all_at(&ZEROS[..count as usize], position)?;
            position += count;
        }
        position = position.max(stop);
    }
    Ok(())
}

/// The first offset of a hole or of data at or after `from`; `None` if `from` is past the end, or
/// no data follows.
fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: the call takes no pointer. It moves the file position, which nobody uses: all reads
    // and writes name their offset.
    let found = unsafe { libc::lseek(file.as_raw_fd(), file_offset(from)?, whence) };
    if let Ok(found) = u64::try_from(found) {
        return Ok(Some(found));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENXIO) => Ok(None),
        _ => Err(error),
    }
}

/// The ranges of the file that hold data, as (offset, length), in order. Holes read as zeros.
///
/// # Errors
///
/// What `lseek` says.
pub fn data_ranges(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut position = 0;
    while let Some(data) = seek(file, position, libc::SEEK_DATA)? {
        // A hole always follows: the end of the file counts as one, unless it was just cut.
        let Some(hole) = seek(file, data, libc::SEEK_HOLE)? else {
            break;
        };
        ranges.push((data, hole - data));
        position = hole;
    }
    Ok(ranges)
}

/// Writes the data of the file, also what was stored through mappings, to the disk.
///
/// # Errors
///
/// What `fdatasync` says. Whether data is on disk is then unknown, and a second call that
/// succeeds does not change that: stop writing.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
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

/// Keeps the host program's signal handlers off the calling thread, for maintenance threads.
///
/// Signals a thread causes itself (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT) stay
/// open, so that crash reporters work.
pub fn block_all_signals_in_this_thread() {
    let own =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is writable and filled by sigfillset before anything reads it; the signal
    // numbers are valid; a null old set is allowed. Blocking signals in our own thread breaks no
    // memory.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in own {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

fn file_offset(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} lies beyond the largest file offset"))
    })
}

/// Repeats a call that returns 0 or -1 while signals interrupt it.
fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<()> {
    loop {
        if call() == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Gives the open file `file`, which was made under the name `made`, another name, which none has.
///
/// Not what `made` leads to by now: it may be another's.
///
/// # Errors
///
/// `AlreadyExists` if there is anything at `to`; `NotFound` if the file has lost its last name; what `linkat` says.
pub fn link(file: &File, made: &Path, to: &Path) -> io::Result<()> {
    if !Path::new("/proc/self/fd").exists() {
        return std::fs::hard_link(made, to);
    }
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let (at, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both paths are C strings that live until the call has returned.
    match unsafe { libc::linkat(at, from.as_ptr(), at, to.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fs::{remove_file, OpenOptions};

    /// The name under which a file was made is another's by now: that one must not get its new name.
    #[test]
    fn a_file_is_linked_itself_and_not_what_has_its_name() {
        let path = |name: &str| std::env::temp_dir().join(format!("perilune-shm-{name}-{}", pid()));
        let (made, moved, to) = (path("made"), path("moved"), path("to"));
        let file = OpenOptions::new().write(true).create_new(true).open(&made).unwrap();
        file.write_all_at(b"ours", 0).unwrap();
        std::fs::rename(&made, &moved).unwrap();
        std::fs::write(&made, b"another's").unwrap();
        link(&file, &made, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"ours");
        assert_eq!(link(&file, &made, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        for path in [&to, &moved] {
            remove_file(path).unwrap();
        }
        assert_eq!(link(&file, &made, &to).unwrap_err().kind(), io::ErrorKind::NotFound);
        remove_file(&made).unwrap();
    }

    /// What `allocate` does without `fallocate`, which the test machine's file systems have.
    #[test]
    fn holes_are_filled_around_data() {
        let path = std::env::temp_dir().join(format!("perilune-shm-holes-{}", pid()));
        let options = OpenOptions::new().read(true).write(true).create_new(true).clone();
        let file = options.open(&path).unwrap();
        remove_file(&path).unwrap();
        let data = vec![7_u8; 10_000];
        file.write_all_at(&data, 300_000).unwrap();
        file.set_len(1 << 20).unwrap();
        fill_holes(&file, 4096, (2 << 20) - 4096).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 << 20);
        let ranges = data_ranges(&file).unwrap();
        assert_eq!(ranges, [(4096, (2 << 20) - 4096)], "holes are left");
        let mut found = vec![1_u8; 2 << 20];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found[300_000..310_000], data);
        assert!(found[..300_000].iter().chain(&found[310_000..]).all(|&byte| byte == 0));
        // Again: nothing to fill, nothing lost.
        fill_holes(&file, 0, 2 << 20).unwrap();
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found[300_000..310_000], data);
    }

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
