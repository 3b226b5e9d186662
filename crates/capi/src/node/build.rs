//! Building nodes: names, children, ancestors, from text, from encoded keys.

use std::ffi::{c_char, c_int, c_void};

use perilune::key::{
    encode_bytes, encode_int, parse_key, prefix_ends, KeyBuf, KeyError, KeyText, Number, Space,
    MAX_NUMBER_CODE, MAX_SUBSCRIPTS,
};

use super::{push, Block, Head, Parts, View};
use crate::edge::{array, bytes, given, thread_call};
use crate::status::{Answer, Failure};
use crate::value::{Given, Value};

/// `perilune_node_root`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_root(
    buffer: *mut c_void,
    capacity: usize,
    name: *const c_char,
    name_size: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let (key, private) = root_key(bytes(name, name_size)?)?;
            Block { buffer, capacity, size }.write_key(key.as_bytes(), 0, private)
        }
    })
}

/// The key of a name, and whether the name is private.
pub(super) fn root_key(name: &[u8]) -> Result<(KeyBuf, bool), Failure> {
    Ok(match name.strip_prefix(b"^") {
        Some(name) => (KeyBuf::global(name)?, false),
        None => (KeyBuf::local(name)?, true),
    })
}

/// `perilune_node_child_int`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_child_int(
    buffer: *mut c_void,
    capacity: usize,
    parent: *const Head,
    subscript: i64,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        let mut code = [0; 16];
        let length = encode_int(subscript, &mut code);
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe { write_coded(Block { buffer, capacity, size }, View::of(parent)?, &code[..length]) }
    })
}

/// `perilune_node_child_str`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_child_str(
    buffer: *mut c_void,
    capacity: usize,
    parent: *const Head,
    subscript: *const c_char,
    subscript_size: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let (subscript, parent) = (bytes(subscript, subscript_size)?, View::of(parent)?);
            let block = Block { buffer, capacity, size };
            if subscript.len() > SHORT {
                return write_child(block, parent, Given::Bytes(subscript));
            }
            let mut code = [0; CODE_OF_SHORT];
            match encode_bytes(subscript, &mut code) {
                Some(length) => write_coded(block, parent, &code[..length]),
                None => write_child(block, parent, Given::Bytes(subscript)),
            }
        }
    })
}

/// `perilune_node_child_double`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_child_double(
    buffer: *mut c_void,
    capacity: usize,
    parent: *const Head,
    subscript: f64,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        let subscript = Given::Number(Number::from_f64(subscript)?);
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe { write_child(Block { buffer, capacity, size }, View::of(parent)?, subscript) }
    })
}

/// Bytes of a string whose code is made on the stack, and of that code: a tag, an end, and every byte
/// escaped; or a number's, which may be longer.
const SHORT: usize = 32;
const CODE_OF_SHORT: usize = 2 * SHORT + 2;
const _: () = assert!(CODE_OF_SHORT >= MAX_NUMBER_CODE);

/// Writes the child of `parent` whose subscript has this code.
///
/// # Safety
/// As [`Block::write`].
#[inline]
unsafe fn write_coded(block: Block, parent: View<'_>, code: &[u8]) -> Answer {
    if parent.depth >= MAX_SUBSCRIPTS {
        return Err(KeyError::TooManySubscripts.into());
    }
    let limit = parent.limit();
    if parent.key.len() + code.len() > limit {
        return Err(KeyError::KeyTooLong { limit }.into());
    }
    let parts = Parts { front: parent.key, last: code, depth: parent.depth + 1, private: parent.private };
    // SAFETY: the caller's promise; `code` lies on the stack.
    unsafe { block.write(parts) }
}

/// # Safety
/// As [`Block::write`].
unsafe fn write_child(block: Block, parent: View<'_>, subscript: Given<'_>) -> Answer {
    let mut key = parent.to_key()?;
    push(&mut key, subscript)?;
    let (front, last) = key.as_bytes().split_at(parent.key.len());
    let parts = Parts { front, last, depth: parent.depth + 1, private: parent.private };
    // SAFETY: the caller's promise; `key` is a copy of its own.
    unsafe { block.write(parts) }
}

/// `perilune_node_child`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_child(
    buffer: *mut c_void,
    capacity: usize,
    parent: *const Head,
    subscripts: *const Value,
    count: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let parent = View::of(parent)?;
            let mut key = parent.to_key()?;
            for subscript in array(subscripts, count)? {
                push(&mut key, subscript.as_subscript()?)?;
            }
            Block { buffer, capacity, size }.write_key(key.as_bytes(), parent.depth + count, parent.private)
        }
    })
}

/// `perilune_node_ancestor`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_ancestor(
    buffer: *mut c_void,
    capacity: usize,
    node: *const Head,
    depth: u32,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let node = View::of(node)?;
            let depth = depth as usize;
            if depth > node.depth {
                return Err(Failure::invalid(c"an ancestor has no more subscripts than the node"));
            }
            let end = prefix_ends(node.key)?.nth(depth).transpose()?.unwrap_or(0);
            // NB: the buffer may be the node itself: take the key out of it first.
            let key = View { key: &node.key[..end], depth, ..node }.to_key()?;
            Block { buffer, capacity, size }.write_key(key.as_bytes(), depth, node.private)
        }
    })
}

/// `perilune_node_parse`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_parse(
    buffer: *mut c_void,
    capacity: usize,
    text: *const c_char,
    text_size: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let KeyText { space, key } = parse_key(bytes(text, text_size)?)?;
            let private = space == Space::Local;
            Block { buffer, capacity, size }.write_key(key.as_bytes(), key.depth(), private)
        }
    })
}

/// `perilune_node_from_key`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_from_key(
    buffer: *mut c_void,
    capacity: usize,
    key: *const c_void,
    key_size: usize,
    flags: u32,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        let private = match flags {
            0 => false,
            1 => true,
            _ => return Err(Failure::invalid(c"the flags of a node are 0 or PERILUNE_NODE_PRIVATE")),
        };
        let limit = if private { super::PRIVATE_KEY_BYTES } else { super::KEY_BYTES };
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let key = KeyBuf::from_encoded(bytes(key.cast(), key_size)?, limit)?;
            Block { buffer, capacity, size }.write_key(key.as_bytes(), key.depth(), private)
        }
    })
}

/// `perilune_node_set_last`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_set_last(
    node: *mut Head,
    capacity: usize,
    subscript: *const Value,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks. The view of the node ends
        // before its block is written: the key is a copy.
        unsafe {
            let view = View::of(node)?;
            let (depth, private, parent_size) = (view.depth, view.private, view.parent_key().len());
            let mut key = view.to_parent_key()?;
            push(&mut key, given(subscript)?.as_subscript()?)?;
            let (front, last) = key.as_bytes().split_at(parent_size);
            let block = Block { buffer: node.cast(), capacity, size: std::ptr::null_mut() };
            block.write(Parts { front, last, depth, private })
        }
    })
}
