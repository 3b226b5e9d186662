//! LMDB as an ordered map of bytes: one table, a reader and its cursor that are renewed for each operation.

use std::ffi::{c_uint, CString};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::library::{
    check, functions, Bytes, CursorPointer, Env, Functions, Txn, CREATE, NOT_FOUND, NO_SYNC, NO_TLS,
    READ_ONLY, SET_RANGE, WRITE_MAP,
};
use crate::globals::mapped::{Entry, Store};
use crate::peers::subjects::Site;
use crate::subject::{Class, Result};

const LAST: c_uint = 6;
const PREVIOUS: c_uint = 12;
/// Room in the address space; the file is sparse.
const MAP_BYTES: usize = 8 << 30;

/// An environment and what reads and writes in it.
pub(crate) struct Lmdb {
    f: &'static Functions,
    env: Env,
    table: c_uint,
    /// A read transaction, reset between operations, and its cursor.
    reader: Txn,
    cursor: CursorPointer,
    /// The transaction that has begun, or null.
    writer: Txn,
    writer_cursor: CursorPointer,
    /// When the environment is to be flushed next: D3.
    flush: Option<std::time::Instant>,
}

/// Opens the environment in the directory of a side, with the flags of its class.
///
/// # Errors
/// LMDB's own.
pub(crate) fn open(site: &Site) -> Result<Lmdb> {
    let f = functions()?;
    let path = CString::new(site.directory.as_os_str().as_bytes())?;
    let flags = match site.class {
        Class::D1 | Class::D2 => NO_TLS,
        Class::D3 => NO_TLS | NO_SYNC,
        Class::D4 => NO_TLS | NO_SYNC | WRITE_MAP,
    };
    let flush = (site.class == Class::D3).then(std::time::Instant::now);
    let null = ptr::null_mut();
    let mut lmdb =
        Lmdb { f, env: null, table: 0, reader: null, cursor: null, writer: null, writer_cursor: null, flush };
    // SAFETY: the environment is made, set up and opened once, in the order lmdb.h asks for; the first
    // transaction ends before the reader begins, to which the cursor belongs.
    unsafe {
        check(f, (f.env_create)(&mut lmdb.env))?;
        check(f, (f.env_set_mapsize)(lmdb.env, MAP_BYTES))?;
        check(f, (f.env_open)(lmdb.env, path.as_ptr(), flags, 0o600))?;
        let mut txn = null;
        check(f, (f.txn_begin)(lmdb.env, null, 0, &mut txn))?;
        check(f, (f.dbi_open)(txn, ptr::null(), CREATE, &mut lmdb.table))?;
        check(f, (f.txn_commit)(txn))?;
        check(f, (f.txn_begin)(lmdb.env, null, READ_ONLY, &mut lmdb.reader))?;
        check(f, (f.cursor_open)(lmdb.reader, lmdb.table, &mut lmdb.cursor))?;
        (f.txn_reset)(lmdb.reader);
    }
    Ok(lmdb)
}

fn bytes(slice: &[u8]) -> Bytes {
    Bytes { size: slice.len(), data: slice.as_ptr().cast_mut().cast() }
}

/// Appends what LMDB answered.
fn append(found: &Bytes, to: &mut Vec<u8>) {
    // SAFETY: LMDB answers `size` readable bytes that last as long as the transaction.
    to.extend_from_slice(unsafe { std::slice::from_raw_parts(found.data.cast::<u8>(), found.size) });
}

impl Lmdb {
    /// Runs `body` in the transaction that has begun, or in the renewed reader.
    #[inline]
    fn read<R>(&self, body: impl FnOnce(Txn, CursorPointer) -> Result<R>) -> Result<R> {
        if !self.writer.is_null() {
            return body(self.writer, self.writer_cursor);
        }
        // SAFETY: the reader is reset; the cursor is its own; nothing that was read outlives the body.
        unsafe {
            check(self.f, (self.f.txn_renew)(self.reader))?;
            let result = body(self.reader, self.cursor);
            (self.f.txn_reset)(self.reader);
            result
        }
    }

