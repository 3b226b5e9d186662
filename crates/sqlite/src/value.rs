//! SQLite's values: as they come (columns, arguments), and as they go (results, parameters).
//!
//! Invariants
//! - Connections are UTF-8, so reading a text or blob of its own type converts nothing, and a view stays valid beside others.
//! - A length given to SQLite fits 31 bits; what is longer is `SQLITE_TOOBIG`, never cut.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::slice;

use libsqlite3_sys as ffi;

use crate::error::Failure;

/// A value that borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text: UTF-8, unless somebody has stored other bytes as text.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Reads a value.
///
/// # Safety
/// `value` is a value that SQLite lends, unchanged for `'a`.
#[inline]
pub(crate) unsafe fn read<'a>(value: *mut ffi::sqlite3_value) -> ValueRef<'a> {
    // SAFETY: the caller's; reading by the value's own type changes nothing in it.
    unsafe {
        match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => ValueRef::Integer(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => ValueRef::Real(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => {
                let start = ffi::sqlite3_value_text(value);
                ValueRef::Text(bytes(start, ffi::sqlite3_value_bytes(value)))
            }
            ffi::SQLITE_BLOB => {
                let start = ffi::sqlite3_value_blob(value).cast();
                ValueRef::Blob(bytes(start, ffi::sqlite3_value_bytes(value)))
            }
            _ => ValueRef::Null,
        }
    }
}

/// # Safety
/// `length` bytes from `start` on stay as they are for `'a`, or `start` is null.
pub(crate) unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller's.
        Ok(length) if length > 0 && !start.is_null() => unsafe { slice::from_raw_parts(start, length) },
        _ => &[],
    }
}

/// An argument of a callback.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    raw: *mut ffi::sqlite3_value,
    lent: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// The value.
    #[inline]
    #[must_use]
    pub fn get(self) -> ValueRef<'a> {
        // SAFETY: an `Argument` is only made by `Arguments`, of values that are lent for `'a`.
        unsafe { read(self.raw) }
    }

    /// Whether it is a column that an UPDATE does not set, of which [`Output::is_unchanged`] was told and nothing answered.
    #[must_use]
    pub fn is_unchanged(self) -> bool {
        // SAFETY: as in `get`.
        unsafe { ffi::sqlite3_value_nochange(self.raw) != 0 }
    }

    /// The values of the right side of an IN that [`crate::IndexInfo::take_whole_list`] has asked for. Their bytes are copied.
    ///
    /// # Errors
    /// SQLite's.
    pub fn list(self, mut each: impl FnMut(ValueRef<'_>)) -> Result<(), Failure> {
        let mut value = std::ptr::null_mut();
        // SAFETY: as in `get`; SQLite refuses a value that is no such list.
        let mut code = unsafe { ffi::sqlite3_vtab_in_first(self.raw, &mut value) };
        while code == ffi::SQLITE_OK && !value.is_null() {
            // SAFETY: the value is lent until the next call of `sqlite3_vtab_in_next`.
            each(unsafe { read(value) });
            // SAFETY: as above.
            code = unsafe { ffi::sqlite3_vtab_in_next(self.raw, &mut value) };
        }
        match code {
            ffi::SQLITE_OK | ffi::SQLITE_DONE => Ok(()),
            code => Err(Failure::of(code, "the list of an IN cannot be read")),
        }
    }
}

/// The arguments of a callback.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    raw: &'a [*mut ffi::sqlite3_value],
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// `count` values from `start` on are lent for `'a`.
    pub(crate) unsafe fn new(count: c_int, start: *mut *mut ffi::sqlite3_value) -> Arguments<'a> {
        match usize::try_from(count) {
            // SAFETY: the caller's.
            Ok(count) if count > 0 => Arguments { raw: unsafe { slice::from_raw_parts(start, count) } },
            _ => Arguments { raw: &[] },
        }
    }

    /// How many.
    #[must_use]
    pub fn len(self) -> usize {
        self.raw.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// One of them.
    ///
    /// # Panics
    /// Beyond the last one.
    #[inline]
    #[must_use]
    pub fn at(self, index: usize) -> Argument<'a> {
        Argument { raw: self.raw[index], lent: PhantomData }
    }

    /// Those from `start` on.
    #[must_use]
    pub(crate) fn from(self, start: usize) -> Arguments<'a> {
        Arguments { raw: &self.raw[start..] }
    }
}

/// Where a callback puts its answer: a column of a virtual table or the result of a function.
#[derive(Debug)]
pub struct Output<'a> {
    raw: *mut ffi::sqlite3_context,
    lent: PhantomData<&'a ()>,
}

impl Output<'_> {
    /// # Safety
    /// `raw` is a context for as long as the output lives.
    pub(crate) unsafe fn new(raw: *mut ffi::sqlite3_context) -> Self {
        Output { raw, lent: PhantomData }
    }

    /// Answers `value`. Bytes are copied: SQLite keeps them beyond the cursor's next step.
    #[inline]
    pub fn set(&mut self, value: ValueRef<'_>) {
        // SAFETY: the context is valid while the output lives; SQLITE_TRANSIENT has SQLite copy the bytes now.
        unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_result_null(self.raw),
                ValueRef::Integer(integer) => ffi::sqlite3_result_int64(self.raw, integer),
                ValueRef::Real(real) => ffi::sqlite3_result_double(self.raw, real),
                ValueRef::Text(text) => match c_int::try_from(text.len()) {
                    Ok(length) => {
                        let start = not_null(text).cast::<c_char>();
                        ffi::sqlite3_result_text(self.raw, start, length, ffi::SQLITE_TRANSIENT());
                    }
                    Err(_) => ffi::sqlite3_result_error_toobig(self.raw),
                },
                ValueRef::Blob(blob) => match c_int::try_from(blob.len()) {
                    Ok(length) => {
                        let start = not_null(blob).cast::<c_void>();
                        ffi::sqlite3_result_blob(self.raw, start, length, ffi::SQLITE_TRANSIENT());
                    }
                    Err(_) => ffi::sqlite3_result_error_toobig(self.raw),
                },
            }
        }
    }

    /// Whether an UPDATE that does not set this column asks for it: then nothing need be answered, and
    /// [`Argument::is_unchanged`] tells so.
    #[inline]
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        // SAFETY: as in `set`.
        unsafe { ffi::sqlite3_vtab_nochange(self.raw) != 0 }
    }

    pub(crate) fn fail(&mut self, failure: &Failure) {
        let length = c_int::try_from(failure.message.len()).unwrap_or(c_int::MAX);
        // SAFETY: as in `set`; the text is copied.
        unsafe {
            ffi::sqlite3_result_error(self.raw, not_null(failure.message.as_bytes()).cast(), length);
            ffi::sqlite3_result_error_code(self.raw, failure.code);
        }
    }
}

/// Where the bytes lie; an empty slice may dangle, which C must not see as a null.
pub(crate) fn not_null(bytes: &[u8]) -> *const u8 {
    if bytes.is_empty() {
        c"".as_ptr().cast()
    } else {
        bytes.as_ptr()
    }
}
