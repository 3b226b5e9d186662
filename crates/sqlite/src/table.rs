//! Virtual tables: the traits that a caller implements, and the C edge that calls them.
//!
//! A [`Module`] makes tables when SQLite first meets their names; a [`Table`] plans, opens cursors and changes rows; a [`Cursor`]
//! walks. Cursors are kept in a pool of their table, so a statement that runs again allocates none.
//!
//! Invariants
//! - Each callback runs inside `Inner::callback`: no panic crosses C.
//! - A cursor of the pool keeps what it last had: its filter sets all anew.
//! - Transactions are the caller's: xBegin and its kin do nothing.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::marker::PhantomData;
use std::ptr;

use libsqlite3_sys as ffi;

use crate::error::Failure;
use crate::index::IndexInfo;
use crate::inner::Inner;
use crate::value::{Argument, Arguments, Output};

/// Makes tables for a connection.
pub trait Module<H>: 'static {
    /// What it makes.
    type Table: Table<H>;

    /// Whether each table exists by the module's own name, without CREATE VIRTUAL TABLE.
    const EPONYMOUS: bool = false;

    /// Whether statements change its rows.
    const CHANGES: bool = !Self::EPONYMOUS;

    /// The table called `name`, and the CREATE TABLE that tells SQLite its columns.
    ///
    /// # Errors
    /// What the statement then answers.
    fn connect(&self, host: &mut H, name: &str) -> Result<(Self::Table, String), Failure>;
}

/// A table.
pub trait Table<H>: Sized + 'static {
    /// What walks over its rows.
    type Cursor: Cursor<H, Table = Self>;

    /// Plans an access.
    ///
    /// # Errors
    /// `SQLITE_CONSTRAINT` if there is none with these constraints; else what the statement then answers.
    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<(), Failure>;

    /// A new cursor.
    fn open(&self) -> Self::Cursor;

    /// Changes a row; answers the rowid of an inserted one.
    ///
    /// # Errors
    /// What the statement then answers; constraints by their extended codes.
    fn update(&self, host: &mut H, change: &Change<'_>, conflict: Conflict) -> Result<i64, Failure>;
}

/// A walk over rows of a table.
pub trait Cursor<H>: 'static {
    /// Its table.
    type Table: Table<H>;

    /// Begins anew, by the plan that [`Table::best_index`] has made.
    ///
    /// # Errors
    /// What the statement then answers.
    fn filter(
        &mut self,
        table: &Self::Table,
        host: &mut H,
        number: i32,
        text: &str,
        arguments: Arguments<'_>,
    ) -> Result<(), Failure>;

    /// Steps to the next row.
    ///
    /// # Errors
    /// What the statement then answers.
    fn next(&mut self, table: &Self::Table, host: &mut H) -> Result<(), Failure>;

    /// Whether it stands behind the last row.
    fn is_at_end(&self) -> bool;

    /// Answers a column of the row.
    ///
    /// # Errors
    /// What the statement then answers.
    fn column(
        &mut self,
        table: &Self::Table,
        host: &mut H,
        column: usize,
        output: &mut Output<'_>,
    ) -> Result<(), Failure>;

    /// The rowid of the row.
    ///
    /// # Errors
    /// What the statement then answers.
    fn rowid(&mut self, table: &Self::Table) -> Result<i64, Failure>;
}

/// A change of a row. A key is the rowid, or the column that is the primary key of a table WITHOUT ROWID.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The row of this key goes.
    Delete(Argument<'a>),
    /// A row comes, with this key unless it is NULL.
    Insert(Argument<'a>, Arguments<'a>),
    /// The row of the first key becomes one with the second.
    Update(Argument<'a>, Argument<'a>, Arguments<'a>),
}

/// What a statement wants done about a constraint that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The transaction ends.
    Rollback,
    /// The statement ends, and nothing of it remains.
    Abort,
    /// The statement ends; what it has done remains.
    Fail,
    /// The row is left out.
    Ignore,
    /// What is in the way goes.
    Replace,
}

/// How many cursors a table keeps.
const POOL: usize = 8;

/// What a module's tables need: the module, and the connection.
pub(crate) struct Given<H, M> {
    pub(crate) inner: *const Inner<H>,
    pub(crate) module: M,
}

#[repr(C)]
struct RawTable<H, T: Table<H>> {
    base: ffi::sqlite3_vtab,
    inner: *const Inner<H>,
    pool: Vec<Box<RawCursor<T::Cursor>>>,
    table: T,
}

#[repr(C)]
struct RawCursor<C> {
    base: ffi::sqlite3_vtab_cursor,
    cursor: C,
}

/// The functions that C calls, for one kind of module.
pub(crate) struct Edge<H, M>(PhantomData<(H, M)>);

