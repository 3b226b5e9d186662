//! For operators: figures as JSON, a checkpoint, a check of the whole database, and a handler of SIGBUS that says
//! which database it was.

use std::ffi::c_int;
use std::fmt::Write;

use crate::edge::{place, store, thread_call};
use crate::session::{answer, call, Session};
use crate::status::{Failure, IO, OK};
use crate::value::Value;
use perilune::Steps;

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
    let processes = db.processes()?;
    let sessions: u64 = processes.iter().map(|process| u64::from(process.sessions)).sum();
    let mut text = format!(
        "{{\"version\":\"{}\",\"names\":{names},\"key_bytes_max\":{},\"value_bytes_max\":{},\"transaction_depth_max\":{},\
         \"processes\":{},\"sessions\":{sessions}",
        env!("CARGO_PKG_VERSION"),
        limits.key_bytes,
        limits.value_bytes,
        limits.transaction_depth,
        processes.len(),
    );
    for figure in db.stat()? {
        // Writing to a string cannot fail.
        let _ = write!(text, ",\"{}\":{}", figure.name, figure.value);
    }
    text.push('}');
    Ok(text)
}

/// `perilune_checkpoint`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_checkpoint(session: *mut Session, taken: *mut c_int) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            store(taken, open.db.checkpoint()?.into());
            Ok(OK)
        })
    }
}

/// `perilune_install_sigbus`.
#[no_mangle]
pub extern "C" fn perilune_install_sigbus() -> c_int {
    thread_call(|| match perilune::install_sigbus(None) {
        Ok(()) => Ok(OK),
        Err(error) => Err(Failure::with(IO, format_args!("install a handler for SIGBUS: {error}"))),
    })
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
            let found = open.db.verify()?;
            store(faults, found.faults.len() as u64 + found.more_faults);
            let text = found.faults.join("\n").into_bytes();
            answer(report, Value::string(open.text.keep(text)))
        })
    }
}
