//! A connection: SQLite in memory, with what this program lends it.
//!
//! Invariants
//! - It is used by the thread that made it: it is neither `Send` nor `Sync`.
//! - `"x"` is never a text, and no extension is loaded.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt;
use std::ptr;
use std::rc::Rc;

use libsqlite3_sys as ffi;

use crate::error::{Error, Failure};
use crate::function::{self, FunctionKind, Scalar, Window};
use crate::inner::{Action, Inner};
use crate::statement::Statement;
use crate::table::{self, Module};
use crate::value::{bytes, not_null, Arguments, Output};

/// SQLite in memory, whose callbacks are lent an `H`.
pub struct Connection<H> {
    inner: Rc<Inner<H>>,
}

impl<H> fmt::Debug for Connection<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl<H: 'static> Connection<H> {
    /// A database in memory.
    ///
    /// # Errors
    /// Without memory.
    pub fn open() -> Result<Connection<H>, Error> {
        Connection::open_at(":memory:")
    }

    /// A database in a file of SQLite's own, to compare with.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open_at(path: &str) -> Result<Connection<H>, Error> {
        let path = CString::new(path).map_err(|_| misuse("a path has a zero byte"))?;
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_NOMUTEX;
        let mut db = ptr::null_mut();
        // SAFETY: the path ends in a zero byte, and there is a place for the handle.
        let code = unsafe { ffi::sqlite3_open_v2(path.as_ptr(), &mut db, flags, ptr::null()) };
        // NB: SQLite makes a handle even if it fails, which `Inner` closes.
        let connection = Connection { inner: Rc::new(Inner::new(db)) };
        if code != ffi::SQLITE_OK {
            // SAFETY: the handle is null or open.
            return Err(unsafe { Error::last(db, code) });
        }
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_extended_result_codes(db, 1) };
        Ok(connection)
    }

    /// Prepares the first statement of `sql`, to be run many times; answers where the next one begins. None: there is none,
    /// but blanks or a comment.
    ///
    /// # Errors
    /// SQLite's, and what callbacks have answered it.
    ///
    /// # Panics
    /// With the panic of a callback.
    pub fn prepare(&self, host: &mut H, sql: &str) -> Result<(Option<Statement<H>>, usize), Error> {
        let length = c_int::try_from(sql.len()).map_err(|_| misuse("the statement is too long"))?;
        let start = not_null(sql.as_bytes()).cast::<c_char>();
        let (mut raw, mut tail) = (ptr::null_mut(), ptr::null());
        let flags = ffi::SQLITE_PREPARE_PERSISTENT;
        // SAFETY: the text lies there for the call, with its length, and there are places for the answers.
        let code = self.inner.lend(host, || unsafe {
            ffi::sqlite3_prepare_v3(self.inner.db, start, length, flags, &mut raw, &mut tail)
        });
        if code != ffi::SQLITE_OK {
            return Err(self.last(code));
        }
        let end = if tail.is_null() { sql.len() } else { tail as usize - start as usize };
        // SAFETY: SQLite has just made it for us.
        let statement = (!raw.is_null()).then(|| unsafe { Statement::new(raw, self.inner.clone()) });
        Ok((statement, end))
    }

    /// Runs the statements of `sql`, without looking at rows.
    ///
    /// # Errors
    /// As [`Connection::prepare`].
    pub fn execute(&self, host: &mut H, sql: &str) -> Result<(), Error> {
        let mut rest = sql;
        while !rest.is_empty() {
            let (statement, end) = self.prepare(host, rest)?;
            if let Some(mut statement) = statement {
                while statement.step(host)? {}
            }
            rest = &rest[end..];
        }
        Ok(())
    }

    /// Gives the connection a module of virtual tables.
    ///
    /// # Errors
    /// Without memory.
    pub fn add_module<M: Module<H>>(&self, name: &str, module: M) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        let given = Box::into_raw(Box::new(table::Given { inner: Rc::as_ptr(&self.inner), module }));
        // SAFETY: what is given lives until SQLite releases it, which it does if it fails, too; the connection outlives it.
        let code = unsafe {
            let release = Some(table::Edge::<H, M>::release as unsafe extern "C" fn(*mut c_void));
            let module = table::Edge::<H, M>::MODULE;
            ffi::sqlite3_create_module_v2(self.inner.db, name.as_ptr(), module, given.cast(), release)
        };
        self.check(code)
    }

    /// Takes a module from the connection: there are no more tables of its own name.
    ///
    /// # Errors
    /// Without memory.
    pub fn remove_module(&self, name: &str) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        // SAFETY: the handle is open; without a module SQLite forgets the one of this name, and releases what it was given when the
        // last table of it goes.
        let code = unsafe {
            let nothing = std::ptr::null_mut();
            ffi::sqlite3_create_module_v2(self.inner.db, name.as_ptr(), std::ptr::null(), nothing, None)
        };
        self.check(code)
    }

    /// Gives the connection a function of `count` arguments, of any number for -1.
    ///
    /// # Errors
    /// While statements run that use another one of the name; without memory.
    pub fn add_function(
        &self,
        name: &str,
        count: i32,
        kind: FunctionKind,
        function: impl Fn(&mut H, Arguments<'_>, &mut Output<'_>) -> Result<(), Failure> + 'static,
    ) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        let function: Box<Scalar<H>> = Box::new(function);
        let given = Box::into_raw(Box::new(function::Given { inner: Rc::as_ptr(&self.inner), function }));
        // SAFETY: as in `add_module`.
        let code = unsafe {
            ffi::sqlite3_create_function_v2(
                self.inner.db,
                name.as_ptr(),
                count,
                kind.flags(),
                given.cast(),
                Some(function::call::<H>),
                None,
                None,
                Some(function::Edge::<H, Box<Scalar<H>>>::release),
            )
        };
        self.check(code)
    }

    /// Takes a function of `count` arguments from the connection; statements that used it no longer have it.
    ///
    /// # Errors
    /// While statements run that use it.
    pub fn remove_function(&self, name: &str, count: i32) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        // SAFETY: the handle is open; without functions SQLite forgets the one of this name, and releases what it was given.
        let code = unsafe {
            let kind = FunctionKind::default().flags();
            let nothing = std::ptr::null_mut();
            ffi::sqlite3_create_function_v2(
                self.inner.db,
                name.as_ptr(),
                count,
                kind,
                nothing,
                None,
                None,
                None,
                None,
            )
        };
        self.check(code)
    }

    /// Gives the connection an aggregate, which also answers for windows; the last one of a name and number of arguments counts.
    ///
    /// # Errors
    /// While statements run that use another one; without memory.
    pub fn add_window<W: Window<H>>(
        &self,
        name: &str,
        count: i32,
        kind: FunctionKind,
        window: W,
    ) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        let inner = Rc::as_ptr(&self.inner);
        let given = Box::into_raw(Box::new(function::Given { inner, function: window }));
        // SAFETY: as in `add_module`.
        let code = unsafe {
            ffi::sqlite3_create_window_function(
                self.inner.db,
                name.as_ptr(),
                count,
                kind.flags(),
                given.cast(),
                Some(function::step::<H, W>),
                Some(function::finish::<H, W>),
                Some(function::value::<H, W>),
                Some(function::inverse::<H, W>),
                Some(function::Edge::<H, W>::release),
            )
        };
        self.check(code)
    }

    /// Gives the connection an order of texts.
    ///
    /// # Errors
    /// While statements run that use another one of the name; without memory.
    pub fn add_collation(
        &self,
        name: &str,
        compare: fn(&[u8], &[u8]) -> std::cmp::Ordering,
    ) -> Result<(), Error> {
        let name = CString::new(name).map_err(|_| misuse("a name has a zero byte"))?;
        let given = Box::into_raw(Box::new(Collation { inner: Rc::as_ptr(&self.inner), compare }));
        // SAFETY: as in `add_module`, but that SQLite does not release what is given if it fails.
        let code = unsafe {
            ffi::sqlite3_create_collation_v2(
                self.inner.db,
                name.as_ptr(),
                ffi::SQLITE_UTF8,
                given.cast(),
                Some(collate::<H>),
                Some(release_collation::<H>),
            )
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: see above.
            drop(unsafe { Box::from_raw(given) });
        }
        self.check(code)
    }

    /// From now on asks whether statements may do what they want, when they are prepared; false is an error.
    pub fn set_authorizer(&self, authorizer: impl Fn(&Action<'_>) -> bool + 'static) {
        self.inner.authorizer.replace(Some(Box::new(authorizer)));
        let inner = Rc::as_ptr(&self.inner).cast_mut().cast();
        // SAFETY: `inner` outlives the handle.
        unsafe { ffi::sqlite3_set_authorizer(self.inner.db, Some(authorize::<H>), inner) };
    }

    /// From now on asks every so many steps of SQLite's machine whether the statement is to end; true ends it with
    /// `SQLITE_INTERRUPT`.
    pub fn set_progress(&self, every: i32, progress: impl FnMut() -> bool + 'static) {
        self.inner.progress.replace(Some(Box::new(progress)));
        let inner = Rc::as_ptr(&self.inner).cast_mut().cast();
        // SAFETY: `inner` outlives the handle.
        unsafe { ffi::sqlite3_progress_handler(self.inner.db, every, Some(report::<H>), inner) };
    }

    /// Sets a limit (`SQLITE_LIMIT_LENGTH` and so on); answers what it was.
    pub fn limit(&self, which: i32, value: i32) -> i32 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_limit(self.inner.db, which, value) }
    }

    /// How many rows the last statement that changes any has changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        // SAFETY: the handle is open.
        u64::try_from(unsafe { ffi::sqlite3_changes64(self.inner.db) }).unwrap_or(0)
    }

    /// The rowid of the row inserted last.
    #[must_use]
    pub fn last_rowid(&self) -> i64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.inner.db) }
    }

    /// Sets what [`Connection::last_rowid`] answers.
    pub fn set_last_rowid(&self, rowid: i64) {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_set_last_insert_rowid(self.inner.db, rowid) };
    }

    fn check(&self, code: c_int) -> Result<(), Error> {
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(self.last(code))
        }
    }

    fn last(&self, code: c_int) -> Error {
        // SAFETY: the handle is open.
        unsafe { Error::last(self.inner.db, code) }
    }
}

