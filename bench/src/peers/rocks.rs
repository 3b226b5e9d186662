//! RocksDB as an ordered map of bytes, by its C interface: a write batch as transaction.
//!
//! Declared by hand after rocksdb/c.h of version 7.8; deliberately no more than is used.

use std::ffi::{c_char, c_uchar, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::globals::mapped::{Entry, Store};
use crate::peers::subjects::Site;
use crate::subject::{Class, Result};

type Handle = *mut c_void;
type Failure = *mut *mut c_char;
type Bytes = *const c_char;

macro_rules! functions {
    ($($field:ident: $symbol:literal fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        fn load(library: &Library) -> std::result::Result<Functions, libloading::Error> {
            // SAFETY: the types are those of rocksdb/c.h; the library is never unloaded.
            Ok(unsafe { Functions { $($field: *library.get($symbol)?,)* } })
        }
    };
}

functions! {
    options: b"rocksdb_options_create\0" fn() -> Handle;
    create_if_missing: b"rocksdb_options_set_create_if_missing\0" fn(Handle, c_uchar);
    write_buffer_size: b"rocksdb_options_set_write_buffer_size\0" fn(Handle, usize);
    open: b"rocksdb_open\0" fn(Handle, Bytes, Failure) -> Handle;
    writing: b"rocksdb_writeoptions_create\0" fn() -> Handle;
    disable_wal: b"rocksdb_writeoptions_disable_WAL\0" fn(Handle, std::ffi::c_int);
    sync: b"rocksdb_writeoptions_set_sync\0" fn(Handle, c_uchar);
    reading: b"rocksdb_readoptions_create\0" fn() -> Handle;
    get: b"rocksdb_get\0" fn(Handle, Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    batch: b"rocksdb_writebatch_create\0" fn() -> Handle;
    batch_put: b"rocksdb_writebatch_put\0" fn(Handle, Bytes, usize, Bytes, usize);
    batch_delete: b"rocksdb_writebatch_delete\0" fn(Handle, Bytes, usize);
    batch_clear: b"rocksdb_writebatch_clear\0" fn(Handle);
    write: b"rocksdb_write\0" fn(Handle, Handle, Handle, Failure);
    iterator: b"rocksdb_create_iterator\0" fn(Handle, Handle) -> Handle;
    seek: b"rocksdb_iter_seek\0" fn(Handle, Bytes, usize);
    seek_for_prev: b"rocksdb_iter_seek_for_prev\0" fn(Handle, Bytes, usize);
    prev: b"rocksdb_iter_prev\0" fn(Handle);
    valid: b"rocksdb_iter_valid\0" fn(Handle) -> c_uchar;
    key: b"rocksdb_iter_key\0" fn(Handle, *mut usize) -> Bytes;
    value: b"rocksdb_iter_value\0" fn(Handle, *mut usize) -> Bytes;
    iterator_destroy: b"rocksdb_iter_destroy\0" fn(Handle);
    flush_options: b"rocksdb_flushoptions_create\0" fn() -> Handle;
    flush: b"rocksdb_flush\0" fn(Handle, Handle, Failure);
    free: b"rocksdb_free\0" fn(*mut c_void);
}

/// Is the library there?
///
/// # Errors
/// It is not, or it is another version.
pub(crate) fn present() -> Result<()> {
    functions().map(|_| ())
}

fn functions() -> Result<&'static Functions> {
    static LOADED: OnceLock<std::result::Result<Functions, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        // SAFETY: the library of the system has no constructors that ask anything of us.
        let library = unsafe { Library::new("librocksdb.so.7.8") };
        let library = library.map_err(|error| format!("install librocksdb7.8: {error}"))?;
        let found = load(&library).map_err(|error| format!("this librocksdb is another: {error}"));
        // The functions are used until the process ends.
        std::mem::forget(library);
        found
    });
    loaded.as_ref().map_err(|error| error.clone().into())
}

/// A database of this process.
pub(crate) struct Rocks {
    f: &'static Functions,
    db: Handle,
    writing: Handle,
    reading: Handle,
    batch: Handle,
    within: bool,
}

