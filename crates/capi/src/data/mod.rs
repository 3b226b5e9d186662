//! One node's value: get, set, increment, compare-and-set, data, delete. Its submodules do so for a child, for
//! pieces of strings, and for many nodes.
//!
//! Invariant: a child's key is made in a buffer of the session, so that reading and writing a child allocate
//! nothing.

pub mod children;
pub mod pieces;
pub mod trees;

use std::ffi::c_int;

use perilune::{NodeRef, Number};

use crate::edge::{given, place, store};
use crate::node::{Head, View};
use crate::session::{answer, call, node_of, Session};
use crate::status::{Answer, Failure, DIFFERENT, NOT_FOUND, OK};
use crate::value::{Text, Value};

/// Reads a value.
///
/// # Safety
/// `value` is good for writing.
#[inline]
unsafe fn get(
    inner: &mut perilune::Session,
    text: &mut Text,
    node: NodeRef<'_>,
    value: *mut Value,
) -> Answer {
    let value = place(value)?;
    match inner.get_ref(node)? {
        // SAFETY: the caller's promise. The value's bytes lie in the session until its next call.
        Some(found) => unsafe { answer(value, Value::view(found, text)) },
        None => {
            // SAFETY: the caller's promise.
            unsafe { store(value, Value::absent()) };
            Ok(NOT_FOUND)
        }
    }
}

/// Writes or deletes a value.
///
/// # Safety
/// `value` is NULL or good, with its bytes.
#[inline]
unsafe fn set(inner: &mut perilune::Session, node: NodeRef<'_>, value: *const Value) -> Answer {
    // SAFETY: the caller's promise.
    match unsafe { given(value)?.given() }? {
        Some(value) => inner.set(node, value)?,
        None => {
            inner.delete_value(node)?;
        }
    }
    Ok(OK)
}

/// Adds to a value.
///
/// # Safety
/// `by` is NULL or good, with its bytes; `result` is NULL or good for writing.
#[inline]
unsafe fn incr(
    inner: &mut perilune::Session,
    text: &mut Text,
    node: NodeRef<'_>,
    by: *const Value,
    result: *mut Value,
) -> Answer {
    // SAFETY: the caller's promise.
    let sum = inner.increment(node, unsafe { addend(by) }?)?;
    // SAFETY: the caller's promise.
    unsafe { answer(result, Value::number(sum, text)) }
}

/// # Safety
/// `by` is NULL or good, with its bytes.
unsafe fn addend(by: *const Value) -> Result<Number, Failure> {
    // SAFETY: the caller's promise.
    match unsafe { by.as_ref() } {
        // SAFETY: the caller's promise.
        Some(by) => unsafe { by.as_number() },
        None => Ok(Number::Int(1)),
    }
}

/// # Safety
/// `data` is good for writing.
unsafe fn data(inner: &mut perilune::Session, node: NodeRef<'_>, data: *mut i32) -> Answer {
    let data = place(data)?;
    let found = inner.data(node)?;
    // SAFETY: the caller's promise.
    unsafe { data.write(i32::from(found.number())) };
    Ok(OK)
}

/// `perilune_get`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get(session: *mut Session, node: *const Head, value: *mut Value) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| get(open.inner, open.text, node_of(&View::of(node)?), value)) }
}

/// `perilune_set`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set(
    session: *mut Session,
    node: *const Head,
    value: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| set(open.inner, node_of(&View::of(node)?), value)) }
}

/// `perilune_incr`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr(
    session: *mut Session,
    node: *const Head,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| incr(open.inner, open.text, node_of(&View::of(node)?), by, result)) }
}

/// `perilune_incr_truncating`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_incr_truncating(
    session: *mut Session,
    node: *const Head,
    by: *const Value,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let sum = open.inner.increment_truncating(node_of(&View::of(node)?), addend(by)?)?;
            answer(result, Value::number(sum, open.text))
        })
    }
}

/// `perilune_cas`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cas(
    session: *mut Session,
    node: *const Head,
    expected: *const Value,
    desired: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let node = node_of(&View::of(node)?);
            let absent = Value::absent();
            // NB: the bytes may lie in the session, where they would be overwritten: copy them first.
            let expected = expected.as_ref().unwrap_or(&absent).given()?.map(|value| value.to_owned_value());
            let desired = desired.as_ref().unwrap_or(&absent).given()?.map(|value| value.to_owned_value());
            let done = open.inner.compare_and_set(node, expected, desired)?;
            Ok(if done { OK } else { DIFFERENT })
        })
    }
}

/// `perilune_data`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_data(session: *mut Session, node: *const Head, found: *mut i32) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| data(open.inner, node_of(&View::of(node)?), found)) }
}

/// `perilune_delete`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_delete(session: *mut Session, node: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let there = open.inner.delete_value(node_of(&View::of(node)?))?;
            Ok(if there { OK } else { NOT_FOUND })
        })
    }
}

/// `perilune_kill`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_kill(session: *mut Session, node: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.delete_tree(node_of(&View::of(node)?))?;
            Ok(OK)
        })
    }
}
