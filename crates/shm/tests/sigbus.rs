//! Processes that lose a page of a mapped file: what they say, and how they end.

mod process;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Output, Stdio};

use perilune_shm::platform::page_size;
use perilune_shm::region::{Access, Region};
use perilune_shm::sigbus;
use process::{command, role, ScratchFile};

/// Status of a process whose own handler was called.
const OWN: i32 = 42;

#[test]
fn helper_process() {
    let Some((role, path)) = role() else { return };
    if role.contains("own") {
        own_handler();
    }
    let status = if role.contains("status") { Some(3) } else { None };
    sigbus::install(status).unwrap();
    // A second call must not chain the handler to itself; without a status it leaves that of the first.
    sigbus::install(None).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut region = Region::map(&file, 8 * page_size(), Access::ReadWrite).unwrap();
    if role.contains("named") {
        region = region.named(&path);
    }
    let second = 5 * page_size() + 64;
    region.word(second).store(1, std::sync::atomic::Ordering::SeqCst);
    file.set_len(page_size() as u64).unwrap();
    if role.contains("gone") {
        std::fs::remove_file(&path).unwrap();
    }
    region.word(second).store(2, std::sync::atomic::Ordering::SeqCst);
    unreachable!("the page is gone");
}

extern "C" fn own(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the handler has SA_SIGINFO, so `info` is whole; `_exit` may be called in a handler.
    unsafe { libc::_exit(if (*info).si_addr().is_null() { 1 } else { OWN }) }
}

fn own_handler() {
    // SAFETY: zero is a whole action; the handler has the type that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = own;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
    }
}

fn run(role: &str, path: &Path) -> (Output, String) {
    let output = command(role, path).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (output, said)
}

#[test]
fn the_file_is_named_and_the_status_is_the_one_asked_for() {
    let scratch = ScratchFile::of_len(8 * page_size() as u64);
    let (output, said) = run("named-status", &scratch.path);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let expected = format!(
        "perilune: {}: byte {} cannot be had: the file was cut to {} bytes while it was in use: restore a backup\n",
        scratch.path.display(),
        5 * page_size() + 64,
        page_size()
    );
    assert_eq!(said, expected);
}

#[test]
fn without_a_status_the_signal_ends_the_process_or_whoever_had_it_before() {
    let scratch = ScratchFile::of_len(8 * page_size() as u64);
    let (output, said) = run("named", &scratch.path);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{said}");
    assert!(said.contains("was cut to"), "{said}");
    scratch.open().set_len(8 * page_size() as u64).unwrap();
    let (output, said) = run("named-own", &scratch.path);
    assert_eq!(output.status.code(), Some(OWN), "{said}");
    assert!(said.contains("was cut to"), "{said}");
}

#[test]
fn faults_elsewhere_are_passed_on_without_a_word() {
    let scratch = ScratchFile::of_len(8 * page_size() as u64);
    let (output, said) = run("own-status", &scratch.path);
    assert_eq!((output.status.code(), said.as_str()), (Some(OWN), ""));
    scratch.open().set_len(8 * page_size() as u64).unwrap();
    let (output, said) = run("status", &scratch.path);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    assert!(!said.contains("perilune:"), "{said}");
}

#[test]
fn a_file_that_was_removed_is_said_to_be_gone() {
    let scratch = ScratchFile::of_len(8 * page_size() as u64);
    let (output, said) = run("named-gone-status", &scratch.path);
    assert_eq!(output.status.code(), Some(3));
    assert!(said.contains("the file is gone"), "{said}");
}
