//! The fork mark: a child is another process, and so is its child.

mod process;

use perilune_shm::fork::{generation, ForkMark};
use process::{fork, succeeded};

#[test]
fn mark_holds_in_its_process_only() {
    let mark = ForkMark::current();
    assert!(mark.is_same_process());
    assert_ne!(mark.generation(), 0);
    assert_eq!(generation(), mark.generation());
    let child = fork(|| {
        let before = mark.is_same_process();
        let own = ForkMark::current();
        let grandchild = fork(|| {
            let inherited = own.is_same_process() || mark.is_same_process();
            let last = ForkMark::current();
            !inherited && last.is_same_process() && last.generation() != own.generation()
        });
        !before
            && succeeded(grandchild)
            && own.is_same_process()
            && own.generation() != mark.generation()
            && !mark.is_same_process()
    });
    assert!(succeeded(child));
    assert!(mark.is_same_process(), "the fork changed the parent");
}

#[test]
fn threads_share_one_mark() {
    let here = generation();
    let there: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(generation)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(there.iter().all(|&token| token == here), "{there:x?} {here:x}");
}

/// `fork` runs no handler here, as in a raw clone: the kernel alone empties the page.
#[test]
fn mark_notices_a_raw_clone() {
    let mark = ForkMark::current();
    // SAFETY: without CLONE_VM this is a fork; the child only loads a word and exits.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    assert!(pid >= 0);
    if pid == 0 {
        let status = i32::from(mark.is_same_process());
        // SAFETY: ends the child without running exit handlers.
        unsafe { libc::_exit(status) };
    }
    assert!(succeeded(pid as libc::pid_t));
}
