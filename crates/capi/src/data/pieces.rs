//! Pieces: a range of bytes of a long string is read or written without the rest.
//!
//! Invariant: the bytes to write are copied first. They may be an answer of the session and lie in its memory,
//! which asking for the string's length overwrites.

use std::ffi::{c_char, c_int};

use perilune::{Error, ErrorCode};

use crate::edge::{bytes, place, store};
use crate::node::{Head, View};
use crate::session::{call, node_of, Session};
use crate::status::{Failure, NOT_FOUND, OK};
use crate::value::Value;

/// A number or another value has no pieces.
fn of_strings(error: Error) -> Failure {
    // NB: by its code, since one that comes from a server is of another variant.
    match error.code() {
        ErrorCode::WrongType => Failure::invalid(c"the node's value is no string: only strings have pieces"),
        _ => error.into(),
    }
}

/// `perilune_get_piece`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_get_piece(
    session: *mut Session,
    node: *const Head,
    offset: usize,
    size: usize,
    piece: *mut Value,
    length: *mut usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks. The piece lies in the session until its next call.
    unsafe {
        call(session, |open| {
            let piece = place(piece)?;
            let range = offset..offset.saturating_add(size);
            let found = open.inner.get_piece(node_of(&View::of(node)?), range).map_err(of_strings)?;
            store(length, found.map_or(0, |found| found.length));
            store(piece, found.map_or(Value::absent(), |found| Value::bytes(found.bytes)));
            Ok(if found.is_some() { OK } else { NOT_FOUND })
        })
    }
}

/// `perilune_set_piece`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_set_piece(
    session: *mut Session,
    node: *const Head,
    offset: usize,
    given: *const c_char,
    size: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let given = bytes(given, size)?.to_vec();
            let whole = open.inner.set_piece(node_of(&View::of(node)?), offset, given).map_err(of_strings)?;
            store(length, whole);
            Ok(OK)
        })
    }
}
