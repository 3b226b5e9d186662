//! Noticing `fork`, and keeping it out of short sections.
//!
//! A forked child is a new process to the database: it has no slot, no locks and no transaction.
//! [`ForkMark`] tells it so for the price of one load, without `getpid` and without handlers: its
//! word lies in a page the kernel empties in the child (`MADV_WIPEONFORK`).
//!
//! [`hold_off`] delays forks by other threads while a mapping or descriptor exists that a child must not
//! inherit. Its lock lies in the same page, so a child always finds it free.
//!
//! Invariants:
//! - The token is nonzero, drawn at random and never drawn again by a descendant.
//! - All `pthread_atfork` handlers are idempotent: registering them twice is harmless.
//!
//! Where the kernel lacks `MADV_WIPEONFORK` (before 4.14, some sandboxes) a static page and the
//! child handler stand in. What is not covered: a raw `clone` runs no handlers, so there it can
//! copy a held-off section, and in such a sandbox even the mark.

use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::{futex, platform};

/// The words that are zero in a fresh child.
#[repr(C)]
struct ForkPage {
    token: AtomicU64,
    /// 0, or the thread that holds forks off, or that thread and `FORKING` during its own fork.
    holder: AtomicU32,
}

/// Set in `holder` by the fork handlers. Thread ids are below 2^22.
const FORKING: u32 = 1 << 31;

static PAGE: AtomicPtr<ForkPage> = AtomicPtr::new(ptr::null_mut());
static STATIC_PAGE: ForkPage = ForkPage { token: AtomicU64::new(0), holder: AtomicU32::new(0) };
static HANDLERS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Stands for one process: a copy of it in a forked child belongs to another process.
#[derive(Clone, Copy)]
pub struct ForkMark {
    page: &'static ForkPage,
    token: u64,
}

impl ForkMark {
    /// The mark of the calling process.
    pub fn current() -> ForkMark {
        let page = fork_page();
        let mut token = page.token.load(Ordering::Relaxed);
        if token == 0 {
            let drawn = platform::random_u64().max(1);
            // Relaxed: the token is a number, it publishes no other memory.
            let swapped = page.token.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed);
            token = swapped.err().unwrap_or(drawn);
        }
        ForkMark { page, token }
    }

    /// Whether the caller is the process the mark was made in. One load.
    #[inline]
    pub fn is_same_process(&self) -> bool {
        self.page.token.load(Ordering::Relaxed) == self.token
    }

    /// A nonzero number that differs between a process and its forked children.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.token
    }
}

impl std::fmt::Debug for ForkMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ForkMark({:016x})", self.token)
    }
}

/// A nonzero number that differs between a process and its forked children.
pub fn generation() -> u64 {
    ForkMark::current().token
}

/// Delays `fork` in all other threads until the result is dropped, by the same thread.
///
/// Waits for another holder. Not to be nested.
pub fn hold_off() -> ForksHeldOff {
    let page = fork_page();
    let thread = thread_id();
    occupy(page, thread);
    if !HANDLERS_REGISTERED.load(Ordering::Relaxed) {
        // SAFETY: the handlers are `extern "C"`, live for ever and touch only `ForkPage` atomics.
        // A failure (no memory) leaves us without the delay, as after a raw clone.
        let status = unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
        HANDLERS_REGISTERED.store(status == 0, Ordering::Relaxed);
    }
    ForksHeldOff { page, thread, not_send: PhantomData }
}

/// While it lives no other thread of the process forks.
pub struct ForksHeldOff {
    page: &'static ForkPage,
    thread: u32,
    not_send: PhantomData<*const ()>,
}

impl Drop for ForksHeldOff {
    fn drop(&mut self) {
        vacate(self.page, self.thread);
    }
}

extern "C" fn before() {
    let thread = thread_id();
    let page = fork_page();
    let holder = page.holder.load(Ordering::Relaxed);
    // Registered twice, or forking in a signal handler in the midst of our own section: waiting
    // for ourselves would last for ever.
    if holder != thread && holder != thread | FORKING {
        occupy(page, thread | FORKING);
    }
}

extern "C" fn parent() {
    vacate(fork_page(), thread_id() | FORKING);
}

extern "C" fn child() {
    // Needed only if the kernel has not emptied the page; no other thread exists yet.
    let page = fork_page();
    page.token.store(0, Ordering::Relaxed);
    page.holder.store(0, Ordering::Relaxed);
}

