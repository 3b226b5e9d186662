//! Watches: waiting until a commit of any process touches a place.

use std::ffi::c_int;

use perilune::{WatchId, WatchScope};

use crate::edge::{array, place};
use crate::node::{Head, View};
use crate::options::timeout;
use crate::session::{call, node_of, Session};
use crate::status::{Failure, OK, TIMED_OUT};

/// `perilune_watch_request`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    /// What is to be watched.
    pub node: *const Head,
    /// `enum perilune_watch_scope`.
    pub scope: i32,
    /// Reserved for later versions: 0.
    pub reserved: u32,
}

fn scope_of(scope: i32) -> Result<WatchScope, Failure> {
    match scope {
        0 => Ok(WatchScope::Node),
        1 => Ok(WatchScope::Subtree),
        _ => Err(Failure::invalid(c"the scope of a watch is PERILUNE_WATCH_NODE or _SUBTREE")),
    }
}

/// `perilune_watch`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_watch(
    session: *mut Session,
    requests: *const Request,
    count: usize,
    watch: *mut u64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let watch = place(watch)?;
            let mut places = Vec::with_capacity(count.min(perilune::limits::WATCH_PLACES));
            for request in array(requests, count)? {
                places.push((node_of(&View::of(request.node)?), scope_of(request.scope)?));
            }
            watch.write(open.inner.watch(places)?.0);
            Ok(OK)
        })
    }
}

/// `perilune_wait`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_wait(session: *mut Session, watch: u64, seconds: f64) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let touched = open.inner.wait(WatchId(watch), timeout(seconds)?)?;
            Ok(if touched { OK } else { TIMED_OUT })
        })
    }
}

/// `perilune_watch_descriptor`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_watch_descriptor(
    session: *mut Session,
    watch: u64,
    descriptor: *mut i32,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let descriptor = place(descriptor)?;
            descriptor.write(open.inner.watch_descriptor(WatchId(watch))?);
            Ok(OK)
        })
    }
}

/// `perilune_unwatch`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_unwatch(session: *mut Session, watch: u64) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.unwatch(WatchId(watch));
            Ok(OK)
        })
    }
}
