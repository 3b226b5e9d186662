//! Numbers and values without a session: parsing, canonical text, M's lenient reading ("12abc" is 12), addition.
//!
//! Bindings need these without a database: whether the string "1.50" is the subscript 1.5, say. The text of a
//! decimal lies in memory of the thread until its next such call.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};

use perilune::key::{is_canonical, parse_lenient, parse_literal, LiteralError};
use perilune::Number;

use crate::edge::{bytes, copy_out, given, place, store, thread_call};
use crate::status::{Answer, Failure, NOT_FOUND, OK};
use crate::value::{text_of, truth, Text, Value};

thread_local! {
    static TEXT: RefCell<Text> = const { RefCell::new(Text::new()) };
}

/// Stores `number`, with its text in the thread's keeping.
///
/// # Safety
/// `to` is good for writing.
unsafe fn number_out(number: Number, to: *mut Value) -> Answer {
    let value = TEXT.try_with(|text| Value::number(number, &mut text.borrow_mut()));
    let value = value.map_err(|_| Failure::invalid(c"the thread is ending"))?;
    // SAFETY: the caller's promise.
    unsafe { store(to, value) };
    Ok(OK)
}

/// `perilune_value_text`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_value_text(
    value: *const Value,
    buffer: *mut c_char,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe { copy_out(&text_of(given(value)?.given()?), buffer, capacity, size) }
    })
}

/// `perilune_number_parse`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_number_parse(
    text: *const c_char,
    size: usize,
    number: *mut Value,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let number = place(number)?;
            match read(bytes(text, size)?)? {
                Some(read) => number_out(read, number),
                None => {
                    store(number, Value::absent());
                    Ok(NOT_FOUND)
                }
            }
        }
    })
}

fn read(text: &[u8]) -> Result<Option<Number>, Failure> {
    match parse_literal(text) {
        Ok(number) => Ok(Some(number)),
        Err(LiteralError::Syntax(_)) => Ok(None),
        Err(LiteralError::Range(error)) => Err(error.into()),
    }
}

/// `perilune_number_is_canonical`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_number_is_canonical(text: *const c_char, size: usize) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    truth(unsafe { bytes(text, size) }.is_ok_and(is_canonical))
}

/// `perilune_number_canonical`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_number_canonical(
    text: *const c_char,
    size: usize,
    buffer: *mut c_char,
    capacity: usize,
    written: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            match read(bytes(text, size)?)? {
                Some(number) => copy_out(number.to_string().as_bytes(), buffer, capacity, written),
                None => Ok(NOT_FOUND),
            }
        }
    })
}

/// `perilune_number_lenient`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_number_lenient(
    text: *const c_char,
    size: usize,
    number: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    thread_call(|| unsafe { number_out(parse_lenient(bytes(text, size)?)?, place(number)?) })
}

/// `perilune_number_add`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_number_add(
    a: *const Value,
    b: *const Value,
    truncating: c_int,
    sum: *mut Value,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let (a, b) = (given(a)?.as_number()?, given(b)?.as_number()?);
            let total = if truncating != 0 { a.add_truncating(b)? } else { a.checked_add(b)? };
            number_out(total, place(sum)?)
        }
    })
}
