//! Single steps through the tree: to a sibling, a child, a node with a value, a name. Each is a search of its own;
//! a cursor is for many.
//!
//! Invariant: a subscript that is given to C lies in memory of the session until the session's next call.

use std::ffi::{c_char, c_int, c_void};

use perilune::key::is_name;
use perilune::{Neighbour, NodeRef, Steps};

use crate::edge::{array, bytes, place, store};
use crate::node::{Block, Head, View};
use crate::session::{answer, call, child, descendant, node_of, Open, Session};
use crate::status::{Answer, Failure, INVALID_NAME, NOT_FOUND, OK};
use crate::value::{Text, Value};

/// Stores the last subscript of `found`, or its name.
///
/// # Safety
/// `to` is good for writing.
unsafe fn found_out(found: Option<NodeRef<'_>>, text: &mut Text, to: *mut Value) -> Answer {
    let Some(found) = found else {
        // SAFETY: the caller's promise.
        unsafe { store(to, Value::absent()) };
        return Ok(NOT_FOUND);
    };
    let value = match found.last()? {
        Some(subscript) => Value::subscript(subscript, text),
        None => Value::string(text.name(found.name()?, found.is_local())),
    };
    // SAFETY: the caller's promise.
    unsafe { answer(to, value) }
}

/// # Safety
/// As the header asks of the pointers of `perilune_next`.
unsafe fn sibling(
    session: *mut Session,
    which: Neighbour,
    node: *const Head,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(session, |open| {
            let subscript = place(subscript)?;
            let found = open.inner.neighbour(which, node_of(&View::of(node)?))?;
            found_out(found, open.text, subscript)
        })
    }
}

/// `perilune_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_next(
    session: *mut Session,
    node: *const Head,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { sibling(session, Neighbour::Next, node, subscript) }
}

/// `perilune_previous`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_previous(
    session: *mut Session,
    node: *const Head,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { sibling(session, Neighbour::Previous, node, subscript) }
}

/// # Safety
/// As the header asks of the pointers of `perilune_next_child`.
unsafe fn sibling_below(
    session: *mut Session,
    which: Neighbour,
    parent: *const Head,
    (subscripts, count): (*const Value, usize),
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(session, |open| {
            let subscript = place(subscript)?;
            let node = descendant(open.key, &View::of(parent)?, array(subscripts, count)?)?;
            let found = open.inner.neighbour(which, node)?;
            found_out(found, open.text, subscript)
        })
    }
}

/// `perilune_next_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_next_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { sibling_below(session, Neighbour::Next, parent, (subscripts, count), subscript) }
}

/// `perilune_previous_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_previous_child(
    session: *mut Session,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { sibling_below(session, Neighbour::Previous, parent, (subscripts, count), subscript) }
}

/// # Safety
/// As the header asks of the pointers of `perilune_child_next`.
unsafe fn child_step(
    session: *mut Session,
    (outermost, beside): (Neighbour, Neighbour),
    parent: *const Head,
    from: *const Value,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(session, |open| {
            let (parent, subscript) = (View::of(parent)?, place(subscript)?);
            let found = match from.as_ref() {
                None => open.inner.neighbour(outermost, node_of(&parent))?,
                Some(from) => {
                    open.inner.neighbour(beside, child(open.key, &parent, from.as_subscript()?)?)?
                }
            };
            found_out(found, open.text, subscript)
        })
    }
}

/// `perilune_child_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_child_next(
    session: *mut Session,
    parent: *const Head,
    after: *const Value,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { child_step(session, (Neighbour::FirstChild, Neighbour::SiblingAfter), parent, after, subscript) }
}

/// `perilune_child_previous`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_child_previous(
    session: *mut Session,
    parent: *const Head,
    before: *const Value,
    subscript: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        child_step(session, (Neighbour::LastChild, Neighbour::SiblingBefore), parent, before, subscript)
    }
}

