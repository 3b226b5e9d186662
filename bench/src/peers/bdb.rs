//! Berkeley DB 5.3: its handles and the methods that the suite calls, found at run time.
//!
//! Methods are function pointers inside the handles. Their places are those of db.h of 5.3 on 64-bit
//! machines, which is one fixed interface: version 5.3 has had no other since 2013; [`version`] is
//! looked at first. Deliberately no more than is used.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::globals::mapped::{Conflict, Entry};
use crate::peers::library::{append, library};
use crate::subject::Result;

type Handle = *mut c_void;
type Method1 = unsafe extern "C" fn(Handle, c_uint) -> c_int;
type Method2 = unsafe extern "C" fn(Handle, c_uint, c_int) -> c_int;
type OpenEnv = unsafe extern "C" fn(Handle, *const c_char, c_uint, c_int) -> c_int;
type CacheSize = unsafe extern "C" fn(Handle, c_uint, c_uint, c_int) -> c_int;
type Begin = unsafe extern "C" fn(Handle, Handle, *mut Handle, c_uint) -> c_int;
type OpenDb =
    unsafe extern "C" fn(Handle, Handle, *const c_char, *const c_char, c_int, c_uint, c_int) -> c_int;
type Access = unsafe extern "C" fn(Handle, Handle, *mut Thing, *mut Thing, c_uint) -> c_int;
type Remove = unsafe extern "C" fn(Handle, Handle, *mut Thing, c_uint) -> c_int;
type MakeCursor = unsafe extern "C" fn(Handle, Handle, *mut Handle, c_uint) -> c_int;
type Step = unsafe extern "C" fn(Handle, *mut Thing, *mut Thing, c_uint) -> c_int;
type Plain = unsafe extern "C" fn(Handle) -> c_int;

/// `DBT`: a byte string.
#[repr(C)]
struct Thing {
    data: *mut c_void,
    size: c_uint,
    _rest: [c_uint; 7],
}

fn thing(bytes: &[u8]) -> Thing {
    Thing { data: bytes.as_ptr().cast_mut().cast(), size: bytes.len() as c_uint, _rest: [0; 7] }
}

const NOT_FOUND: c_int = -30_988;
const DEADLOCK: c_int = -30_993;
const CREATE: c_uint = 0x1;
/// DB_INIT_TXN, _LOG, _LOCK and _MPOOL.
const TRANSACTIONAL: c_uint = 0x2000 | 0x200 | 0x100 | 0x400;
const AUTO_COMMIT: c_uint = 0x100;
const LOG_IN_MEMORY: c_uint = 0x8;
const BTREE: c_int = 1;
const SET_RANGE: c_uint = 0x1b;
const LAST: c_uint = 0xf;
const PREVIOUS: c_uint = 0x17;
const FOR_UPDATE: c_uint = 0x2000;

const ENV_OPEN: usize = 1328;
const ENV_CACHE: usize = 1632;
const ENV_DETECT: usize = 1800;
const ENV_LOCKS: usize = 1816;
const ENV_OBJECTS: usize = 1824;
const ENV_BEGIN: usize = 2040;
const ENV_LOG_BUFFER: usize = 1752;
const ENV_LOG_CONFIG: usize = 1112;
const DB_CACHE: usize = 1096;
const DB_OPEN: usize = 1008;
const DB_GET: usize = 632;
const DB_PUT: usize = 1024;
const DB_REMOVE: usize = 592;
const DB_CURSOR: usize = 584;
const DB_SYNC: usize = 1352;
const CURSOR_GET: usize = 392;
const CURSOR_CLOSE: usize = 352;
const TXN_COMMIT: usize = 240;
const TXN_ABORT: usize = 232;

library! {
    "libdb-5.3.so", "libdb5.3";
    version: "db_version" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    env: "db_env_create" fn(*mut Handle, c_uint) -> c_int;
    db: "db_create" fn(*mut Handle, Handle, c_uint) -> c_int;
    strerror: "db_strerror" fn(c_int) -> *const c_char;
}

/// The version of the library: one whose handles are as they are known here.
///
/// # Errors
/// It is not installed, or is another.
pub(crate) fn version() -> Result<String> {
    let f = functions()?;
    let null = ptr::null_mut;
    // SAFETY: nothing is asked for but the text, which is the library's own.
    let text = unsafe { CStr::from_ptr((f.version)(null(), null(), null())).to_string_lossy().into_owned() };
    if text.contains(" 5.3.") && cfg!(target_pointer_width = "64") {
        return Ok(text);
    }
    Err(format!("the suite knows Berkeley DB 5.3 on 64 bits only, not {text}").into())
}

fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        DEADLOCK => Err(Conflict.into()),
        code => {
            // SAFETY: db_strerror answers a string of its own for every code.
            let text = unsafe { CStr::from_ptr((functions()?.strerror)(code)) };
            Err(format!("Berkeley DB: {}", text.to_string_lossy()).into())
        }
    }
}

/// The method at a place of a handle.
///
/// # Safety
/// The handle is one of Berkeley DB 5.3 whose method there has the type `F`.
unsafe fn method<F: Copy>(handle: Handle, place: usize) -> F {
    // SAFETY: the caller's.
    unsafe { ptr::read(handle.byte_add(place).cast::<F>()) }
}

/// A table of byte strings, with or without an environment of transactions. It is left to the end of the
/// process.
pub(crate) struct Table {
    env: Handle,
    db: Handle,
    txn: Handle,
}

