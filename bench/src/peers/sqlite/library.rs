//! The functions of libsqlite3 that the suite calls, found at run time, and the two objects it needs.
//!
//! Declared by hand after sqlite3.h of version 3; deliberately no more than is used.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::peers::library::{append, library};
use crate::subject::Result;

type Db = *mut c_void;
type Prepared = *mut c_void;

const BUSY: c_int = 5;
const ROW: c_int = 100;
const DONE: c_int = 101;
/// SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX: each thread has its connection.
const OPEN_FLAGS: c_int = 0x2 | 0x4 | 0x8000;
const BUSY_MILLISECONDS: c_int = 60_000;

library! {
    "libsqlite3.so.0", "libsqlite3-0";
    libversion: "sqlite3_libversion" fn() -> *const c_char;
    open_v2: "sqlite3_open_v2" fn(*const c_char, *mut Db, c_int, *const c_char) -> c_int;
    close: "sqlite3_close" fn(Db) -> c_int;
    busy_timeout: "sqlite3_busy_timeout" fn(Db, c_int) -> c_int;
    errmsg: "sqlite3_errmsg" fn(Db) -> *const c_char;
    prepare_v2: "sqlite3_prepare_v2"
        fn(Db, *const c_char, c_int, *mut Prepared, *mut *const c_char) -> c_int;
    bind_int64: "sqlite3_bind_int64" fn(Prepared, c_int, i64) -> c_int;
    bind_blob: "sqlite3_bind_blob" fn(Prepared, c_int, *const c_void, c_int, *const c_void) -> c_int;
    column_blob: "sqlite3_column_blob" fn(Prepared, c_int) -> *const c_void;
    column_bytes: "sqlite3_column_bytes" fn(Prepared, c_int) -> c_int;
    step: "sqlite3_step" fn(Prepared) -> c_int;
    reset: "sqlite3_reset" fn(Prepared) -> c_int;
    column_count: "sqlite3_column_count" fn(Prepared) -> c_int;
    column_int64: "sqlite3_column_int64" fn(Prepared, c_int) -> i64;
    finalize: "sqlite3_finalize" fn(Prepared) -> c_int;
}

/// The version of the library.
///
/// # Errors
/// It is not installed.
pub(crate) fn version() -> Result<String> {
    let functions = functions()?;
    // SAFETY: a constant string of the library.
    let text = unsafe { CStr::from_ptr((functions.libversion)()) };
    Ok(text.to_string_lossy().into_owned())
}

/// A connection, used by one thread at a time.
pub(crate) struct Connection {
    functions: &'static Functions,
    db: Db,
}

impl Connection {
    /// Opens the database at `path`, creating it when it is missing.
    ///
    /// # Errors
    /// SQLite's own.
    pub(crate) fn open(path: &Path) -> Result<Connection> {
        let functions = functions()?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut connection = Connection { functions, db: ptr::null_mut() };
        // SAFETY: a string that ends in 0, and a place for the connection.
        let code = unsafe { (functions.open_v2)(path.as_ptr(), &mut connection.db, OPEN_FLAGS, ptr::null()) };
        connection.check(code)?;
        // SAFETY: the connection is open.
        connection.check(unsafe { (functions.busy_timeout)(connection.db, BUSY_MILLISECONDS) })?;
        Ok(connection)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// SQLite's own.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement> {
        let text = CString::new(sql)?;
        let mut prepared = ptr::null_mut();
        // SAFETY: the connection is open, the text ends in 0 (length -1).
        let code = unsafe {
            (self.functions.prepare_v2)(self.db, text.as_ptr(), -1, &mut prepared, ptr::null_mut())
        };
        self.check(code)?;
        // SAFETY: the statement was prepared just now.
        let columns = unsafe { (self.functions.column_count)(prepared) };
        Ok(Statement { functions: self.functions, db: self.db, prepared, columns })
    }

    /// Runs a statement that takes nothing and whose rows do not matter.
    ///
    /// # Errors
    /// SQLite's own.
    pub(crate) fn execute(&self, sql: &str) -> Result<()> {
        self.prepare(sql)?.run(&[])
    }

    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            Ok(())
        } else {
            Err(message(self.functions, self.db, code))
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: statements are dropped before the connection they are kept beside; null is allowed.
        unsafe { (self.functions.close)(self.db) };
    }
}

