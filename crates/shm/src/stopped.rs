//! Whether a process is stopped, by a signal, by a debugger or with its container; and letting it go on.
//!
//! Problem: a process may be stopped at any instruction, also with pages latched. Whoever waits for it wants to say
//! so in the error, to give up in time, or to let it go on for a moment.
//!
//! Idea: the kernel tells. `/proc/PID/stat` has the state T or t, and a cgroup's `cgroup.events` the line `frozen
//! 1`.
//!
//! Example: after `kill -STOP 4711`, `is_stopped(4711)` and `can_go_on(4711)` are true. While `docker pause` holds
//! it, only the former is: SIGCONT would not help.
//!
//! Invariants
//! - A pid is a hint: in another pid namespace it names nobody, or a stranger. So a signal is sent only to a
//!   process that has mapped the given file, which is how it shows that it is one of ours.
//! - Whether a process lives is never asked here: [`crate::anchor`] tells that.

use std::fs;
use std::io;

/// Whether the process with this pid, as this one sees pids, is stopped. False also where that cannot be told.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    is_stopped_by_signal(pid) || is_frozen(pid)
}

/// State T or t: SIGSTOP and its kin, or a tracer.
fn is_stopped_by_signal(pid: u32) -> bool {
    matches!(state(pid), Some('T' | 't'))
}

/// Whether SIGCONT would let the process go on: a signal has stopped it, and neither a tracer nor its container
/// keeps it besides.
#[must_use]
pub fn can_go_on(pid: u32) -> bool {
    state(pid) == Some('T') && !is_frozen(pid)
}

/// The letter by which the kernel tells what a process does, if there is one.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state may hold anything, parentheses included.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Lets a stopped process go on (SIGCONT), if it has mapped the file with this device and inode.
///
/// # Errors
/// `PermissionDenied`: it is another user's. `NotFound`: there is none, or it has not mapped the file, as far as can be told.
pub fn let_go_on(pid: u32, device: u64, inode: u64) -> io::Result<()> {
    if !has_mapped(pid, device, inode)? {
        return Err(io::ErrorKind::NotFound.into());
    }
    send(pid, libc::SIGCONT)
}

/// Stops this process, all its threads, until somebody lets it go on.
///
/// # Errors
/// What `tgkill` says; a sandbox may forbid it.
pub fn stop_this_process() -> io::Result<()> {
    // NB: `raise` sends it to this thread, which therefore runs no further instruction. Had the process been sent it,
    // another thread could take it while this one runs on.
    // SAFETY: the call takes no pointer.
    match unsafe { libc::raise(libc::SIGSTOP) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn send(pid: u32, signal: libc::c_int) -> io::Result<()> {
    // NB: 0 and negative numbers mean groups of processes.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::NotFound)?;
    // SAFETY: the call takes no pointer. It goes to one process, which stops or goes on.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether one of a process's mappings is of this file.
fn has_mapped(pid: u32, device: u64, inode: u64) -> io::Result<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let wanted = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
    Ok(maps.lines().any(|line| {
        // Range, permissions, offset, device, inode, name.
        let mut fields = line.split_ascii_whitespace().skip(3);
        fields.next() == Some(&wanted) && fields.next().and_then(|field| field.parse().ok()) == Some(inode)
    }))
}

/// Whether its cgroup is frozen, as `docker pause` does it (version 2).
fn is_frozen(pid: u32) -> bool {
    let Ok(groups) = fs::read_to_string(format!("/proc/{pid}/cgroup")) else { return false };
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return false };
    let events = fs::read_to_string(format!("/sys/fs/cgroup/{group}/cgroup.events"));
    events.is_ok_and(|events| events.lines().any(|line| line == "frozen 1"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use std::os::unix::fs::MetadataExt;

    use super::{can_go_on, is_stopped, let_go_on};

    #[test]
    fn only_who_has_mapped_the_file_is_let_go_on() {
        let mut child =
            Command::new("sh").args(["-c", "kill -STOP $$; exit 7"]).stdin(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !can_go_on(child.id()) {
            assert!(Instant::now() < until, "it has not stopped");
            std::thread::yield_now();
        }
        let own = std::fs::metadata("/proc/self/exe").unwrap();
        assert!(let_go_on(child.id(), own.dev(), own.ino()).is_err(), "it runs another program");
        assert!(can_go_on(child.id()));
        let its = std::fs::metadata(format!("/proc/{}/exe", child.id())).unwrap();
        // A file system that layers others may tell mappings another device; then nobody is sent anything.
        match let_go_on(child.id(), its.dev(), its.ino()) {
            Ok(()) => assert_eq!(child.wait().unwrap().code(), Some(7)),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        assert!(let_go_on(child.id(), its.dev(), its.ino()).is_err(), "nobody");
        assert!(!can_go_on(std::process::id()));
    }

    #[test]
    fn a_stopped_process_is_told_from_one_that_sleeps() {
        // It stops itself, so that nobody has to guess when it has; its parent's kill ends it.
        let script = "kill -STOP $$; exec sleep 60";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !is_stopped(child.id()) {
            assert!(Instant::now() < until, "it has not stopped");
            std::thread::yield_now();
        }
        let kill = |signal: &str| {
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        };
        kill("-CONT");
        while is_stopped(child.id()) {
            assert!(Instant::now() < until, "it has not gone on");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(child.id()), "nobody is not stopped");
        assert!(!is_stopped(std::process::id()));
    }
}