fn misuse(message: &str) -> Error {
    Error { code: ffi::SQLITE_MISUSE, message: message.to_owned(), offset: None }
}

struct Collation<H> {
    inner: *const Inner<H>,
    compare: fn(&[u8], &[u8]) -> std::cmp::Ordering,
}

unsafe extern "C" fn release_collation<H>(given: *mut c_void) {
    // SAFETY: `add_collation` has made it, and SQLite is done with it.
    drop(unsafe { Box::from_raw(given.cast::<Collation<H>>()) });
}

unsafe extern "C" fn collate<H>(
    given: *mut c_void,
    length: c_int,
    text: *const c_void,
    other_length: c_int,
    other: *const c_void,
) -> c_int {
    // SAFETY: `add_collation` has given it; the texts are lent while the callback runs.
    unsafe {
        let given = &*given.cast::<Collation<H>>();
        let (text, other) = (bytes(text.cast(), length), bytes(other.cast(), other_length));
        let ordering = (*given.inner).callback(|_| Ok((given.compare)(text, other)));
        ordering.map_or(0, |ordering| ordering as c_int)
    }
}

unsafe extern "C" fn authorize<H>(
    inner: *mut c_void,
    code: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    inside: *const c_char,
) -> c_int {
    // SAFETY: `set_authorizer` has given the connection; the texts are null or end in a zero byte.
    unsafe {
        let inner = &*inner.cast::<Inner<H>>();
        let text =
            |start: *const c_char| (!start.is_null()).then(|| CStr::from_ptr(start).to_str().ok()).flatten();
        let action = Action { code, first: text(first), second: text(second), inside: text(inside) };
        let allowed =
            inner.callback(|_| Ok(inner.authorizer.borrow().as_ref().is_none_or(|ask| ask(&action))));
        if matches!(allowed, Ok(true)) {
            ffi::SQLITE_OK
        } else {
            ffi::SQLITE_DENY
        }
    }
}

unsafe extern "C" fn report<H>(inner: *mut c_void) -> c_int {
    // SAFETY: `set_progress` has given the connection.
    unsafe {
        let inner = &*inner.cast::<Inner<H>>();
        let ends = inner.callback(|_| Ok(inner.progress.borrow_mut().as_mut().is_some_and(|ask| ask())));
        c_int::from(ends.unwrap_or(true))
    }
}
