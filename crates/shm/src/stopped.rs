//! Whether a process is stopped: by a signal, by a debugger, or with the container it is in.
//!
//! For what users are told, and for how long a process that works for others is waited for; never for whether it lives
//! ([`crate::anchor`]). The kernel is asked by pid, which of another pid namespace means nothing here, or somebody else.

use std::fs;

/// Whether the process with this pid, as this one sees pids, is stopped. False also where that cannot be told.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    is_stopped_by_signal(pid) || is_frozen(pid)
}

/// State T or t: SIGSTOP and its kin, or a tracer.
fn is_stopped_by_signal(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name before the state may hold anything, parentheses included.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
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

    use super::is_stopped;

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
