//! `perilune_models_call`: documents, lists and key/value stores by calls.

use std::ffi::{c_char, c_int};

use perilune::{Value as Stored, ValueRef};
use perilune_models::Error;

use crate::edge::{array, bytes, store};
use crate::node::{Head, View};
use crate::session::{answer, call, node_of, Open, Session};
use crate::status::{Failure, INVALID};
use crate::value::Value;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Database(error) => Failure::from(error),
            other => Failure::with(INVALID, other),
        }
    }
}

/// `perilune_models_call`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_models_call(
    session: *mut Session,
    node: *const Head,
    name: *const c_char,
    name_size: usize,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(result, Value::absent());
        call(session, |open| {
            let name = std::str::from_utf8(bytes(name, name_size)?)
                .map_err(|_| Failure::invalid(c"the name of a call is UTF-8"))?;
            let given: Vec<ValueRef<'_>> = array(arguments, count)?
                .iter()
                .map(|value| Ok(value.given()?.unwrap_or(ValueRef::Null)))
                .collect::<Result<_, Failure>>()?;
            let node = node_of(&View::of(node)?).to_node()?;
            let Open { inner, text, .. } = open;
            let shown = match perilune_models::call(inner, &node, name, &given)? {
                None => Value::absent(),
                Some(Stored::String(bytes)) => Value::string(text.keep(bytes)),
                Some(other) => Value::view(other.as_ref(), text),
            };
            answer(result, shown)
        })
    }
}
