//! What a process says when the kernel cannot give it a page of a mapped file (SIGBUS).
//!
//! Space is allocated before it is touched, so a page is missing only if the disk fails, or if somebody cut
//! the file or, where it has holes, filled the file system. The kernel then sends SIGBUS, which ends the
//! process without a word. A process that asks for it by [`install`] says which file it was first.
//!
//! Invariants
//! - Nothing is installed unless a process asks, and then once: other handlers that come later may chain to it.
//! - Faults elsewhere are none of our business: they go to whoever had the signal before, as if we were not
//!   there.
//! - The process ends. What it was doing is half done, so it must not go on; others complete it, as after
//!   `kill -9`.
//! - The handler only reads atomics and calls what may be called in one (`stat`, `write`, `sigaction`, `_exit`).
//!
//! Deliberately absent: going on with an error. A store that was begun cannot be answered by one, and a page
//! of nothing in its place would differ from what the other processes see.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Mappings that can be named at once; what is mapped beyond that is not ours for the handler.
const FILES: usize = 128;
/// Bytes of a path that are told, a zero behind them included.
const PATH_BYTES: usize = 1024;
/// Bytes of a message.
const MESSAGE_BYTES: usize = 1536;
/// How the process ends after the message: by the signal.
const BY_SIGNAL: i32 = -1;

/// A mapping that the handler knows.
struct Known {
    /// Whether somebody fills or uses this entry.
    taken: AtomicBool,
    /// Address of its first byte; 0: nothing is mapped.
    start: AtomicUsize,
    bytes: AtomicUsize,
    path: [AtomicU64; PATH_BYTES / 8],
}

static KNOWN: [Known; FILES] = [const {
    Known {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        path: [const { AtomicU64::new(0) }; PATH_BYTES / 8],
    }
}; FILES];

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The status with which the process ends after the message, or [`BY_SIGNAL`].
static STATUS: AtomicI32 = AtomicI32::new(BY_SIGNAL);

/// What was to be done about the signal before.
struct Before(UnsafeCell<libc::sigaction>);

// SAFETY: written once, by the thread that set INSTALLED, before the handler that reads it can run.
unsafe impl Sync for Before {}

// SAFETY: all fields of `sigaction` may be zero: SIG_DFL, no flags, an empty mask, no restorer.
static BEFORE: Before = Before(UnsafeCell::new(unsafe { std::mem::zeroed() }));

/// A mapping by its name; forgotten when dropped.
#[derive(Debug)]
pub(crate) struct Named {
    entry: usize,
}

impl Named {
    /// Remembers that `bytes` bytes from `start` map the file at `path`; None if too many are remembered.
    pub(crate) fn new(start: usize, bytes: usize, path: &Path) -> Option<Named> {
        let free = |known: &Known| !known.taken.swap(true, Ordering::Acquire);
        let entry = KNOWN.iter().position(free)?;
        let known = &KNOWN[entry];
        let mut name = [0; PATH_BYTES];
        let path = path.as_os_str().as_bytes();
        // NB: one byte less, so that it ends with a zero.
        let told = path.len().min(PATH_BYTES - 1);
        name[..told].copy_from_slice(&path[..told]);
        for (word, bytes) in known.path.iter().zip(name.chunks_exact(8)) {
            let mut value = [0; 8];
            value.copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
        }
        known.bytes.store(bytes, Ordering::Relaxed);
        // Pairs with the handler's acquire load: who sees the address sees size and path.
        known.start.store(start, Ordering::Release);
        Some(Named { entry })
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let known = &KNOWN[self.entry];
        known.start.store(0, Ordering::Release);
        // Pairs with the swap in `new`: the entry is filled anew only after the address has gone.
        known.taken.store(false, Ordering::Release);
    }
}

