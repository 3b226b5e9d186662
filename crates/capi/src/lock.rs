//! Locks of a session or of an owner that the caller made.

use std::ffi::c_int;

use perilune::{LockMode, LockOwner, LockOwners};

use crate::edge::{array, place};
use crate::node::{Head, View};
use crate::options::timeout;
use crate::session::{call, node_of, Session};
use crate::status::{Failure, NOT_FOUND, OK, TIMED_OUT};

/// `perilune_lock_request`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    /// What is to be locked.
    pub node: *const Head,
    /// `enum perilune_lock_mode`.
    pub mode: i32,
    /// Reserved for later versions: 0.
    pub reserved: u32,
}

/// Zero is the session's own owner.
fn owner_of(inner: &perilune::Session, owner: u64) -> LockOwner {
    match owner {
        0 => inner.lock_owner(),
        owner => LockOwner(owner),
    }
}

fn mode_of(mode: i32) -> Result<LockMode, Failure> {
    match mode {
        0 => Ok(LockMode::Exclusive),
        1 => Ok(LockMode::Shared),
        _ => Err(Failure::invalid(c"the mode of a lock is PERILUNE_LOCK_EXCLUSIVE or _SHARED")),
    }
}

/// `perilune_lock_owner`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_lock_owner(session: *mut Session, owner: *mut u64) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            place(owner)?.write(open.inner.new_lock_owner().0);
            Ok(OK)
        })
    }
}

/// `perilune_lock`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_lock(
    session: *mut Session,
    owner: u64,
    node: *const Head,
    mode: i32,
    seconds: f64,
) -> c_int {
    let request = Request { node, mode, reserved: 0 };
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { perilune_lock_many(session, owner, &request, 1, seconds) }
}

/// `perilune_lock_many`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_lock_many(
    session: *mut Session,
    owner: u64,
    requests: *const Request,
    count: usize,
    seconds: f64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let mut locks = Vec::with_capacity(count.min(perilune::limits::LOCKS_PER_CALL));
            for request in array(requests, count)? {
                locks.push((node_of(&View::of(request.node)?), mode_of(request.mode)?));
            }
            let owner = owner_of(open.inner, owner);
            let taken = open.inner.lock_all(owner, locks, timeout(seconds)?)?;
            Ok(if taken { OK } else { TIMED_OUT })
        })
    }
}

/// `perilune_unlock`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_unlock(session: *mut Session, owner: u64, node: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let owner = owner_of(open.inner, owner);
            let held = open.inner.unlock_as(owner, node_of(&View::of(node)?))?;
            Ok(if held { OK } else { NOT_FOUND })
        })
    }
}

/// `perilune_unlock_all`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_unlock_all(session: *mut Session, owner: u64) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let owner = owner_of(open.inner, owner);
            open.inner.unlock_all(owner)?;
            Ok(OK)
        })
    }
}

/// `perilune_lock_count`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_lock_count(
    session: *mut Session,
    owner: u64,
    node: *const Head,
    count: *mut u32,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let count = place(count)?;
            let owner = owner_of(open.inner, owner);
            count.write(open.inner.lock_count(owner, node_of(&View::of(node)?))?);
            Ok(OK)
        })
    }
}