    /// Runs `body` in the transaction that has begun, or in one of its own.
    #[inline]
    fn write(&mut self, body: impl FnOnce(&Functions, Txn, c_uint) -> Result<()>) -> Result<()> {
        if !self.writer.is_null() {
            return body(self.f, self.writer, self.table);
        }
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open; the transaction ends here, whatever the body does.
        unsafe {
            check(self.f, (self.f.txn_begin)(self.env, ptr::null_mut(), 0, &mut txn))?;
            if let Err(error) = body(self.f, txn, self.table) {
                (self.f.txn_abort)(txn);
                return Err(error);
            }
            check(self.f, (self.f.txn_commit)(txn))?;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        if self.flush.is_some_and(|last| last.elapsed().as_secs() >= 1) {
            // SAFETY: the environment is open.
            check(self.f, unsafe { (self.f.env_sync)(self.env, 1) })?;
            self.flush = Some(std::time::Instant::now());
        }
        Ok(())
    }

    /// Moves a cursor; true if it stands at an entry.
    fn step(&self, cursor: CursorPointer, way: c_uint, key: &mut Bytes, value: &mut Bytes) -> Result<bool> {
        // SAFETY: the cursor belongs to a transaction that is open.
        match unsafe { (self.f.cursor_get)(cursor, key, value, way) } {
            0 => Ok(true),
            NOT_FOUND => Ok(false),
            code => check(self.f, code).map(|()| false),
        }
    }
}

impl Store for Lmdb {
    #[inline]
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut found = bytes(&[]);
        // SAFETY: key and place for the value outlive the call; the value is copied while it lasts.
        self.read(|txn, _| match unsafe { (self.f.get)(txn, self.table, &bytes(key), &mut found) } {
            0 => {
                append(&found, value);
                Ok(true)
            }
            NOT_FOUND => Ok(false),
            code => check(self.f, code).map(|()| false),
        })
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|f, txn, table| {
            // SAFETY: LMDB copies key and value, which outlive the call.
            check(f, unsafe { (f.put)(txn, table, &bytes(key), &mut bytes(value), 0) })
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the key outlives the call; null: the whole entry.
        self.write(|f, txn, table| match unsafe { (f.del)(txn, table, &bytes(key), ptr::null()) } {
            NOT_FOUND => Ok(()),
            code => check(f, code),
        })
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        self.read(|txn, cursor| {
            if txn == self.reader {
                // SAFETY: the cursor was made in this reader, which is open.
                check(self.f, unsafe { (self.f.cursor_renew)(txn, cursor) })?;
            }
            let (mut key, mut value) = (bytes(at), bytes(&[]));
            let mut stands = self.step(cursor, SET_RANGE, &mut key, &mut value)?;
            if before {
                let way = if stands { PREVIOUS } else { LAST };
                stands = self.step(cursor, way, &mut key, &mut value)?;
            }
            found.key.clear();
            found.value.clear();
            if stands {
                append(&key, &mut found.key);
                append(&value, &mut found.value);
            }
            Ok(stands)
        })
    }

    fn begin(&mut self) -> Result<()> {
        // SAFETY: no transaction of ours writes; the cursor belongs to the new one.
        unsafe {
            check(self.f, (self.f.txn_begin)(self.env, ptr::null_mut(), 0, &mut self.writer))?;
            check(self.f, (self.f.cursor_open)(self.writer, self.table, &mut self.writer_cursor))
        }
    }

    fn commit(&mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.writer, ptr::null_mut());
        // SAFETY: the transaction has begun; its cursor goes first, and both are used no more.
        check(self.f, unsafe {
            (self.f.cursor_close)(self.writer_cursor);
            (self.f.txn_commit)(txn)
        })?;
        self.flush()
    }

    fn abort(&mut self) -> Result<()> {
        let txn = std::mem::replace(&mut self.writer, ptr::null_mut());
        if !txn.is_null() {
            // SAFETY: as in `commit`.
            unsafe {
                (self.f.cursor_close)(self.writer_cursor);
                (self.f.txn_abort)(txn);
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        // SAFETY: the environment is open, and left to the end of the process.
        check(self.f, unsafe { (self.f.env_sync)(self.env, 1) })
    }
}