/// # Safety
/// As the header asks of the pointers of `perilune_node_next`.
unsafe fn move_node(
    session: *mut Session,
    which: Neighbour,
    node: *mut Head,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise. What is found lies in the session, not in the node's block.
    unsafe {
        call(session, |open| {
            let view = View::of(node)?;
            let (depth, private) = (view.depth, view.private);
            match open.inner.neighbour(which, node_of(&view))? {
                Some(found) => {
                    let block = Block { buffer: node.cast(), capacity, size };
                    block.write_key(found.encoded(), depth, private)
                }
                None => Ok(NOT_FOUND),
            }
        })
    }
}

/// `perilune_node_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_next(
    session: *mut Session,
    node: *mut Head,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { move_node(session, Neighbour::Next, node, capacity, size) }
}

/// `perilune_node_previous`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_previous(
    session: *mut Session,
    node: *mut Head,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { move_node(session, Neighbour::Previous, node, capacity, size) }
}

/// # Safety
/// As the header asks of the pointers of `perilune_next_valued`.
unsafe fn valued(
    open: Open<'_>,
    which: Neighbour,
    node: *const Head,
    block: Block,
    value: *mut Value,
) -> Answer {
    // SAFETY: the caller's promise.
    let view = unsafe { View::of(node)? };
    let private = view.private;
    let Some(found) = open.inner.neighbour(which, node_of(&view))? else {
        // SAFETY: the caller's promise.
        unsafe { store(value, Value::absent()) };
        return Ok(NOT_FOUND);
    };
    open.key.clear();
    open.key.extend_from_slice(found.encoded());
    // SAFETY: the caller's promise; the key lies in the session's memory.
    unsafe { block.write_key(open.key, crate::node::depth_of(open.key)?, private)? };
    if value.is_null() {
        return Ok(OK);
    }
    let found = open.inner.get_ref(NodeRef::from_encoded(open.key, private))?;
    // SAFETY: the caller's promise.
    unsafe { answer(value, found.map_or(Value::absent(), |found| Value::view(found, open.text))) }
}

/// `perilune_next_valued`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_next_valued(
    session: *mut Session,
    node: *const Head,
    buffer: *mut c_void,
    capacity: usize,
    size: *mut usize,
    value: *mut Value,
) -> c_int {
    let block = Block { buffer, capacity, size };
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| valued(open, Neighbour::NextValued, node, block, value)) }
}

/// `perilune_previous_valued`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_previous_valued(
    session: *mut Session,
    node: *const Head,
    buffer: *mut c_void,
    capacity: usize,
    size: *mut usize,
    value: *mut Value,
) -> c_int {
    let block = Block { buffer, capacity, size };
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| valued(open, Neighbour::PreviousValued, node, block, value)) }
}

/// # Safety
/// `to` is NULL or good for writing.
unsafe fn name_step(open: Open<'_>, name: &[u8], forwards: bool, to: *mut Value) -> Answer {
    let to = place(to)?;
    let (name, local) = match name.strip_prefix(b"^") {
        Some(name) => (name, false),
        None => (name, true),
    };
    if name.is_empty() {
        let end = if forwards { open.inner.first_name(local)? } else { open.inner.last_name(local)? };
        // SAFETY: the caller's promise.
        return unsafe { found_out(end.as_ref().map(NodeRef::from), open.text, to) };
    }
    if !is_name(name) {
        return Err(Failure::fixed(INVALID_NAME, c"names are listed from a name, \"^\" or \"\""));
    }
    open.key.clear();
    open.key.extend_from_slice(name);
    open.key.push(0);
    let which = if forwards { Neighbour::SiblingAfter } else { Neighbour::SiblingBefore };
    let found = open.inner.neighbour(which, NodeRef::from_encoded(open.key, local))?;
    // SAFETY: the caller's promise.
    unsafe { found_out(found, open.text, to) }
}

/// `perilune_name_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_name_next(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    next: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| name_step(open, bytes(name, name_size)?, true, next)) }
}

/// `perilune_name_previous`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_name_previous(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    previous: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| name_step(open, bytes(name, name_size)?, false, previous)) }
}
