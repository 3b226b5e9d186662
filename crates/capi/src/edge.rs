//! The edge to C: pointers become references here, panics become codes, and the text of a thread's last failure is
//! kept for `perilune_message(NULL)`.
//!
//! Invariants
//! - No panic crosses the edge: [`thread_call`] and `session::call` catch it.
//! - NULL is an error or allowed, never followed.
//! - The text of a thread's last failure stays until its next failure.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::status::{Answer, Failure, INTERNAL};

thread_local! {
    static MESSAGE: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"")) };
}

/// Runs a function that needs no session.
pub(crate) fn thread_call(function: impl FnOnce() -> Answer) -> c_int {
    match caught(function) {
        Ok(answer) => answer,
        Err(failure) => {
            let status = failure.status;
            // The thread may be ending; then nobody can ask for the text any more.
            let _ = MESSAGE.try_with(|message| message.replace(failure.text));
            status
        }
    }
}

/// The text of this thread's last failure.
pub(crate) fn thread_message() -> *const c_char {
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Runs `function` and makes a panic a failure.
#[inline]
pub(crate) fn caught(function: impl FnOnce() -> Answer) -> Answer {
    // What comes out of `catch_unwind` goes through memory, and a whole `Answer` would be stored in parts and loaded at once:
    // the processor waits for that, longer than a step of a cursor takes. So a code alone goes that way.
    let mut failed = None;
    let run = || match function() {
        Ok(code) => code,
        Err(failure) => {
            failed = Some(failure);
            FAILED
        }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(FAILED) => Err(failed.unwrap_or(UNTOLD)),
        Ok(code) => Ok(code),
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// No code that a function answers: a failure is told beside it.
const FAILED: c_int = c_int::MIN;

/// A function has answered that code by itself.
const UNTOLD: Failure =
    Failure::fixed(INTERNAL, c"internal error, please report it: a failure without a text");

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let what = panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text");
    Failure::with(INTERNAL, format_args!("internal error, please report it: {what}"))
}

/// The object at `pointer`.
///
/// # Safety
/// `pointer` is NULL or good for reading a `T` for `'a`.
#[inline]
pub(crate) unsafe fn given<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(NULL)
}

const NULL: Failure = Failure::invalid(c"an argument is NULL that must not be: see perilune.h");

/// The bytes at `pointer`; NULL is good for none.
///
/// # Safety
/// `pointer` is NULL or good for reading `size` bytes for `'a`.
#[inline]
pub(crate) unsafe fn bytes<'a>(pointer: *const c_char, size: usize) -> Result<&'a [u8], Failure> {
    if size == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || size > isize::MAX as usize {
        return Err(NULL);
    }
    // SAFETY: not NULL, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), size) })
}

/// The array at `pointer`; NULL is good for an empty one.
///
/// # Safety
/// `pointer` is NULL or good for reading `count` objects for `'a`.
#[inline]
pub(crate) unsafe fn array<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(NULL);
    }
    // SAFETY: not NULL, and the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// A place of the caller that must be there.
///
/// # Errors
/// `INVALID` for NULL.
#[inline]
pub(crate) fn place<T>(pointer: *mut T) -> Result<*mut T, Failure> {
    if pointer.is_null() {
        return Err(NULL);
    }
    Ok(pointer)
}

/// Stores `value` at `pointer` unless that is NULL.
///
/// # Safety
/// `pointer` is NULL or good for writing a `T`.
#[inline]
pub(crate) unsafe fn store<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: not NULL, and the caller's promise.
        unsafe { pointer.write(value) };
    }
}

/// Copies `text` to the caller's buffer and its size to `*size`.
///
/// # Safety
/// `buffer` is NULL or good for writing `capacity` bytes that `text` does not overlap; `size` is
/// NULL or good for writing.
pub(crate) unsafe fn copy_out(text: &[u8], buffer: *mut c_char, capacity: usize, size: *mut usize) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { store(size, text.len()) };
    if text.is_empty() {
        return Ok(crate::status::OK);
    }
    if buffer.is_null() || text.len() > capacity {
        return Err(TOO_SMALL);
    }
    // SAFETY: the buffer has room, and the caller promises that it does not overlap.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), text.len()) };
    Ok(crate::status::OK)
}

/// The buffer cannot hold the result, whose size was stored.
pub(crate) const TOO_SMALL: Failure = Failure::fixed(
    crate::status::BUFFER_TOO_SMALL,
    c"the buffer is too small: call again with the size that was stored",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{BUFFER_TOO_SMALL, INVALID, OK};

    #[test]
    fn a_panic_becomes_a_status_with_its_text() {
        let status = thread_call(|| panic!("no leaf {}", 7));
        assert_eq!(status, INTERNAL);
        // SAFETY: the thread's message is a string that stays until its next failure.
        let text = unsafe { CStr::from_ptr(thread_message()) };
        assert_eq!(text, c"internal error, please report it: no leaf 7");
    }

    #[test]
    fn null_is_refused_where_something_must_be() {
        // SAFETY: NULL is what these functions are to refuse.
        unsafe {
            assert!(given::<u64>(std::ptr::null()).is_err_and(|failure| failure.status == INVALID));
            assert!(bytes(std::ptr::null(), 1).is_err());
            assert!(bytes(std::ptr::null(), 0).is_ok_and(<[u8]>::is_empty));
            assert!(array::<u64>(std::ptr::null(), 3).is_err());
        }
        assert!(place(std::ptr::null_mut::<u8>()).is_err());
    }

    #[test]
    fn a_small_buffer_is_left_alone() {
        let (mut buffer, mut size) = ([7; 2], 0);
        // SAFETY: the buffer and the size are there.
        let copied = unsafe { copy_out(b"abc", buffer.as_mut_ptr(), buffer.len(), &mut size) };
        assert!(copied.is_err_and(|failure| failure.status == BUFFER_TOO_SMALL));
        assert_eq!((buffer, size), ([7; 2], 3));
        // SAFETY: the buffer and the size are there.
        let copied = unsafe { copy_out(b"ab", buffer.as_mut_ptr(), buffer.len(), &mut size) };
        assert!(copied.is_ok_and(|status| status == OK));
        assert_eq!((buffer.map(|byte| byte as u8), size), (*b"ab", 2));
    }
}
