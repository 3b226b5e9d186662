//! Taking nodes apart: depth, name, subscripts, text, order.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ffi::{c_char, c_int};

use perilune::key::{split_name, subscripts, write_key};

use super::{Head, View};
use crate::edge::{copy_out, place, store, thread_call};
use crate::status::{Answer, Failure, NOT_FOUND, OK};
use crate::value::{truth, Text, Value};

thread_local! {
    static TEXT: RefCell<Text> = const { RefCell::new(Text::new()) };
}

/// Writes a key as text.
struct Printed<'a>(View<'a>);

impl std::fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.0.private {
            f.write_str("^")?;
        }
        write_key(self.0.key, f)
    }
}

/// Makes a value whose bytes the thread keeps, and stores it.
///
/// # Safety
/// `to` is good for writing.
unsafe fn keep(to: *mut Value, make: impl FnOnce(&mut Text) -> Value) -> Answer {
    let value = TEXT.try_with(|text| make(&mut text.borrow_mut()));
    let value = value.map_err(|_| Failure::invalid(c"the thread is ending"))?;
    // SAFETY: the caller's promise.
    unsafe { store(to, value) };
    Ok(OK)
}

/// `perilune_node_depth`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_depth(node: *const Head) -> u32 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { node.as_ref() }.map_or(0, |head| u32::from(head.depth))
}

/// `perilune_node_name`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_name(node: *const Head, name: *mut Value) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    thread_call(|| unsafe { name_out(View::of(node)?, place(name)?) })
}

/// # Safety
/// `to` is good for writing.
unsafe fn name_out(node: View<'_>, to: *mut Value) -> Answer {
    let (name, _) = split_name(node.key)?;
    // SAFETY: the caller's promise.
    unsafe { keep(to, |text| Value::string(text.name(name, node.private))) }
}

/// `perilune_node_subscript`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_subscript(
    node: *const Head,
    index: u32,
    subscript: *mut Value,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let node = View::of(node)?;
            let subscript = place(subscript)?;
            let index = index as usize;
            if index == 0 {
                return name_out(node, subscript);
            }
            match subscripts(node.key)?.nth(index - 1).transpose()? {
                Some(found) => keep(subscript, |text| Value::subscript(found, text)),
                None => {
                    store(subscript, Value::absent());
                    Ok(NOT_FOUND)
                }
            }
        }
    })
}

/// `perilune_node_text`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_text(
    node: *const Head,
    buffer: *mut c_char,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe { copy_out(Printed(View::of(node)?).to_string().as_bytes(), buffer, capacity, size) }
    })
}

/// `perilune_node_compare`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_compare(a: *const Head, b: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    let (a, b) = unsafe { (View::of(a).ok(), View::of(b).ok()) };
    // Private names stand before those of the database, as in the Rust API; no node before any.
    match a.map(order).cmp(&b.map(order)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn order<'a>(view: View<'a>) -> (bool, &'a [u8]) {
    (!view.private, view.key)
}

/// `perilune_node_contains`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_node_contains(node: *const Head, below: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    let views = unsafe { (View::of(node), View::of(below)) };
    truth(match views {
        (Ok(node), Ok(below)) => node.private == below.private && below.key.starts_with(node.key),
        _ => false,
    })
}
