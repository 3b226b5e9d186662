//! The functions of liblmdb that the suite calls, found at run time.
//!
//! Declared by hand after lmdb.h of version 0.9; deliberately no more than is used.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::sync::OnceLock;

use libloading::Library;

use crate::subject::Result;

/// `MDB_val`: a byte string.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) size: usize,
    pub(crate) data: *mut c_void,
}

pub(crate) type Env = *mut c_void;
pub(crate) type Txn = *mut c_void;
pub(crate) type CursorPointer = *mut c_void;

pub(crate) const NOT_FOUND: c_int = -30_798;
pub(crate) const NO_SYNC: c_uint = 0x1_0000;
pub(crate) const READ_ONLY: c_uint = 0x2_0000;
pub(crate) const CREATE: c_uint = 0x4_0000;
pub(crate) const WRITE_MAP: c_uint = 0x8_0000;
pub(crate) const NO_TLS: c_uint = 0x20_0000;
pub(crate) const INTEGER_KEY: c_uint = 0x08;
pub(crate) const NEXT: c_uint = 8;
pub(crate) const COPY_COMPACT: c_uint = 1;
pub(crate) const SET_RANGE: c_uint = 17;

macro_rules! functions {
    ($($field:ident: $symbol:literal fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without `mdb_`.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        fn load(library: &Library) -> std::result::Result<Functions, libloading::Error> {
            // SAFETY: the types are those of lmdb.h; the library is never unloaded.
            Ok(unsafe { Functions { $($field: *library.get($symbol)?,)* } })
        }
    };
}

functions! {
    version: b"mdb_version\0" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    strerror: b"mdb_strerror\0" fn(c_int) -> *const c_char;
    env_create: b"mdb_env_create\0" fn(*mut Env) -> c_int;
    env_set_mapsize: b"mdb_env_set_mapsize\0" fn(Env, usize) -> c_int;
    env_open: b"mdb_env_open\0" fn(Env, *const c_char, c_uint, c_uint) -> c_int;
    env_copy2: b"mdb_env_copy2\0" fn(Env, *const c_char, c_uint) -> c_int;
    env_close: b"mdb_env_close\0" fn(Env);
    txn_begin: b"mdb_txn_begin\0" fn(Env, Txn, c_uint, *mut Txn) -> c_int;
    txn_commit: b"mdb_txn_commit\0" fn(Txn) -> c_int;
    txn_abort: b"mdb_txn_abort\0" fn(Txn);
    txn_reset: b"mdb_txn_reset\0" fn(Txn);
    txn_renew: b"mdb_txn_renew\0" fn(Txn) -> c_int;
    dbi_open: b"mdb_dbi_open\0" fn(Txn, *const c_char, c_uint, *mut c_uint) -> c_int;
    get: b"mdb_get\0" fn(Txn, c_uint, *const Bytes, *mut Bytes) -> c_int;
    put: b"mdb_put\0" fn(Txn, c_uint, *const Bytes, *mut Bytes, c_uint) -> c_int;
    del: b"mdb_del\0" fn(Txn, c_uint, *const Bytes, *const Bytes) -> c_int;
    env_sync: b"mdb_env_sync\0" fn(Env, c_int) -> c_int;
    cursor_open: b"mdb_cursor_open\0" fn(Txn, c_uint, *mut CursorPointer) -> c_int;
    cursor_renew: b"mdb_cursor_renew\0" fn(Txn, CursorPointer) -> c_int;
    cursor_close: b"mdb_cursor_close\0" fn(CursorPointer);
    cursor_get: b"mdb_cursor_get\0" fn(CursorPointer, *mut Bytes, *mut Bytes, c_uint) -> c_int;
}

/// The functions, loaded at the first call.
///
/// # Errors
/// The library is not installed.
pub(crate) fn functions() -> Result<&'static Functions> {
    static LOADED: OnceLock<std::result::Result<Functions, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        // SAFETY: the library of the system has no constructors that ask anything of us.
        let library = unsafe { Library::new("liblmdb.so.0") };
        let library = library.map_err(|error| format!("install liblmdb0: {error}"))?;
        let found = load(&library).map_err(|error| format!("this liblmdb is not version 0.9: {error}"));
        // The functions are used until the process ends.
        std::mem::forget(library);
        found
    });
    loaded.as_ref().map_err(|error| error.clone().into())
}

/// What LMDB answers, as a result.
#[inline]
pub(crate) fn check(functions: &Functions, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: mdb_strerror answers a string of its own for every code.
    let text = unsafe { CStr::from_ptr((functions.strerror)(code)) };
    Err(format!("LMDB: {}", text.to_string_lossy()).into())
}
