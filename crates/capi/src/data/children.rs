//! Reading and writing a descendant that is named by its parent and the subscripts below: no node need be built for
//! it.

use std::ffi::{c_char, c_int};

use super::{addend, data, get, incr, set};
use crate::edge::{array, bytes};
use crate::node::{Head, View};
use crate::session::{answer, call, child, descendant, Session};
use crate::status::OK;
use crate::value::{Given, Value};

/// `perilune_get_child_int`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get_child_int(
    session: *mut Session,
    parent: *const Head,
    subscript: i64,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Int(subscript))?;
            get(open.inner, open.text, node, value)
        })
    }
}

/// `perilune_set_child_int`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_child_int(
    session: *mut Session,
    parent: *const Head,
    subscript: i64,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Int(subscript))?;
            set(open.inner, node, value)
        })
    }
}

/// `perilune_incr_child_int`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr_child_int(
    session: *mut Session,
    parent: *const Head,
    subscript: i64,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Int(subscript))?;
            incr(open.inner, open.text, node, by, result)
        })
    }
}

/// `perilune_get_child_str`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get_child_str(
    session: *mut Session,
    parent: *const Head,
    subscript: *const c_char,
    subscript_size: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Bytes(bytes(subscript, subscript_size)?))?;
            get(open.inner, open.text, node, value)
        })
    }
}

/// `perilune_set_child_str`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_child_str(
    session: *mut Session,
    parent: *const Head,
    subscript: *const c_char,
    subscript_size: usize,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Bytes(bytes(subscript, subscript_size)?))?;
            set(open.inner, node, value)
        })
    }
}

/// `perilune_incr_child_str`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr_child_str(
    session: *mut Session,
    parent: *const Head,
    subscript: *const c_char,
    subscript_size: usize,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = child(open.key, &View::of(parent)?, Given::Bytes(bytes(subscript, subscript_size)?))?;
            incr(open.inner, open.text, node, by, result)
        })
    }
}

/// `perilune_get_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            get(open.inner, open.text, node, value)
        })
    }
}

/// `perilune_set_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            set(open.inner, node, value)
        })
    }
}

/// `perilune_incr_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            incr(open.inner, open.text, node, by, result)
        })
    }
}

/// `perilune_data_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_data_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    found: *mut i32,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            data(open.inner, node, found)
        })
    }
}

/// `perilune_incr_truncating_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr_truncating_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            let sum = open.inner.increment_truncating(node, addend(by)?)?;
            answer(result, Value::number(sum, open.text))
        })
    }
}

/// `perilune_kill_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_kill_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.delete_tree(descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?)?;
            Ok(OK)
        })
    }
}
