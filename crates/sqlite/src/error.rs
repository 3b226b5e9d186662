//! What SQLite answers instead of a result, and what a callback answers it.
//!
//! [`Error`] goes up: SQLite's extended code, its text, and where in the statement it lies. [`Failure`] goes down: what a callback
//! of ours says to SQLite, which makes it the error of the statement.
//!
//! Invariant: a code is never `SQLITE_OK`.

use std::ffi::{c_int, CStr};
use std::fmt;

use libsqlite3_sys as ffi;

/// An error of SQLite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The extended result code, as `SQLITE_CONSTRAINT_UNIQUE`.
    pub code: i32,
    /// What SQLite says.
    pub message: String,
    /// Bytes into the text of the statement at which the error lies, if SQLite knows.
    pub offset: Option<usize>,
}

impl Error {
    /// The plain result code, as `SQLITE_CONSTRAINT`.
    #[must_use]
    pub fn primary(&self) -> i32 {
        self.code & 0xFF
    }

    /// The last error of `db`, whose call has answered `code`.
    ///
    /// # Safety
    /// `db` is an open connection, or null.
    pub(crate) unsafe fn last(db: *mut ffi::sqlite3, code: c_int) -> Error {
        if db.is_null() {
            return Error { code, message: "out of memory".to_owned(), offset: None };
        }
        // SAFETY: `db` is open; the text is valid until the next call, and copied before.
        let (extended, message, offset) = unsafe {
            let text = CStr::from_ptr(ffi::sqlite3_errmsg(db)).to_string_lossy().into_owned();
            (ffi::sqlite3_extended_errcode(db), text, ffi::sqlite3_error_offset(db))
        };
        let code = if extended & 0xFF == code & 0xFF { extended } else { code };
        Error { code, message, offset: usize::try_from(offset).ok() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// What a callback answers SQLite instead of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A result code, also an extended one.
    pub code: i32,
    /// What the statement's error says.
    pub message: String,
}

impl Failure {
    /// A failure of the code `SQLITE_ERROR`.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { code: ffi::SQLITE_ERROR, message: message.into() }
    }

    /// A failure of another code.
    pub fn of(code: i32, message: impl Into<String>) -> Failure {
        let code = if code == ffi::SQLITE_OK { ffi::SQLITE_ERROR } else { code };
        Failure { code, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::of(error.code, error.message)
    }
}
