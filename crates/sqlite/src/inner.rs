//! The connection as callbacks reach it: the handle, the host that is lent now, and a panic on its way.
//!
//! Invariants
//! - `host` is null, or what a caller further up the stack has lent by a `&mut H` that it does not use meanwhile.
//! - A callback that holds the host as `&mut H` hands it on when it calls SQLite in a way that may call back; else none is lent.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;

use libsqlite3_sys as ffi;

use crate::error::Failure;

/// A panic that was caught.
type Panic = Box<dyn Any + Send>;

/// Asked now and then whether a statement is to end.
pub(crate) type Progress = Box<dyn FnMut() -> bool>;

/// Something that a statement wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action<'a> {
    /// `SQLITE_READ`, `SQLITE_ATTACH` and so on.
    pub code: i32,
    /// What it is done to: the table, the pragma, by the code.
    pub first: Option<&'a str>,
    /// More of it: the column, the argument of the pragma, by the code.
    pub second: Option<&'a str>,
    /// The view or trigger whose text does it; none: the statement's own.
    pub inside: Option<&'a str>,
}

/// Asked whether a statement may do something.
pub(crate) type Authorizer = Box<dyn Fn(&Action<'_>) -> bool>;

/// What a connection and its statements share.
pub(crate) struct Inner<H> {
    pub(crate) db: *mut ffi::sqlite3,
    host: Cell<*mut H>,
    panic: RefCell<Option<Panic>>,
    pub(crate) progress: RefCell<Option<Progress>>,
    pub(crate) authorizer: RefCell<Option<Authorizer>>,
}

impl<H> Inner<H> {
    pub(crate) fn new(db: *mut ffi::sqlite3) -> Inner<H> {
        Inner {
            db,
            host: Cell::new(ptr::null_mut()),
            panic: RefCell::new(None),
            progress: RefCell::new(None),
            authorizer: RefCell::new(None),
        }
    }

    /// Runs `call`, which calls SQLite, with `host` lent to its callbacks.
    pub(crate) fn lend<R>(&self, host: &mut H, call: impl FnOnce() -> R) -> R {
        self.with(host, call)
    }

    /// Runs `call`, which calls SQLite, without a host for callbacks.
    pub(crate) fn alone<R>(&self, call: impl FnOnce() -> R) -> R {
        self.with(ptr::null_mut(), call)
    }

    fn with<R>(&self, host: *mut H, call: impl FnOnce() -> R) -> R {
        let before = self.host.replace(host);
        let result = call();
        self.host.set(before);
        // NB: only when nobody is left in C: an outer callback's edge would catch it anyhow, and keep it for its own caller.
        if !std::thread::panicking() {
            if let Some(panic) = self.panic.take() {
                resume_unwind(panic);
            }
        }
        result
    }

    /// Runs a callback: with the host, if one is lent; a panic becomes a failure of the statement.
    ///
    /// # Safety
    /// It is called by C in the call of [`Inner::lend`] or [`Inner::alone`] that is innermost, on the same thread.
    #[inline]
    pub(crate) unsafe fn callback<R>(
        &self,
        body: impl FnOnce(Option<&mut H>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        // SAFETY: by the invariant nobody else uses what is lent while C, which has called us, runs; and C runs one callback at a
        // time, in which the host is handed on by reborrow alone.
        let host = unsafe { self.host.get().as_mut() };
        match catch_unwind(AssertUnwindSafe(|| body(host))) {
            Ok(result) => result,
            Err(panic) => {
                self.panic.replace(Some(panic));
                Err(Failure::of(ffi::SQLITE_ABORT, "a callback panicked"))
            }
        }
    }

    /// As [`Inner::callback`], for one that cannot do without a host.
    ///
    /// # Safety
    /// As [`Inner::callback`].
    #[inline]
    pub(crate) unsafe fn hosted<R>(
        &self,
        body: impl FnOnce(&mut H) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        // SAFETY: the caller's.
        unsafe {
            self.callback(|host| match host {
                Some(host) => body(host),
                None => Err(Failure::of(ffi::SQLITE_MISUSE, "a callback without a host")),
            })
        }
    }
}

impl<H> Drop for Inner<H> {
    fn drop(&mut self) {
        self.host.set(ptr::null_mut());
        // SAFETY: the last owner goes: every statement, each of which owns a share, has been finalized.
        unsafe { ffi::sqlite3_close(self.db) };
    }
}
