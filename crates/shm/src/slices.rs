//! Asking the scheduler to let a thread run soon, for little at a time.
//!
//! Problem: a thread that wakes every 25 ms to flush the log has little to do, but on a busy machine it may wait
//! for milliseconds until threads that compute have used up their slice. What it should have flushed is not safe
//! meanwhile.
//!
//! Idea: from Linux 6.12 on a thread may ask for a shorter slice (`sched_setattr`), and the kernel runs such a
//! thread earlier. Its share of the processor stays the same, so nothing is taken from others and no privilege is
//! needed. Older kernels ignore the request.
//!
//! Deliberately absent: priorities, real-time policies; which threads ask (the engine's `maintenance`).

use std::mem::size_of;

/// Nanoseconds; the shortest that the kernel grants is 100,000.
const SHORT: u64 = 200_000;

/// `struct sched_attr` as of Linux 3.14.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of ordinary threads: the slice; 0 for the kernel's own.
    runtime: u64,
    deadline: u64,
    period: u64,
}

const _: () = assert!(size_of::<Attributes>() == 48);

fn of_this_thread() -> Option<Attributes> {
    let mut found = Attributes::default();
    let room: *mut Attributes = &raw mut found;
    // SAFETY: the kernel writes at most the size given, which is that of `found`, whose fields take any bits.
    let status =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0_usize, room, size_of::<Attributes>(), 0_usize) };
    (status == 0).then_some(found)
}

/// Asks for short slices for the calling thread; false where that is refused, or the thread is no ordinary one:
/// then it runs as it did.
pub fn ask_for_short_slices_in_this_thread() -> bool {
    let Some(found) = of_this_thread().filter(|found| found.policy == libc::SCHED_OTHER as u32) else {
        return false;
    };
    let wanted = Attributes { size: size_of::<Attributes>() as u32, runtime: SHORT, ..found };
    let wanted: *const Attributes = &raw const wanted;
    // SAFETY: the kernel reads as many bytes as `size` says, which `wanted` has; it keeps no pointer to them.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0_usize, wanted, 0_usize) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_become_short_and_nothing_else_changes() {
        let changed = std::thread::spawn(|| {
            let before = of_this_thread().unwrap();
            assert!(ask_for_short_slices_in_this_thread());
            (before, of_this_thread().unwrap())
        });
        let (before, after) = changed.join().unwrap();
        assert_eq!((after.policy, after.nice, after.flags), (before.policy, before.nice, before.flags));
        // Before Linux 6.12 it stays 0.
        assert!([0, SHORT].contains(&after.runtime), "{after:?}");
        assert_ne!(of_this_thread().unwrap().runtime, SHORT, "only the thread that asked");
    }
}