impl<H: 'static, M: Module<H>> Edge<H, M> {
    /// What SQLite is told of the module.
    pub(crate) const MODULE: &'static ffi::sqlite3_module = &ffi::sqlite3_module {
        iVersion: 2,
        xCreate: if M::EPONYMOUS { None } else { Some(connect::<H, M>) },
        xConnect: Some(connect::<H, M>),
        xBestIndex: Some(best_index::<H, M::Table>),
        xDisconnect: Some(disconnect::<H, M::Table>),
        xDestroy: Some(disconnect::<H, M::Table>),
        xOpen: Some(open::<H, M::Table>),
        xClose: Some(close::<H, M::Table>),
        xFilter: Some(filter::<H, M::Table>),
        xNext: Some(next::<H, M::Table>),
        xEof: Some(is_at_end::<H, M::Table>),
        xColumn: Some(column::<H, M::Table>),
        xRowid: Some(rowid::<H, M::Table>),
        xUpdate: if M::CHANGES { Some(update::<H, M::Table>) } else { None },
        xBegin: if M::CHANGES { Some(nothing) } else { None },
        xSync: None,
        xCommit: None,
        xRollback: None,
        xFindFunction: None,
        xRename: None,
        xSavepoint: None,
        xRelease: None,
        xRollbackTo: None,
        xShadowName: None,
        xIntegrity: None,
    };

    /// Drops what a module was given.
    ///
    /// # Safety
    /// C calls it with the pointer that the module was registered with, once.
    pub(crate) unsafe extern "C" fn release(given: *mut c_void) {
        // SAFETY: the pointer was made by `Box::into_raw` of this type, and nobody uses it any more.
        drop(unsafe { Box::from_raw(given.cast::<Given<H, M>>()) });
    }
}

unsafe extern "C" fn nothing(_table: *mut ffi::sqlite3_vtab) -> c_int {
    ffi::SQLITE_OK
}

/// Copies a text into memory of SQLite's.
fn copied(text: &str) -> *mut c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: both texts end in a zero byte.
    unsafe { ffi::sqlite3_mprintf(c"%s".as_ptr(), text.as_ptr()) }
}

/// Makes a callback's result SQLite's.
///
/// # Safety
/// `table` is a table that SQLite holds.
unsafe fn answer(table: *mut ffi::sqlite3_vtab, result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(failure) => {
            // SAFETY: the table's text is SQLite's memory, or null.
            unsafe {
                ffi::sqlite3_free((*table).zErrMsg.cast());
                (*table).zErrMsg = copied(&failure.message);
            }
            failure.code
        }
    }
}

unsafe extern "C" fn connect<H: 'static, M: Module<H>>(
    db: *mut ffi::sqlite3,
    given: *mut c_void,
    _count: c_int,
    words: *const *const c_char,
    out: *mut *mut ffi::sqlite3_vtab,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: SQLite hands what the module was registered with, three words at least, and places for the answers.
    unsafe {
        let given = &*given.cast::<Given<H, M>>();
        let name = CStr::from_ptr(*words.add(2)).to_string_lossy();
        let made = (*given.inner).hosted(|host| given.module.connect(host, &name));
        let failure = match made {
            Ok((table, declaration)) => {
                let declaration = CString::new(declaration.replace('\0', " ")).unwrap_or_default();
                let code = ffi::sqlite3_declare_vtab(db, declaration.as_ptr());
                if code == ffi::SQLITE_OK {
                    ffi::sqlite3_vtab_config(db, ffi::SQLITE_VTAB_CONSTRAINT_SUPPORT, 1 as c_int);
                    ffi::sqlite3_vtab_config(db, ffi::SQLITE_VTAB_INNOCUOUS);
                    let base = ffi::sqlite3_vtab { pModule: ptr::null(), nRef: 0, zErrMsg: ptr::null_mut() };
                    let raw = RawTable::<H, M::Table> { base, inner: given.inner, pool: Vec::new(), table };
                    *out = Box::into_raw(Box::new(raw)).cast();
                    return ffi::SQLITE_OK;
                }
                Failure::from(crate::Error::last(db, code))
            }
            Err(failure) => failure,
        };
        *message = copied(&failure.message);
        failure.code
    }
}

