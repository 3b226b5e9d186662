//! A forked child that is run one instruction at a time. The only unsafe code of the instrument.
//!
//! Invariants
//! - The parent has one thread, so that the child has all of its memory and no lock is held in it.
//! - The child stops itself before and after the operation; between these stops it moves only when
//!   the parent says so. It ends when it is dropped.
//!
//! Deliberately absent: 64-bit ARM's exclusive pairs. The engine's compare-and-swap is one instruction
//! where the processor has it (LSE); where it has not, single steps make its loop endless.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::ptr;

/// The registers of a child.
pub(crate) type Registers = libc::user_regs_struct;

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// One instruction has been executed.
    Instruction,
    /// The operation is over, and the child stands behind it.
    Over,
    /// The child has ended, or met a signal: the operation failed.
    Broken(i32),
}

/// A child under control.
pub(crate) struct Tracee {
    pid: libc::pid_t,
    /// It has ended and was waited for.
    is_gone: bool,
}

impl Tracee {
    /// Forks a child that is to do `operation`, and lets it come to its begin.
    pub(crate) fn start(operation: impl FnOnce()) -> io::Result<Tracee> {
        Tracee::start_with(|| operation)
    }

    /// Forks a child that is to do what `prepare` answers, which it runs before its begin, and lets it come there.
    pub(crate) fn start_with<O: FnOnce()>(prepare: impl FnOnce() -> O) -> io::Result<Tracee> {
        // SAFETY: the process has one thread, so the child may use everything it has inherited.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            run(prepare);
        }
        let mut tracee = Tracee { pid, is_gone: false };
        match tracee.wait()? {
            Step::Over => Ok(tracee),
            other => Err(io::Error::other(format!("the child did not come to its begin: {other:?}"))),
        }
    }

    /// Waits until the child stands still.
    fn wait(&mut self) -> io::Result<Step> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a valid place for the answer.
            let pid = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
            if pid == self.pid {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.is_gone = !libc::WIFSTOPPED(status);
        Ok(match libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status)) {
            Some(libc::SIGTRAP) => Step::Instruction,
            Some(libc::SIGSTOP) => Step::Over,
            Some(signal) => Step::Broken(signal),
            None => Step::Broken(status),
        })
    }

    /// Executes one instruction.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        // SAFETY: the child stands still and is ours; the request takes no address.
        let done = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        self.wait()
    }

    /// The child's number.
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// What the child's registers hold.
    pub(crate) fn registers(&self) -> Registers {
        let mut registers = std::mem::MaybeUninit::<Registers>::zeroed();
        let mut place =
            libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<Registers>() };
        // SAFETY: the child stands still; the kernel writes at most `iov_len` bytes to `registers`,
        // which is plain words, valid when zero.
        unsafe {
            libc::ptrace(libc::PTRACE_GETREGSET, self.pid, 1, ptr::from_mut(&mut place));
            registers.assume_init()
        }
    }

    /// Where the child stands, as an address in this program's own memory.
    pub(crate) fn address(&self) -> u64 {
        let registers = self.registers();
        #[cfg(target_arch = "x86_64")]
        return registers.rip;
        #[cfg(target_arch = "aarch64")]
        return registers.pc;
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        // SAFETY: the child is ours and has not been waited for to its end, so its number is its own.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), libc::__WALL);
        }
    }
}

/// The child's life.
fn run<O: FnOnce()>(prepare: impl FnOnce() -> O) -> ! {
    let prepared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(prepare));
    // SAFETY: none of the calls takes an address. The child ends with its parent, and without running
    // any of its parent's clean-up.
    let operation = unsafe {
        let Ok(operation) = prepared else { libc::_exit(2) };
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
        operation
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(operation));
    // SAFETY: none of the calls takes an address, and the child ends without its parent's clean-up.
    unsafe {
        if outcome.is_ok() {
            libc::raise(libc::SIGSTOP);
        }
        libc::_exit(outcome.map_or(1, |()| 0));
    }
}

/// Runs `body` in a child and answers what it has written; an error when the child has not lived to
/// its end. A bug that ends the process ends only the child.
pub(crate) fn apart(body: impl FnOnce() -> String) -> Result<String, String> {
    let failed = |what: &str| format!("{what}: {}", io::Error::last_os_error());
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(failed("pipe"));
    }
    // SAFETY: the two descriptors are new and have no other owner.
    let (reading, writing) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    // SAFETY: the process has one thread, so the child may use everything it has inherited.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(failed("fork"));
    }
    if pid == 0 {
        let written = (&writing).write_all(body().as_bytes());
        // SAFETY: takes no address. None of the parent's clean-up is run.
        unsafe { libc::_exit(written.map_or(1, |()| 0)) };
    }
    drop(writing);
    let mut text = String::new();
    let read = (&reading).read_to_string(&mut text);
    let mut child = Tracee { pid, is_gone: false };
    match child.wait().map_err(|error| format!("wait: {error}"))? {
        Step::Broken(0) => read.map(|_| text).map_err(|error| format!("read: {error}")),
        Step::Broken(status) if libc::WIFSIGNALED(status) => {
            Err(format!("a survivor died of signal {}", libc::WTERMSIG(status)))
        }
        other => Err(format!("a survivor did not come to its end: {other:?}")),
    }
}

/// Keeps this process, and children forked later, on one processor: steps change hands faster there.
pub(crate) fn stay_on_one_processor() {
    // SAFETY: the set is plain bits, valid when zero, and the processor's number lies in it.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
        let processor = libc::sched_getcpu();
        if processor >= 0 {
            libc::CPU_SET(processor as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

/// Ends this process when it has not come on for so many seconds.
pub(crate) fn expect_progress(seconds: u32) {
    // SAFETY: takes no address; the signal's default action ends the process.
    unsafe {
        libc::alarm(seconds);
    }
}
