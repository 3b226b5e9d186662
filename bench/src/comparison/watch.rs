//! A limit on the time of a play: when it is over, all its processes are killed.
//!
//! Invariants
//! - Only processes that were added are killed, never one that got the number of such a one later: the watch keeps
//!   the kernel's handles, not numbers.
//! - A watch that is dropped fires no more.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::subject::Result;

/// Kills processes unless it is dropped in time.
pub(crate) struct Watch {
    /// Set before the first is killed.
    pub(crate) fired: Arc<AtomicBool>,
    processes: Sender<OwnedFd>,
}

impl Watch {
    /// A watch that fires after so many seconds.
    pub(crate) fn new(seconds: f64) -> Watch {
        let (processes, added) = channel::<OwnedFd>();
        let fired = Arc::new(AtomicBool::new(false));
        let (mut watched, set) = (Vec::new(), Arc::clone(&fired));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        // It ends with the sender, which is the watch.
        std::thread::spawn(move || loop {
            match added.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(process) => watched.push(process),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    set.store(true, Ordering::SeqCst);
                    // Those that have ended by themselves cannot be killed any more, and need not be.
                    for process in &watched {
                        let _ = pidfd_send_signal(process, Signal::KILL);
                    }
                    let Ok(late) = added.recv() else { return };
                    watched = vec![late];
                }
            }
        });
        Watch { fired, processes }
    }

    /// Watches a process that has been started and not been waited for.
    ///
    /// # Errors
    /// The kernel has no handle for it.
    pub(crate) fn add(&self, process: u32) -> Result<()> {
        let process = Pid::from_raw(process as i32).ok_or("a process has the number 0")?;
        Ok(self.processes.send(pidfd_open(process, PidfdFlags::empty())?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_hangs_is_killed_and_one_that_ends_is_not() {
        let mut hung = Command::new("sleep").arg("1000").spawn().unwrap();
        let watch = Watch::new(0.05);
        watch.add(hung.id()).unwrap();
        assert!(!hung.wait().unwrap().success());
        assert!(watch.fired.load(Ordering::SeqCst));
        let mut quick = Command::new("true").spawn().unwrap();
        let watch = Watch::new(1_000.0);
        watch.add(quick.id()).unwrap();
        assert!(quick.wait().unwrap().success());
        assert!(!watch.fired.load(Ordering::SeqCst));
    }
}