impl Table {
    /// Opens the table in a directory: `shared` with transactions, whose log is on disk if `logged`;
    /// otherwise for this process alone. The cache has `cache` bytes; 0 leaves the default.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn open(directory: &Path, shared: bool, logged: bool, cache: c_uint) -> Result<Table> {
        version()?;
        let f = functions()?;
        let home = CString::new(directory.as_os_str().as_bytes())?;
        let file = CString::new(directory.join("bench.bdb").as_os_str().as_bytes())?;
        let null = ptr::null_mut();
        let mut table = Table { env: null, db: null, txn: null };
        // SAFETY: handles are made first, set up, and opened once; strings outlive the calls.
        unsafe {
            if shared {
                check((f.env)(&mut table.env, 0))?;
                let env = table.env;
                check(method::<CacheSize>(env, ENV_CACHE)(env, 0, cache, 1))?;
                check(method::<Method1>(env, ENV_DETECT)(env, 1))?;
                check(method::<Method1>(env, ENV_LOCKS)(env, 200_000))?;
                check(method::<Method1>(env, ENV_OBJECTS)(env, 200_000))?;
                if !logged {
                    check(method::<Method2>(env, ENV_LOG_CONFIG)(env, LOG_IN_MEMORY, 1))?;
                    check(method::<Method1>(env, ENV_LOG_BUFFER)(env, 64 << 20))?;
                }
                check(method::<OpenEnv>(env, ENV_OPEN)(env, home.as_ptr(), CREATE | TRANSACTIONAL, 0o600))?;
            }
            check((f.db)(&mut table.db, table.env, 0))?;
            let db = table.db;
            if !shared && cache > 0 {
                check(method::<CacheSize>(db, DB_CACHE)(db, 0, cache, 1))?;
            }
            let flags = if shared { CREATE | AUTO_COMMIT } else { CREATE };
            let open = method::<OpenDb>(db, DB_OPEN);
            check(open(db, null, file.as_ptr(), ptr::null(), BTREE, flags, 0o600))?;
        }
        Ok(table)
    }

    fn for_update(&self) -> c_uint {
        if self.txn.is_null() {
            0
        } else {
            FOR_UPDATE
        }
    }

    /// Runs `body`; outside a transaction again as long as it ends in a deadlock. Inside one, the whole transaction
    /// must begin again.
    fn insist(&self, body: impl Fn() -> c_int) -> c_int {
        loop {
            let code = body();
            if code != DEADLOCK || !self.txn.is_null() {
                return code;
            }
        }
    }

    /// Appends the value; false if there is none.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (db, txn) = (self.db, self.txn);
        let mut found = thing(&[]);
        let place = &raw mut found;
        // SAFETY: the key outlives the call; the value lasts until the next on this handle.
        let code = self.insist(|| unsafe {
            method::<Access>(db, DB_GET)(db, txn, &mut thing(key), place, self.for_update())
        });
        if code == NOT_FOUND {
            return Ok(false);
        }
        check(code)?;
        // SAFETY: Berkeley DB answers `size` readable bytes that last until the next call.
        unsafe { append(found.data.cast(), found.size as usize, value) };
        Ok(true)
    }

    /// Sets a value.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (db, txn) = (self.db, self.txn);
        // SAFETY: key and value outlive the call, which copies them.
        check(self.insist(|| unsafe {
            method::<Access>(db, DB_PUT)(db, txn, &mut thing(key), &mut thing(value), 0)
        }))
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<()> {
        let (db, txn) = (self.db, self.txn);
        // SAFETY: the key outlives the call.
        let code = self.insist(|| unsafe { method::<Remove>(db, DB_REMOVE)(db, txn, &mut thing(key), 0) });
        if code == NOT_FOUND {
            return Ok(());
        }
        check(code)
    }

    /// Finds the first entry from a key on, or the last before it.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn search(&self, at: &[u8], found: &mut Entry, before: bool) -> Result<bool> {
        let (mut key, mut value) = (thing(at), thing(&[]));
        let mut cursor = ptr::null_mut();
        // SAFETY: the cursor is made and closed here; key and value are copied before it is closed.
        unsafe {
            check(method::<MakeCursor>(self.db, DB_CURSOR)(self.db, self.txn, &mut cursor, 0))?;
            let step = method::<Step>(cursor, CURSOR_GET);
            let mut code = step(cursor, &mut key, &mut value, SET_RANGE);
            if before {
                let way = if code == NOT_FOUND { LAST } else { PREVIOUS };
                code = step(cursor, &mut key, &mut value, way);
            }
            if code == 0 {
                found.key.clear();
                found.value.clear();
                append(key.data.cast(), key.size as usize, &mut found.key);
                append(value.data.cast(), value.size as usize, &mut found.value);
            }
            method::<Plain>(cursor, CURSOR_CLOSE)(cursor);
            if code == NOT_FOUND {
                return Ok(false);
            }
            check(code).map(|()| true)
        }
    }

    /// Begins a transaction, where there are any.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.env.is_null() {
            return Ok(());
        }
        // SAFETY: the environment is open, and no transaction of ours is.
        check(unsafe { method::<Begin>(self.env, ENV_BEGIN)(self.env, ptr::null_mut(), &mut self.txn, 0) })
    }

    /// Ends it, with effect or without.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn end(&mut self, commit: bool) -> Result<()> {
        let txn = std::mem::replace(&mut self.txn, ptr::null_mut());
        if txn.is_null() {
            return Ok(());
        }
        // SAFETY: the transaction has begun, and is used no more.
        check(unsafe {
            match commit {
                true => method::<Method1>(txn, TXN_COMMIT)(txn, 0),
                false => method::<Plain>(txn, TXN_ABORT)(txn),
            }
        })
    }

    /// Writes what is cached to the file.
    ///
    /// # Errors
    /// Berkeley DB's own.
    pub(crate) fn sync(&self) -> Result<()> {
        // SAFETY: the table is open.
        check(unsafe { method::<Method1>(self.db, DB_SYNC)(self.db, 0) })
    }
}