/// Acquire pairs with the release in `vacate`.
fn occupy(page: &ForkPage, as_whom: u32) {
    loop {
        let swapped = page.holder.compare_exchange(0, as_whom, Ordering::Acquire, Ordering::Relaxed);
        let Err(holder) = swapped else { return };
        // The limit is a safety net only: `vacate` always wakes.
        futex::wait(&page.holder, holder, Some(Duration::from_millis(100)));
    }
}

fn vacate(page: &ForkPage, as_whom: u32) {
    let swapped = page.holder.compare_exchange(as_whom, 0, Ordering::Release, Ordering::Relaxed);
    if swapped.is_ok() {
        futex::wake(&page.holder, 1);
    }
}

/// The page of this process. Lock-free, so that a child can call it whatever its parent did.
fn fork_page() -> &'static ForkPage {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        page = install_page();
    }
    // SAFETY: PAGE only ever holds null, the static page, or a mapping of at least one page that
    // is never unmapped; both are aligned, valid as `ForkPage` when zeroed, and only accessed as
    // atomics.
    unsafe { &*page }
}

#[cold]
fn install_page() -> *mut ForkPage {
    let wiped = map_wiped_page().ok();
    let page = match wiped {
        Some(page) => page,
        None => static_page(),
    };
    // Release: publishes the mapping; pairs with the acquire in `fork_page`.
    let swapped = PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire);
    let Err(installed) = swapped else {
        return page;
    };
    if let Some(spare) = wiped {
        // SAFETY: the mapping was made above with this length and nobody else has seen it.
        unsafe { libc::munmap(spare.cast(), platform::page_size()) };
    }
    installed
}

/// The stand-in that only the child handler empties.
fn static_page() -> *mut ForkPage {
    // SAFETY: `child` is `extern "C"`, lives for ever and touches only `ForkPage` atomics. Without
    // memory for it marks do not notice a fork, as after a raw clone.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
    ptr::from_ref(&STATIC_PAGE).cast_mut()
}

fn map_wiped_page() -> io::Result<*mut ForkPage> {
    let len = platform::page_size();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED no existing memory is affected.
    let page = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is the mapping just made, not in use yet.
    if unsafe { libc::madvise(page, len, libc::MADV_WIPEONFORK) } != 0 {
        let error = io::Error::last_os_error();
        // SAFETY: as above; nobody else knows the mapping.
        unsafe { libc::munmap(page, len) };
        return Err(error);
    }
    Ok(page.cast())
}

fn thread_id() -> u32 {
    // SAFETY: gettid takes no argument, touches no memory and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The only unit test of this binary that uses the page, so it can choose which.
    #[test]
    fn forks_are_noticed_and_held_off_with_either_page() {
        for page in [map_wiped_page().unwrap(), static_page()] {
            PAGE.store(page, Ordering::Release);
            child_is_another_process();
            for _ in 0..20 {
                fork_waits_for_the_holder();
            }
        }
    }

    fn child_is_another_process() {
        let mark = ForkMark::current();
        let child = fork(|| {
            let own = ForkMark::current();
            // Would wait for ever if a holder in the parent were still there.
            drop(hold_off());
            !mark.is_same_process() && own.is_same_process()
        });
        assert!(succeeded(child), "the child took itself for its parent");
        assert!(mark.is_same_process());
        assert_eq!(fork_page().holder.load(Ordering::Relaxed), 0);
    }

    fn fork_waits_for_the_holder() {
        let (held, forking) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let forks = hold_off();
            held.store(true, Ordering::SeqCst);
            let forker = scope.spawn(|| {
                forking.store(true, Ordering::SeqCst);
                // The child has the value of the moment of the fork.
                succeeded(fork(|| !held.load(Ordering::SeqCst)))
            });
            while !forking.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            // Time for a fork that does not wait; one that waits passes whatever happens here.
            for _ in 0..200 {
                platform::yield_now();
            }
            held.store(false, Ordering::SeqCst);
            drop(forks);
            assert!(forker.join().unwrap(), "a thread forked while forks were held off");
        });
    }

    fn fork(body: impl FnOnce() -> bool) -> libc::pid_t {
        // SAFETY: the bodies only use atomics and system calls; the child leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            let status = i32::from(!body());
            // SAFETY: ends the child without running exit handlers.
            unsafe { libc::_exit(status) };
        }
        pid
    }

    fn succeeded(pid: libc::pid_t) -> bool {
        let mut status = 0;
        // SAFETY: `status` is writable, and nobody else waits for this child.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status == 0
    }
}
