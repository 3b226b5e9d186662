//! `perilune_db`: an open database, and what can be asked of it.
//!
//! Invariant: sessions hold the database open by themselves, so that closing it never takes anything
//! from under them.

use std::ffi::{c_char, c_int, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use perilune::OpenOptions;

use crate::edge::{given, place, thread_call};
use crate::options::{durability, limit, read};
use crate::status::{Failure, OK};

/// `perilune_db`.
pub struct Database {
    pub(crate) inner: perilune::Database,
    path: CString,
}

/// `perilune_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Bytes of the struct that the caller knows.
    pub size: u32,
    /// 1: create it when missing.
    pub create: i32,
    /// 1: refuse writes.
    pub read_only: i32,
    /// `enum perilune_durability`.
    pub durability: i32,
    /// Bytes the file may take; 0: the default.
    pub max_size: u64,
    /// Seconds; 0: the default.
    pub timeout: f64,
    /// Permissions; 0: the default.
    pub file_mode: u32,
    /// 1: also on btrfs and zfs.
    pub any_filesystem: i32,
    /// Where the shared memory file lies, or NULL.
    pub shm_dir: *const c_char,
    /// 1: also without commits that a damaged log held.
    pub accept_lost_commits: i32,
    /// Reserved for later versions: 0.
    pub reserved: i32,
    /// Seconds; 0: the default.
    pub wait_limit: f64,
}

const _: () = assert!(size_of::<Options>() == 64);

/// `perilune_limits`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bytes of the struct that the caller knows.
    pub size: u32,
    /// Subscripts of a node.
    pub subscripts: u32,
    /// Bytes of a key in the database.
    pub key_bytes: u64,
    /// Bytes of a private key.
    pub private_key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Nested levels.
    pub transaction_depth: u32,
    /// Reserved for later versions: 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Limits>() == 40);

/// # Safety
/// `shm_dir` is NULL or a string.
unsafe fn open_options(options: &Options) -> Result<OpenOptions, Failure> {
    // Long enough for every wait that the caller did not think about.
    const TIMEOUT: Duration = Duration::from_secs(10);
    let mut open = OpenOptions::default()
        .create(options.create != 0)
        .read_only(options.read_only != 0)
        .timeout(limit(options.timeout, TIMEOUT)?)
        .wait_limit(limit(options.wait_limit, TIMEOUT)?)
        .allow_any_filesystem(options.any_filesystem != 0)
        .accept_lost_commits(options.accept_lost_commits != 0);
    if let Some(level) = durability(options.durability)? {
        open = open.durability(level);
    }
    if options.max_size != 0 {
        open = open.max_size(options.max_size);
    }
    if options.file_mode > 0o777 {
        return Err(Failure::invalid(c"file_mode is a mode up to 0777, or 0 for 0600"));
    }
    if options.file_mode != 0 {
        open = open.file_mode(options.file_mode);
    }
    if !options.shm_dir.is_null() {
        // SAFETY: the caller's promise.
        open = open.shm_dir(unsafe { path_of(options.shm_dir) });
    }
    Ok(open)
}

/// # Safety
/// `path` is a string.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

/// `perilune_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_open(
    path: *const c_char,
    options: *const Options,
    db: *mut *mut Database,
) -> c_int {
    let defaults = Options {
        size: size_of::<Options>() as u32,
        create: 1,
        read_only: 0,
        durability: 0,
        max_size: 0,
        timeout: 0.0,
        file_mode: 0,
        any_filesystem: 0,
        shm_dir: std::ptr::null(),
        accept_lost_commits: 0,
        reserved: 0,
        wait_limit: 0.0,
    };
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let db = place(db)?;
            db.write(std::ptr::null_mut());
            let open = open_options(&read(options, defaults)?)?;
            let inner = if path.is_null() {
                perilune::Database::open_default_with(&open)?
            } else {
                open.open(path_of(path))?
            };
            let path = CString::new(inner.path().as_os_str().as_bytes()).unwrap_or_default();
            db.write(Box::into_raw(Box::new(Database { inner, path })));
        }
        Ok(OK)
    })
}

/// `perilune_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_close(db: *mut Database) {
    if db.is_null() {
        return;
    }
    thread_call(|| {
        // SAFETY: made by `Box::into_raw` in perilune_open, and closed once, as the header asks.
        drop(unsafe { Box::from_raw(db) });
        Ok(OK)
    });
}

/// `perilune_path`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_path(db: *const Database) -> *const c_char {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { db.as_ref() }.map_or(c"".as_ptr(), |db| db.path.as_ptr())
}

/// `perilune_is_remote`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_is_remote(db: *const Database) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { db.as_ref() }.is_some_and(|db| db.inner.is_remote()).into()
}

/// `perilune_limits_of`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_limits_of(db: *const Database, limits: *mut Limits) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let limits = place(limits)?;
            let known = given(limits)?.size;
            let of = given(db)?.inner.limits();
            let all = Limits {
                size: known,
                subscripts: perilune::limits::SUBSCRIPTS as u32,
                key_bytes: of.key_bytes as u64,
                private_key_bytes: crate::node::PRIVATE_KEY_BYTES as u64,
                value_bytes: of.value_bytes as u64,
                transaction_depth: u32::try_from(of.transaction_depth).unwrap_or(u32::MAX),
                reserved: 0,
            };
            let bytes = known as usize;
            if !(size_of::<u64>()..=size_of::<Limits>()).contains(&bytes) {
                return Err(Failure::invalid(c"set limits.size to sizeof(perilune_limits) first"));
            }
            std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), limits.cast(), bytes);
        }
        Ok(OK)
    })
}
