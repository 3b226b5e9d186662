//! `perilune_dom_*`: documents of XML by calls with the DOM's names.
//!
//! Invariants
//! - An answer is its own memory: it stays until it is closed, whatever becomes of the session.
//! - What a document refuses is `PERILUNE_DOM`, whose message begins with the DOM's name of the error; a conflict and what
//!   the database refuses have their own codes.

use std::ffi::{c_char, c_int};

use perilune::{Value as Stored, ValueRef};
use perilune_dom::{Answer as DomAnswer, Argument, Dom, DomError};

use crate::edge::{array, bytes, given, store, thread_call};
use crate::node::{Head, View};
use crate::session::{answer, call, node_of, Open, Session};
use crate::status::{Failure, DOM, INVALID, NOT_FOUND, OK};
use crate::value::{text_of, Value};

/// `perilune_dom_answer`.
pub struct Answer {
    answer: DomAnswer,
}

impl From<DomError> for Failure {
    fn from(error: DomError) -> Failure {
        match error.dom_name() {
            Some(name) => Failure::with(DOM, format_args!("{name}: {error}")),
            None => match error {
                DomError::Database(error) => Failure::from(error),
                other => Failure::with(INVALID, other),
            },
        }
    }
}

/// The value as a document takes it.
///
/// # Safety
/// The bytes of a string or decimal are good for reading for `'a`.
unsafe fn argument(value: &Value) -> Result<Argument<'_>, Failure> {
    // SAFETY: the caller's promise.
    Ok(match unsafe { value.given() }? {
        None | Some(ValueRef::Null) => Argument::Nothing,
        Some(ValueRef::Int(integer)) => Argument::Int(integer),
        Some(ValueRef::Bool(truth)) => Argument::Bool(truth),
        Some(ValueRef::Double(real)) => Argument::Double(real),
        Some(ValueRef::Decimal(decimal)) => Argument::Double(f64::from(decimal)),
        Some(ValueRef::String(text)) => {
            let text = std::str::from_utf8(text);
            Argument::Text(text.map_err(|_| Failure::invalid(c"texts of a document are UTF-8"))?)
        }
        Some(ValueRef::EmptyList | ValueRef::EmptyMap | ValueRef::Record(_)) => {
            return Err(Failure::invalid(c"an argument of a document is no list and no map"));
        }
    })
}

/// The answer with values that need no memory to be shown: other numbers than C has, and what else user data may hold, are
/// texts.
fn plain(answer: DomAnswer) -> DomAnswer {
    match answer {
        DomAnswer::Value(value) => match value.as_ref() {
            ValueRef::Null
            | ValueRef::Bool(_)
            | ValueRef::Int(_)
            | ValueRef::Double(_)
            | ValueRef::String(_) => DomAnswer::Value(value),
            other => DomAnswer::Value(Stored::String(text_of(Some(other)))),
        },
        other => other,
    }
}

/// A value that stays where it lies.
fn shown(value: &Stored) -> Value {
    match value.as_ref() {
        ValueRef::Int(integer) => Value::int(integer),
        ValueRef::Double(real) => Value::double(real),
        ValueRef::Bool(truth) => Value::bool(truth),
        ValueRef::String(text) => Value::bytes(text),
        _ => Value::null(),
    }
}

/// `perilune_dom_call`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_dom_call(
    session: *mut Session,
    document: *const Head,
    name: *const c_char,
    name_size: usize,
    arguments: *const Value,
    count: usize,
    result: *mut *mut Answer,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(result, std::ptr::null_mut());
        call(session, |open| {
            let name = std::str::from_utf8(bytes(name, name_size)?)
                .map_err(|_| Failure::invalid(c"the name of a call is UTF-8"))?;
            let arguments = array(arguments, count)?;
            let arguments =
                arguments.iter().map(|value| argument(value)).collect::<Result<Vec<_>, Failure>>()?;
            let dom = Dom::at(node_of(&View::of(document)?).to_node()?);
            let Open { inner, .. } = open;
            let answer = plain(dom.call(inner, name, &arguments)?);
            if !result.is_null() {
                store(result, Box::into_raw(Box::new(Answer { answer })));
            }
            Ok(OK)
        })
    }
}

/// `perilune_dom_kind`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_dom_kind(result: *const Answer) -> i32 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { result.as_ref() }.map_or(0, |result| match result.answer {
        DomAnswer::Nothing => 0,
        DomAnswer::Value(_) => 1,
        DomAnswer::Node(_) => 2,
        DomAnswer::Values(_) => 3,
        DomAnswer::Nodes(_) => 4,
    })
}

/// `perilune_dom_count`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_dom_count(result: *const Answer) -> usize {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { result.as_ref() }.map_or(0, |result| match &result.answer {
        DomAnswer::Nothing => 0,
        DomAnswer::Value(_) | DomAnswer::Node(_) => 1,
        DomAnswer::Values(values) => values.len(),
        DomAnswer::Nodes(nodes) => nodes.len(),
    })
}

/// `perilune_dom_value`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_dom_value(result: *const Answer, index: usize, value: *mut Value) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let found = match &given(result)?.answer {
                DomAnswer::Value(found) if index == 0 => Some(shown(found)),
                DomAnswer::Node(node) if index == 0 => Some(Value::int(node.number())),
                DomAnswer::Values(values) => values.get(index).map(shown),
                DomAnswer::Nodes(nodes) => nodes.get(index).map(|node| Value::int(node.number())),
                _ => None,
            };
            found.map_or(Ok(NOT_FOUND), |found| answer(value, found))
        }
    })
}

/// `perilune_dom_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_dom_close(result: *mut Answer) {
    thread_call(|| {
        if !result.is_null() {
            // SAFETY: made by `Box::into_raw`, and by the header nobody uses it any more.
            drop(unsafe { Box::from_raw(result) });
        }
        Ok(OK)
    });
}
