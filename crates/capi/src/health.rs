//! What an operator asks: what there is, and whether it is sound.

use std::ffi::c_int;

use crate::edge::{place, store};
use crate::session::{answer, call, Session};
use crate::status::Failure;
use crate::value::Value;

/// `perilune_stat`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_stat(session: *mut Session, json: *mut Value) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let json = place(json)?;
            let text = stat(open.db, open.inner)?;
            answer(json, Value::string(open.text.keep(text.into_bytes())))
        })
    }
}

fn stat(db: &perilune::Database, inner: &mut perilune::Session) -> Result<String, Failure> {
    let limits = db.limits();
    let mut names = 0u64;
    let mut name = inner.first_name(false)?;
    while let Some(at) = name {
        names += 1;
        name = inner.next(&at)?;
    }
    Ok(format!(
        "{{\"version\":\"{}\",\"names\":{names},\"key_bytes_max\":{},\"value_bytes_max\":{},\"transaction_depth_max\":{}}}",
        env!("CARGO_PKG_VERSION"),
        limits.key_bytes,
        limits.value_bytes,
        limits.transaction_depth,
    ))
}

/// `perilune_verify`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_verify(
    session: *mut Session,
    faults: *mut u64,
    report: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let found = verify(open.inner)?;
            store(faults, found.len() as u64);
            answer(report, Value::string(open.text.keep(found.join("\n").into_bytes())))
        })
    }
}

/// Goes through every node, decodes its key and value, and checks their order.
fn verify(inner: &mut perilune::Session) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    let mut name = inner.first_name(false)?;
    while let Some(top) = name {
        let mut cursor = perilune::Cursor::subtree(&top);
        let mut last = Vec::new();
        while cursor.next(inner)? {
            let node = cursor.node_ref()?;
            if let Err(error) = perilune_key::validate(node.encoded()) {
                faults.push(format!("{node}: {error}"));
            }
            if let Err(error) = cursor.value() {
                faults.push(format!("{node}: {error}"));
            }
            if !last.is_empty() && node.encoded() <= &last[..] {
                faults.push(format!("{node}: out of order"));
            }
            last.clear();
            last.extend_from_slice(node.encoded());
        }
        name = inner.next(&top)?;
    }
    Ok(faults)
}
