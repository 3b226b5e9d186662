//! RocksDB for one process, by its C interface (rocksdb/c.h of 7.8): a write batch as transaction.

use std::ffi::{c_char, c_int, c_uchar, c_void, CStr, CString};

use super::{Side, Site, EMBEDDED};
use crate::globals::mapped::{Entry, Mapped, Store};
use crate::peers::library::{append, library};
use crate::subject::{Class, Result};

type Handle = *mut c_void;
type Failure = *mut *mut c_char;

library! {
    "librocksdb.so.7.8", "librocksdb7.8";
    options: "rocksdb_options_create" fn() -> Handle;
    create_if_missing: "rocksdb_options_set_create_if_missing" fn(Handle, c_uchar);
    write_buffer_size: "rocksdb_options_set_write_buffer_size" fn(Handle, usize);
    open: "rocksdb_open" fn(Handle, *const c_char, Failure) -> Handle;
    writing: "rocksdb_writeoptions_create" fn() -> Handle;
    disable_wal: "rocksdb_writeoptions_disable_WAL" fn(Handle, c_int);
    sync: "rocksdb_writeoptions_set_sync" fn(Handle, c_uchar);
    reading: "rocksdb_readoptions_create" fn() -> Handle;
    get: "rocksdb_get" fn(Handle, Handle, *const u8, usize, *mut usize, Failure) -> *mut u8;
    batch: "rocksdb_writebatch_create" fn() -> Handle;
    batch_put: "rocksdb_writebatch_put" fn(Handle, *const u8, usize, *const u8, usize);
    batch_delete: "rocksdb_writebatch_delete" fn(Handle, *const u8, usize);
    batch_clear: "rocksdb_writebatch_clear" fn(Handle);
    write: "rocksdb_write" fn(Handle, Handle, Handle, Failure);
    iterator: "rocksdb_create_iterator" fn(Handle, Handle) -> Handle;
    seek: "rocksdb_iter_seek" fn(Handle, *const u8, usize);
    seek_for_prev: "rocksdb_iter_seek_for_prev" fn(Handle, *const u8, usize);
    prev: "rocksdb_iter_prev" fn(Handle);
    valid: "rocksdb_iter_valid" fn(Handle) -> c_uchar;
    key: "rocksdb_iter_key" fn(Handle, *mut usize) -> *const u8;
    value: "rocksdb_iter_value" fn(Handle, *mut usize) -> *const u8;
    iterator_destroy: "rocksdb_iter_destroy" fn(Handle);
    flush_options: "rocksdb_flushoptions_create" fn() -> Handle;
    flush: "rocksdb_flush" fn(Handle, Handle, Failure);
    free: "rocksdb_free" fn(*mut c_void);
}

const D4: Side = Side {
    name: "rocksdb",
    settings: "disableWAL, memtable 256 MiB; one process",
    processes: false,
    version: || functions().map(|_| "7.8 (librocksdb.so.7.8)".to_owned()),
    open: |site| Ok(Box::new(Mapped::new(open(site)?))),
    ..EMBEDDED
};

pub(crate) const SIDES: &[Side] = &[D4, Side { class: Class::D1, settings: "sync=1; one process", ..D4 }];

/// A database of this process: its options, and the batch, which outside of transactions is written at once.
struct Rocks {
    f: &'static Functions,
    db: Handle,
    writing: Handle,
    reading: Handle,
    batch: Handle,
    within: bool,
}

fn open(site: &Site) -> Result<Rocks> {
    let path = site.directory.join("rocks").into_os_string().into_encoded_bytes();
    let (f, path) = (functions()?, CString::new(path)?);
    // SAFETY: options are made and set before they are used, and last as long as the process.
    unsafe {
        let (options, writing, reading, batch) = ((f.options)(), (f.writing)(), (f.reading)(), (f.batch)());
        (f.create_if_missing)(options, 1);
        (f.write_buffer_size)(options, 256 << 20);
        (f.disable_wal)(writing, c_int::from(site.class == Class::D4));
        (f.sync)(writing, u8::from(site.class == Class::D1));
        let db = heed(f, |failure| (f.open)(options, path.as_ptr(), failure))?;
        Ok(Rocks { f, db, writing, reading, batch, within: false })
    }
}

/// Makes a call, and a result of what it says about its failure.
fn heed<R>(f: &Functions, call: impl FnOnce(Failure) -> R) -> Result<R> {
    let mut failure = std::ptr::null_mut();
    let result = call(&mut failure);
    if failure.is_null() {
        return Ok(result);
    }
    // SAFETY: a string of RocksDB's own, which is copied and freed once.
    let text = unsafe { CStr::from_ptr(failure).to_string_lossy().into_owned() };
    // SAFETY: the string is RocksDB's own, has been copied, and is freed only here.
    unsafe { (f.free)(failure.cast()) };
    Err(format!("RocksDB: {text}").into())
}

impl Rocks {
    /// Writes the batch, unless a transaction does it later.
    fn written(&mut self) -> Result<()> {
        if self.within {
            return Ok(());
        }
        // SAFETY: the database is open; the batch is ours.
        heed(self.f, |failure| unsafe {
            (self.f.write)(self.db, self.writing, self.batch, failure);
            (self.f.batch_clear)(self.batch);
        })
    }
}

impl Store for Rocks {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (f, mut length) = (self.f, 0);
        // SAFETY: the key outlives the call; what is answered is copied, and freed once.
        unsafe {
            let found = heed(f, |failure| {
                (f.get)(self.db, self.reading, key.as_ptr(), key.len(), &mut length, failure)
            })?;
            append(found, length, value);
            (f.free)(found.cast());
            Ok(!found.is_null())
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the batch copies both.
        unsafe { (self.f.batch_put)(self.batch, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        self.written()
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the batch copies it.
        unsafe { (self.f.batch_delete)(self.batch, key.as_ptr(), key.len()) };
        self.written()
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        let (f, mut length) = (self.f, 0);
        found.key.clear();
        found.value.clear();
        // SAFETY: the iterator is ours and destroyed here; key and value last until it moves.
        unsafe {
            let iterator = (f.iterator)(self.db, self.reading);
            (if before { f.seek_for_prev } else { f.seek })(iterator, at.as_ptr(), at.len());
            if before && (f.valid)(iterator) == 1 {
                let key = (f.key)(iterator, &mut length);
                if std::slice::from_raw_parts(key, length) == at {
                    (f.prev)(iterator);
                }
            }
            let stands = (f.valid)(iterator) == 1;
            if stands {
                append((f.key)(iterator, &mut length), length, &mut found.key);
                append((f.value)(iterator, &mut length), length, &mut found.value);
            }
            (f.iterator_destroy)(iterator);
            Ok(stands)
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.within = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.within = false;
        self.written()
    }

    fn abort(&mut self) -> Result<()> {
        self.within = false;
        // SAFETY: the batch is ours.
        unsafe { (self.f.batch_clear)(self.batch) };
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        // SAFETY: the database is open.
        heed(self.f, |failure| unsafe { (self.f.flush)(self.db, (self.f.flush_options)(), failure) })
    }
}
