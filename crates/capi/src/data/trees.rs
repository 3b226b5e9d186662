//! Whole subtrees and many nodes at once: copy, merge, count, get and set of a batch.
//!
//! Invariant: the values that a batch reads lie together in memory of the session until its next call.

use std::ffi::c_int;

use perilune::{Batch, NodeRef};

use crate::edge::{array, place};
use crate::node::{Head, View};
use crate::session::{call, node_of, Session};
use crate::status::{Answer, Failure, OK};
use crate::value::Value;

/// `perilune_copy`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_copy(session: *mut Session, from: *const Head, to: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.copy(node_of(&View::of(from)?), node_of(&View::of(to)?))?;
            Ok(OK)
        })
    }
}

/// `perilune_merge`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_merge(session: *mut Session, from: *const Head, to: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.merge(node_of(&View::of(from)?), node_of(&View::of(to)?))?;
            Ok(OK)
        })
    }
}

/// `perilune_count_children`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_count_children(
    session: *mut Session,
    node: *const Head,
    count: *mut u64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let count = place(count)?;
            count.write(open.inner.count_children(node_of(&View::of(node)?))?);
            Ok(OK)
        })
    }
}

/// `perilune_count_nodes`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_count_nodes(
    session: *mut Session,
    node: *const Head,
    count: *mut u64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let count = place(count)?;
            count.write(open.inner.count_valued(node_of(&View::of(node)?))?);
            Ok(OK)
        })
    }
}

/// The nodes of a batch.
///
/// # Safety
/// `nodes` is NULL or good for reading `count` pointers, each NULL or a node.
unsafe fn nodes_of<'a>(nodes: *const *const Head, count: usize) -> Result<Vec<NodeRef<'a>>, Failure> {
    // SAFETY: the caller's promise.
    let nodes = unsafe { array(nodes, count)? };
    // SAFETY: the caller's promise.
    nodes.iter().map(|node| Ok(node_of(&unsafe { View::of(*node) }?))).collect()
}

/// `perilune_get_many`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get_many(
    session: *mut Session,
    nodes: *const *const Head,
    count: usize,
    values: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let nodes = nodes_of(nodes, count)?;
            if nodes.is_empty() {
                return Ok(OK);
            }
            let values = place(values)?;
            *open.batch = open.inner.get_many(nodes.iter().copied())?;
            open.texts.clear();
            open.texts.resize_with(open.batch.len(), crate::value::Text::new);
            for (index, (found, text)) in open.batch.iter().zip(open.texts.iter_mut()).enumerate() {
                let value = found.as_ref().map_or(Value::absent(), |value| Value::view(value.as_ref(), text));
                values.add(index).write(value);
            }
            Ok(OK)
        })
    }
}

/// `perilune_set_many`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_many(
    session: *mut Session,
    nodes: *const *const Head,
    count: usize,
    values: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| set_many(open.inner, &nodes_of(nodes, count)?, array(values, count)?)) }
}

/// `perilune_set_each`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_each(
    session: *mut Session,
    nodes: *const *const Head,
    count: usize,
    values: *const Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let mut batch = Batch::new();
            for (node, value) in array(nodes, count)?.iter().zip(array(values, count)?) {
                let value = value.given()?.ok_or(NOTHING_TO_SET)?;
                batch.push(node_of(&View::of(*node)?), value)?;
            }
            open.inner.set_each(&batch)?;
            Ok(OK)
        })
    }
}

const NOTHING_TO_SET: Failure = Failure::invalid(c"a value to be set is absent: perilune_set_many deletes");

/// # Safety
/// The bytes of the values are good for reading.
unsafe fn set_many(inner: &mut perilune::Session, nodes: &[NodeRef<'_>], values: &[Value]) -> Answer {
    // NB: the bytes may lie in the session, where they would be overwritten: copy them first.
    let mut pairs = Vec::with_capacity(nodes.len());
    for (node, value) in nodes.iter().zip(values) {
        // SAFETY: the caller's promise.
        let value = unsafe { value.given() }?.map(|value| value.to_owned_value());
        pairs.push((*node, value));
    }
    inner.transaction(|session| {
        for (node, value) in &pairs {
            match value {
                Some(value) => session.set(*node, value)?,
                None => {
                    session.delete_value(*node)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(OK)
}
