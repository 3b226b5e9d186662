//! The functions of liblmdb that the suite calls, found at run time.
//!
//! Declared by hand after lmdb.h of version 0.9; deliberately no more than is used.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

use crate::peers::library::library;
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

library! {
    "liblmdb.so.0", "liblmdb0";
    version: "mdb_version" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    strerror: "mdb_strerror" fn(c_int) -> *const c_char;
    env_create: "mdb_env_create" fn(*mut Env) -> c_int;
    env_set_mapsize: "mdb_env_set_mapsize" fn(Env, usize) -> c_int;
    env_open: "mdb_env_open" fn(Env, *const c_char, c_uint, c_uint) -> c_int;
    env_copy2: "mdb_env_copy2" fn(Env, *const c_char, c_uint) -> c_int;
    env_close: "mdb_env_close" fn(Env);
    txn_begin: "mdb_txn_begin" fn(Env, Txn, c_uint, *mut Txn) -> c_int;
    txn_commit: "mdb_txn_commit" fn(Txn) -> c_int;
    txn_abort: "mdb_txn_abort" fn(Txn);
    txn_reset: "mdb_txn_reset" fn(Txn);
    txn_renew: "mdb_txn_renew" fn(Txn) -> c_int;
    dbi_open: "mdb_dbi_open" fn(Txn, *const c_char, c_uint, *mut c_uint) -> c_int;
    get: "mdb_get" fn(Txn, c_uint, *const Bytes, *mut Bytes) -> c_int;
    put: "mdb_put" fn(Txn, c_uint, *const Bytes, *mut Bytes, c_uint) -> c_int;
    del: "mdb_del" fn(Txn, c_uint, *const Bytes, *const Bytes) -> c_int;
    env_sync: "mdb_env_sync" fn(Env, c_int) -> c_int;
    cursor_open: "mdb_cursor_open" fn(Txn, c_uint, *mut CursorPointer) -> c_int;
    cursor_renew: "mdb_cursor_renew" fn(Txn, CursorPointer) -> c_int;
    cursor_close: "mdb_cursor_close" fn(CursorPointer);
    cursor_get: "mdb_cursor_get" fn(CursorPointer, *mut Bytes, *mut Bytes, c_uint) -> c_int;
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