fn message(functions: &Functions, db: Db, code: c_int) -> Box<dyn std::error::Error + Send + Sync> {
    // SAFETY: the text is SQLite's own, and valid until the next call.
    let text = unsafe { CStr::from_ptr((functions.errmsg)(db)) };
    format!("SQLite: {} ({code})", text.to_string_lossy()).into()
}

/// A prepared statement. It must not outlive its connection.
pub(crate) struct Statement {
    functions: &'static Functions,
    db: Db,
    prepared: Prepared,
    columns: c_int,
}

impl Statement {
    /// Runs the statement to its end with `values` bound.
    ///
    /// # Errors
    /// SQLite's own.
    #[inline]
    pub(crate) fn run(&mut self, values: &[i64]) -> Result<()> {
        self.rows(values, |_| Ok(()))
    }

    /// Runs the statement and answers the first column of its row, if there is one.
    ///
    /// # Errors
    /// SQLite's own.
    #[inline]
    pub(crate) fn value(&mut self, values: &[i64]) -> Result<Option<i64>> {
        let mut value = None;
        self.rows(values, |row| {
            value = Some(row[0]);
            Ok(())
        })?;
        Ok(value)
    }

    /// Runs the statement and hands over the first two columns of each row, 0 for one it has not.
    ///
    /// # Errors
    /// SQLite's own, or that of `each`.
    #[inline]
    pub(crate) fn rows(
        &mut self,
        values: &[i64],
        mut each: impl FnMut([i64; 2]) -> Result<()>,
    ) -> Result<()> {
        let f = self.functions;
        for (index, value) in (1..).zip(values) {
            // SAFETY: the statement is reset between runs.
            let code = unsafe { (f.bind_int64)(self.prepared, index, *value) };
            if code != 0 {
                return Err(message(f, self.db, code));
            }
        }
        let outcome = loop {
            // SAFETY: the statement is prepared and its connection open.
            match unsafe { (f.step)(self.prepared) } {
                ROW => {
                    let mut row = [0; 2];
                    for (column, place) in (0..self.columns).zip(&mut row) {
                        // SAFETY: the statement stands at a row that has this column.
                        *place = unsafe { (f.column_int64)(self.prepared, column) };
                    }
                    if let Err(error) = each(row) {
                        break Err(error);
                    }
                }
                DONE => break Ok(()),
                // Another writer was faster after our read mark: nothing has happened yet.
                code if code & 0xFF == BUSY => {
                    // SAFETY: any statement may be reset.
                    unsafe { (f.reset)(self.prepared) };
                }
                code => break Err(message(f, self.db, code)),
            }
        };
        // SAFETY: any statement may be reset.
        unsafe { (f.reset)(self.prepared) };
        outcome
    }
}

impl Statement {
    /// Runs the statement with byte strings bound, and hands over the byte strings of its first row: two
    /// at most. False if there is no row.
    ///
    /// # Errors
    /// SQLite's own.
    #[inline]
    pub(crate) fn first(&mut self, bound: &[&[u8]], into: &mut [&mut Vec<u8>]) -> Result<bool> {
        let f = self.functions;
        for (index, bytes) in (1..).zip(bound) {
            let length = bytes.len() as c_int;
            // SAFETY: the bytes outlive the run; the null destructor (SQLITE_STATIC) says so.
            let code =
                unsafe { (f.bind_blob)(self.prepared, index, bytes.as_ptr().cast(), length, ptr::null()) };
            if code != 0 {
                return Err(message(f, self.db, code));
            }
        }
        let found = loop {
            // SAFETY: the statement is prepared and its connection open.
            match unsafe { (f.step)(self.prepared) } {
                ROW => {
                    for (column, place) in (0..self.columns).zip(into.iter_mut()) {
                        place.clear();
                        // SAFETY: the row has this column; its bytes last until the statement goes on.
                        unsafe {
                            let length = (f.column_bytes)(self.prepared, column) as usize;
                            append((f.column_blob)(self.prepared, column).cast(), length, place);
                        }
                    }
                    break Ok(true);
                }
                DONE => break Ok(false),
                code if code & 0xFF == BUSY => {
                    // SAFETY: any statement may be reset.
                    unsafe { (f.reset)(self.prepared) };
                }
                code => break Err(message(f, self.db, code)),
            }
        };
        // SAFETY: any statement may be reset.
        unsafe { (f.reset)(self.prepared) };
        found
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the statement is ours.
        unsafe { (self.functions.finalize)(self.prepared) };
    }
}