/// Lets this process say which file it was when a page of a mapped database cannot be had. It then ends:
/// with exit status `status`, or, if that is None, as it would without this, by what was to be done about
/// SIGBUS before (by the signal, if nothing was). Faults elsewhere go there in any case.
///
/// Only the first call of a process installs; later ones only change the status, if they have one.
///
/// # Errors
/// What `sigaction` says.
pub fn install(status: Option<u8>) -> io::Result<()> {
    // NB: a library that calls this inside a program that has asked for a status does not take it away.
    if let Some(status) = status {
        STATUS.store(status.into(), Ordering::Relaxed);
    }
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: `BEFORE` is written by this thread alone, since only one found INSTALLED unset, and read only
    // by the handler, which is installed after that. `action` is a whole `sigaction`: zero, then the handler
    // of the type that SA_SIGINFO asks for. SA_NODEFER lets a fault inside the handler end the process
    // instead of hanging it, SA_ONSTACK is for threads that have a stack for signals.
    let installed = unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), BEFORE.0.get()) == 0 {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0
        } else {
            false
        }
    };
    if installed {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    INSTALLED.store(false, Ordering::Release);
    Err(error)
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a whole siginfo; for SIGBUS it has an address. One
    // that another process sent has none: then it reads as something else, which nobody dereferences.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // Above 0: from the kernel, about an address.
    if code > 0 {
        if let Some((known, start)) = find(address) {
            tell(known, address - start);
            let status = STATUS.load(Ordering::Relaxed);
            if status != BY_SIGNAL {
                // SAFETY: ends the process; may be called in a handler.
                unsafe { libc::_exit(status) };
            }
        }
    }
    pass_on(signal, info, context);
}

/// The mapping in which an address lies, and where it begins.
fn find(address: usize) -> Option<(&'static Known, usize)> {
    KNOWN.iter().find_map(|known| {
        let start = known.start.load(Ordering::Acquire);
        let inside = address.wrapping_sub(start) < known.bytes.load(Ordering::Relaxed);
        (start != 0 && address >= start && inside).then_some((known, start))
    })
}

/// Writes the message to the standard error.
fn tell(known: &Known, offset: usize) {
    let mut path = [0; PATH_BYTES];
    for (word, bytes) in known.path.iter().zip(path.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    path[PATH_BYTES - 1] = 0;
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return };
    let mut message = Message { bytes: [0; MESSAGE_BYTES], len: 0 };
    message.add(b"perilune: ");
    message.add(path.to_bytes());
    message.add(b": byte ");
    message.add_number(offset as u64);
    match size_of(path) {
        Some(size) if offset as u64 >= size => {
            message.add(b" cannot be had: the file was cut to ");
            message.add_number(size);
            message.add(b" bytes while it was in use: restore a backup");
        }
        None => message.add(b" cannot be had: the file is gone"),
        Some(_) => message.add(
            b" cannot be had: the disk failed, or the file has holes and its file system is full: see the \
              kernel's log, free space, run `perilune check`",
        ),
    }
    message.add(b"\n");
    // SAFETY: `bytes[..len]` are initialised; `write` may be called in a handler. If it fails, nothing is
    // left to be told.
    unsafe { libc::write(libc::STDERR_FILENO, message.bytes.as_ptr().cast(), message.len) };
}

/// Bytes of the file at `path`.
fn size_of(path: &CStr) -> Option<u64> {
    // SAFETY: a `stat` of zeros is one; `stat` fills it, `path` ends with a zero, and both live on.
    let (done, found) = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &mut found), found)
    };
    (done == 0).then_some(found.st_size as u64)
}

/// Does what was to be done before. With nothing to do, or after a return, the access is repeated, and the
/// signal ends the process.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `BEFORE` was written before this handler was installed and is not written again.
    let before = unsafe { &*BEFORE.0.get() };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: SIG_DFL is a whole action with an empty mask; `sigaction` may be called in a handler.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, ptr::null_mut());
                // One that was sent is not repeated by itself.
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: installed with SA_SIGINFO, so it is a function of this type; it gets what we got.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: installed without SA_SIGINFO, so it is a function of this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// A text of bounded length.
struct Message {
    bytes: [u8; MESSAGE_BYTES],
    len: usize,
}

impl Message {
    fn add(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = *byte;
                self.len += 1;
            }
        }
    }

    fn add_number(&mut self, number: u64) {
        let (mut digits, mut at, mut rest) = ([0; 20], 20, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.add(&digits[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_is_named_and_nowhere_else() {
        let long = "x".repeat(3 * PATH_BYTES);
        let start = 1 << 60;
        let named = Named::new(start, 4096, Path::new(&long)).expect("room");
        assert!(find(start - 1).is_none() && find(start + 4096).is_none() && find(0).is_none());
        assert_eq!(find(start + 4095).map(|(_, start)| start), Some(start));
        drop(named);
        assert!(find(start).is_none());
    }

    #[test]
    fn messages_keep_to_their_bound() {
        let mut message = Message { bytes: [0; MESSAGE_BYTES], len: 0 };
        message.add_number(0);
        message.add_number(u64::MAX);
        assert_eq!(&message.bytes[..message.len], b"018446744073709551615");
        message.add(&[b'x'; 2 * MESSAGE_BYTES]);
        assert_eq!(message.len, MESSAGE_BYTES);
    }
}