unsafe extern "C" fn disconnect<H, T: Table<H>>(table: *mut ffi::sqlite3_vtab) -> c_int {
    // SAFETY: `connect` has made it, and SQLite is done with it.
    unsafe {
        let raw = Box::from_raw(table.cast::<RawTable<H, T>>());
        let inner = raw.inner;
        // NB: a destructor is the caller's code, too.
        let _ = (*inner).callback(|_| {
            drop(raw);
            Ok(())
        });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn best_index<H, T: Table<H>>(
    table: *mut ffi::sqlite3_vtab,
    info: *mut ffi::sqlite3_index_info,
) -> c_int {
    // SAFETY: `connect` has made the table; the question is valid while the callback runs.
    unsafe {
        let raw = &*table.cast::<RawTable<H, T>>();
        let result = (*raw.inner).callback(|_| raw.table.best_index(&mut IndexInfo::new(info)));
        answer(table, result)
    }
}

unsafe extern "C" fn open<H, T: Table<H>>(
    table: *mut ffi::sqlite3_vtab,
    out: *mut *mut ffi::sqlite3_vtab_cursor,
) -> c_int {
    // SAFETY: `connect` has made the table; nobody else uses its pool while the callback runs.
    unsafe {
        let raw = table.cast::<RawTable<H, T>>();
        let pooled = (*raw).pool.pop();
        let made = (*(*raw).inner).callback(|_| {
            Ok(pooled.unwrap_or_else(|| {
                let base = ffi::sqlite3_vtab_cursor { pVtab: ptr::null_mut() };
                Box::new(RawCursor { base, cursor: (*raw).table.open() })
            }))
        });
        answer(table, made.map(|cursor| *out = Box::into_raw(cursor).cast()))
    }
}

unsafe extern "C" fn close<H, T: Table<H>>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: `open` has made it of the table that it names, and SQLite is done with it.
    unsafe {
        let raw = (*cursor).pVtab.cast::<RawTable<H, T>>();
        let cursor = Box::from_raw(cursor.cast::<RawCursor<T::Cursor>>());
        let pool = &mut (*raw).pool;
        if pool.len() < POOL {
            pool.push(cursor);
        } else {
            let _ = (*(*raw).inner).callback(|_| {
                drop(cursor);
                Ok(())
            });
        }
    }
    ffi::SQLITE_OK
}

/// Runs a callback of a cursor.
///
/// # Safety
/// `open` has made the cursor, and SQLite calls one of its callbacks.
unsafe fn with_cursor<H, T: Table<H>>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    body: impl FnOnce(&T, &mut T::Cursor, &mut H) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller's. SQLite runs one callback of a cursor at a time, and a table is not changed while it has cursors,
    // its pool aside.
    unsafe {
        let table = (*cursor).pVtab;
        let raw = table.cast::<RawTable<H, T>>();
        let walk = &mut (*cursor.cast::<RawCursor<T::Cursor>>()).cursor;
        let table_itself = &*ptr::addr_of!((*raw).table);
        answer(table, (*(*raw).inner).hosted(|host| body(table_itself, walk, host)))
    }
}

unsafe extern "C" fn filter<H, T: Table<H>>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    number: c_int,
    text: *const c_char,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) -> c_int {
    // SAFETY: a callback of a cursor; the text is what the plan has said, or null; the values are lent while it runs.
    unsafe {
        let text = if text.is_null() { "" } else { CStr::from_ptr(text).to_str().unwrap_or("") };
        let arguments = Arguments::new(count, values);
        with_cursor::<H, T>(cursor, |table, walk, host| walk.filter(table, host, number, text, arguments))
    }
}

unsafe extern "C" fn next<H, T: Table<H>>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: a callback of a cursor.
    unsafe { with_cursor::<H, T>(cursor, |table, walk, host| walk.next(table, host)) }
}

unsafe extern "C" fn is_at_end<H, T: Table<H>>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: a callback of a cursor; what it calls takes nothing that could panic but itself, which the edge catches.
    unsafe {
        let raw = (*cursor).pVtab.cast::<RawTable<H, T>>();
        let walk = &(*cursor.cast::<RawCursor<T::Cursor>>()).cursor;
        c_int::from((*(*raw).inner).callback(|_| Ok(walk.is_at_end())).unwrap_or(true))
    }
}

unsafe extern "C" fn column<H, T: Table<H>>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    context: *mut ffi::sqlite3_context,
    column: c_int,
) -> c_int {
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    // SAFETY: a callback of a cursor; the context is valid while it runs.
    unsafe {
        with_cursor::<H, T>(cursor, |table, walk, host| {
            walk.column(table, host, column, &mut Output::new(context))
        })
    }
}

unsafe extern "C" fn rowid<H, T: Table<H>>(cursor: *mut ffi::sqlite3_vtab_cursor, out: *mut i64) -> c_int {
    // SAFETY: a callback of a cursor; there is a place for the answer.
    unsafe {
        with_cursor::<H, T>(cursor, |table, walk, _| {
            *out = walk.rowid(table)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn update<H, T: Table<H>>(
    table: *mut ffi::sqlite3_vtab,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
    out: *mut i64,
) -> c_int {
    // SAFETY: `connect` has made the table; the values are lent while the callback runs, and there is a place for the answer.
    unsafe {
        let raw = table.cast::<RawTable<H, T>>();
        let arguments = Arguments::new(count, values);
        let change = match arguments.len() {
            1 => Change::Delete(arguments.at(0)),
            _ if matches!(arguments.at(0).get(), crate::ValueRef::Null) => {
                Change::Insert(arguments.at(1), arguments.from(2))
            }
            _ => Change::Update(arguments.at(0), arguments.at(1), arguments.from(2)),
        };
        let inner = &*(*raw).inner;
        let conflict = match ffi::sqlite3_vtab_on_conflict(inner.db) {
            ffi::SQLITE_ROLLBACK => Conflict::Rollback,
            ffi::SQLITE_IGNORE => Conflict::Ignore,
            ffi::SQLITE_FAIL => Conflict::Fail,
            ffi::SQLITE_REPLACE => Conflict::Replace,
            _ => Conflict::Abort,
        };
        let table_itself = &*ptr::addr_of!((*raw).table);
        let result = inner.hosted(|host| table_itself.update(host, &change, conflict));
        answer(table, result.map(|rowid| *out = rowid))
    }
}