/// What RocksDB has to say, as a result.
fn check(f: &Functions, failure: *mut c_char) -> Result<()> {
    if failure.is_null() {
        return Ok(());
    }
    // SAFETY: a string of RocksDB's own, which is freed once.
    let text = unsafe { CStr::from_ptr(failure).to_string_lossy().into_owned() };
    // SAFETY: as above.
    unsafe { (f.free)(failure.cast()) };
    Err(format!("RocksDB: {text}").into())
}

/// Opens the database in the directory of a side.
///
/// # Errors
/// RocksDB's own.
pub(crate) fn open(site: &Site) -> Result<Rocks> {
    let f = functions()?;
    let path = CString::new(site.directory.join("rocks").as_os_str().as_bytes())?;
    let mut failure = ptr::null_mut();
    // SAFETY: options are made and set before they are used, and last as long as the process.
    let rocks = unsafe {
        let options = (f.options)();
        (f.create_if_missing)(options, 1);
        (f.write_buffer_size)(options, 256 << 20);
        let (writing, reading, batch) = ((f.writing)(), (f.reading)(), (f.batch)());
        (f.disable_wal)(writing, i32::from(site.class == Class::D4));
        (f.sync)(writing, u8::from(site.class == Class::D1));
        let db = (f.open)(options, path.as_ptr(), &mut failure);
        Rocks { f, db, writing, reading, batch, within: false }
    };
    check(f, failure)?;
    Ok(rocks)
}

impl Rocks {
    fn written(&mut self) -> Result<()> {
        let mut failure = ptr::null_mut();
        if !self.within {
            // SAFETY: the database is open; the batch is ours.
            unsafe {
                (self.f.write)(self.db, self.writing, self.batch, &mut failure);
                (self.f.batch_clear)(self.batch);
            }
        }
        check(self.f, failure)
    }

    fn search(&self, at: &[u8], found: &mut Entry, before: bool) -> bool {
        let f = self.f;
        // SAFETY: the iterator is ours and destroyed here; key and value last until it moves.
        unsafe {
            let iterator = (f.iterator)(self.db, self.reading);
            let seek = if before { f.seek_for_prev } else { f.seek };
            seek(iterator, at.as_ptr().cast(), at.len());
            let bytes = |of: unsafe extern "C" fn(Handle, *mut usize) -> Bytes, into: &mut Vec<u8>| {
                let mut length = 0;
                let start = of(iterator, &mut length).cast::<u8>();
                into.clear();
                into.extend_from_slice(std::slice::from_raw_parts(start, length));
            };
            let mut stands = (f.valid)(iterator) == 1;
            if stands && before {
                bytes(f.key, &mut found.key);
                if found.key == at {
                    (f.prev)(iterator);
                    stands = (f.valid)(iterator) == 1;
                }
            }
            if stands {
                bytes(f.key, &mut found.key);
                bytes(f.value, &mut found.value);
            }
            (f.iterator_destroy)(iterator);
            stands
        }
    }
}

impl Store for Rocks {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (mut length, mut failure) = (0, ptr::null_mut());
        // SAFETY: the key outlives the call; what is answered is copied and freed once.
        let start = unsafe {
            (self.f.get)(self.db, self.reading, key.as_ptr().cast(), key.len(), &mut length, &mut failure)
        };
        check(self.f, failure)?;
        if start.is_null() {
            return Ok(false);
        }
        // SAFETY: as above.
        unsafe {
            value.extend_from_slice(std::slice::from_raw_parts(start.cast::<u8>(), length));
            (self.f.free)(start.cast());
        }
        Ok(true)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the batch copies both.
        unsafe { (self.f.batch_put)(self.batch, key_at, key.len(), value_at, value.len()) };
        self.written()
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the batch copies it.
        unsafe { (self.f.batch_delete)(self.batch, key.as_ptr().cast(), key.len()) };
        self.written()
    }

    fn seek(&mut self, from: &[u8], found: &mut Entry) -> Result<bool> {
        Ok(self.search(from, found, false))
    }

    fn seek_before(&mut self, to: &[u8], found: &mut Entry) -> Result<bool> {
        Ok(self.search(to, found, true))
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
        let mut failure = ptr::null_mut();
        // SAFETY: the database is open.
        unsafe { (self.f.flush)(self.db, (self.f.flush_options)(), &mut failure) };
        check(self.f, failure)
    }
}
