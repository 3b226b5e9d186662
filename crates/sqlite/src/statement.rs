//! Prepared statements: bind, step, read columns, reset.
//!
//! Invariants
//! - A statement keeps its connection alive, and is finalized before it.
//! - What [`Statement::column`] lends ends with the next call that takes the statement mutably.

use std::ffi::{c_int, CStr};
use std::fmt;
use std::rc::Rc;

use libsqlite3_sys as ffi;

use crate::error::Error;
use crate::inner::Inner;
use crate::value::{bytes, not_null, ValueRef};

/// A prepared statement of a connection whose host is an `H`.
pub struct Statement<H> {
    raw: *mut ffi::sqlite3_stmt,
    inner: Rc<Inner<H>>,
}

impl<H> fmt::Debug for Statement<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").finish_non_exhaustive()
    }
}

impl<H> Statement<H> {
    /// # Safety
    /// `raw` is a statement of the connection of `inner` that nobody else owns.
    pub(crate) unsafe fn new(raw: *mut ffi::sqlite3_stmt, inner: Rc<Inner<H>>) -> Self {
        Statement { raw, inner }
    }

    /// Runs to the next row; false: there is none, and the statement has ended.
    ///
    /// # Errors
    /// SQLite's, and what callbacks have answered it.
    ///
    /// # Panics
    /// With the panic of a callback.
    #[inline]
    pub fn step(&mut self, host: &mut H) -> Result<bool, Error> {
        // SAFETY: the statement is ours; callbacks get the host that is lent here.
        match self.inner.lend(host, || unsafe { ffi::sqlite3_step(self.raw) }) {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(self.error(code)),
        }
    }

    /// Puts the statement back to its beginning; parameters stay bound.
    #[inline]
    pub fn reset(&mut self) {
        // SAFETY: the statement is ours. Its answer repeats the error of the last step.
        self.inner.alone(|| unsafe { ffi::sqlite3_reset(self.raw) });
    }

    /// Binds a parameter, counted from 1. Bytes are copied.
    ///
    /// # Errors
    /// `SQLITE_RANGE`, `SQLITE_TOOBIG`; `SQLITE_MISUSE` for one that is running.
    pub fn bind(&mut self, index: usize, value: ValueRef<'_>) -> Result<(), Error> {
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the statement is ours; SQLITE_TRANSIENT has SQLite copy the bytes now.
        let code = unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_bind_null(self.raw, index),
                ValueRef::Integer(integer) => ffi::sqlite3_bind_int64(self.raw, index, integer),
                ValueRef::Real(real) => ffi::sqlite3_bind_double(self.raw, index, real),
                ValueRef::Text(text) => match c_int::try_from(text.len()) {
                    Ok(length) => {
                        let start = not_null(text).cast();
                        ffi::sqlite3_bind_text(self.raw, index, start, length, ffi::SQLITE_TRANSIENT())
                    }
                    Err(_) => ffi::SQLITE_TOOBIG,
                },
                ValueRef::Blob(blob) => match c_int::try_from(blob.len()) {
                    Ok(length) => {
                        let start = not_null(blob).cast();
                        ffi::sqlite3_bind_blob(self.raw, index, start, length, ffi::SQLITE_TRANSIENT())
                    }
                    Err(_) => ffi::SQLITE_TOOBIG,
                },
            }
        };
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(self.error(code))
        }
    }

    /// Makes every parameter NULL.
    pub fn clear_bindings(&mut self) {
        // SAFETY: the statement is ours.
        unsafe { ffi::sqlite3_clear_bindings(self.raw) };
    }

    /// How many parameters there are: the largest number of one.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        // SAFETY: the statement is ours.
        usize::try_from(unsafe { ffi::sqlite3_bind_parameter_count(self.raw) }).unwrap_or(0)
    }

    /// The name of a parameter, counted from 1, with its `:`, `@`, `$` or `?`; none for a plain `?`.
    #[must_use]
    pub fn parameter_name(&self, index: usize) -> Option<String> {
        let index = c_int::try_from(index).ok()?;
        // SAFETY: the statement is ours; the name is copied.
        unsafe { text(ffi::sqlite3_bind_parameter_name(self.raw, index)) }
    }

    /// How many columns a row has; 0 for a statement without rows.
    #[inline]
    #[must_use]
    pub fn column_count(&self) -> usize {
        // SAFETY: the statement is ours.
        usize::try_from(unsafe { ffi::sqlite3_column_count(self.raw) }).unwrap_or(0)
    }

    /// The name of a column of the result, counted from 0.
    #[must_use]
    pub fn column_name(&self, index: usize) -> String {
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the statement is ours; the name is copied.
        unsafe { text(ffi::sqlite3_column_name(self.raw, index)) }.unwrap_or_default()
    }

    /// The type that a column was declared with, if it is one of a table.
    #[must_use]
    pub fn column_declaration(&self, index: usize) -> Option<String> {
        let index = c_int::try_from(index).ok()?;
        // SAFETY: the statement is ours; the text is copied.
        unsafe { text(ffi::sqlite3_column_decltype(self.raw, index)) }
    }

    /// A column of the row, counted from 0.
    ///
    /// # Panics
    /// Without such a column.
    #[inline]
    #[must_use]
    pub fn column(&self, index: usize) -> ValueRef<'_> {
        assert!(index < self.column_count(), "the row has no column {index}");
        let index = index as c_int;
        // SAFETY: the statement is ours and has that column; reading by its own type converts nothing, and what is lent lasts
        // until the next step or reset, which take the statement mutably.
        unsafe {
            match ffi::sqlite3_column_type(self.raw, index) {
                ffi::SQLITE_INTEGER => ValueRef::Integer(ffi::sqlite3_column_int64(self.raw, index)),
                ffi::SQLITE_FLOAT => ValueRef::Real(ffi::sqlite3_column_double(self.raw, index)),
                ffi::SQLITE_TEXT => {
                    let start = ffi::sqlite3_column_text(self.raw, index);
                    ValueRef::Text(bytes(start, ffi::sqlite3_column_bytes(self.raw, index)))
                }
                ffi::SQLITE_BLOB => {
                    let start = ffi::sqlite3_column_blob(self.raw, index).cast();
                    ValueRef::Blob(bytes(start, ffi::sqlite3_column_bytes(self.raw, index)))
                }
                _ => ValueRef::Null,
            }
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        // SAFETY: the statement is ours.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw) != 0 }
    }

    /// Whether it is an EXPLAIN or EXPLAIN QUERY PLAN.
    #[must_use]
    pub fn is_explain(&self) -> bool {
        // SAFETY: the statement is ours.
        unsafe { ffi::sqlite3_stmt_isexplain(self.raw) != 0 }
    }

    fn error(&self, code: c_int) -> Error {
        // SAFETY: the connection is open as long as the statement is.
        unsafe { Error::last(self.inner.db, code) }
    }
}

impl<H> Drop for Statement<H> {
    fn drop(&mut self) {
        // SAFETY: the statement is ours and is not used again. Callbacks that close cursors need no host.
        self.inner.alone(|| unsafe { ffi::sqlite3_finalize(self.raw) });
    }
}

/// Copies a text that may be null.
///
/// # Safety
/// `start` is null or ends in a zero byte.
unsafe fn text(start: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: the caller's.
    (!start.is_null()).then(|| unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}
